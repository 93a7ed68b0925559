//! Images of disks: what comes back is the disk, whatever was read of it, and whatever became of the image before.

mod support;

use std::io;
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use engine::object::{MemoryStore, ObjectKind, ObjectStore};
use engine::pipeline::{SparseExtent, SparseStream};
use repository::snapshot::{DiskState, Snapshot};
use repository::{
    BackupError, BackupReport, CheckOptions, DiskImage, EarlierImage, Progress, Repository,
};
use support::{backup_options, create};
use testkit::generate::random_bytes;

const BLOCK: usize = 4096;

/// A disk in memory whose blocks of zeros are holes.
#[derive(Clone)]
struct Disk {
    bytes: Vec<u8>,
    read_bytes: u64,
}

impl Disk {
    fn is_hole(&self, offset: u64) -> bool {
        let at = offset as usize;
        self.bytes[at..at + BLOCK].iter().all(|byte| *byte == 0)
    }

    fn change(&mut self, seed: u64, at: usize, length: usize) -> Range<u64> {
        self.bytes[at..at + length].copy_from_slice(&random_bytes(seed, length));
        at as u64..(at + length) as u64
    }
}

impl SparseStream for Disk {
    fn size_bytes(&self) -> u64 {
        self.bytes.len() as u64
    }

    fn extent_at(&mut self, offset: u64) -> io::Result<(SparseExtent, u64)> {
        let kind = match self.is_hole(offset) {
            true => SparseExtent::Hole,
            false => SparseExtent::Data,
        };
        Ok((kind, offset + BLOCK as u64))
    }

    fn read_at(&mut self, offset: u64, buffer: &mut [u8]) -> io::Result<()> {
        self.read_bytes += buffer.len() as u64;
        let at = offset as usize;
        buffer.copy_from_slice(&self.bytes[at..at + buffer.len()]);
        Ok(())
    }

    fn passed(&mut self, _: u64) -> io::Result<()> {
        Ok(())
    }
}

fn disk() -> Disk {
    let mut bytes = vec![0; 24 << 20];
    bytes[1 << 20..9 << 20].copy_from_slice(&random_bytes(1, 8 << 20));
    bytes[12 << 20..14 << 20].copy_from_slice(&random_bytes(2, 2 << 20));
    Disk {
        bytes,
        read_bytes: 0,
    }
}

fn state(generation: u32) -> DiskState {
    DiskState {
        volume: [7; 16],
        generation_id: [generation as u8; 16],
        generation,
    }
}

fn save(
    repository: &Repository,
    disk: &mut Disk,
    generation: u32,
    earlier: Option<(&Snapshot, &[Range<u64>])>,
    progress: &Progress,
) -> Result<BackupReport, BackupError> {
    disk.read_bytes = 0;
    let image = DiskImage {
        path: b"/srv/disk.img".to_vec(),
        state: state(generation),
        stream: disk,
        earlier: earlier.map(|(snapshot, changed)| EarlierImage { snapshot, changed }),
    };
    repository.backup_disk(image, &backup_options(), progress)
}

fn assert_holds(repository: &Repository, snapshot: &Snapshot, disk: &Disk) {
    let mut bytes = Vec::new();
    let progress = Progress::default();
    let dumped = repository.dump(snapshot, b"/srv/disk.img", &mut bytes, &progress);
    dumped.expect("dumped");
    assert!(bytes == disk.bytes);
}

#[test]
fn only_changes_are_read_and_all_of_it_comes_back() {
    let store = Arc::new(MemoryStore::new());
    let repository = create(Arc::clone(&store) as Arc<dyn ObjectStore>, true);
    let progress = Progress::default();
    let mut disk = disk();
    let first = save(&repository, &mut disk, 1, None, &progress).expect("backed up");
    assert_eq!(disk.read_bytes, 10 << 20);
    assert_eq!(first.snapshot.disk, Some(state(1)));
    assert_holds(&repository, &first.snapshot, &disk);
    let changed = [
        disk.change(3, 2 << 20, BLOCK),
        disk.change(4, 10 << 20, 3 * BLOCK),
        disk.change(5, 13 << 20, 1 << 20),
    ];
    let earlier = Some((&first.snapshot, &changed[..]));
    let second = save(&repository, &mut disk, 2, earlier, &progress).expect("backed up");
    assert_holds(&repository, &second.snapshot, &disk);
    assert_eq!(second.snapshot.parent, Some(first.snapshot.id));
    assert_eq!(second.snapshot.summary.files_changed, 1);
    assert_eq!(second.snapshot.summary.bytes_read, disk.read_bytes);
    assert!(disk.read_bytes < 2 << 20, "{} bytes", disk.read_bytes);
    assert!(second.totals.bytes_new < 3 << 19);
    let list = repository.snapshots().expect("a list").snapshots;
    assert_eq!(list.last(), Some(&second.snapshot));
    let report = repository.check(CheckOptions::default(), &progress);
    assert_eq!(report.expect("checked").problems, []);
}

#[test]
fn what_is_damaged_of_the_image_before_is_read_again() {
    let store = Arc::new(MemoryStore::new());
    let repository = create(Arc::clone(&store) as Arc<dyn ObjectStore>, true);
    let progress = Progress::default();
    let mut disk = disk();
    let first = save(&repository, &mut disk, 1, None, &progress).expect("backed up");
    let containers = store.keys().into_iter();
    let mut containers = containers.filter(|key| key.kind == ObjectKind::Container);
    store
        .delete(&containers.next().expect("one"))
        .expect("deleted");
    let changed = [disk.change(3, 2 << 20, BLOCK)];
    let earlier = Some((&first.snapshot, &changed[..]));
    let second = save(&repository, &mut disk, 2, earlier, &progress).expect("backed up");
    assert!(!second.repository_warnings.is_empty());
    assert_holds(&repository, &second.snapshot, &disk);
}

#[test]
fn nothing_new_rests_on_a_damaged_container() {
    let store = Arc::new(MemoryStore::new());
    let repository = create(Arc::clone(&store) as Arc<dyn ObjectStore>, true);
    let progress = Progress::default();
    let mut disk = disk();
    let first = save(&repository, &mut disk, 1, None, &progress).expect("backed up");
    let containers = store.keys().into_iter();
    let containers = containers.filter(|key| key.kind == ObjectKind::Container);
    for container in containers.take(3) {
        // What says where its metadata are.
        store.corrupt(&container, |bytes| {
            *bytes.last_mut().expect("a byte") ^= 1;
        });
    }
    let changed = [disk.change(3, 2 << 20, BLOCK)];
    let earlier = Some((&first.snapshot, &changed[..]));
    let second = save(&repository, &mut disk, 2, earlier, &progress).expect("backed up");
    assert!(second.repository_warnings.len() >= 3);
    assert_holds(&repository, &second.snapshot, &disk);
}

#[test]
fn a_stop_leaves_no_snapshot() {
    let store = Arc::new(MemoryStore::new());
    let repository = create(Arc::clone(&store) as Arc<dyn ObjectStore>, false);
    let progress = Progress::default();
    progress.is_cancelled.store(true, Ordering::Relaxed);
    let stopped = save(&repository, &mut disk(), 1, None, &progress);
    assert!(matches!(stopped, Err(BackupError::Interrupted(_))));
    assert!(repository.snapshots().expect("a list").snapshots.is_empty());
}
