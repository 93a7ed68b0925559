//! What Ni prints of SS-CDC (ch. 2): Tables 2.1 and 2.3, and the numbers of §2.1 and §2.4.
//!
//! Source: Ni, *Optimizing Deduplication* (dissertation, UT Arlington 2019), ch. 2. Its Figs. 2.1 and 2.5
//! to 2.10 are drawn; only what its text says of them stands here. Times are those of two Xeons of
//! 3.6 GHz with 4 cores each, by AVX-512.

/// The paper's names of its data sets, and what they were (its Table 2.3).
pub const DATA_SETS: [(&str, &str); 7] = [
    ("Cassandra", "14.2 GB: 40 container images, dedup ratio 5.0"),
    ("Redis", "4.1 GB: 34 container images, dedup ratio 7.2"),
    ("Debian", "9.5 GB: 92 container images, dedup ratio 15.8"),
    (
        "Linux-src",
        "570 GB: 1013 mtars of Linux sources, dedup ratio 16.4",
    ),
    ("Neo4j", "46.0 GB: 140 container images, dedup ratio 19.0"),
    (
        "Wordpress",
        "181.7 GB: 501 container images, dedup ratio 22.0",
    ),
    (
        "Nodejs",
        "800.0 GB: 1567 container images, dedup ratio 41.4",
    ),
];

/// Fig. 2.5: the speed-up on one core, on every data set.
pub const ONE_CORE: f64 = 3.3;

/// Figs. 2.7 and 2.8, for Cassandra: speed-ups on 1, 2, 4 and 8 threads.
const THREADS: [f64; 4] = [1.0, 2.0, 4.0, 8.0];
const CASSANDRA: [(&str, [f64; 4]); 4] = [
    ("SFSS", [1.0, 1.9, 3.6, 6.3]),
    ("SFMS", [3.1, 5.4, 9.8, 17.8]),
    ("MFSS", [1.0, 2.0, 3.9, 7.5]),
    ("MFMS", [3.5, 6.8, 12.5, 23.6]),
];

/// Table 2.1: whether cuts are invariant.
const INVARIANT: [(&str, bool); 4] = [
    ("P-Dedupe", false),
    ("MUCH", true),
    ("Shredder", false),
    ("SS-CDC", true),
];

/// The speed-up by a least size (Fig. 2.6), of expected chunks of 16 and at most 64 KiB.
pub fn by_min(min_bytes: u32) -> Option<f64> {
    match min_bytes {
        2048 => Some(ONE_CORE),
        8192 => Some(2.5),
        _ => None,
    }
}

/// The speed-up on so many threads.
pub fn on_threads(set: &str, form: &str, threads: usize) -> Option<f64> {
    let (_, row) = CASSANDRA
        .iter()
        .find(|(name, _)| *name == form && set == "Cassandra")?;
    let column = THREADS.iter().position(|count| *count == threads as f64)?;
    Some(row[column])
}

/// By how much segments lower the dedup ratio, of 100 (Fig. 2.9).
pub fn reduction_percent(set: &str, segment_bytes: usize) -> Option<f64> {
    match (set, segment_bytes >> 10) {
        ("Nodejs", 512) => Some(45.0),
        ("Nodejs", 2048) => Some(18.0),
        _ => None,
    }
}

/// Whether Table 2.1 calls an approach invariant: 1 or 0.
pub fn is_invariant(approach: &str) -> Option<f64> {
    let row = INVARIANT.iter().find(|(name, _)| *name == approach)?;
    Some(f64::from(u8::from(row.1)))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The text says: SIMD is worth about three times as much on any number of threads, and one file a
    /// thread scales better than one file on all.
    #[test]
    fn figures_agree_with_what_the_text_says_of_them() {
        for threads in [1, 2, 4, 8] {
            let speed_up = |form| on_threads("Cassandra", form, threads).unwrap();
            let gain = speed_up("MFMS") / speed_up("MFSS");
            assert!((3.0..3.6).contains(&gain), "{threads}: {gain}");
            assert!(speed_up("SFMS") <= speed_up("MFMS"));
            assert!(speed_up("SFSS") <= speed_up("MFSS"));
        }
        assert_eq!(on_threads("Debian", "MFMS", 2), None);
        assert_eq!(on_threads("Cassandra", "MFMS", 3), None);
        assert_eq!(is_invariant("MUCH"), Some(1.0));
        assert_eq!(is_invariant("SS-CDC, lazy"), None);
    }
}
