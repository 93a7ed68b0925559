//! The fingerprint of WOJ as published, XXH64 of the first 64 bytes of a block with nothing compared, returns
//! wrong data on ext4; whole-block fingerprints do not. This is why [`PoolKind::Prefix64`] is for the lab alone.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::sync::{Arc, Mutex};

use volume::backing::MemoryBacking;
use volume::pool::PoolKind;
use volume::{
    BlockDevice, DeviceError, Extent, Geometry, OpenOptions, Policy, RamDisk, Volume,
    VolumeSettings,
};

use crate::common::{BLOCK, Random};
use crate::programs::{check_clean, run};
use crate::stack::{Layout, Stack, dump};
use crate::workload::Files;

const DISK_BYTES: u64 = 128 << 20;

/// A volume, and what must be in it. Whoever writes has both, so that both take writes in one order.
struct Watched {
    volume: Volume,
    model: RamDisk,
    order: Mutex<()>,
}

impl Watched {
    fn both(
        &self,
        work: impl Fn(&dyn BlockDevice) -> Result<(), DeviceError>,
    ) -> Result<(), DeviceError> {
        let _order = self.order.lock().unwrap();
        work(&self.model)?;
        work(&self.volume)
    }

    /// Blocks of the disk that are not what was written, ascending.
    fn wrong(&self) -> Vec<u64> {
        let (mut found, mut wanted) = ([0; BLOCK], [0; BLOCK]);
        let differs = |block: &u64| {
            self.volume.read(block * BLOCK as u64, &mut found).unwrap();
            self.model.read(block * BLOCK as u64, &mut wanted).unwrap();
            found != wanted
        };
        (0..DISK_BYTES / BLOCK as u64).filter(differs).collect()
    }
}

impl BlockDevice for Watched {
    fn geometry(&self) -> Geometry {
        self.volume.geometry()
    }

    fn read(&self, offset: u64, buffer: &mut [u8]) -> Result<(), DeviceError> {
        self.volume.read(offset, buffer)
    }

    fn write(&self, offset: u64, data: &[u8]) -> Result<(), DeviceError> {
        self.both(|disk| disk.write(offset, data))
    }

    fn write_zeroes(&self, offset: u64, length_bytes: u64) -> Result<(), DeviceError> {
        self.both(|disk| disk.write_zeroes(offset, length_bytes))
    }

    fn flush(&self) -> Result<(), DeviceError> {
        self.volume.flush()
    }

    fn extents(
        &self,
        offset: u64,
        length_bytes: u64,
        extents_max: usize,
    ) -> Result<Vec<Extent>, DeviceError> {
        self.volume.extents(offset, length_bytes, extents_max)
    }
}

/// A tree that changes. On a disk that returns wrong data this may fail.
fn change_a_tree(root: &Path) -> io::Result<()> {
    let (mut files, mut random) = (Files::default(), Random(3));
    files.write_tree(root, &mut random, 80)?;
    for _ in 0..4 {
        files.append(root, &mut random, 8)?;
        files.change(root, &mut random, 40)?;
    }
    Ok(())
}

/// A file that begins with zeros and soon does not: its first block stays in the journal, is never written home,
/// and begins as the superblock does.
fn overwrite_a_file(root: &Path) -> io::Result<()> {
    // The first file that is opened brings the superblock to the journal; this takes it home.
    let file = File::create(root.join("file"))?;
    run("sync", &["-f", root.to_str().unwrap()]);
    let mut contents = [0; BLOCK];
    contents[100..].fill(7);
    for first in [0, 1] {
        contents[0] = first;
        file.write_all_at(&contents, 0)?;
        // Of the file itself it would take the block home.
        File::open(root)?.sync_all()?;
    }
    Ok(())
}

type Work = fn(&Path) -> io::Result<()>;

/// Blocks that are wrong in the end, those that were found in the journal, and what `e2fsck` says.
fn live(kind: PoolKind, layout: Layout, work: Work) -> (Vec<u64>, u64, Result<(), String>) {
    let settings = VolumeSettings {
        policy: Policy::Journal,
        sector_bytes: layout.sector_bytes,
        ..VolumeSettings::new(DISK_BYTES)
    };
    let backing = Arc::new(MemoryBacking::new(Volume::backing_bytes_for(&settings)));
    Volume::create(&*backing, &settings, None).unwrap();
    let watched = Arc::new(Watched {
        volume: Volume::open(backing, &OpenOptions::default()).unwrap(),
        model: RamDisk::new(DISK_BYTES as usize, layout.sector_bytes),
        order: Mutex::default(),
    });
    let mut stack = Stack::new(watched.clone(), layout);
    stack.make();
    watched.volume.set_pool_kind(kind).unwrap();
    let worked = work(&stack.mount());
    assert!(kind == PoolKind::Prefix64 || worked.is_ok(), "{worked:?}");
    stack.end();
    let directory = tempfile::tempdir().unwrap();
    let image = directory.path().join("image");
    dump(&watched.volume, 0..DISK_BYTES, &image);
    let hits = watched.volume.counters().journal_hits;
    (watched.wrong(), hits, check_clean(&image, None))
}

/// Blocks that are wrong as published; of whole-block fingerprints none is.
fn compare(block_bytes: u32, work: Work) -> Vec<u64> {
    let layout = Layout {
        block_bytes,
        sector_bytes: block_bytes,
        options: "data=journal",
        external_journal: false,
    };
    let (published, hits, checked) = live(PoolKind::Prefix64, layout, work);
    println!(
        "blocks of {block_bytes}, as published: {} wrong, {hits} hits, {:?}…, e2fsck finds {}",
        published.len(),
        &published[..published.len().min(8)],
        if checked.is_ok() { "nothing" } else { "damage" },
    );
    let (whole, hits, checked) = live(PoolKind::Whole, layout, work);
    println!("blocks of {block_bytes}, whole: {hits} hits");
    assert_eq!((&whole[..], checked), (&[][..], Ok(())));
    assert!(hits > 0);
    published
}

#[test]
fn the_published_fingerprint_returns_wrong_data() {
    if !crate::can_run() {
        return;
    }
    // Parts of blocks meet in the journal that do not meet at home.
    let mut wrong = compare(1024, change_a_tree);
    // Here it is the superblock.
    wrong.extend(compare(4096, overwrite_a_file));
    wrong.extend(compare(4096, change_a_tree));
    assert!(!wrong.is_empty());
}
