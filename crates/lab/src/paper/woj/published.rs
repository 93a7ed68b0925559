//! What the WOJ paper prints: its tables, and the numbers of its text. Its figures are drawn, without numbers.
//!
//! Source: Ni, dissertation, UT Arlington 2019, ch. 4.

use super::model::Ssd;

/// Its data with names (§4.3.5), and what they were.
pub const DATA_SETS: [(&str, &str); 3] = [
    ("GCC-code", "3.1 GB: sources of GCC, more than 4000 files"),
    ("DVD-image", "3.7 GB: a Debian DVD image"),
    ("GCC-clone", "a git clone of GCC"),
];

/// Table 4.1: MiB/s at 3.0 and at 1.2 GHz.
pub const HASHES: [(&str, f64, f64); 6] = [
    ("MD5", 526.1, 215.3),
    ("SHA-1", 470.1, 172.5),
    ("SHA-256", 204.1, 79.2),
    ("SHA-512", 327.5, 130.5),
    ("CRC32C", 7631.3, 3050.7),
    ("xxHash", 5715.4, 2285.2),
];

/// Table 4.2. What a flush costs is not said there: assumed, for a disk with capacitors on PCI Express, and two
/// behind SATA without.
pub const SSDS: [Ssd; 3] = [
    Ssd {
        name: "fast SSD",
        write_bytes_per_second: 900e6,
        flush_ms: 0.05,
    },
    Ssd {
        name: "moderate SSD",
        write_bytes_per_second: 520e6,
        flush_ms: 0.5,
    },
    Ssd {
        name: "slow SSD",
        write_bytes_per_second: 70e6,
        flush_ms: 2.0,
    },
];

/// Flush windows that are drawn or named.
pub const WINDOWS: [u32; 4] = [1, 10, 100, 1000];
/// Write amplification without dedup, sequential: window, ratio (§4.3.2).
pub const AMPLIFICATIONS: [(u32, f64); 2] = [(10, 2.6), (1000, 2.0)];
/// Throughput of WOJ_xxh64 on the fast SSD with windows of 1000 (§4.3.2): MB/s sequential, random.
pub const WOJ_MEGABYTES: [f64; 2] = [290.0, 165.0];
/// Bytes of the journal (§4.3.1).
pub const JOURNAL_BYTES: u64 = 256 << 20;
/// Memory that WOJ takes with it (§4.3.6): pool and reverse mapping.
pub const MEMORY_BYTES: f64 = 1.25 * (1 << 20) as f64;
/// Blocks that WOJ removes, of 100, but for varmail and ws_w1 (§4.3.3).
pub const REMOVED_PERCENT: [f64; 2] = [38.0, 50.0];
