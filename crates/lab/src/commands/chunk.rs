//! `onefold-lab chunk FILES…`: every way of cutting, measured on any data.

use std::path::PathBuf;
use std::time::Instant;

use chunking::structure::Structure;
use chunking::{Isa, OwnParameter, Rolling};
use clap::Args;

use super::output::{self, Forms, STDOUT, partial, tell};
use crate::chunk::data::DataSet;
use crate::chunk::measuring::{Effort, measure};
use crate::chunk::selection::{self, ALL, Setting};
use crate::failure::Failure;
use crate::interrupt;
use crate::progress::Progress;
use crate::report::chunk_report::ChunkReport;
use crate::report::{chunk_page, chunk_table};
use crate::units::{parse_bytes, parse_chunk_bytes};

const AFTER_HELP: &str = concat!(
    "\
Sizes are like 8K, 64KiB, 1.5M or 4096. An entry of LIST may have settings of its own:
  --algorithm fastcdc:min=6K,normal=10K,level=2,gear,rabin:window=64,label=R64
Files given are cut one by one; directories are walked down, symlinks in them left out.
",
    exit_codes!()
);

/// What to cut, and how.
#[derive(Debug, Args)]
#[command(after_help = AFTER_HELP)]
pub struct ChunkArguments {
    /// Files to cut, and directories to find files in
    #[arg(required = true, value_name = "FILES")]
    pub files: Vec<PathBuf>,
    /// Algorithms, with commas between them, or `all`
    #[arg(short, long, value_name = "LIST", default_value = ALL)]
    pub algorithm: Vec<String>,
    /// No chunk but the last of a file is smaller
    #[arg(long, value_name = "SIZE", value_parser = parse_chunk_bytes)]
    pub min: Option<u32>,
    /// Expected size of a chunk, in the sense of each algorithm
    #[arg(long, value_name = "SIZE", value_parser = parse_chunk_bytes)]
    pub avg: Option<u32>,
    /// No chunk is greater
    #[arg(long, value_name = "SIZE", value_parser = parse_chunk_bytes)]
    pub max: Option<u32>,
    /// Level of normalization: 0 to 3
    #[arg(long, value_name = "N")]
    pub level: Option<u8>,
    /// Normal size, where the strict condition gives way to the loose one (fastcdc, rabin-nc, fold, shield)
    #[arg(long, value_name = "SIZE", value_parser = parse_chunk_bytes)]
    pub normal: Option<u32>,
    /// Sliding window of the hash: 32, 48, 64 or 256 bytes (rabin, rabin-nc, adler, crc32)
    #[arg(long, value_name = "BYTES")]
    pub window: Option<u64>,
    /// Irreducible polynomial, such as 0x3da3358b4dc173 (rabin, rabin-nc, restic)
    #[arg(long, value_name = "NUMBER", value_parser = polynomial)]
    pub polynomial: Option<u64>,
    /// How many bytes must rise in a row (seqcdc)
    #[arg(long, value_name = "N")]
    pub sequence: Option<u64>,
    /// How many falling pairs make it jump (seqcdc)
    #[arg(long, value_name = "N")]
    pub jump_trigger: Option<u64>,
    /// How far it jumps (seqcdc)
    #[arg(long, value_name = "SIZE", value_parser = parse_bytes)]
    pub jump: Option<u64>,
    /// Bits of the Gear hash: 64 or 32 (fastcdc)
    #[arg(long, value_name = "BITS")]
    pub hash_bits: Option<u64>,
    /// Which loop runs: fastest, in-order (one position after another), two-stage (all positions of a
    /// block, then cuts: chunkers of a window), one or two (bytes at a time, as papers print
    /// it); the cuts are the same
    #[arg(long, value_name = "HOW", value_parser = selection::parse_rolling)]
    pub rolling: Option<Rolling>,
    /// Which instruction sets kernels use: scalar, avx2, avx512 or neon, the best unless given; the
    /// cuts are the same
    #[arg(long, value_name = "LEVEL", value_parser = selection::parse_isa)]
    pub isa: Option<Isa>,
    /// Formats whose parts are cut apart: none or tar; to have both side by side:
    /// --algorithm fold,fold:structure=tar
    #[arg(long, value_name = "FORMAT", value_parser = selection::parse_structure)]
    pub structure: Option<Structure>,
    /// Measure chunkers of other crates as well
    #[arg(long)]
    pub rivals: bool,
    /// Timed passes; the median counts
    #[arg(long, value_name = "N", default_value_t = 5)]
    pub runs: u16,
    /// Most data that is held in memory at a time
    #[arg(long, value_name = "SIZE", default_value = "1G", value_parser = parse_bytes)]
    pub memory: u64,
    /// Print JSON
    #[arg(long, conflicts_with = "csv")]
    pub json: bool,
    /// Print CSV, or write it to FILE
    #[arg(long, value_name = "FILE", num_args = 0..=1, require_equals = true, default_missing_value = STDOUT)]
    pub csv: Option<PathBuf>,
    /// Write a page with plots
    #[arg(long, value_name = "FILE")]
    pub html: Option<PathBuf>,
    /// Show no progress and no notes
    #[arg(short, long)]
    pub quiet: bool,
}

fn polynomial(text: &str) -> Result<u64, String> {
    match Setting::parse("polynomial", text)? {
        Setting::Own(_, value) => Ok(value),
        _ => Err(format!("'{text}' is no polynomial")),
    }
}

/// Measures, and prints what was found out.
pub fn run(arguments: &ChunkArguments) -> anyhow::Result<()> {
    let started = Instant::now();
    interrupt::catch()?;
    let effort = arguments.effort()?;
    let mut selection = selection::select(&arguments.algorithm.join(","), &arguments.settings())?;
    if arguments.rivals {
        selection::add_rivals(&arguments.settings(), &mut selection);
    }
    if selection.contestants.is_empty() {
        let notes = selection.notes.join("; ");
        return Err(Failure::usage(format!("no algorithm is left: {notes}")).into());
    }
    let data = DataSet::of_paths(&arguments.files)?;
    let mut progress = Progress::new(arguments.quiet);
    tell(&data.notices, &progress);
    let measurement = measure(&selection.contestants, &data, &effort, &mut progress)?;
    progress.finish();
    tell(&measurement.reading.notices, &progress);
    let mut report = ChunkReport::new(
        &arguments.files,
        &data,
        &effort,
        &measurement,
        selection.notes,
    );
    report.seconds = started.elapsed().as_secs_f64();
    let forms = Forms {
        html: arguments.html.as_ref(),
        csv: arguments.csv.as_ref(),
        is_json: arguments.json,
    };
    output::write(
        &forms,
        &report,
        chunk_page::page,
        chunk_table::csv,
        chunk_table::text,
    )?;
    match report.data.failed {
        0 => Ok(()),
        failed => Err(partial(failed, arguments.json)),
    }
}

/// What is known before files are looked at, or the reason why it can't be.
impl ChunkArguments {
    fn effort(&self) -> Result<Effort, Failure> {
        if self.runs == 0 {
            return Err(Failure::usage(
                "--runs 0 is impossible: time needs at least one pass",
            ));
        }
        Ok(Effort {
            runs: usize::from(self.runs),
            memory_bytes: self.memory,
            is_dedup_wanted: true,
        })
    }

    /// The settings that hold for every algorithm.
    fn settings(&self) -> Vec<Setting> {
        let own = |parameter, value: Option<u64>| value.map(|value| Setting::Own(parameter, value));
        let settings = [
            self.min.map(Setting::Min),
            self.avg.map(Setting::Avg),
            self.max.map(Setting::Max),
            self.level.map(Setting::Level),
            self.rolling.map(Setting::Rolling),
            self.isa.map(Setting::Isa),
            self.structure.map(Setting::Structure),
            own(OwnParameter::NormalBytes, self.normal.map(u64::from)),
            own(OwnParameter::WindowBytes, self.window),
            own(OwnParameter::HashBits, self.hash_bits),
            own(OwnParameter::Polynomial, self.polynomial),
            own(OwnParameter::SequenceBytes, self.sequence),
            own(OwnParameter::JumpTrigger, self.jump_trigger),
            own(OwnParameter::JumpBytes, self.jump),
        ];
        settings.into_iter().flatten().collect()
    }
}
