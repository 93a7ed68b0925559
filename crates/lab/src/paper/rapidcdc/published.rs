//! What Ni prints of RapidCDC (ch. 3): Table 3.1, and the numbers of §3.4.
//!
//! Source: Ni, *Optimizing Deduplication* (dissertation, UT Arlington 2019), ch. 3; RapidCDC, SoCC
//! 2019. Its Figs. 3.1 to 3.3 and 3.7 to 3.17 are drawn; only what its text says of them stands here.

/// The paper's names of its data sets, and what they were (its Table 3.1).
pub const DATA_SETS: [(&str, &str); 8] = [
    ("Google-news", "7.2 GB: 14 days of a news site"),
    ("Linux-tar", "37.2 GB: 209 tars of Linux sources"),
    ("Cassandra", "14.2 GB: 40 container images"),
    ("Redis", "100.4 GB: 34 container images"),
    ("Debian", "9.5 GB: 92 container images"),
    ("Neo4j", "46.0 GB: 140 container images"),
    ("Wordpress", "181.7 GB: 501 container images"),
    ("Nodejs", "800.0 GB: 1567 container images"),
];

/// Table 3.1: bytes over bytes of distinct chunks, of regular CDC.
const RATIOS: [f64; 8] = [2.1, 4.1, 5.0, 7.2, 15.8, 19.0, 22.0, 41.4];

/// Edits in 500 MB (§3.4.4).
pub const EDITS: [u32; 5] = [1000, 2000, 5000, 10_000, 20_000];
/// The dedup ratio of FF with inserts and deletes.
const EDIT_RATIOS: [f64; 5] = [7.9, 6.6, 4.3, 2.8, 1.8];
/// The speed-up of FF with Rabin (Fig. 3.7) and with Gear (Fig. 3.10).
const RABIN_SPEED_UPS: [f64; 5] = [6.1, 4.8, 3.1, 2.1, 1.6];
const GEAR_SPEED_UPS: [f64; 5] = [5.9, 4.5, 2.7, 1.8, 1.5];

/// Sequential write throughput of the paper's disks in bytes a second (§3.4.1, §3.4.5).
pub const DISKS: [(&str, f64); 3] = [
    ("hard disk", 138e6),
    ("SATA SSD", 520e6),
    ("NVMe SSD", 1.2e9),
];

/// The dedup ratio of Table 3.1.
pub fn ratio(set: &str) -> Option<f64> {
    let row = DATA_SETS.iter().position(|(name, _)| *name == set)?;
    Some(RATIOS[row])
}

/// The dedup ratio of fixed-size chunking that the text names for Fig. 3.16 (d).
pub fn fixed_ratio(set: &str) -> Option<f64> {
    (set == "Redis").then_some(1.9)
}

/// How often the first size of a list hits, of 100: the text names one set for Fig. 3.13.
pub fn first_hit_percent(set: &str) -> Option<f64> {
    (set == "Nodejs").then_some(99.24)
}

/// The dedup ratio of FF with so many inserts and deletes.
pub fn edit_ratio(edits: u32) -> Option<f64> {
    let row = EDITS.iter().position(|other| *other == edits)?;
    Some(EDIT_RATIOS[row])
}

/// The speed-up of FF with so many inserts and deletes.
pub fn edit_speed_up(edits: u32, is_gear: bool) -> Option<f64> {
    let row = EDITS.iter().position(|other| *other == edits)?;
    let speed_ups = if is_gear {
        GEAR_SPEED_UPS
    } else {
        RABIN_SPEED_UPS
    };
    Some(speed_ups[row])
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The text says that speed-ups follow ratios, and that Gear gains a little less.
    #[test]
    fn figures_fall_with_more_edits_and_stay_below_ratios() {
        for (index, edits) in EDITS.into_iter().enumerate() {
            let ratio = edit_ratio(edits).unwrap();
            let rabin = edit_speed_up(edits, false).unwrap();
            let gear = edit_speed_up(edits, true).unwrap();
            assert!(gear < rabin && rabin < ratio, "{edits}");
            if index > 0 {
                assert!(ratio < edit_ratio(EDITS[index - 1]).unwrap());
            }
        }
        assert_eq!(edit_ratio(3000), None);
        assert_eq!(ratio("Nodejs"), Some(41.4));
        assert_eq!(ratio("TAR"), None);
    }
}
