//! Fig. 8: what rewriting takes of the dedup ratio and gives to the speed factor.
//!
//! Enters: a data set's chunks. Leaves: for each scheme the speed factor where a policy leaves the same
//! dedup ratio (bytes over bytes stored), and both, version by version. What is turned so that the
//! dedup ratio comes out, by bisection, each try a whole run:
//!
//! - [`LBW`]: the look-back window as published (8 containers, step 1, threshold 5 to 60), by its bound on
//!   rewritten bytes;
//! - [`ANY_THRESHOLD`]: the same window without that bound, by a threshold of references that does not
//!   adapt and may be as large as a container has chunks;
//! - [`CAPPING`]: by how many old containers a segment may use.

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

/// Names of what is turned.
pub const LBW: &str = "LBW";
pub const ANY_THRESHOLD: &str = "LBW, any threshold";
pub const CAPPING: &str = "capping";

/// A policy with something to turn: from 0, nothing is rewritten, to the highest, the most is.
struct Family {
    name: &'static str,
    highest: u32,
    policy: fn(u32) -> Rewriting,
}

const FAMILIES: [Family; 3] = [
    Family {
        name: LBW,
        highest: 1000,
        policy: |permille| {
            Rewriting::LookBackWindow(LookBackWindow {
                rewritten_permille_max: permille,
                ..LookBackWindow::DEFAULT
            })
        },
    },
    Family {
        name: ANY_THRESHOLD,
        highest: 4096,
        policy: |threshold| {
            Rewriting::LookBackWindow(LookBackWindow {
                threshold_min: threshold,
                threshold_max: threshold,
                rewritten_permille_max: 1000,
                ..LookBackWindow::DEFAULT
            })
        },
    },
    Family {
        name: CAPPING,
        highest: CAPPING_CONTAINERS,
        policy: |fewer| {
            Rewriting::Capping(Capping {
                containers_max: CAPPING_CONTAINERS - fewer,
                ..Capping::DEFAULT
            })
        },
    },
];

/// More old containers than any segment here has.
const CAPPING_CONTAINERS: u32 = 256;

/// The policies by version.
const POLICIES: [(&str, Rewriting); 3] = [
    ("", Rewriting::Off),
    (", LBW", Rewriting::LookBackWindow(LookBackWindow::DEFAULT)),
    (", capping", Rewriting::Capping(Capping::DEFAULT)),
];

/// A scheme under a policy.
pub fn named(scheme: Scheme, policy: &str) -> String {
    format!("{}, {policy}", scheme.name())
}

/// Runs what is wanted of it.
pub fn on_bench(bench: &Bench<'_>, results: &mut Results) -> Result<()> {
    for &scheme in bench.schemes {
        if bench.plan.has("fig8") {
            let without = bench.fragments(scheme, &Rewriting::Off);
            for family in &FAMILIES {
                at_equal_ratios(bench, scheme, family, &without, results)?;
            }
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
    let reads = cache.reads(&version.references, memory(CACHE_CONTAINERS));
    reads.len() as u64
}

fn at_equal_ratios(
    bench: &Bench<'_>,
    scheme: Scheme,
    family: &Family,
    without: &[Fragments],
    results: &mut Results,
) -> Result<()> {
    let name = named(scheme, family.name);
    for kept in KEPT_PERCENT {
        let versions = match kept {
            100.0 => without.to_vec(),
            _ => nearest(bench, scheme, family, ratio(without) * kept / 100.0)?,
        };
        let all: u64 = versions.iter().map(reads).sum();
        let last_reads = versions.last().map_or(1, reads);
        let last_version = bench.trace.versions.last();
        let last_bytes = last_version.map_or(0, |version| version.bytes);
        let mut add = |metric, value| {
            bench.add(results, "fig8", &name, metric, kept, value);
        };
        add(RATIO, ratio(&versions));
        add(SPEED_FACTOR, speed_factor(bench.trace.bytes(), all));
        add("last_speed_factor", speed_factor(last_bytes, last_reads));
    }
    Ok(())
}

/// The run whose dedup ratio is nearest to `target` among those not below it.
fn nearest(
    bench: &Bench<'_>,
    scheme: Scheme,
    family: &Family,
    target: f64,
) -> Result<Vec<Fragments>> {
    let run = |turned| bench.fragments(scheme, &(family.policy)(turned));
    let (mut low, mut high) = (0, family.highest + 1);
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
                bench.add(results, "rewriting", &name, metric, x, value);
            };
            add(RATIO, ratio);
            add(SPEED_FACTOR, factor);
            add("rewritten_percent", rewritten);
        }
    }
    Ok(())
}
