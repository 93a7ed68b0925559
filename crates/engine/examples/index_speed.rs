//! How fast and how large the index is: builds it from synthetic keys in a temporary local
//! store, then looks up keys that are there and keys that are not.
//!
//! `cargo run --release -p onefold-engine --example index_speed -- [keys] [runs] [memory MiB]`
//!
//! Defaults: 5,000,000 keys, 8 runs that are merged into one, 256 MiB. Chunks of 8 KiB in
//! containers of 4 MiB are assumed, that is, 512 keys a container. One thread; files come from
//! the page cache, so what is measured is our own work and system calls, not a disk.

use std::collections::BTreeMap;
use std::error::Error;
use std::sync::Arc;
use std::time::{Duration, Instant};

use engine::container::{ChunkAddress, ContainerId, Slot};
use engine::format::Vault;
use engine::index::{IndexEntry, IndexStatistics, MEMORY_BYTES_MIN, RunSet};
use engine::object::{LocalStore, ObjectId, ObjectStore};
use testkit::random::Random;
use zeroize::Zeroizing;

/// Keys of a container.
const CONTAINER_KEYS: usize = 512;

/// Look-ups in each measurement.
const LOOKUPS: usize = 1_000_000;

fn main() -> Result<(), Box<dyn Error>> {
    let mut numbers = std::env::args()
        .skip(1)
        .map(|argument| argument.parse::<usize>());
    let keys = numbers.next().transpose()?.unwrap_or(5_000_000);
    let runs = numbers.next().transpose()?.unwrap_or(8).max(1);
    let memory_bytes = numbers.next().transpose()?.unwrap_or(256) << 20;

    let directory = tempfile::tempdir()?;
    let store: Arc<dyn ObjectStore> = Arc::new(LocalStore::create(directory.path())?);
    let secrets = BTreeMap::from([(1, Zeroizing::new([7; 32]))]);
    let vault = Arc::new(Vault::new(ObjectId([1; 16]), secrets, true));
    let set = RunSet::open(Arc::clone(&store), Arc::clone(&vault), memory_bytes)?;

    let mut random = Random::new(1);
    let mut entries = synthetic(&mut random, keys);
    let wanted: Vec<u64> = (0..LOOKUPS)
        .map(|_| entries[random.index(keys)].prefix)
        .collect();
    let absent: Vec<u64> = (0..LOOKUPS).map(|_| random.bits()).collect();
    println!(
        "{keys} keys, {runs} runs, {} MiB of memory",
        memory_bytes >> 20
    );

    let start = Instant::now();
    for part in entries.chunks_mut(keys.div_ceil(runs)) {
        set.write_run(part, &[])?;
    }
    report("build", keys, start.elapsed());
    if runs > 1 {
        look_up_all(&set, &wanted, &absent, "runs not merged");
        let start = Instant::now();
        let merged = set.merge_all(&|_| true)?;
        report("merge", merged.entries_before as usize, start.elapsed());
    }
    drop(entries);
    print_sizes(&set.statistics());
    look_up_all(&set, &wanted, &absent, "first time");
    look_up_all(&set, &wanted, &absent, "cached");
    println!("{:?}", set.statistics());

    let set = RunSet::open(store, vault, MEMORY_BYTES_MIN)?;
    look_up_all(
        &set,
        &wanted[..LOOKUPS / 10],
        &absent[..LOOKUPS / 10],
        "4 MiB of memory",
    );
    Ok(())
}

fn synthetic(random: &mut Random, keys: usize) -> Vec<IndexEntry> {
    let mut container = ContainerId(ObjectId([0; 16]));
    (0..keys)
        .map(|n| {
            if n % CONTAINER_KEYS == 0 {
                random.fill(&mut container.0.0);
            }
            let slot = Slot((n % CONTAINER_KEYS) as u16);
            IndexEntry {
                prefix: random.bits(),
                address: ChunkAddress { container, slot },
            }
        })
        .collect()
}

fn look_up_all(set: &RunSet, wanted: &[u64], absent: &[u64], circumstances: &str) {
    for (what, prefixes, is_there) in [("hits", wanted, true), ("misses", absent, false)] {
        let mut out = Vec::new();
        let start = Instant::now();
        for &prefix in prefixes {
            out.clear();
            set.candidates(prefix, &mut out);
            assert_eq!(!out.is_empty(), is_there, "prefix {prefix:x}");
        }
        report(
            &format!("{what}, {circumstances}"),
            prefixes.len(),
            start.elapsed(),
        );
    }
}

fn report(what: &str, count: usize, time: Duration) {
    println!(
        "{what:32} {:8.2} M/s",
        count as f64 / time.as_secs_f64() / 1e6
    );
}

fn print_sizes(statistics: &IndexStatistics) {
    let each = |bytes: u64| bytes as f64 / statistics.entries as f64;
    println!(
        "stored {:.2} B a key, footers in memory {:.3} B a key",
        each(statistics.store_bytes),
        each(statistics.footer_bytes)
    );
}
