//! What the ThinDedup paper prints: its devices, and the numbers of its text. Its figures are drawn, without
//! numbers.
//!
//! Source: Ni, dissertation, UT Arlington 2019, ch. 5.

use super::device::Device;

/// Bytes of the disk that synthetic writes go to (§5.3.2).
pub const SPAN_BYTES: u64 = 120_000_000_000;
/// Windows of Fig. 5.3, in blocks.
pub const WINDOWS: [u32; 7] = [4, 8, 16, 32, 64, 128, 256];
/// The window of Fig. 5.6 and of all traces.
pub const TRACE_WINDOW: u32 = 8;
/// C-zones before a commit (§5.3.1).
pub const COMMIT_ZONES: u32 = 2;
/// Blocks that compress, of 100 (§5.3.2, §5.3.3).
pub const COMPRESSIBLE_PERCENT: u32 = 80;

/// The 320 GB WD Caviar Blue: 90th percentiles of synchronous writes of 4 KB (§5.3.1). How fast it
/// streams the paper does not say; 100 MB/s is usual for disks of its kind.
pub const HARD_DISK: Device = Device {
    name: "hard disk",
    sequential_ms: 8.33,
    random_ms: 13.36,
    hop_ms: None,
    stream_bytes_per_second: 100e6,
};
/// The 1 TB Crucial/Micron SSD (§5.3.1); "around 500MB/s or lower" (§5.2.3).
pub const SSD: Device = Device {
    name: "SSD",
    sequential_ms: 5.67,
    random_ms: 5.71,
    hop_ms: None,
    stream_bytes_per_second: 500e6,
};
/// The hard disk with hops that are fitted to one of the paper's numbers: OrderedWrites has about 2000 blocks/s
/// with random windows of 256 blocks. That is 128 ms for two flushes, two seeks, the transfer of about 370 blocks,
/// and 248 hops: no more than 0.35 ms each, a fifteenth of a seek.
pub const QUEUED: Device = Device {
    name: "hard disk, queued",
    hop_ms: Some(0.35),
    ..HARD_DISK
};
/// All of them.
pub const DEVICES: [Device; 3] = [HARD_DISK, QUEUED, SSD];

/// Throughput of ThinDedup, of 1 that OrderedWrites has: access, device, window, times (§5.3.2).
pub const SPEED_UPS: [(&str, &str, u32, f64); 8] = [
    ("random", QUEUED.name, 32, 2.73),
    ("random", QUEUED.name, 64, 3.0),
    ("random", QUEUED.name, 128, 2.88),
    ("random", HARD_DISK.name, 32, 2.73),
    ("random", HARD_DISK.name, 64, 3.0),
    ("random", HARD_DISK.name, 128, 2.88),
    ("sequential", SSD.name, 32, 1.9),
    ("sequential", SSD.name, 128, 1.77),
];
/// "About 2000 blocks/sec": access, device, scheme, window (§5.3.2).
pub const THROUGHPUTS: [(&str, &str, &str, u32); 9] = [
    ("random", QUEUED.name, "thin", 32),
    ("sequential", QUEUED.name, "thin", 32),
    ("sequential", QUEUED.name, "ordered", 64),
    ("random", HARD_DISK.name, "thin", 32),
    ("random", HARD_DISK.name, "ordered", 256),
    ("sequential", HARD_DISK.name, "thin", 32),
    ("sequential", HARD_DISK.name, "ordered", 64),
    ("random", SSD.name, "thin", 8),
    ("random", SSD.name, "ordered", 16),
];
/// What those are.
pub const THROUGHPUT: f64 = 2000.0;
/// "the latency can be reduced by up to 88% without compromising the throughput" (§5.4).
pub const LATENCY_CUT_PERCENT: f64 = 88.0;
/// Metadata writes avoided at a deduplication ratio of 16.08, of 100 (§5.3.3).
pub const AVOIDED_AT_16_PERCENT: f64 = 27.8;
/// Gain in throughput over OrderedWrites, least and most, of 100 (§5.3.3).
pub const GAINS: [(&str, [f64; 2]); 4] = [
    ("fig5.9", [19.0, 112.0]),
    ("fig5.10", [7.0, 91.0]),
    ("fig5.11", [88.0, 145.0]),
    ("fig5.12", [58.0, 96.0]),
];

/// The paper's names of its traces, and what they were (Table 5.1, §5.3.3).
pub const DATA_SETS: [(&str, &str); 12] = [
    ("WebVM-4", "day 4 of FIU's WebVM, dedup ratio 1.60"),
    ("WebVM-8", "day 8 of FIU's WebVM, dedup ratio 1.35"),
    ("WebVM-12", "day 12 of FIU's WebVM, dedup ratio 1.16"),
    ("Homes-11", "day 11 of FIU's Homes, dedup ratio 1.77"),
    ("Homes-12", "day 12 of FIU's Homes, dedup ratio 2.80"),
    ("Homes-13", "day 13 of FIU's Homes, dedup ratio 4.63"),
    ("Mail-1", "day 1 of FIU's Mail, dedup ratio 5.43"),
    ("Mail-2", "day 2 of FIU's Mail, dedup ratio 16.08"),
    ("Mail-5", "day 5 of FIU's Mail, dedup ratio 9.73"),
    ("HM", "hardware monitor, Microsoft Research Cambridge"),
    ("RSRCH", "research, Microsoft Research Cambridge"),
    ("SRC", "source control, Microsoft Research Cambridge"),
];
