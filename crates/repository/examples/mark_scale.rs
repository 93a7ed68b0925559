//! What marking takes for as many chunks as are asked for, without a repository: memory, and time for the marks themselves
//! (pages of directories and recipes are not read here; their time is that of reading them).
//!
//! `cargo run --release -p onefold-repository --example mark_scale -- 1000000000 100`
//!
//! Half of the chunks come with the first snapshot, in runs of 64 in the order of their containers; each later one brings
//! an equal part of the others, and has recipes of changed files that name a fiftieth of what there was again, in runs of 8.

use std::time::Instant;

use engine::container::{ContainerId, Slot};
use engine::object::ObjectId;
use engine::recipe::Run;
use repository::prune::Marks;

/// Chunks of a container: 4 MiB of chunks of 8 KiB that compress to four fifths.
const CONTAINER_CHUNKS: u64 = 640;

/// The container of that number, under an id that looks random.
fn container(number: u64) -> ContainerId {
    let mut id = [0; 16];
    for (half, bytes) in id.chunks_mut(8).enumerate() {
        let mut mixed = (2 * number + half as u64).wrapping_add(0x9e37_79b9_7f4a_7c15);
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        bytes.copy_from_slice(&(mixed ^ (mixed >> 31)).to_le_bytes());
    }
    ContainerId(ObjectId(id))
}

/// Marks `count` chunks from the one of number `first` on, in runs of at most `run` chunks.
fn mark(marks: &mut Marks, first: u64, count: u64, run: u64) {
    let end = first + count;
    let mut at = first;
    while at < end {
        let slot = at % CONTAINER_CHUNKS;
        let length = run.min(end - at).min(CONTAINER_CHUNKS - slot);
        marks.insert_run(&Run::Slots {
            container: container(at / CONTAINER_CHUNKS),
            first: Slot(slot as u16),
            count: length as u32,
            bytes: length * 8192,
        });
        at += length;
    }
}

/// Peak of resident memory, in bytes, where the system tells.
fn peak_bytes() -> Option<u64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status
        .lines()
        .find_map(|line| line.strip_prefix("VmHWM:"))?;
    let kib: u64 = line.split_whitespace().next()?.parse().ok()?;
    Some(kib << 10)
}

fn main() {
    let mut numbers = std::env::args().skip(1).map(|word| word.parse::<u64>());
    let mut number = |default| match numbers.next() {
        Some(number) => number.expect("a number"),
        None => default,
    };
    let (chunks, snapshots) = (number(1_000_000_000), number(100).max(2));
    let before = peak_bytes().unwrap_or(0);
    let started = Instant::now();
    let mut marks = Marks::default();
    let half = chunks / 2;
    mark(&mut marks, 0, half, 64);
    let each = (chunks - half) / (snapshots - 1);
    for snapshot in 1..snapshots {
        let there = half + (snapshot - 1) * each;
        mark(&mut marks, there, each, 64);
        for piece in 0..there / 50 / 8 {
            let at = piece.wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ snapshot;
            mark(&mut marks, at % (there - 8), 8, 8);
        }
    }
    let seconds = started.elapsed().as_secs_f64();
    let mebibytes = |bytes: u64| bytes as f64 / f64::from(1 << 20);
    println!(
        "{} chunks, {snapshots} snapshots: {seconds:.1} s; marks {:.0} MiB, {:.2} bits a chunk; process {:.0} MiB",
        marks.chunk_count(),
        mebibytes(marks.memory_bytes() as u64),
        marks.memory_bytes() as f64 * 8.0 / marks.chunk_count().max(1) as f64,
        mebibytes(peak_bytes().unwrap_or(0).saturating_sub(before)),
    );
}
