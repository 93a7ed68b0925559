//! What the P-Dedupe paper prints: Tables 2, 3, 5 and 6, and the numbers of its §3.3 and §4.
//!
//! Source: Xia et al., *P-Dedupe: Exploiting Parallelism in Data Deduplication System* in its journal
//! form. Dedup ratio there is the share of bytes that are duplicates, of 100. Its Figs. 9 to 14 are
//! drawn, without numbers in the text but for what its prose says of them.

use super::equations::StageTimes;
use super::system::Split;

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

/// Throughput of Table 5 in MB/s: the baseline, P-Dedupe.
const TABLE5_SPEED: [[f64; 2]; 8] = [
    [133.0, 459.0],
    [129.0, 500.0],
    [131.0, 491.0],
    [134.0, 506.0],
    [133.0, 504.0],
    [135.0, 503.0],
    [130.0, 497.0],
    [130.0, 496.0],
];

/// The same of Table 6.
const TABLE6_SPEED: [[f64; 2]; 8] = [
    [172.0, 586.0],
    [162.0, 590.0],
    [168.0, 585.0],
    [172.0, 588.0],
    [167.0, 603.0],
    [172.0, 583.0],
    [168.0, 612.0],
    [169.0, 594.0],
];

/// Throughput of the baseline with Rabin, "about 130MB/s on average" (§4.2, Fig. 10).
pub const BASELINE_SPEED: f64 = 130e6;
/// P-Dedupe "runs about 4 times faster than the Baseline approach" (§4.3, Fig. 14).
pub const SPEED_UP: f64 = 4.0;
/// "about 2 times faster than the Pipeline approach".
pub const SPEED_UP_OF_PIPELINE: f64 = 2.0;
/// Threads of the parallel stages with Rabin and Adler (§4.1).
pub const SPLIT: Split = Split {
    chunking: 4,
    fingerprinting: 4,
};
/// With Gear (§4.4).
pub const SPLIT_OF_GEAR: Split = Split {
    chunking: 3,
    fingerprinting: 5,
};
/// Its processor's cores (§4.1).
pub const CORES: f64 = 4.0;

/// Rabin at 245 MB/s, SHA-1 at 345 MB/s on one core (§2.2); it gives no times for the others.
pub const STAGES: StageTimes = StageTimes {
    chunk: 1.0 / 245e6,
    join: 0.0,
    fingerprint: 1.0 / 345e6,
    index: 0.0,
    write: 0.0,
    factor: 1.0,
};

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

/// Throughput in bytes a second: baseline, P-Dedupe; of Table 5 (Adler) or Table 6 (Gear).
pub fn speeds(experiment: &str, set: &str) -> Option<[f64; 2]> {
    let row = row_of(set)?;
    let megabytes = match experiment {
        "table5" => TABLE5_SPEED[row],
        "table6" => TABLE6_SPEED[row],
        _ => return None,
    };
    Some(megabytes.map(|speed| speed * 1e6))
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

    /// The text says 3 to 4 times the baseline, whatever cuts.
    #[test]
    fn speeds_are_as_the_text_has_them() {
        for (set, _) in DATA_SETS {
            for table in ["table5", "table6"] {
                let [baseline, with] = speeds(table, set).unwrap();
                let times = with / baseline;
                assert!((3.3..4.0).contains(&times), "{table} {set}: {times}");
            }
        }
        assert_eq!(speeds("fig14", "GCC"), None);
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
