//! The figures that the FastCDC paper prints: Tables 3 to 6.
//!
//! Source: Xia et al., *The Design of Fast Content-Defined Chunking for Data Deduplication Based
//! Storage Systems*, IEEE TPDS 2020. Dedup ratio there is the share of bytes that are duplicates.
//! Its Figs. 5 and 9 to 15 are drawn, not printed: what its text says of them stands in
//! `claims.rs`.

/// The paper's names of its data sets, and what they were (its Table 2).
pub const DATA_SETS: [(&str, &str); 7] = [
    ("TAR", "56 GB: 215 tarred files of open source projects"),
    ("LNX", "178 GB: 390 versions of Linux source code, untarred"),
    ("WEB", "237 GB: 102 days' snapshots of news.sina.com"),
    (
        "VMA",
        "138 GB: 90 virtual machine images of different systems",
    ),
    ("VMB", "1.9 TB: 125 backups of an Ubuntu virtual machine"),
    ("RDB", "1.1 TB: 198 backups of a Redis database"),
    ("SYN", "2.1 TB: 300 synthetic backups"),
];

/// The expected sizes of Table 3.
pub const EXPECTED_SIZES: [u32; 3] = [4 << 10, 8 << 10, 16 << 10];

/// The approaches of Table 3.
pub const TABLE3_APPROACHES: [&str; 3] = ["RC", "GC", "FC"];

/// Saved bytes in percent and mean size, for each expected size.
type Row3 = [(f64, f64); 3];

/// Table 3: for each data set, RC, GC and FC.
const TABLE3: [[Row3; 3]; 7] = [
    [
        [(55.02, 5770.0), (46.66, 12449.0), (38.62, 25168.0)],
        [(51.20, 6786.0), (43.55, 14120.0), (34.94, 30919.0)],
        [(54.39, 5759.0), (46.65, 12334.0), (38.68, 25388.0)],
    ],
    [
        [(96.65, 3847.0), (96.30, 6021.0), (95.94, 8261.0)],
        [(96.72, 3501.0), (96.37, 5684.0), (96.01, 8007.0)],
        [(96.65, 3860.0), (96.31, 6012.0), (95.95, 8246.0)],
    ],
    [
        [(87.38, 5029.0), (75.98, 11301.0), (63.77, 23221.0)],
        [(74.00, 7264.0), (57.37, 19460.0), (31.86, 38888.0)],
        [(90.02, 5426.0), (83.20, 11552.0), (72.92, 23402.0)],
    ],
    [
        [(41.63, 6535.0), (36.70, 13071.0), (31.38, 26191.0)],
        [(41.11, 5894.0), (35.88, 12419.0), (30.52, 24960.0)],
        [(41.61, 6468.0), (36.40, 13150.0), (31.19, 26334.0)],
    ],
    [
        [(96.40, 5958.0), (96.12, 11937.0), (95.75, 24100.0)],
        [(96.41, 5622.0), (96.05, 11477.0), (95.66, 23260.0)],
        [(96.39, 6021.0), (96.08, 12138.0), (95.70, 24384.0)],
    ],
    [
        [(95.35, 5473.0), (92.57, 10964.0), (87.38, 21946.0)],
        [(95.15, 5830.0), (92.26, 11666.0), (86.82, 23307.0)],
        [(95.32, 5479.0), (92.58, 10970.0), (87.39, 21909.0)],
    ],
    [
        [(98.27, 5828.0), (97.36, 11663.0), (96.03, 23349.0)],
        [(98.45, 4922.0), (97.65, 9818.0), (96.44, 19624.0)],
        [(98.28, 5799.0), (97.37, 11598.0), (96.04, 23247.0)],
    ],
];

/// The approaches of Tables 4 and 5.
pub const TABLE4_APPROACHES: [&str; 9] = [
    "FIXC", "RC-v1", "RC-v2", "RC-v3", "AE-v1", "AE-v2", "FC-v1", "FC-v2", "FC-v3",
];

/// Table 4: saved bytes in percent.
const TABLE4: [[f64; 9]; 7] = [
    [
        15.77, 46.66, 47.42, 45.37, 43.62, 46.41, 46.65, 47.39, 45.40,
    ],
    [
        95.68, 96.30, 96.28, 96.19, 96.25, 96.13, 96.31, 96.28, 96.19,
    ],
    [
        59.96, 75.98, 83.16, 80.39, 83.08, 83.18, 83.20, 83.29, 80.92,
    ],
    [
        17.63, 36.70, 37.79, 36.52, 38.10, 38.17, 36.40, 37.66, 36.39,
    ],
    [
        95.68, 96.12, 96.17, 96.11, 95.82, 96.15, 96.08, 96.17, 96.11,
    ],
    [
        16.39, 92.57, 92.96, 92.24, 88.82, 92.83, 92.58, 92.97, 92.23,
    ],
    [
        79.46, 97.36, 97.91, 97.67, 97.54, 97.86, 97.37, 97.90, 97.67,
    ],
];

/// Table 5: mean size of chunks in bytes.
const TABLE5: [[u32; 9]; 7] = [
    [
        10239, 12449, 12664, 14772, 12187, 12200, 12334, 12801, 14918,
    ],
    [6508, 6021, 7041, 7636, 6274, 6162, 6012, 7042, 7636],
    [
        10240, 11301, 12174, 14148, 11977, 11439, 11552, 11880, 13951,
    ],
    [
        10239, 13071, 13505, 15628, 13098, 13559, 13150, 13595, 15746,
    ],
    [
        10239, 11937, 12970, 15094, 12303, 12254, 12138, 13034, 15166,
    ],
    [
        10239, 10964, 12587, 14728, 11943, 12102, 10970, 12583, 14725,
    ],
    [
        10240, 11663, 12221, 14271, 11956, 11997, 11598, 12239, 14289,
    ],
];

/// Table 6: instructions, instructions a cycle, cycles, branches; all but the second for a byte.
const TABLE6: [(&str, [f64; 4]); 11] = [
    ("RC-v1", [19.54, 2.49, 7.85, 2.44]),
    ("RC-v2", [11.22, 2.30, 4.88, 1.02]),
    ("RC-v3", [9.72, 2.27, 4.28, 0.88]),
    ("AE-v1", [11.75, 3.77, 3.12, 3.84]),
    ("AE-v2", [7.00, 3.08, 2.27, 2.00]),
    ("FC-v1", [7.32, 3.89, 1.88, 1.63]),
    ("FC-v2", [4.89, 3.83, 1.28, 1.02]),
    ("FC-v3", [4.23, 3.72, 1.14, 0.88]),
    ("FC'-v1", [5.28, 3.87, 1.36, 1.13]),
    ("FC'-v2", [3.57, 3.59, 0.99, 0.76]),
    ("FC'-v3", [3.09, 3.47, 0.89, 0.66]),
];

/// The approaches of Table 6 and Fig. 14.
#[cfg(test)]
pub fn table6_approaches() -> impl Iterator<Item = &'static str> {
    TABLE6.iter().map(|(approach, _)| *approach)
}

fn row_of(set: &str) -> Option<usize> {
    DATA_SETS.iter().position(|(name, _)| *name == set)
}

/// Saved bytes in percent and mean size of Table 3.
pub fn table3(set: &str, approach: &str, expected: u32) -> Option<(f64, f64)> {
    let row = TABLE3[row_of(set)?];
    let approach = TABLE3_APPROACHES
        .iter()
        .position(|name| *name == approach)?;
    let size = EXPECTED_SIZES.iter().position(|size| *size == expected)?;
    Some(row[approach][size])
}

/// Saved bytes in percent of Table 4.
pub fn table4(set: &str, approach: &str) -> Option<f64> {
    let column = TABLE4_APPROACHES
        .iter()
        .position(|name| *name == approach)?;
    Some(TABLE4[row_of(set)?][column])
}

/// Mean size in bytes of Table 5.
pub fn table5(set: &str, approach: &str) -> Option<f64> {
    let column = TABLE4_APPROACHES
        .iter()
        .position(|name| *name == approach)?;
    Some(f64::from(TABLE5[row_of(set)?][column]))
}

/// Instructions, instructions a cycle, cycles, branches of Table 6.
pub fn table6(approach: &str) -> Option<[f64; 4]> {
    let (_, figures) = TABLE6.iter().find(|(name, _)| *name == approach)?;
    Some(*figures)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The paper repeats some of its figures: a slip of the pen would show.
    #[test]
    fn tables_agree_where_they_repeat_one_another() {
        for (set, _) in DATA_SETS {
            for (approach, name) in [("RC", "RC-v1"), ("FC", "FC-v1")] {
                let (saved, mean) = table3(set, approach, 8192).unwrap();
                assert_eq!(table4(set, name), Some(saved), "{set} {name}");
                assert_eq!(table5(set, name), Some(mean), "{set} {name}");
            }
        }
        // Cycles are instructions over instructions a cycle, but for rounding.
        for approach in table6_approaches() {
            let [instructions, per_cycle, cycles, _] = table6(approach).unwrap();
            assert!(
                (instructions / per_cycle / cycles - 1.0).abs() < 0.02,
                "{approach}"
            );
        }
    }

    /// The differences that Table 3 prints in parentheses, for the extremes.
    #[test]
    fn table_3_has_the_differences_that_it_prints() {
        for (set, approach, expected, saved, mean) in [
            ("TAR", "GC", 4096, -6.94, 17.6),
            ("WEB", "GC", 16384, -50.0, 67.5),
            ("WEB", "FC", 8192, 9.50, 2.22),
            ("SYN", "GC", 8192, 0.29, -15.8),
            ("RDB", "FC", 16384, 0.01, -0.16),
            ("VMB", "FC", 8192, -0.04, 1.68),
            ("LNX", "GC", 4096, 0.07, -8.99),
            ("VMA", "GC", 16384, -2.74, -4.70),
        ] {
            let (rabin_saved, rabin_mean) = table3(set, "RC", expected).unwrap();
            let (ours_saved, ours_mean) = table3(set, approach, expected).unwrap();
            let percent = |ours: f64, theirs: f64| 100.0 * (ours / theirs - 1.0);
            assert!(
                (percent(ours_saved, rabin_saved) - saved).abs() < 0.06,
                "{set}"
            );
            assert!(
                (percent(ours_mean, rabin_mean) - mean).abs() < 0.06,
                "{set}"
            );
        }
    }
}
