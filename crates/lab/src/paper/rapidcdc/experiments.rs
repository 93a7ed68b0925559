//! The experiments on synthetic sets (§3.4.3, §3.4.4): Figs. 3.7 to 3.11.
//!
//! Sets have ten versions. The paper's have 500 MB each; here as much as is asked for, with the edits
//! of 500 MiB in proportion, so that as much of each version is new.

use chunking::rapid::{CRITERIA, Criterion, RapidChunker};
use chunking::{Algorithm, Chunker, KeyMaterial, Parameters, Rolling};

use super::passes::{LISTS, Pass};
use super::published::{self, EDITS};
use crate::dataset::edits::{EditKind, EditPlan, EditedFile, paper_parameters};
use crate::failure::Failure;
use crate::interrupt;
use crate::paper::dedup::{self, Dedup};
use crate::paper::figure::{Figure, RATIO, SPEED_UP};
use crate::paper::loaded::LoadedSet;
use crate::paper::timing::{Way, alternate};
use crate::paper::{Plan, Results};
use crate::progress::Progress;

/// What RapidCDC is compared with.
pub const REGULAR: &str = "regular CDC";
/// Sets with inserts and deletes, with overwrites.
pub const INSERTS: &str = "inserts and deletes";
const OVERWRITES: &str = "overwrites";

const VERSIONS: u64 = 10;
const SEED: u64 = 1;
/// What the paper's numbers of edits are in.
const PAPER_BYTES: u64 = 500 << 20;
/// Parts of the file with edits (Fig. 3.8).
const PARTS: [u32; 5] = [10, 25, 50, 75, 100];
/// Least sizes (Fig. 3.9).
const MINS: [u32; 4] = [1 << 10, 2 << 10, 4 << 10, 8 << 10];

/// The paper's name of a criterion.
pub fn name(criterion: Criterion) -> String {
    criterion.to_string().to_uppercase()
}

/// A chunker as the papers print it.
pub fn chunker(parameters: &Parameters) -> Result<Chunker, Failure> {
    let chunker = Chunker::new(parameters, KeyMaterial::Unkeyed)
        .map_err(|error| Failure::usage(error.to_string()))?;
    Ok(chunker.with_rolling(Rolling::OneByte))
}

/// One experiment on a synthetic set.
struct Case {
    experiment: &'static str,
    x: f64,
    edits: u32,
    kind: EditKind,
    part_percent: u32,
    parameters: Parameters,
}

/// Runs what is wanted of Figs. 3.7 to 3.11.
pub fn synthetic(
    plan: &Plan,
    results: &mut Results,
    progress: &mut Progress,
) -> anyhow::Result<()> {
    for case in cases(plan) {
        interrupt::check()?;
        let set = match make(&case, plan)? {
            Ok(set) => set,
            Err(error) => {
                let info = super::ABOUT.experiment(case.experiment);
                let title = info.map_or(case.experiment, |info| info.title);
                results.notes.push(format!("{title}: {error}"));
                continue;
            }
        };
        measure(&case, &set, plan, results, progress)?;
    }
    Ok(())
}

fn cases(plan: &Plan) -> Vec<Case> {
    let mut cases = Vec::new();
    let mut add = |experiment, x, edits, kind, part_percent, parameters| {
        cases.push(Case {
            experiment,
            x,
            edits,
            kind,
            part_percent,
            parameters,
        });
    };
    let rabin = paper_parameters();
    let gear = Parameters {
        min_bytes: rabin.min_bytes,
        avg_bytes: rabin.avg_bytes,
        max_bytes: rabin.max_bytes,
        ..Parameters::new(Algorithm::Gear)
    };
    for edits in EDITS {
        let x = f64::from(edits);
        if plan.has("fig3.7") || plan.has("fig3.11") {
            add("fig3.7", x, edits, EditKind::InsertDelete, 100, rabin);
        }
        if plan.has("fig3.7") {
            add("fig3.7", x, edits, EditKind::Overwrite, 100, rabin);
        }
        if plan.has("fig3.10") {
            add("fig3.10", x, edits, EditKind::InsertDelete, 100, gear);
        }
    }
    for part in PARTS.iter().filter(|_| plan.has("fig3.8")) {
        let x = f64::from(*part);
        add("fig3.8", x, EDITS[0], EditKind::InsertDelete, *part, rabin);
    }
    for min_bytes in MINS.into_iter().filter(|_| plan.has("fig3.9")) {
        let parameters = Parameters {
            min_bytes,
            avg_bytes: 16 << 10,
            max_bytes: 64 << 10,
            ..rabin
        };
        let kind = EditKind::InsertDelete;
        add(
            "fig3.9",
            f64::from(min_bytes),
            EDITS[0],
            kind,
            100,
            parameters,
        );
    }
    cases
}

/// Ten versions; or why there can't be any.
fn make(case: &Case, plan: &Plan) -> anyhow::Result<Result<LoadedSet, String>> {
    let base_bytes = (plan.synthetic_bytes / VERSIONS).max(1);
    let edits = u64::from(case.edits) * base_bytes / PAPER_BYTES;
    let edit_plan = EditPlan {
        edits: edits.max(1) as usize,
        kind: case.kind,
        range_percent: case.part_percent,
    };
    let mut file = EditedFile::start(SEED, base_bytes as usize, edit_plan);
    let mut versions = vec![file.data().to_vec()];
    for _ in 1..VERSIONS {
        if let Err(error) = file.step() {
            return Ok(Err(format!("with --synthetic this small, {error}")));
        }
        versions.push(file.data().to_vec());
    }
    let lengths: Vec<usize> = versions.iter().map(Vec::len).collect();
    let name = match case.kind {
        EditKind::InsertDelete => INSERTS,
        EditKind::Overwrite => OVERWRITES,
    };
    let fill = |number: usize, out: &mut [u8]| out.copy_from_slice(&versions[number]);
    Ok(Ok(LoadedSet::made(name, &lengths, fill)?))
}

fn measure(
    case: &Case,
    set: &LoadedSet,
    plan: &Plan,
    results: &mut Results,
    progress: &mut Progress,
) -> anyhow::Result<()> {
    if results.sets.iter().all(|other| other.name != set.name) {
        results.sets.push(set.measured());
    }
    let files = set.files();
    let chunker = chunker(&case.parameters)?;
    let rapid = |criterion| RapidChunker::new(chunker.clone(), criterion);
    let mut passes: Vec<Pass<'_>> = CRITERIA
        .iter()
        .map(|info| Pass::record(rapid(info.criterion), &files, LISTS))
        .collect();
    let is_worst_wanted =
        case.experiment == "fig3.7" && case.kind == EditKind::InsertDelete && plan.has("fig3.11");
    if is_worst_wanted {
        // FF has no check that could refuse.
        let refusing = CRITERIA[1..]
            .iter()
            .map(|info| Pass::record(rapid(info.criterion).refusing_all(), &files, LISTS));
        passes.extend(refusing);
    }
    let regular = dedup::cut(&chunker, &files, plan.threads);
    let regular = Dedup::of(&files, &regular, plan.threads);
    let seconds = times(&chunker, &files, &passes, plan, progress)?;
    let is_kept = |experiment: &str| plan.has(experiment);
    let mut add = |experiment: &'static str, approach: &str, metric, ours, paper| {
        if is_kept(experiment) {
            let figure = Figure::new(experiment, &set.name, approach, metric);
            results.figures.push(figure.at(case.x).with(ours, paper));
        }
    };
    let experiment = case.experiment;
    let is_printed =
        matches!(experiment, "fig3.7" | "fig3.10") && case.kind == EditKind::InsertDelete;
    let ratio = published::edit_ratio(case.edits).filter(|_| experiment == "fig3.7");
    add(experiment, REGULAR, RATIO, regular.ratio(), None);
    for (index, info) in CRITERIA.iter().enumerate() {
        let approach = name(info.criterion);
        let is_ff = is_printed && info.criterion == Criterion::FastForward;
        let is_gear = experiment == "fig3.10";
        let speed_up = published::edit_speed_up(case.edits, is_gear).filter(|_| is_ff);
        let gain = seconds[0] / seconds[index + 1];
        add(experiment, &approach, SPEED_UP, gain, speed_up);
        let pass = &passes[index];
        add(
            experiment,
            &approach,
            RATIO,
            pass.dedup.ratio(),
            ratio.filter(|_| is_ff),
        );
        let skipped = 100.0 * pass.counts.bytes_skipped as f64 / set.bytes() as f64;
        add(experiment, &approach, "skipped_percent", skipped, None);
    }
    for (info, slow) in CRITERIA[1..].iter().zip(&seconds[CRITERIA.len() + 1..]) {
        let slow_down = 100.0 * (1.0 - seconds[0] / slow);
        let approach = name(info.criterion);
        add("fig3.11", &approach, "slow_down_percent", slow_down, None);
    }
    Ok(())
}

/// Seconds of regular chunking, then of each pass, chunking only.
pub fn times(
    chunker: &Chunker,
    files: &[&[u8]],
    passes: &[Pass<'_>],
    plan: &Plan,
    progress: &mut Progress,
) -> anyhow::Result<Vec<f64>> {
    let bytes: usize = files.iter().map(|file| file.len()).sum();
    let mut ways = vec![Way::new(REGULAR, || {
        for file in files {
            std::hint::black_box(chunker.chunks(std::hint::black_box(file)).count());
        }
    })];
    for pass in passes {
        ways.push(Way::new("RapidCDC", || pass.replay()));
    }
    alternate(plan.runs, bytes as u64, &mut ways, progress)
}
