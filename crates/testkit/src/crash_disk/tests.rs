//! The crash disk loses what it may lose, keeps what it must keep, and replays.

use std::collections::BTreeSet;
use std::io::ErrorKind;
use std::time::Duration;

use engine::object::FileSystem;

use super::{CrashDisk, CrashMode};
use crate::generate::random_bytes;

const SEEDS: u64 = 200;

fn content(disk: &CrashDisk, path: &str) -> Option<Vec<u8>> {
    let file = disk.open_file(path).ok()?;
    let length = disk.file_bytes(&file).expect("length") as usize;
    let mut bytes = vec![0; length];
    let mut filled = 0;
    while filled < length {
        filled += disk
            .read_at(&file, filled as u64, &mut bytes[filled..])
            .expect("read");
    }
    Some(bytes)
}

/// What `path` holds after a power failure, for every seed.
fn outcomes(disk: &CrashDisk, path: &str) -> BTreeSet<Option<Vec<u8>>> {
    (0..SEEDS)
        .map(|seed| content(&disk.after_crash(seed, CrashMode::PowerLoss), path))
        .collect()
}

#[test]
fn what_is_synced_stays() {
    let disk = CrashDisk::new(0);
    let bytes = random_bytes(1, 10_000);
    let file = disk.write_new_file("a", &bytes).expect("write");
    disk.sync_file(&file).expect("sync");
    disk.sync_dir("").expect("sync");
    assert_eq!(outcomes(&disk, "a"), BTreeSet::from([Some(bytes)]));
}

#[test]
fn a_name_without_sync_may_go() {
    let disk = CrashDisk::new(0);
    let file = disk.write_new_file("a", b"bytes").expect("write");
    disk.sync_file(&file).expect("sync");
    let expected = BTreeSet::from([None, Some(b"bytes".to_vec())]);
    assert_eq!(outcomes(&disk, "a"), expected);
}

#[test]
fn bytes_without_sync_may_be_torn() {
    let disk = CrashDisk::new(0);
    let bytes = random_bytes(1, 10_000);
    disk.write_new_file("a", &bytes).expect("write");
    disk.sync_dir("").expect("sync");
    let outcomes: Vec<Vec<u8>> = outcomes(&disk, "a").into_iter().flatten().collect();
    assert!(outcomes.contains(&bytes), "all");
    assert!(outcomes.contains(&Vec::new()), "nothing");
    let is_part = |found: &Vec<u8>| {
        !found.is_empty() && found.len() < bytes.len() && bytes.starts_with(found)
    };
    assert!(outcomes.iter().any(is_part), "a part from the front");
    let sectors_differ = |found: &&Vec<u8>| found.len() == bytes.len() && **found != bytes;
    let torn: Vec<_> = outcomes.iter().filter(sectors_differ).collect();
    assert!(torn.iter().any(|found| found[..512] == [0; 512]), "zeros");
    let is_kept = |found: &&Vec<u8>| found[512..1024] == bytes[512..1024];
    assert!(
        torn.iter()
            .any(|found| is_kept(found) && found[..512] != bytes[..512])
    );
}

#[test]
fn names_survive_out_of_order() {
    let disk = CrashDisk::new(0);
    for name in ["a", "b"] {
        let file = disk.write_new_file(name, b"x").expect("write");
        disk.sync_file(&file).expect("sync");
    }
    let survivors: BTreeSet<Vec<String>> = (0..SEEDS)
        .map(|seed| disk.after_crash(seed, CrashMode::PowerLoss).file_paths())
        .collect();
    assert_eq!(survivors.len(), 4, "every subset: {survivors:?}");
}

#[test]
fn a_move_may_leave_either_name_both_or_none() {
    let disk = CrashDisk::new(0);
    disk.create_dir("tmp").expect("create");
    let file = disk.write_new_file("tmp/a", b"x").expect("write");
    disk.sync_file(&file).expect("sync");
    disk.sync_dir("tmp").expect("sync");
    disk.sync_dir("").expect("sync");
    disk.publish("tmp/a", "b").expect("publish");
    assert_eq!(disk.file_paths(), ["b"]);
    let survivors: BTreeSet<Vec<String>> = (0..SEEDS)
        .map(|seed| disk.after_crash(seed, CrashMode::PowerLoss).file_paths())
        .collect();
    assert_eq!(survivors.len(), 4, "{survivors:?}");
}

#[test]
fn a_directory_takes_its_files_along() {
    let disk = CrashDisk::new(0);
    disk.create_dir("d").expect("create");
    let file = disk.write_new_file("d/a", b"x").expect("write");
    disk.sync_file(&file).expect("sync");
    disk.sync_dir("d").expect("sync");
    assert!(outcomes(&disk, "d/a").contains(&None));
    disk.sync_dir("").expect("sync");
    assert_eq!(
        outcomes(&disk, "d/a"),
        BTreeSet::from([Some(b"x".to_vec())])
    );
}

#[test]
fn a_killed_process_leaves_what_it_wrote_still_unsynced() {
    let disk = CrashDisk::new(0);
    disk.write_new_file("a", b"x").expect("write");
    let killed = disk.after_crash(1, CrashMode::ProcessKill);
    assert_eq!(content(&killed, "a").as_deref(), Some(&b"x"[..]));
    assert!(outcomes(&killed, "a").contains(&None));
}

#[test]
fn the_operation_hit_is_done_wholly_partly_or_not() {
    let disk = CrashDisk::new(0);
    disk.create_dir("d").expect("create");
    disk.crash_at(1);
    disk.write_new_file("d/a", b"xyz").expect_err("crash");
    assert!(disk.has_crashed());
    disk.list_dir("").expect_err("dead");
    assert_eq!(disk.operations(), 1);
    let outcomes: BTreeSet<_> = (0..SEEDS)
        .map(|seed| content(&disk.after_crash(seed, CrashMode::ProcessKill), "d/a"))
        .collect();
    let expected = [None, Some(&b""[..]), Some(b"x"), Some(b"xy"), Some(b"xyz")];
    assert_eq!(outcomes, expected.map(|found| found.map(Vec::from)).into());
}

#[test]
fn seeds_replay() {
    let disk = CrashDisk::new(0);
    for number in 0..20 {
        let bytes = random_bytes(number, 3000);
        disk.write_new_file(&number.to_string(), &bytes)
            .expect("write");
    }
    let image = |seed| {
        let found = disk.after_crash(seed, CrashMode::PowerLoss);
        let paths = found.file_paths();
        let contents: Vec<_> = paths.iter().map(|path| content(&found, path)).collect();
        (paths, contents)
    };
    assert_eq!(image(7), image(7));
    assert_ne!(image(7), image(8));
}

#[test]
fn a_full_disk_takes_a_part() {
    let disk = CrashDisk::new(0);
    disk.fail_after_bytes(5);
    disk.write_new_file("a", b"abc").expect("fits");
    let error = disk.write_new_file("b", b"abc").expect_err("full");
    assert_eq!(error.kind(), ErrorKind::StorageFull);
    assert_eq!(content(&disk, "b").as_deref(), Some(&b"ab"[..]));
    disk.create_dir("d").expect_err("full");
    disk.write_new_file("c", b"").expect_err("full");
    disk.stop_failing();
    disk.write_new_file("c", b"abc").expect("room again");
}

#[test]
fn a_failed_sync_loses_and_the_next_one_lies() {
    let mut lost = (0, 0);
    for seed in 0..SEEDS {
        let disk = CrashDisk::new(seed);
        disk.fail_syncs(0..2);
        let file = disk.write_new_file("a", b"x").expect("write");
        disk.sync_file(&file).expect_err("injected");
        disk.sync_dir("").expect_err("injected");
        disk.sync_file(&file).expect("lie");
        disk.sync_dir("").expect("lie");
        assert_eq!(content(&disk, "a").as_deref(), Some(&b"x"[..]), "visible");
        assert_eq!(disk.sync_points(), [1, 2, 3, 4]);
        match content(&disk.after_crash(seed, CrashMode::PowerLoss), "a") {
            None => lost.0 += 1,
            Some(bytes) if bytes != b"x" => lost.1 += 1,
            Some(_) => {}
        }
    }
    assert!(lost.0 > 0 && lost.1 > 0, "{lost:?}");
}

#[test]
fn files_grow_older() {
    let disk = CrashDisk::new(0);
    disk.write_new_file("a", b"x").expect("write");
    disk.advance_clock(Duration::from_secs(60));
    let status = disk.status("a").expect("status");
    assert_eq!(
        (status.is_file, status.bytes, status.age.as_secs()),
        (true, 1, 60)
    );
}

#[test]
fn wrong_names_are_refused_as_the_system_does() {
    let disk = CrashDisk::new(0);
    disk.create_dir("d").expect("create");
    disk.write_new_file("a", b"x").expect("write");
    let kind = |result: std::io::Result<()>| result.expect_err("wrong").kind();
    assert_eq!(kind(disk.create_dir("d")), ErrorKind::AlreadyExists);
    assert_eq!(kind(disk.create_dir("no/d")), ErrorKind::NotFound);
    assert_eq!(kind(disk.create_dir("a/d")), ErrorKind::NotADirectory);
    assert_eq!(kind(disk.remove_file("no")), ErrorKind::NotFound);
    assert_eq!(kind(disk.remove_file("d")), ErrorKind::IsADirectory);
    assert_eq!(kind(disk.publish("a", "d")), ErrorKind::AlreadyExists);
    assert_eq!(kind(disk.publish("no", "b")), ErrorKind::NotFound);
    assert_eq!(
        kind(disk.write_new_file("a", b"").map(|_| ())),
        ErrorKind::AlreadyExists
    );
    disk.corrupt("a", |bytes| bytes.push(b'y'))
        .expect("corrupt");
    assert_eq!(content(&disk, "a").as_deref(), Some(&b"xy"[..]));
}
