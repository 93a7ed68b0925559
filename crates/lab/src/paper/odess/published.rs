//! What the Odess paper prints: its data sets (Table 2), Table 3, and the numbers of its text. Its
//! figures are drawn, without numbers.
//!
//! Source: Xia, Pu, Zou, Shilane, Li, Zhang, Wang, *The Design of Fast and Lightweight Resemblance
//! Detection for Efficient Post-Deduplication Delta Compression*, ACM Transactions on Storage, 2022.

/// The paper's names of its data sets, and what they were (Table 2). LNX is tarred here, unlike in other
/// papers.
pub const DATA_SETS: [(&str, &str); 6] = [
    ("TAR", "167 GB: 492 tarred files of open source projects"),
    ("LNX", "116 GB: 265 versions of Linux source code, tarred"),
    ("RDB", "535 GB: 99 backups of a Redis database"),
    ("SYN", "497 GB: 75 synthetic backups"),
    (
        "VMA",
        "138 GB: 91 virtual machine images of different systems",
    ),
    ("VMB", "314 GB: 21 backups of an Ubuntu virtual machine"),
];

/// Dedup ratios of the data sets at 8 KB (Table 2).
const DEDUP_RATIOS: [f64; 6] = [2.00, 1.93, 10.95, 21.96, 1.62, 7.73];

/// Expected sizes of chunks (Figs. 16 to 21).
pub const EXPECTED: [u32; 3] = [4 << 10, 8 << 10, 16 << 10];

/// Windows in parallel, DCE, DCR, SCR and MB/s on TAR (Table 3).
pub const TABLE3: [(u8, [f64; 4]); 3] = [
    (2, [0.989, 7.364, 7.936, 1532.0]),
    (4, [0.982, 7.845, 9.163, 2129.0]),
    (8, [0.846, 5.911, 58.896, 2890.0]),
];

/// DCR of Odess+ over Finesse's at 4, 8, 16 KB, over all data sets (§4.3.1).
pub const DCR_OVER_FINESSE: [f64; 3] = [1.246, 1.224, 1.198];
/// Feature speed of Odess+ over N-Transform's, on average (§4.3.4).
pub const SPEED_OVER_N_TRANSFORM: f64 = 31.4;
/// The same over Finesse's.
pub const SPEED_OVER_FINESSE: f64 = 7.9;
/// The same over Odess's.
pub const SPEED_OVER_ODESS: f64 = 1.45;
/// Throughput of the system with Odess+ over those with N-Transform, Finesse, Odess, on average (§4.3.4).
pub const SYSTEM_OVER: [f64; 3] = [3.20, 1.41, 1.06];
/// Global compression ratio with Odess+ over that with Finesse, on average (§4.3.4).
pub const GLOBAL_OVER_FINESSE: f64 = 1.23;
/// Odess+ over Odess from one in 512 to one in 8 sampled (§4.3.2).
pub const SPEED_OVER_ODESS_BY_RATE: [f64; 2] = [1.06, 1.76];
/// Sampling errors in a million chunks: "as low as" that on TAR and VMA, and on LNX (§3.2).
pub const SAMPLING_ERRORS: [(&str, f64); 3] = [("TAR", 10.0), ("VMA", 10.0), ("LNX", 0.1)];

/// What is sampled: one in 8 to one in 512 (Figs. 13 and 22).
pub const RATES: [u32; 7] = [8, 16, 32, 64, 128, 256, 512];
/// The rate everywhere else.
pub const RATE: u32 = 128;
/// Features of a chunk (§4.3).
pub const FEATURES: usize = 12;

/// The dedup ratio of a data set in the paper.
pub fn dedup_ratio(set: &str) -> Option<f64> {
    let row = DATA_SETS.iter().position(|(name, _)| *name == set)?;
    Some(DEDUP_RATIOS[row])
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A slip of the pen would show: DCR follows from SCR and DCE if all chunks are equally long.
    #[test]
    fn table_3_agrees_with_itself() {
        for (windows, [dce, dcr, scr, _]) in TABLE3 {
            let left = (1.0 + scr * (1.0 - dce)) / (1.0 + scr);
            let ratio = 1.0 / left / dcr;
            assert!((0.95..1.25).contains(&ratio), "{windows}: {ratio}");
        }
        assert_eq!(dedup_ratio("SYN"), Some(21.96));
        assert_eq!(dedup_ratio("syn"), None);
    }
}
