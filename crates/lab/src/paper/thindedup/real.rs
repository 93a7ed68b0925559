//! Figs. 5.9 to 5.12: traces, those that are given or writes that are made up in their place.

use anyhow::Result;
use volume::trace::{FIU_DAYS, MSR_CAMBRIDGE_DEDUPLICATION_RATIOS};

use super::bench::{Bench, SCHEMES, Setup, THIN};
use super::experiments::{EXPLICIT, Place, explicit_percent, throughput};
use super::published::{HARD_DISK, QUEUED, SSD, TRACE_WINDOW};
use super::sources::Source;
use crate::paper::Results;
use crate::paper::figure::RATIO;
use crate::progress::Progress;

/// Requests that stand for those of Microsoft's traces, in blocks: small and larger ones.
const REQUESTS: [(&str, u64); 2] = [("made up, 4 KiB", 1), ("made up, 32 KiB", 8)];

/// A trace with what is known of it.
struct Case {
    name: String,
    source: Source,
    /// Deduplication ratio, where it is on an axis.
    x: Option<f64>,
    /// The ratio that the paper has of it.
    paper_ratio: Option<f64>,
}

fn day_name(day: usize) -> String {
    let day = &FIU_DAYS[day];
    let trace = match day.trace {
        "webvm" => "WebVM",
        "homes" => "Homes",
        _ => "Mail",
    };
    format!("{trace}-{}", day.day)
}

/// Traces with contents that are given; otherwise the days of Table 5.1, made up.
fn days(bench: &Bench<'_>) -> Vec<Case> {
    let given = bench.given.iter().enumerate();
    let given: Vec<Case> = given
        .filter(|(_, trace)| trace.has_contents)
        .map(|(number, trace)| Case {
            name: trace.name.clone(),
            source: Source::Given {
                trace: number,
                ratio: 1.0,
            },
            x: None,
            paper_ratio: (0..FIU_DAYS.len())
                .find(|day| day_name(*day) == trace.name)
                .map(|day| FIU_DAYS[day].deduplication_ratio),
        })
        .collect();
    if !given.is_empty() {
        return given;
    }
    (0..FIU_DAYS.len())
        .map(|day| Case {
            name: format!("made up like {}", day_name(day)),
            source: Source::LikeDay(day),
            x: None,
            paper_ratio: Some(FIU_DAYS[day].deduplication_ratio),
        })
        .collect()
}

/// Writes with contents of a deduplication ratio.
type WithRatio = Box<dyn Fn(f64) -> Source>;

/// Traces without contents, with contents of three ratios.
fn volumes(bench: &Bench<'_>) -> Vec<Case> {
    let mut sources: Vec<(String, WithRatio)> = Vec::new();
    for (number, trace) in bench.given.iter().enumerate() {
        if !trace.has_contents {
            let source = move |ratio| Source::Given {
                trace: number,
                ratio,
            };
            sources.push((trace.name.clone(), Box::new(source)));
        }
    }
    if sources.is_empty() {
        for (name, blocks) in REQUESTS {
            let source = move |ratio| Source::Requests { blocks, ratio };
            sources.push((name.to_owned(), Box::new(source)));
        }
    }
    let mut cases = Vec::new();
    for (name, source) in sources {
        for ratio in MSR_CAMBRIDGE_DEDUPLICATION_RATIOS {
            cases.push(Case {
                name: name.clone(),
                source: source(ratio),
                x: Some(ratio),
                paper_ratio: None,
            });
        }
    }
    cases
}

/// Runs what is wanted of it.
pub fn traces(
    bench: &mut Bench<'_>,
    wanted: &dyn Fn(&str) -> bool,
    results: &mut Results,
    progress: &mut Progress,
) -> Result<()> {
    for (cases, experiments) in [
        (
            days(bench),
            [("fig5.9", HARD_DISK), ("fig5.9", QUEUED), ("fig5.10", SSD)],
        ),
        (
            volumes(bench),
            [
                ("fig5.11", HARD_DISK),
                ("fig5.11", QUEUED),
                ("fig5.12", SSD),
            ],
        ),
    ] {
        if !experiments.iter().any(|(name, _)| wanted(name)) {
            continue;
        }
        let setups: Vec<Setup> = cases
            .iter()
            .flat_map(|case| SCHEMES.map(|scheme| bench.setup(case.source, scheme, TRACE_WINDOW)))
            .collect();
        bench.run(&setups, "traces", progress)?;
        for (experiment, device) in experiments.iter().filter(|(name, _)| wanted(name)) {
            for case in &cases {
                let place = Place {
                    experiment,
                    data_set: format!("{}, {}", case.name, device.name),
                    x: case.x,
                };
                throughput(bench, case.source, TRACE_WINDOW, device, &place, results);
                let thin = bench.of(case.source, THIN, TRACE_WINDOW);
                let stored = thin.counters.data_blocks_written.max(1) as f64;
                let ratio = place.figure(THIN.name, RATIO, thin.writes() as f64 / stored);
                let explicit = explicit_percent(&thin, TRACE_WINDOW);
                results
                    .figures
                    .push(ratio.clone().with(ratio.ours, case.paper_ratio));
                results
                    .figures
                    .push(place.figure(THIN.name, EXPLICIT, explicit));
            }
        }
    }
    Ok(())
}
