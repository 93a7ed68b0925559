//! The experiments of the FastCDC paper on data that is given.
//!
//! Enters: data sets by the paper's names, and which experiments. Leaves: a [`Results`]: our
//! figures beside the paper's, and whether what it says holds.
//!
//! Each data set is gone through once, for all approaches that any experiment wants on it.

pub mod approaches;
pub mod claims;
pub mod counting;
pub mod experiments;
pub mod published;

use self::approaches::Approach;
use self::counting::{Counter, Sample};
use self::experiments::{Experiment, Findings, RANDOM, SetFindings, preferred};
use crate::chunk::contestant::Contestant;
use crate::chunk::data::DataSet;
use crate::chunk::measuring::{Effort, measure};
use crate::failure::Failure;
use crate::paper::about::About;
use crate::paper::figure::Figure;
use crate::paper::{GivenSet, MeasuredSet, Results};
use crate::progress::Progress;
use crate::report::chunk_report::{DataReport, ResultReport};
use crate::report::paper_report::Distribution;

/// What reports say of it.
pub const ABOUT: About = About {
    name: "fastcdc",
    title: "FastCDC (Xia et al., TPDS 2020)",
    citation: "Xia et al., “The Design of Fast Content-Defined Chunking for Data Deduplication Based Storage Systems” (IEEE TPDS 2020)",
    experiments: &experiments::EXPERIMENTS,
    data_sets: &published::DATA_SETS,
    threads: "one thread",
    stand_ins: "The paper's own data can't be had: what is given stands in for it. Levels differ with the data; what counts is how the approaches stand to each other.",
    tolerances: "\"about n×\" from 80 % of n on, \"nearly\" within 2 %, in every case",
    comparison: "All run by the loops that the paper prints: one byte after another, FC' two at a time. FC* has the cuts of FC by the fastest loop here, which is what onefold does; RC, GC and AE have such loops, too (`onefold-lab chunk` measures them).",
    synthetic_bytes: 0,
};

/// Seed and length of the random numbers.
const RANDOM_SEED: u64 = 5;
const RANDOM_BYTES: u64 = 512 << 20;

/// Bytes of the sample that instructions are counted on.
const SAMPLE_BYTES: u64 = 4 << 20;

/// What to run.
#[derive(Debug)]
pub struct Plan {
    /// On what.
    pub sets: Vec<GivenSet>,
    /// Which experiments.
    pub experiments: Vec<Experiment>,
    /// At most so many bytes of each data set.
    pub size: u64,
    /// How to measure.
    pub effort: Effort,
}

/// All that was found out.
#[derive(Debug, Default)]
pub struct Outcome {
    /// What was measured.
    pub findings: Findings,
    /// On what.
    pub sets: Vec<MeasuredSet>,
    /// Every figure of every experiment.
    pub figures: Vec<Figure>,
    /// What could not be run, and why; what was run otherwise than in the paper.
    pub notes: Vec<String>,
}

impl Outcome {
    /// What reports are made of.
    pub fn results(self, plan: &Plan) -> Results {
        Results {
            distributions: distributions(plan, &self),
            claims: claims::claims(&self.findings),
            sets: self.sets,
            figures: self.figures,
            notes: self.notes,
        }
    }
}

/// Runs the experiments.
///
/// # Errors
/// As [`measure`] does, and when counting fails.
pub fn run(plan: &Plan, progress: &mut Progress) -> anyhow::Result<Outcome> {
    let mut outcome = Outcome::default();
    let mut jobs: Vec<(String, Vec<Approach>)> = Vec::new();
    for experiment in &plan.experiments {
        for set in sets_of(*experiment, plan, &mut outcome.notes) {
            let approaches = experiment.approaches();
            match jobs.iter_mut().find(|(name, _)| *name == set) {
                Some((_, wanted)) => wanted.extend(approaches),
                None => jobs.push((set, approaches)),
            }
        }
    }
    for (name, approaches) in jobs {
        if !approaches.is_empty() {
            measure_set(&name, &approaches, plan, &mut outcome, progress)?;
        }
    }
    if plan.experiments.contains(&Experiment::Table6) {
        count(plan, &mut outcome, progress)?;
    }
    for experiment in &plan.experiments {
        let names = sets_of(*experiment, plan, &mut Vec::new());
        let sets = outcome.findings.sets.iter();
        let sets = sets.filter(|set| names.contains(&set.name));
        let figures: Vec<_> = sets.flat_map(|set| experiment.figures(set)).collect();
        outcome.figures.extend(figures);
    }
    outcome.figures.extend(table6(&outcome.findings));
    Ok(outcome)
}

/// The data sets that an experiment runs on.
fn sets_of(experiment: Experiment, plan: &Plan, notes: &mut Vec<String>) -> Vec<String> {
    let title = experiment.info().title;
    if experiment == Experiment::Fig15 {
        notes.push(format!(
            "{title}: not run, for the pipeline that it measures is not here yet"
        ));
        return Vec::new();
    }
    let Some(wanted) = preferred(experiment) else {
        let is_measured = experiment != Experiment::Table6;
        if is_measured && plan.sets.is_empty() {
            notes.push(format!("{title}: not run, for it needs --data NAME=PATH"));
        }
        let sets = plan.sets.iter().filter(|_| is_measured);
        return sets.map(|set| set.name.clone()).collect();
    };
    let has = |name: &str| name == RANDOM || plan.sets.iter().any(|set| set.name == name);
    if has(wanted) {
        return vec![wanted.to_owned()];
    }
    match plan.sets.first() {
        Some(first) => {
            notes.push(format!(
                "{title}: run on {}, for the paper's {wanted} was not given",
                first.name
            ));
            vec![first.name.clone()]
        }
        None => {
            notes.push(format!(
                "{title}: not run, for it needs --data {wanted}=PATH"
            ));
            Vec::new()
        }
    }
}

/// Measures approaches on one data set.
fn measure_set(
    name: &str,
    approaches: &[Approach],
    plan: &Plan,
    outcome: &mut Outcome,
    progress: &mut Progress,
) -> anyhow::Result<()> {
    let contestants = contestants(approaches)?;
    let given = plan.sets.iter().find(|set| set.name == name);
    let (mut data, paths) = match given {
        Some(set) => (DataSet::of_paths(&set.paths)?, set.paths.clone()),
        None => (DataSet::random(RANDOM_SEED, RANDOM_BYTES), Vec::new()),
    };
    let whole = data.bytes();
    data.limit(plan.size);
    let effort = Effort {
        is_dedup_wanted: name != RANDOM,
        ..plan.effort
    };
    progress.note(&format!(
        "{name}: {} of {}, {} approaches",
        crate::units::bytes(data.bytes()),
        crate::units::bytes(whole),
        contestants.len()
    ));
    let measurement = measure(&contestants, &data, &effort, progress)?;
    let read_seconds = measurement.reading.seconds.as_secs_f64();
    let results = measurement.outcomes.iter();
    outcome.findings.sets.push(SetFindings {
        name: name.to_owned(),
        results: results
            .map(|outcome| ResultReport::new(outcome, read_seconds))
            .collect(),
    });
    let notices = data.notices.iter().chain(&measurement.reading.notices);
    outcome.sets.push(MeasuredSet {
        name: name.to_owned(),
        is_sample: whole > data.bytes(),
        notices: notices.cloned().collect(),
        data: DataReport::new(&paths, &data, &measurement.reading),
    });
    Ok(())
}

/// Contestants of approaches, each once.
fn contestants(approaches: &[Approach]) -> Result<Vec<Contestant>, Failure> {
    let mut contestants: Vec<Contestant> = Vec::new();
    for approach in approaches {
        let is_there = contestants
            .iter()
            .any(|contestant| contestant.label == approach.entry);
        if !is_there {
            contestants.push(approach.contestant()?);
        }
    }
    Ok(contestants)
}

/// Counts instructions, where anything can.
fn count(plan: &Plan, outcome: &mut Outcome, progress: &mut Progress) -> anyhow::Result<()> {
    let title = Experiment::Table6.info().title;
    let counter = match Counter::find() {
        Ok(counter) => counter,
        Err(reason) => {
            outcome
                .notes
                .push(format!("{title}: not readable here: {reason}"));
            return Ok(());
        }
    };
    let (name, paths) = match plan.sets.first() {
        Some(set) => (set.name.as_str(), set.paths.clone()),
        None => (RANDOM, Vec::new()),
    };
    let bytes = if paths.is_empty() {
        SAMPLE_BYTES
    } else {
        DataSet::of_paths(&paths)?.bytes().min(SAMPLE_BYTES)
    };
    let sample = Sample {
        paths,
        bytes: bytes.min(plan.size),
        passes: 1,
    };
    outcome.notes.push(format!(
        "{title}: {}, on the first {} of {name}",
        counter.method(),
        crate::units::bytes(sample.bytes)
    ));
    outcome.findings.counted_set = name.to_owned();
    let approaches = Experiment::Table6.approaches();
    progress.expect(sample.bytes * approaches.len() as u64);
    for approach in approaches {
        progress.advance(0, &format!("counting {}", approach.name));
        let counts = counter.count(&approach, &sample)?;
        outcome.findings.counts.push((approach.name, counts));
        progress.advance(sample.bytes, "counting");
    }
    Ok(())
}

/// The figures of Table 6.
fn table6(findings: &Findings) -> Vec<Figure> {
    let mut figures = Vec::new();
    for (approach, counts) in &findings.counts {
        let paper = published::table6(approach);
        let mut add = |metric, ours: Option<f64>, column: usize| {
            if let Some(ours) = ours {
                let name = Experiment::Table6.info().name;
                let figure = Figure::new(name, &findings.counted_set, approach, metric);
                figures.push(figure.with(ours, paper.map(|row| row[column])));
            }
        };
        add("instructions_per_byte", Some(counts.instructions), 0);
        let per_cycle = counts.cycles.map(|cycles| counts.instructions / cycles);
        add("instructions_per_cycle", per_cycle, 1);
        add("cycles_per_byte", counts.cycles, 2);
        add("branches_per_byte", Some(counts.branches), 3);
    }
    figures
}

/// The distributions that the paper draws: those of Figs. 5, 9 and 11.
fn distributions(plan: &Plan, outcome: &Outcome) -> Vec<Distribution> {
    let drawn = [Experiment::Fig5, Experiment::Fig9, Experiment::Fig11];
    let mut distributions = Vec::new();
    for experiment in drawn {
        if !plan.experiments.contains(&experiment) {
            continue;
        }
        let figures = outcome.figures.iter();
        let name = experiment.info().name;
        for figure in
            figures.filter(|figure| figure.experiment == name && figure.metric == "mean_bytes")
        {
            let set = outcome
                .findings
                .sets
                .iter()
                .find(|set| set.name == figure.data_set);
            let result = set.and_then(|set| result_of(experiment, set, &figure.approach));
            if let Some(result) = result {
                distributions.push(Distribution {
                    experiment: name,
                    data_set: figure.data_set.clone(),
                    approach: figure.approach.clone(),
                    histogram: result.histogram.clone(),
                });
            }
        }
    }
    distributions
}

fn result_of<'a>(
    experiment: Experiment,
    set: &'a SetFindings,
    name: &str,
) -> Option<&'a ResultReport> {
    let approaches = experiment.approaches();
    let approach = approaches.iter().find(|approach| approach.name == name)?;
    set.get(approach)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plan(names: &[&'static str]) -> Plan {
        let set = |name: &&'static str| GivenSet {
            name: (*name).to_owned(),
            paths: Vec::new(),
        };
        Plan {
            sets: names.iter().map(set).collect(),
            experiments: Vec::new(),
            size: 1,
            effort: Effort {
                runs: 1,
                memory_bytes: 1,
                is_dedup_wanted: true,
            },
        }
    }

    #[test]
    fn experiments_run_on_the_papers_data_set_or_the_first() {
        let mut notes = Vec::new();
        let mut sets =
            |experiment, names: &[&'static str]| sets_of(experiment, &plan(names), &mut notes);
        assert_eq!(sets(Experiment::Fig9, &["RDB", "TAR"]), ["TAR"]);
        assert_eq!(sets(Experiment::Fig9, &["RDB"]), ["RDB"]);
        assert_eq!(sets(Experiment::Table4, &["RDB", "TAR"]), ["RDB", "TAR"]);
        assert_eq!(sets(Experiment::Fig5, &[]), [RANDOM]);
        assert_eq!(sets(Experiment::Fig10, &[]), [""; 0]);
        assert_eq!(sets(Experiment::Fig15, &["TAR"]), [""; 0]);
        assert_eq!(notes.len(), 3);
        assert!(notes[0].contains("the paper's TAR was not given"));
        assert!(notes[2].contains("pipeline"));
    }

    #[test]
    fn approaches_that_experiments_share_are_measured_once() {
        let mut approaches = Experiment::Table4.approaches();
        let once = contestants(&approaches).unwrap().len();
        approaches.extend(Experiment::Table5.approaches());
        assert_eq!(contestants(&approaches).unwrap().len(), once);
    }
}
