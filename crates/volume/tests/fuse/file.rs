//! The file, without anything on it.

use std::fs::{File, OpenOptions};
use std::io::ErrorKind;
use std::os::unix::fs::{FileExt, MetadataExt, PermissionsExt};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use rustix::fs::{FallocateFlags, SeekFrom};
use rustix::io::Errno;
use volume::fuse::{FuseError, Mount, Settings};

use crate::Mounted;
use crate::disk::TestDisk;

const DISK_BYTES: usize = 4 << 20;

fn mounted(sector_bytes: u32) -> Option<Mounted> {
    Mounted::new(TestDisk::new(DISK_BYTES, sector_bytes))
}

fn open(mounted: &Mounted) -> File {
    let mut options = OpenOptions::new();
    options.read(true).write(true);
    options.open(mounted.file()).unwrap()
}

fn code(error: &std::io::Error) -> Option<Errno> {
    Errno::from_io_error(error)
}

#[test]
fn the_directory_holds_the_disk() {
    let Some(mounted) = mounted(512) else { return };
    let entries = std::fs::read_dir(mounted.directory.path()).unwrap();
    let names: Vec<_> = entries.map(|entry| entry.unwrap().file_name()).collect();
    assert_eq!(names, ["disk"]);
    let metadata = mounted.file().metadata().unwrap();
    assert!(metadata.is_file());
    assert_eq!(metadata.len(), DISK_BYTES as u64);
    assert_eq!(metadata.permissions().mode() & 0o777, 0o600);
    assert_eq!(metadata.blocks() * 512, DISK_BYTES as u64);
    let directory = mounted.directory.path();
    for other in ["other", "disk/x"] {
        assert!(!directory.join(other).exists());
    }
    let created = File::create(directory.join("new"));
    assert!(created.is_err());
    assert!(std::fs::remove_file(mounted.file()).is_err());
    assert!(mounted.file().exists());
}

#[test]
fn any_bytes_can_be_read_and_written() {
    for sector_bytes in [512, 4096] {
        let Some(mounted) = mounted(sector_bytes) else {
            return;
        };
        let file = open(&mounted);
        let mut model = vec![0; DISK_BYTES];
        let mut state = 1_usize;
        let mut random = |below: usize| {
            state = state
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1);
            (state >> 33) % below
        };
        for round in 0..200 {
            let longest = [100, 5000, 300_000, 2 << 20][round % 4];
            let length = 1 + random(longest);
            let offset = random(DISK_BYTES - length);
            let data: Vec<u8> = (0..length).map(|index| (index ^ round) as u8).collect();
            file.write_all_at(&data, offset as u64).unwrap();
            model[offset..offset + length].copy_from_slice(&data);
            let length = 1 + random(longest);
            let offset = random(DISK_BYTES - length);
            let mut read = vec![0; length];
            file.read_exact_at(&mut read, offset as u64).unwrap();
            assert!(read == model[offset..offset + length], "round {round}");
        }
        assert!(mounted.disk.bytes(0, DISK_BYTES) == model);
        assert!(std::fs::read(mounted.file()).unwrap() == model);
    }
}

#[test]
fn writers_of_the_same_sector_do_not_undo_each_other() {
    let Some(mounted) = mounted(4096) else { return };
    std::thread::scope(|scope| {
        for index in 0..8_u64 {
            let file = open(&mounted);
            scope.spawn(move || {
                for round in 1..=100_u8 {
                    file.write_all_at(&[round; 512], index * 512).unwrap();
                }
            });
        }
    });
    assert_eq!(mounted.disk.bytes(0, 4096), vec![100; 4096]);
}

#[test]
fn syncs_and_closing_reach_the_disk() {
    let Some(mounted) = mounted(512) else { return };
    let file = open(&mounted);
    file.write_all_at(&[1; 512], 0).unwrap();
    assert_eq!(mounted.disk.flushes(), 0);
    file.sync_all().unwrap();
    file.sync_data().unwrap();
    assert_eq!(mounted.disk.flushes(), 2);
    drop(file);
    assert_eq!(mounted.disk.flushes(), 3);
    assert_eq!(std::fs::read(mounted.file()).unwrap()[..512], [1; 512]);
    assert_eq!(
        mounted.disk.flushes(),
        3,
        "who only read has nothing to flush"
    );
}

#[test]
fn the_size_is_the_disks() {
    let Some(mounted) = mounted(512) else { return };
    let end = DISK_BYTES as u64;
    let file = open(&mounted);
    file.write_all_at(&[7; 1024], end - 1024).unwrap();
    let beyond = file.write_at(&[1; 512], end).unwrap_err();
    assert_eq!(beyond.kind(), ErrorKind::StorageFull);
    assert_eq!(file.write_at(&[9; 1024], end - 512).unwrap(), 512);
    assert_eq!(file.read_at(&mut [0; 512], end).unwrap(), 0);
    assert_eq!(file.read_at(&mut [0; 1024], end - 512).unwrap(), 512);
    for size in [0, 512, end + 512] {
        let refused = file.set_len(size).unwrap_err();
        assert_eq!(refused.kind(), ErrorKind::PermissionDenied);
    }
    file.set_len(end).unwrap();
    assert!(File::create(mounted.file()).is_err(), "it would be emptied");
    let expected = [[7; 512], [9; 512]].concat();
    assert_eq!(mounted.disk.bytes(end - 1024, 1024), expected);
    assert_eq!(mounted.file().metadata().unwrap().len(), end);
}

#[test]
fn ranges_can_be_punched_and_zeroed() {
    let Some(mounted) = mounted(4096) else { return };
    let file = open(&mounted);
    let mut model = vec![5; DISK_BYTES];
    file.write_all_at(&model, 0).unwrap();
    let keep = FallocateFlags::KEEP_SIZE;
    let punch = FallocateFlags::PUNCH_HOLE | keep;
    let zero = FallocateFlags::ZERO_RANGE;
    for (flags, offset, length) in [
        (punch, 0, 4096),
        (punch, 8192, 65_536),
        (punch, 100_001, 10),
        (zero, 120_000, 20_000),
        (zero | keep, 200_704, 4096),
        (zero, 300_000, 5000),
    ] {
        rustix::fs::fallocate(&file, flags, offset, length).unwrap();
        model[offset as usize..(offset + length) as usize].fill(0);
        assert!(mounted.disk.bytes(0, DISK_BYTES) == model, "{offset}");
    }
    let end = DISK_BYTES as u64;
    // What lies beyond the end is nothing, unless the file would have to grow.
    rustix::fs::fallocate(&file, punch, end - 4096, 1 << 20).unwrap();
    model[DISK_BYTES - 4096..].fill(0);
    assert!(mounted.disk.bytes(0, DISK_BYTES) == model);
    let grows = rustix::fs::fallocate(&file, zero, end - 4096, 8192);
    assert_eq!(grows, Err(Errno::NOSPC));
    let promise = rustix::fs::fallocate(&file, FallocateFlags::empty(), 0, 4096);
    assert_eq!(promise, Err(Errno::OPNOTSUPP));
    let collapse = FallocateFlags::COLLAPSE_RANGE;
    assert!(rustix::fs::fallocate(&file, collapse, 0, 4096).is_err());
    assert_eq!(mounted.file().metadata().unwrap().len(), end);
}

#[test]
fn data_and_holes_are_found() {
    let Some(mounted) = mounted(512) else { return };
    let file = open(&mounted);
    file.write_all_at(&[1; 1024], 4096).unwrap();
    file.write_all_at(&[1; 512], 1 << 20).unwrap();
    let seek = |from| rustix::fs::seek(&file, from);
    let end = DISK_BYTES as u64;
    assert_eq!(seek(SeekFrom::Data(0)), Ok(4096));
    assert_eq!(seek(SeekFrom::Data(4100)), Ok(4100));
    assert_eq!(seek(SeekFrom::Hole(4100)), Ok(5120));
    assert_eq!(seek(SeekFrom::Data(5120)), Ok(1 << 20));
    assert_eq!(seek(SeekFrom::Hole(1 << 20)), Ok((1 << 20) + 512));
    assert_eq!(seek(SeekFrom::Data((1 << 20) + 512)), Err(Errno::NXIO));
    assert_eq!(seek(SeekFrom::Hole(end - 1)), Ok(end - 1));
    assert_eq!(seek(SeekFrom::Data(end)), Err(Errno::NXIO));
    file.write_all_at(&[1; 512], end - 512).unwrap();
    assert_eq!(
        seek(SeekFrom::Hole(end - 1)),
        Ok(end),
        "behind the last byte"
    );
}

#[test]
fn who_compares_times_sees_changes() {
    let Some(mounted) = mounted(512) else { return };
    let before = mounted.file().metadata().unwrap().modified().unwrap();
    std::thread::sleep(std::time::Duration::from_millis(20));
    let file = open(&mounted);
    file.write_all_at(&[1; 512], 0).unwrap();
    let after = file.metadata().unwrap().modified().unwrap();
    assert!(after > before);
}

#[test]
fn read_only_disks_are_mounted_read_only() {
    let disk = TestDisk::new(DISK_BYTES, 512).read_only();
    let Some(mounted) = Mounted::new(disk) else {
        return;
    };
    let refused = OpenOptions::new()
        .write(true)
        .open(mounted.file())
        .unwrap_err();
    assert_eq!(code(&refused), Some(Errno::ROFS));
    assert!(std::fs::read(mounted.file()).unwrap() == vec![0; DISK_BYTES]);
}

#[test]
fn a_disk_that_fails_is_reported() {
    let Some(mounted) = mounted(512) else { return };
    let file = open(&mounted);
    mounted.disk.is_full.store(true, Ordering::SeqCst);
    let full = file.write_at(&[1; 512], 0).unwrap_err();
    assert_eq!(code(&full), Some(Errno::NOSPC));
    mounted.disk.is_full.store(false, Ordering::SeqCst);
    mounted.disk.is_damaged.store(true, Ordering::SeqCst);
    for failed in [
        file.write_at(&[1; 512], 0).unwrap_err(),
        file.read_at(&mut [0; 512], 0).unwrap_err(),
        file.sync_all().unwrap_err(),
    ] {
        assert_eq!(code(&failed), Some(Errno::IO));
    }
    mounted.disk.is_damaged.store(false, Ordering::SeqCst);
    file.sync_all().unwrap();
}

#[test]
fn what_is_in_use_stays_mounted() {
    let Some(mut mounted) = mounted(512) else {
        return;
    };
    let file = open(&mounted);
    file.write_all_at(&[3; 512], 0).unwrap();
    assert!(matches!(mounted.mount.unmount(), Err(FuseError::Busy(_))));
    assert!(mounted.mount.is_mounted());
    file.write_all_at(&[4; 512], 0).unwrap();
    drop(file);
    let before = mounted.disk.flushes();
    mounted.mount.unmount().unwrap();
    assert!(mounted.disk.flushes() > before);
    assert!(!mounted.mount.is_mounted());
    assert!(!mounted.file().exists());
    // Once more is no harm.
    mounted.mount.unmount().unwrap();
    assert_eq!(mounted.disk.bytes(0, 512), vec![4; 512]);
}

#[test]
fn others_may_unmount_it() {
    let Some(mut mounted) = mounted(512) else {
        return;
    };
    std::fs::read(mounted.file()).unwrap();
    let flags = rustix::mount::UnmountFlags::empty();
    rustix::mount::unmount(mounted.directory.path(), flags).unwrap();
    mounted.mount.wait().unwrap();
    assert_eq!(mounted.disk.flushes(), 1);
    assert!(!mounted.mount.is_mounted());
    mounted.mount.unmount().unwrap();
}

#[test]
fn a_last_flush_that_fails_is_told() {
    let Some(mut mounted) = mounted(512) else {
        return;
    };
    mounted.disk.is_damaged.store(true, Ordering::SeqCst);
    assert!(matches!(mounted.mount.unmount(), Err(FuseError::Flush(_))));
    assert!(!mounted.mount.is_mounted());
}

#[test]
fn settings_that_make_no_sense_are_refused() {
    let directory = tempfile::tempdir().unwrap();
    let start = |name: &str, threads, mountpoint: &Path| {
        let settings = Settings {
            name: name.to_string(),
            threads,
            ..Settings::default()
        };
        Mount::start(Arc::new(TestDisk::new(4096, 512)), mountpoint, &settings).err()
    };
    let here = directory.path();
    let long = "x".repeat(256);
    for name in ["", ".", "..", "a/b", "a\0b", &long] {
        assert!(matches!(start(name, 1, here), Some(FuseError::Name(_))));
    }
    for threads in [0, 65] {
        assert!(matches!(
            start("disk", threads, here),
            Some(FuseError::Threads(_))
        ));
    }
    let nowhere = start("disk", 1, &here.join("missing"));
    assert!(matches!(nowhere, Some(FuseError::Mount { .. })));
}
