//! How long the longest write takes while a volume is checked, compacted, and loses a generation.
//!
//! `cargo run --release -p onefold-volume --example pauses -- FILE [GiB]` (the file is overwritten)

use std::error::Error;
use std::fs::OpenOptions as FileOptions;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::{Duration, Instant};

use volume::backing::{Backing, FileBacking};
use volume::{BlockDevice, Clock, OpenOptions, Volume, VolumeSettings};

const BLOCK: u64 = 4096;

/// A block that no other number has.
fn block(number: u64) -> Vec<u8> {
    number.to_le_bytes().repeat(BLOCK as usize / 8)
}

fn write_somewhere(volume: &Volume, state: &mut u64, blocks: u64) -> Result<(), Box<dyn Error>> {
    *state = state
        .wrapping_mul(6_364_136_223_846_793_005)
        .wrapping_add(1);
    let lba = (*state >> 33) % blocks;
    volume.write(lba * BLOCK, &block(*state))?;
    Ok(())
}

fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = std::env::args().skip(1);
    let path = arguments.next().ok_or("which file?")?;
    let gib: u64 = arguments.next().map_or(Ok(2), |text| text.parse())?;
    let blocks = gib << 18;
    let settings = VolumeSettings::new(blocks * BLOCK);
    let bytes = 2 * Volume::backing_bytes_for(&settings);
    let file = FileOptions::new()
        .create(true)
        .write(true)
        .truncate(true)
        .open(&path)?;
    file.set_len(bytes)?;
    let backing: Arc<dyn Backing> = Arc::new(FileBacking::open(Path::new(&path), true)?);
    Volume::create(&*backing, &settings, Some(bytes))?;
    let volume = Arc::new(Volume::open(backing, &OpenOptions::default())?);
    let _clock = Clock::start(&volume, Duration::from_millis(200))?;
    for lba in 0..blocks {
        volume.write(lba * BLOCK, &block(lba))?;
    }
    let pinned = volume.pin()?;
    let mut state = 1;
    for _ in 0..blocks / 2 {
        write_somewhere(&volume, &mut state, blocks)?;
    }
    type Work<'a> = (&'a str, Box<dyn FnOnce() -> bool + Send + 'a>);
    let works: Vec<Work<'_>> = vec![
        (
            "nothing",
            Box::new(|| {
                std::thread::sleep(Duration::from_secs(2));
                true
            }),
        ),
        (
            "check",
            Box::new(|| volume.check(true).is_ok_and(|report| report.is_fine())),
        ),
        ("unpin", Box::new(|| volume.unpin(pinned).is_ok())),
        ("compact", Box::new(|| volume.compact().is_ok())),
    ];
    for (name, work) in works {
        let over = AtomicBool::new(false);
        let (mut longest, mut writes) = (Duration::ZERO, 0u64);
        let start = Instant::now();
        std::thread::scope(|scope| -> Result<(), Box<dyn Error>> {
            let done = scope.spawn(|| {
                let fine = work();
                over.store(true, Relaxed);
                fine
            });
            while !over.load(Relaxed) {
                let start = Instant::now();
                write_somewhere(&volume, &mut state, blocks)?;
                longest = longest.max(start.elapsed());
                writes += 1;
                std::thread::sleep(Duration::from_micros(50));
            }
            let fine = done.join().unwrap_or(false);
            let took = start.elapsed();
            println!(
                "{name}: {took:.2?}, {writes} writes, the longest {longest:.2?}, fine: {fine}"
            );
            Ok(())
        })?;
    }
    volume.close()?;
    Ok(())
}
