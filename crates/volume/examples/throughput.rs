//! How fast a volume is by itself: random writes and reads of 4 KiB by one thread, no front, no disk.
//!
//! `cargo run --release -p onefold-volume --example throughput [MIB]`

use std::sync::Arc;
use std::time::Instant;

use volume::backing::{Backing, MemoryBacking};
use volume::fingerprint::FingerprintKind;
use volume::{BlockDevice, OpenOptions, Persistence, Policy, Volume, VolumeSettings};

const BLOCK: usize = 4096;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mib: u64 = std::env::args()
        .nth(1)
        .map_or(Ok(512), |text| text.parse())?;
    let blocks = mib * 256;
    println!(
        "{blocks} writes and reads at random places of a disk of {mib} MiB, all contents different"
    );
    println!(
        "{:<14}{:<9}{:<9}{:>12}{:>12}",
        "policy", "persist.", "finger.", "writes/s", "reads/s"
    );
    for (policy, persistence, fingerprint) in [
        (Policy::None, Persistence::Ram, FingerprintKind::Xxh3),
        (Policy::None, Persistence::Thin, FingerprintKind::Xxh3),
        (Policy::Full, Persistence::Thin, FingerprintKind::Xxh3),
        (Policy::Full, Persistence::Thin, FingerprintKind::Blake3),
        (Policy::Full, Persistence::Ordered, FingerprintKind::Blake3),
        (Policy::Full, Persistence::Cow, FingerprintKind::Blake3),
    ] {
        let settings = VolumeSettings {
            policy,
            persistence,
            fingerprint,
            ..VolumeSettings::new(mib << 20)
        };
        let backing: Arc<dyn Backing> =
            Arc::new(MemoryBacking::new(Volume::backing_bytes_for(&settings)));
        Volume::create(&*backing, &settings, None)?;
        let options = OpenOptions {
            allow_volatile: true,
            ..OpenOptions::default()
        };
        let volume = Volume::open(backing, &options)?;
        let mut block = vec![0x5a; BLOCK];
        let mut state = 1u64;
        let mut next = || {
            state = state
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1);
            state >> 20
        };
        let rate = |started: Instant| blocks as f64 / started.elapsed().as_secs_f64();
        let started = Instant::now();
        for number in 0..blocks {
            block[..8].copy_from_slice(&number.to_le_bytes());
            volume.write(next() % blocks * BLOCK as u64, &block)?;
        }
        volume.flush()?;
        let writes = rate(started);
        let started = Instant::now();
        for _ in 0..blocks {
            volume.read(next() % blocks * BLOCK as u64, &mut block)?;
        }
        println!(
            "{:<14}{:<9}{:<9}{writes:>12.0}{:>12.0}",
            policy.name(),
            persistence.name(),
            fingerprint.name(),
            rate(started)
        );
    }
    Ok(())
}
