//! Fig. 8: what rewriting takes of the dedup ratio and gives to the speed factor.
//!
//! Enters: a data set's chunks. Leaves: for each scheme the speed factor where a policy leaves the same
//! dedup ratio (bytes over bytes stored), and both, version by version. The look-back window has the
//! paper's parameters (8 containers, step 1, threshold 5 to 60); its bound on rewritten bytes is what
//! is chosen so that the dedup ratio comes out: by bisection, each try a whole run.

use anyhow::Result;
use engine::rewriting::{Capping, LookBackWindow, Rewriting};

use super::experiments::{Bench, memory, speed_factor};
use super::fragments::Fragments;
use super::layout::Scheme;
use super::published::CACHE_CONTAINERS;
use crate::interrupt;
use crate::paper::Results;
use crate::paper::figure::{RATIO, SPEED_FACTOR};
use crate::restore_caches::RestoreCache;

/// Dedup ratios that are kept, of 100 of that without rewriting.
pub const KEPT_PERCENT: [f64; 4] = [100.0, 98.0, 95.0, 90.0];
/// The greatest bound: everything may be rewritten.
const PERMILLE_HIGHEST: u32 = 1000;

/// The policies by version.
const POLICIES: [(&str, Rewriting); 3] = [
    ("", Rewriting::Off),
    (", LBW", Rewriting::LookBackWindow(LookBackWindow::DEFAULT)),
    (", capping", Rewriting::Capping(Capping::DEFAULT)),
];

/// Runs what is wanted of it.
pub fn on_bench(bench: &Bench<'_>, results: &mut Results) -> Result<()> {
    for scheme in Scheme::ALL {
        if bench.plan.has("fig8") {
            at_equal_ratios(bench, scheme, results)?;
        }
        if bench.plan.has("rewriting") {
            by_version(bench, scheme, results)?;
        }
    }
    Ok(())
}

fn ratio(versions: &[Fragments]) -> f64 {
    let last = versions.last();
    last.map_or(1.0, |last| {
        last.bytes as f64 / last.stored_bytes.max(1) as f64
    })
}

fn reads(version: &Fragments) -> u64 {
    let cache = RestoreCache::Lru;
    cache
        .reads(&version.references, memory(CACHE_CONTAINERS))
        .len() as u64
}

fn at_equal_ratios(bench: &Bench<'_>, scheme: Scheme, results: &mut Results) -> Result<()> {
    let without = bench.fragments(scheme, &Rewriting::Off);
    let whole = ratio(&without);
    for kept in KEPT_PERCENT {
        let target = whole * kept / 100.0;
        let versions = match kept {
            100.0 => without.clone(),
            _ => nearest(bench, scheme, target)?,
        };
        let all: u64 = versions.iter().map(reads).sum();
        let last_reads = versions.last().map_or(1, reads);
        let last_bytes = bench
            .trace
            .versions
            .last()
            .map_or(0, |version| version.bytes);
        let mut add = |metric, value| {
            bench.add(results, ["fig8", scheme.name(), metric], kept, value);
        };
        add(RATIO, ratio(&versions));
        add(SPEED_FACTOR, speed_factor(bench.trace.bytes(), all));
        add("last_speed_factor", speed_factor(last_bytes, last_reads));
    }
    Ok(())
}

/// The run of the look-back window whose dedup ratio is nearest to `target` among those above it.
fn nearest(bench: &Bench<'_>, scheme: Scheme, target: f64) -> Result<Vec<Fragments>> {
    let run = |permille| {
        let window = LookBackWindow {
            rewritten_permille_max: permille,
            ..LookBackWindow::DEFAULT
        };
        bench.fragments(scheme, &Rewriting::LookBackWindow(window))
    };
    let (mut low, mut high) = (0, PERMILLE_HIGHEST + 1);
    let mut best = run(0);
    while high - low > 1 {
        interrupt::check()?;
        let middle = u32::midpoint(low, high);
        let versions = run(middle);
        if ratio(&versions) >= target {
            low = middle;
            best = versions;
        } else {
            high = middle;
        }
    }
    Ok(best)
}

fn by_version(bench: &Bench<'_>, scheme: Scheme, results: &mut Results) -> Result<()> {
    for (words, policy) in POLICIES {
        interrupt::check()?;
        let name = format!("{}{words}", scheme.name());
        let versions = bench.fragments(scheme, &policy);
        for (number, version) in versions.iter().enumerate() {
            let x = (number + 1) as f64;
            let own_bytes = bench.trace.versions[number].bytes;
            let rewritten = 100.0 * version.rewritten_bytes as f64 / own_bytes.max(1) as f64;
            let ratio = version.bytes as f64 / version.stored_bytes.max(1) as f64;
            let factor = speed_factor(own_bytes, reads(version));
            let mut add = |metric, value| {
                bench.add_named(results, "rewriting", &name, metric, x, value);
            };
            add(RATIO, ratio);
            add(SPEED_FACTOR, factor);
            add("rewritten_percent", rewritten);
        }
    }
    Ok(())
}
