//! What the P-Dedupe paper prints: Tables 2, 3, 5 and 6, and the numbers of its §3.3 and §4.
//!
//! Source: Xia et al., *P-Dedupe: Exploiting Parallelism in Data Deduplication System* in its journal
//! form. Dedup ratio there is the share of bytes that are duplicates, of 100. Its Figs. 9 and 11 are
//! drawn, without numbers in the text.

/// The paper's names of its data sets, and what they were (its Table 2).
pub const DATA_SETS: [(&str, &str); 8] = [
    ("SciLab", "5.92 GB: 15 tarred versions"),
    ("GCC", "15.9 GB: 43 tarred versions"),
    ("Linux", "16.4 GB: 39 tarred versions"),
    ("Centos", "40.8 GB: 23 virtual machine images"),
    ("Fedora", "46.9 GB: 18 virtual machine images"),
    ("Freebsd", "27.1 GB: 24 virtual machine images"),
    ("Redis", "162 GB: 30 dumps of a Redis database"),
    (
        "Bench",
        "107 GB: 20 backups of a benchmark of cloud storage",
    ),
];

/// Table 3: saved by the baseline, by P-Dedupe without and with jointing, and missed; of 100.
const TABLE3: [[f64; 4]; 8] = [
    [56.04, 55.67, 56.01, 0.0365],
    [40.75, 40.54, 40.74, 0.0083],
    [40.92, 40.80, 40.92, 0.0054],
    [50.02, 49.64, 49.97, 0.0481],
    [33.97, 33.70, 33.95, 0.0187],
    [24.05, 23.89, 24.04, 0.0123],
    [91.75, 91.33, 91.74, 0.0102],
    [86.92, 86.53, 86.90, 0.0136],
];

/// Table 5: saved by the baseline and by P-Dedupe with Adler.
const TABLE5: [[f64; 2]; 8] = [
    [56.67, 56.63],
    [42.81, 42.80],
    [41.39, 41.38],
    [50.28, 50.24],
    [34.16, 34.13],
    [24.45, 24.44],
    [91.76, 91.75],
    [86.93, 86.93],
];

/// Table 6: the same with Gear.
const TABLE6: [[f64; 2]; 8] = [
    [56.32, 56.25],
    [43.21, 43.15],
    [41.67, 41.67],
    [50.40, 50.29],
    [34.34, 34.27],
    [26.75, 26.72],
    [91.79, 91.76],
    [86.92, 86.89],
];

/// What Eq. 8 comes to in the paper, in bytes a segment. Its own terms give 0.614 KB.
pub const EQUATION_8_BYTES: f64 = 0.6258 * 1024.0;

/// Shares of borders by §3.3, of 100: case 1 and 2 together 22.12, case 2 4.9, case 4 0.0074. Case 1
/// is the difference of the first two; case 3 is at most what Eq. 7 gives for chunks beyond 64 KB.
pub const CASES_PERCENT: [Option<f64>; 5] = [
    Some(22.12 - 4.9),
    Some(4.9),
    Some(0.0335),
    Some(0.0074),
    None,
];

fn row_of(set: &str) -> Option<usize> {
    DATA_SETS.iter().position(|(name, _)| *name == set)
}

/// Saved bytes of Table 3 in percent: baseline, without jointing, with it, missed.
pub fn table3(set: &str) -> Option<[f64; 4]> {
    Some(TABLE3[row_of(set)?])
}

/// Saved bytes in percent: baseline, P-Dedupe; of Table 5 (Adler) or Table 6 (Gear).
pub fn other_hashes(experiment: &str, set: &str) -> Option<[f64; 2]> {
    let row = row_of(set)?;
    match experiment {
        "table5" => Some(TABLE5[row]),
        "table6" => Some(TABLE6[row]),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A slip of the pen would show: jointing saves more than none and less than the baseline, and
    /// what is missed is the difference, but for rounding.
    #[test]
    fn table_3_agrees_with_itself() {
        for (set, _) in DATA_SETS {
            let [baseline, without, with, missed] = table3(set).unwrap();
            assert!(without < with && with <= baseline, "{set}");
            assert!((baseline - with - missed).abs() < 0.011, "{set}");
        }
    }

    #[test]
    fn other_hashes_save_about_as_much() {
        for (set, _) in DATA_SETS {
            let [rabin, ..] = table3(set).unwrap();
            for table in ["table5", "table6"] {
                let [baseline, with] = other_hashes(table, set).unwrap();
                assert!((baseline - rabin).abs() < 2.8 && with <= baseline, "{set}");
                assert!(baseline - with < 0.12, "{set}");
            }
        }
        assert_eq!(other_hashes("table3", "GCC"), None);
        assert_eq!(table3("TAR"), None);
    }
}
