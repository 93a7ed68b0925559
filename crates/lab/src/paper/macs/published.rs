//! What the MACS paper prints: its data sets, and the numbers of its text. Its figures are drawn, without
//! numbers.
//!
//! Source: Mo, Hua, Li, Cao, Liu, *A Cost-Efficient Metadata Scheme for High-Performance Deduplication
//! Systems*.

/// The paper's names of its data sets, and what they were (§IV-A); all unpacked.
pub const DATA_SETS: [(&str, &str); 3] = [
    ("Linux", "23.2 GB: 50 releases of Linux, 3.10.1 to 3.10.50"),
    ("GCC", "11.5 GB: 42 releases of GCC, 3.3 to 4.4.7"),
    ("GDB", "7.4 GB: 48 releases of GDB, 5.2.1 to 9.1"),
];

/// Expected sizes of chunks (§IV-B).
pub const EXPECTED: [u32; 3] = [4 << 10, 8 << 10, 16 << 10];
/// "MACS achieves over 95 % average container filling ratio" (abstract, §IV-B).
pub const MACS_FILLING_PERCENT: f64 = 95.0;
/// Containers in the restore cache (§IV-C).
pub const CACHE_CONTAINERS: usize = 30;
/// Versions of Fig. 9.
pub const HIT_VERSIONS: usize = 10;
