//! Fig. 9, and what look-ups read (§III-C, §III-D).
//!
//! Enters: a data set in containers by MACS. Leaves: hit ratios of the first versions, and hits, reads
//! and bytes for several sizes of the metadata cache.

use anyhow::Result;
use engine::index::Replacement;

use super::experiments::Bench;
use super::layout::Scheme;
use super::locality::{Counts, Known, Lookups, replay};
use super::published::HIT_VERSIONS;
use crate::paper::Results;
use crate::paper::figure::HITS;

/// The cache of Fig. 9: the paper does not say.
const CACHE_BYTES: u64 = 1 << 20;
/// Caches of look-ups.
const CACHES: [u64; 6] = [
    64 << 10,
    128 << 10,
    256 << 10,
    512 << 10,
    CACHE_BYTES,
    4 << 20,
];

/// Names of the replacements.
pub const BY_LENGTH: &str = "by length";
pub const LRU: &str = "LRU";

const REPLACEMENTS: [(&str, Replacement); 2] =
    [(BY_LENGTH, Replacement::ByLength), (LRU, Replacement::Lru)];

/// Names of what is known.
const KNOWN: [(&str, Known); 2] = [("last version", Known::Last), ("all", Known::All)];

/// Runs what is wanted of it.
pub fn on_bench(bench: &Bench<'_>, results: &mut Results) -> Result<()> {
    let Some(stored) = bench.stored.iter().find(|one| one.scheme == Scheme::Macs) else {
        return Ok(());
    };
    for (name, replacement) in REPLACEMENTS {
        if bench.plan.has("fig9") {
            let lookups = Lookups {
                cache_bytes: CACHE_BYTES,
                replacement,
                known: Known::Last,
            };
            let counts = replay(&bench.trace, stored, HIT_VERSIONS, lookups)?;
            for (number, counts) in (1..).zip(&counts) {
                let x = f64::from(number);
                bench.add(results, "fig9", name, HITS, x, counts.hit_percent());
            }
        }
        if !bench.plan.has("lookups") {
            continue;
        }
        for (known_name, known) in KNOWN {
            for cache_bytes in CACHES {
                let lookups = Lookups {
                    cache_bytes,
                    replacement,
                    known,
                };
                let counts = replay(&bench.trace, stored, usize::MAX, lookups)?;
                let later = Counts::sum(counts.iter().skip(1));
                let duplicates = later.duplicates.max(1) as f64;
                let approach = format!("{name}, lengths of {known_name}");
                let mut add = |metric, value| {
                    let x = cache_bytes as f64;
                    bench.add(results, "lookups", &approach, metric, x, value);
                };
                add(HITS, later.hit_percent());
                add(
                    "reads_per_thousand_lookups",
                    1000.0 * later.reads as f64 / duplicates,
                );
                add(
                    "read_bytes_per_lookup",
                    later.read_bytes as f64 / duplicates,
                );
            }
        }
    }
    Ok(())
}
