//! `onefold-lab similar FILES…`: similar chunks, what deltas of them save, and how they are compressed
//! together.

use std::path::PathBuf;
use std::time::Instant;

use chunking::{Chunker, Isa, KeyMaterial};
use clap::Args;
use engine::container::CompressionLevel;

use super::output::{STDOUT, partial, tell};
use crate::chunk::contestant::{Contestant, Method};
use crate::chunk::selection::{self, Setting, parse_isa};
use crate::failure::Failure;
use crate::interrupt;
use crate::paper::GivenSet;
use crate::paper::loaded::LoadedSet;
use crate::progress::Progress;
use crate::report::chunk_report::program;
use crate::report::machine::Machine;
use crate::report::similar_report::{
    ChunksReport, LayoutReport, SimilarReport, SimilarResult, SimilarSettings,
};
use crate::report::similar_table;
use crate::similar::base_index::Choice;
use crate::similar::chunks::UniqueChunks;
use crate::similar::coder::Codec;
use crate::similar::detector::DetectorChoice;
use crate::similar::studies::{Bench, Choices, Study};
use crate::units::{parse_bytes, parse_chunk_bytes};

const AFTER_HELP: &str = concat!(
    "\
Each study varies one thing; everything else stays as the options say. Distinct chunks alone are
looked at, in the order of the files. DCR: their bytes over what is left of them, nothing compressed;
DCE: the share that a delta saves, on average; SCR: chunks with a base over those without.
",
    exit_codes!()
);

/// What to look at, and how.
#[derive(Debug, Args)]
#[command(after_help = AFTER_HELP)]
pub struct SimilarArguments {
    /// Files to cut, and directories to find files in
    #[arg(required = true, value_name = "FILES")]
    pub files: Vec<PathBuf>,
    /// What to vary, with commas between them
    #[arg(
        long,
        value_name = "LIST",
        value_enum,
        value_delimiter = ',',
        default_value = "detectors,bases,depths,limits,codecs"
    )]
    pub study: Vec<Study>,
    /// Vary how chunks are compressed together, too
    #[arg(long)]
    pub groups: bool,
    /// What finds similar chunks: n-transform, finesse, odess, odess+, each also with /tiers
    #[arg(long, value_name = "NAME", default_value = "odess+")]
    pub detector: DetectorChoice,
    /// Which of several similar chunks is the base
    #[arg(long, value_name = "NAME", value_enum, default_value_t = Choice::First)]
    pub base: Choice,
    /// Most deltas between a chunk and one that is whole, or `unlimited`
    #[arg(long, value_name = "N", default_value = "1", value_parser = parse_depth)]
    pub depth: Depth,
    /// Longest delta that is kept, in percent of its chunk
    #[arg(long, value_name = "PERCENT", default_value_t = 100, value_parser = clap::value_parser!(u32).range(1..=100))]
    pub delta_limit: u32,
    /// How differences are written down
    #[arg(long, value_name = "NAME", value_enum, default_value_t = Codec::Instructions)]
    pub codec: Codec,
    /// Level of zstd
    #[arg(
        long,
        value_name = "N",
        default_value_t = 3,
        allow_hyphen_values = true
    )]
    pub level: i32,
    /// What cuts
    #[arg(short, long, value_name = "NAME", default_value = "fold")]
    pub algorithm: String,
    /// No chunk but the last of a file is smaller
    #[arg(long, value_name = "SIZE", value_parser = parse_chunk_bytes)]
    pub min: Option<u32>,
    /// Expected size of a chunk
    #[arg(long, value_name = "SIZE", value_parser = parse_chunk_bytes)]
    pub avg: Option<u32>,
    /// No chunk is greater
    #[arg(long, value_name = "SIZE", value_parser = parse_chunk_bytes)]
    pub max: Option<u32>,
    /// Take no more of the data, which is held in memory
    #[arg(long, value_name = "SIZE", default_value = "1G", value_parser = parse_bytes)]
    pub size: u64,
    /// Timed passes; the median counts
    #[arg(long, value_name = "N", default_value_t = 3, value_parser = clap::value_parser!(u16).range(1..))]
    pub runs: u16,
    /// Instruction sets of features: scalar, sse4.1, avx2, avx512, neon; the best there are, unless given
    #[arg(long, value_name = "NAME", value_parser = parse_isa)]
    pub isa: Option<Isa>,
    /// Print JSON
    #[arg(long, conflicts_with = "csv")]
    pub json: bool,
    /// Print the results as CSV, or write them to FILE
    #[arg(long, value_name = "FILE", num_args = 0..=1, require_equals = true, default_missing_value = STDOUT)]
    pub csv: Option<PathBuf>,
    /// Show no progress and no notes
    #[arg(short, long)]
    pub quiet: bool,
}

/// A limit of depth.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Depth(Option<u32>);

fn parse_depth(text: &str) -> Result<Depth, String> {
    if text == "unlimited" {
        return Ok(Depth(None));
    }
    match text.parse() {
        Ok(depth) if depth > 0 => Ok(Depth(Some(depth))),
        _ => Err(format!(
            "'{text}' is no depth: it is 1 or more, or `unlimited`"
        )),
    }
}

/// Measures, and prints what was found out.
pub fn run(arguments: &SimilarArguments) -> anyhow::Result<()> {
    let started = Instant::now();
    interrupt::catch()?;
    let (contestant, chunker) = chunker(arguments)?;
    let level = CompressionLevel::new(arguments.level).filter(|level| level.number() != 0);
    let choices = Choices {
        detector: arguments.detector,
        choice: arguments.base,
        depth: arguments.depth.0,
        limit_percent: arguments.delta_limit,
        codec: arguments.codec,
        level: level.ok_or_else(|| Failure::usage("--level is -7 to 19, and not 0"))?,
        isa: arguments.isa.unwrap_or_else(Isa::best),
        runs: usize::from(arguments.runs),
    };
    let studies = studies(arguments);
    let given = GivenSet {
        name: "the files".to_owned(),
        paths: arguments.files.clone(),
    };
    if arguments.size == 0 {
        return Err(Failure::usage("a size of 0 leaves nothing to measure").into());
    }
    let mut progress = Progress::new(arguments.quiet);
    let (loaded, measured) = LoadedSet::load(&given, arguments.size)?;
    tell(&measured.notices, &progress);
    let files = loaded.files();
    let threads = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
    let unique = UniqueChunks::of(&files, &chunker, threads);
    let mut bench = Bench::new(&unique, choices);
    let (mut results, mut layouts) = (Vec::new(), Vec::new());
    for study in &studies {
        if *study == Study::Groups {
            let found = bench.layouts(&mut progress)?;
            layouts = found
                .iter()
                .map(|it| LayoutReport::new(it, unique.bytes))
                .collect();
        } else {
            let found = bench.run(*study, &mut progress)?;
            results.extend(found.iter().map(SimilarResult::new));
        }
    }
    progress.finish();
    let names = studies.iter().map(|study| study.name()).collect();
    let report = SimilarReport {
        event: "summary",
        command: "similar",
        program: program(),
        settings: SimilarSettings::new(&choices, names, contestant.label, arguments.size),
        machine: Machine::here(),
        data: measured.data,
        chunks: ChunksReport::new(&unique),
        results,
        layouts,
        seconds: started.elapsed().as_secs_f64(),
    };
    write(arguments, &report)?;
    match report.data.failed {
        0 => Ok(()),
        failed => Err(partial(failed, arguments.json)),
    }
}

/// Each once, in the order of the list of all.
fn studies(arguments: &SimilarArguments) -> Vec<Study> {
    let is_wanted = |study: &Study| {
        arguments.study.contains(study) || (arguments.groups && *study == Study::Groups)
    };
    Study::ALL.into_iter().filter(is_wanted).collect()
}

fn chunker(arguments: &SimilarArguments) -> Result<(Contestant, Chunker), Failure> {
    let sizes = [
        arguments.min.map(Setting::Min),
        arguments.avg.map(Setting::Avg),
        arguments.max.map(Setting::Max),
    ];
    let settings: Vec<_> = sizes.into_iter().flatten().collect();
    let selection = selection::select(&arguments.algorithm, &settings)?;
    let mut contestants = selection.contestants.into_iter();
    let (Some(contestant), None) = (contestants.next(), contestants.next()) else {
        return Err(Failure::usage("--algorithm is one algorithm"));
    };
    let Method::Own { parameters, .. } = &contestant.method else {
        return Err(Failure::usage("--algorithm is one of onefold's"));
    };
    let chunker = Chunker::new(parameters, KeyMaterial::Unkeyed)
        .map_err(|error| Failure::usage(error.to_string()))?;
    Ok((contestant, chunker))
}

fn write(arguments: &SimilarArguments, report: &SimilarReport) -> anyhow::Result<()> {
    let forms = super::output::Forms {
        html: None,
        csv: arguments.csv.as_ref(),
        is_json: arguments.json,
    };
    super::output::write(
        &forms,
        report,
        |_| String::new(),
        similar_table::csv,
        similar_table::text,
    )
}
