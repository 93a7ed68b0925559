//! Creating entries and giving them their metadata.

use std::fs::{self, File};
use std::os::unix::fs::{MetadataExt, symlink};
use std::sync::atomic::{AtomicBool, Ordering};

use rustix::fs::{CWD, FileType, Mode, RenameFlags};

use super::super::*;
use super::*;
use crate::tree::{EntryKind, Metadata, Timestamp};

/// Restores everything that a walk found below `from` into `target`, contents of files too.
pub fn restore_tree(from: &Path, target: &Path, applier: &Applier) -> Vec<Problem> {
    let mut problems = Vec::new();
    let root = open_target(target, 4).unwrap();
    let mut stack = vec![(root, None)];
    for event in walk_of(&[from], &FilterOptions::default()) {
        let parent = stack.last().unwrap().0.clone();
        let is_inside = |path: &Path| path.starts_with(from) && path != from;
        match event {
            WalkEvent::EnterDirectory(found) if is_inside(&found.path) => {
                let name = &found.entry.name;
                let (child, _) = create_directory(&parent, name, Existing::Keep).unwrap();
                stack.push((child, Some((found.entry, found.path))));
            }
            WalkEvent::LeaveDirectory { path } if is_inside(&path) => {
                let (directory, entry) = stack.pop().unwrap();
                let (entry, path) = entry.unwrap();
                applier.apply_open(&*directory.open().unwrap(), &entry, &path, &mut problems);
            }
            WalkEvent::File(found) => {
                let directory = parent.open().unwrap();
                let name = &found.entry.name;
                let mut file = create_file(&*directory, name, Existing::Keep).unwrap();
                std::io::copy(&mut found.open().unwrap().file, &mut file).unwrap();
                applier.apply_open(&file, &found.entry, &found.path, &mut problems);
            }
            WalkEvent::Other(found) => {
                let directory = parent.open().unwrap();
                let name = &found.entry.name;
                match &found.entry.kind {
                    EntryKind::Symlink { target } => {
                        create_symlink(&*directory, name, target, Existing::Keep).unwrap();
                    }
                    kind => create_special(&*directory, name, kind, Existing::Keep).unwrap(),
                }
                applier.apply_at(&*directory, &found.entry, &found.path, &mut problems);
            }
            WalkEvent::Problem(problem) => panic!("{problem}"),
            _ => {}
        }
    }
    problems
}

/// The entries below `base`, without what a restore can't bring back.
pub fn entries_below(base: &Path) -> Vec<(PathBuf, Entry)> {
    let found = gather(walk_of(&[base], &FilterOptions::default()), base);
    let below = found.entries.into_iter().filter(|(path, _)| path != base);
    below
        .map(|(path, mut entry)| {
            entry.metadata.changed = Timestamp::default();
            entry.metadata.inode = 0;
            (path.strip_prefix(base).unwrap().to_owned(), entry)
        })
        .collect()
}

pub fn set_modified(path: &Path, seconds: i64, nanoseconds: i64) {
    let times = rustix::fs::Timestamps {
        last_access: rustix::fs::Timespec {
            tv_sec: 0,
            tv_nsec: rustix::fs::UTIME_OMIT,
        },
        last_modification: rustix::fs::Timespec {
            tv_sec: seconds,
            tv_nsec: nanoseconds,
        },
    };
    rustix::fs::utimensat(CWD, path, &times, rustix::fs::AtFlags::SYMLINK_NOFOLLOW).unwrap();
}

/// A tree with one of everything that this user may make.
pub fn make_tree(place: &Place) -> PathBuf {
    let from = place.join("from");
    place.file("from/file", "content");
    place.file("from/d/inner", "more");
    fs::write(from.join(name(b"d/\xff")), "x").unwrap();
    symlink("nowhere/\n", from.join("link")).unwrap();
    rustix::fs::mknodat(CWD, from.join("fifo"), FileType::Fifo, Mode::RUSR, 0).unwrap();
    if is_root() {
        let device = rustix::fs::makedev(1, 3);
        for (name, kind) in [
            ("character", FileType::CharacterDevice),
            ("block", FileType::BlockDevice),
        ] {
            let _ = rustix::fs::mknodat(CWD, from.join(name), kind, Mode::WUSR, device);
        }
        for name in ["file", "fifo", "d"] {
            std::os::unix::fs::chown(from.join(name), Some(4321), Some(8765)).unwrap();
        }
        std::os::unix::fs::lchown(from.join("link"), Some(99), Some(98)).unwrap();
        set_attribute(&from.join("link"), "trusted.l", b"of the link");
        set_attribute(&from.join("fifo"), "trusted.f", b"of the fifo");
    }
    set_attribute(&from.join("file"), "user.a", b"attribute");
    set_attribute(
        &from.join("d/inner"),
        "user.i",
        b"of a file that is read-only",
    );
    set_attribute(&from.join("file"), "system.posix_acl_access", &acl_of(77));
    set_attribute(&from.join("d"), "system.posix_acl_default", &acl_of(78));
    for (name, mode) in [
        ("d/inner", 0o444),
        ("fifo", 0o4620),
        ("d", 0o1551),
        ("d/\u{fffd}", 0),
    ] {
        if !name.contains('\u{fffd}') {
            let permissions = std::os::unix::fs::PermissionsExt::from_mode(mode);
            fs::set_permissions(from.join(name), permissions).unwrap();
        }
    }
    for (number, name) in ["file", "link", "fifo", "d/inner", "d"].iter().enumerate() {
        set_modified(&from.join(name), -5 - number as i64, 123_456_789);
    }
    from
}

#[test]
fn everything_comes_back() {
    if !is_root() {
        return; // unprivileged.rs has the like.
    }
    let place = Place::new();
    let from = make_tree(&place);
    let to = place.join("new/to");
    let problems = restore_tree(&from, &to, &Applier::new(OwnerRule::Numbers));
    assert!(problems.is_empty(), "{}", problems[0]);
    let (before, after) = (entries_below(&from), entries_below(&to));
    assert!(before.len() >= 6);
    for (before, after) in before.iter().zip(&after) {
        assert_eq!(before, after);
    }
    assert_eq!(before.len(), after.len());
    assert_eq!(fs::read(to.join("d/inner")).unwrap(), b"more");
}

fn entry(name: &str, kind: EntryKind, mode: u32) -> Entry {
    let metadata = Metadata {
        mode,
        uid: rustix::process::geteuid().as_raw(),
        gid: rustix::process::getegid().as_raw(),
        modified: Timestamp {
            seconds: 1_000_000_000,
            nanoseconds: 7,
        },
        ..Metadata::default()
    };
    Entry::new(name.as_bytes().to_vec(), kind, metadata)
}

#[test]
fn owners_by_name_and_number() {
    if !is_root() {
        return;
    }
    let place = Place::new();
    let directory = File::open(place.path()).unwrap();
    let names = OwnerNames::parse(b"anna:x:4242:1::", b"staff:x:4343:");
    let mut wanted = entry("f", EntryKind::File, 0o4755);
    (wanted.metadata.uid, wanted.metadata.gid) = (10, 11);
    wanted.metadata.user = b"anna".to_vec();
    wanted.metadata.group = b"unknown".to_vec();
    for (rule, owner, mode) in [
        (OwnerRule::Names, (4242, 11), 0o4755),
        (OwnerRule::Numbers, (10, 11), 0o4755),
        (OwnerRule::Restorer, (0, 0), 0o755),
    ] {
        let mut problems = Vec::new();
        let file = create_file(&directory, b"f", Existing::Replace).unwrap();
        let applier = Applier::with_names(rule, names.clone());
        applier.apply_open(&file, &wanted, Path::new("f"), &mut problems);
        assert!(problems.is_empty());
        let metadata = file.metadata().unwrap();
        assert_eq!((metadata.uid(), metadata.gid()), owner);
        assert_eq!(metadata.mode() & 0o7777, mode, "{rule:?}");
    }
    // A number that is none is said, and the rest restored.
    wanted.metadata.uid = u32::MAX;
    let mut problems = Vec::new();
    let file = create_file(&directory, b"f", Existing::Replace).unwrap();
    Applier::new(OwnerRule::Numbers).apply_open(&file, &wanted, Path::new("f"), &mut problems);
    assert!(matches!(
        problems[..],
        [Problem {
            error: FilesError::BadOwner { .. },
            ..
        }]
    ));
    assert_eq!(file.metadata().unwrap().mode() & 0o7777, 0o755);
}

#[test]
fn inherited_acls_go() {
    let place = Place::new();
    if !set_attribute(place.path(), "system.posix_acl_default", &acl_of(5)) {
        return;
    }
    let root = open_target(place.path(), 4).unwrap();
    let open = root.open().unwrap();
    let applier = Applier::new(OwnerRule::Numbers);
    let mut problems = Vec::new();

    let file = create_file(&*open, b"file", Existing::Keep).unwrap();
    applier.apply_open(
        &file,
        &entry("file", EntryKind::File, 0o640),
        Path::new("file"),
        &mut problems,
    );
    let (directory, _) = create_directory(&root, b"directory", Existing::Keep).unwrap();
    let wanted = entry("directory", EntryKind::Directory, 0o750);
    applier.apply_open(
        &*directory.open().unwrap(),
        &wanted,
        Path::new("d"),
        &mut problems,
    );
    create_special(&*open, b"fifo", &EntryKind::Fifo, Existing::Keep).unwrap();
    applier.apply_at(
        &*open,
        &entry("fifo", EntryKind::Fifo, 0o640),
        Path::new("f"),
        &mut problems,
    );
    assert!(problems.is_empty(), "{}", problems[0]);
    for (path, entry) in entries_below(place.path()) {
        assert_eq!(entry.metadata.attributes, [], "{}", path.display());
        assert!([0o640, 0o750].contains(&entry.metadata.mode));
    }
}

#[test]
fn what_is_in_the_way() {
    let place = Place::new();
    let root = open_target(place.path(), 4).unwrap();
    let open = root.open().unwrap();
    place.file("file", "old");
    place.file("directory/inner", "old");
    symlink("directory", place.join("link")).unwrap();

    for kept in [&b"file"[..], b"directory", b"link"] {
        assert!(matches!(
            create_file(&*open, kept, Existing::Keep),
            Err(FilesError::Exists)
        ));
        let symlink = create_symlink(&*open, kept, b"x", Existing::Keep);
        assert!(matches!(symlink, Err(FilesError::Exists)));
    }
    assert!(matches!(
        create_directory(&root, b"file", Existing::Keep),
        Err(FilesError::Exists)
    ));
    // A symlink to a directory is not a directory, even if it becomes one after a look at it.
    let opened = super::super::directory::open_directory(&open, name(b"link"), false);
    assert!(matches!(opened, Err(FilesError::Replaced)));
    assert!(matches!(
        create_directory(&root, b"link", Existing::Keep),
        Err(FilesError::Exists)
    ));
    assert!(matches!(
        create_file(&*open, b"directory", Existing::Replace),
        Err(FilesError::Exists)
    ));
    let (_, is_new) = create_directory(&root, b"directory", Existing::Replace).unwrap();
    assert!(!is_new);
    let (_, is_new) = create_directory(&root, b"link", Existing::Replace).unwrap();
    assert!(is_new);
    let file = create_file(&*open, b"file", Existing::Replace).unwrap();
    assert_eq!(file.metadata().unwrap().mode() & 0o7777, 0o600);
    create_hard_link((&*open, b"file"), (&*open, b"other"), Existing::Keep).unwrap();
    assert_eq!(file.metadata().unwrap().nlink(), 2);
    let again = create_hard_link((&*open, b"file"), (&*open, b"other"), Existing::Keep);
    assert!(matches!(again, Err(FilesError::Exists)));
    create_hard_link((&*open, b"file"), (&*open, b"other"), Existing::Replace).unwrap();
    create_special(&*open, b"other", &EntryKind::Fifo, Existing::Replace).unwrap();
    assert_eq!(fs::read(place.join("directory/inner")).unwrap(), b"old");

    for bad in [&b""[..], b".", b"..", b"a/b", b"/etc/x"] {
        let refused = create_file(&*open, bad, Existing::Replace);
        assert!(matches!(refused, Err(FilesError::BadName { .. })));
        let refused = create_directory(&root, bad, Existing::Replace);
        assert!(matches!(refused, Err(FilesError::BadName { .. })));
    }
}

#[test]
fn a_directory_swapped_for_a_symlink_is_noticed() {
    let place = Place::new();
    fs::create_dir(place.join("outside")).unwrap();
    let root = open_target(&place.join("target"), 1).unwrap();
    let (victim, _) = create_directory(&root, b"victim", Existing::Keep).unwrap();
    let (inner, _) = create_directory(&victim, b"inner", Existing::Keep).unwrap();
    // Only one handle stays open, so that the victim is closed now.
    fs::rename(place.join("target/victim"), place.join("moved")).unwrap();
    symlink(place.join("outside"), place.join("target/victim")).unwrap();
    assert!(matches!(victim.open(), Err(FilesError::Replaced)));
    assert!(
        inner.open().is_ok(),
        "it is open still, wherever it was moved"
    );
    let refused = create_directory(&victim, b"x", Existing::Replace);
    assert!(matches!(refused, Err(FilesError::Replaced)));
    // Nor does another directory pass for it.
    fs::remove_file(place.join("target/victim")).unwrap();
    fs::create_dir(place.join("target/victim")).unwrap();
    assert!(matches!(victim.open(), Err(FilesError::Replaced)));
    fs::remove_dir(place.join("target/victim")).unwrap();
    assert!(matches!(victim.open(), Err(FilesError::Vanished)));
    assert_eq!(fs::read_dir(place.join("outside")).unwrap().count(), 0);
}

/// Somebody swaps a directory of the target and a symlink to the outside, all the time.
#[test]
fn races_do_not_lead_outside() {
    let place = Place::new();
    let (target, outside) = (place.join("target"), place.join("outside"));
    fs::create_dir(&outside).unwrap();
    let root = open_target(&target, 1).unwrap();
    symlink(&outside, target.join("swap")).unwrap();
    fs::create_dir(target.join("d")).unwrap();
    let done = AtomicBool::new(false);
    let (mut created, mut refused) = (0, 0);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while !done.load(Ordering::Relaxed) {
                let (left, right) = (target.join("d"), target.join("swap"));
                rustix::fs::renameat_with(CWD, left, CWD, right, RenameFlags::EXCHANGE).unwrap();
            }
        });
        let begin = std::time::Instant::now();
        let mut number = 0;
        while number < 2000 || created.min(refused) < 50 && begin.elapsed().as_secs() < 5 {
            let name = format!("f{number}");
            let made = create_directory(&root, b"d", Existing::Keep).and_then(|(directory, _)| {
                let open = directory.open()?;
                create_file(&*open, name.as_bytes(), Existing::Replace)
            });
            match made {
                Ok(_) => created += 1,
                Err(_) => refused += 1,
            }
            number += 1;
        }
        done.store(true, Ordering::Relaxed);
    });
    assert_eq!(fs::read_dir(&outside).unwrap().count(), 0);
}

#[test]
fn lengths_and_room() {
    let place = Place::new();
    let root = open_target(place.path(), 4).unwrap();
    let file = create_file(&*root.open().unwrap(), b"f", Existing::Keep).unwrap();
    set_length(&file, 10 << 20).unwrap();
    let empty = file.metadata().unwrap();
    assert_eq!(empty.len(), 10 << 20);
    if preallocate(&file, 1 << 20, 1 << 20).unwrap() {
        let metadata = file.metadata().unwrap();
        assert!(metadata.blocks() * 512 >= 1 << 20);
        assert!(metadata.blocks() * 512 < 9 << 20, "the rest is a hole");
    }
    assert!(!preallocate(&file, 0, 0).unwrap());
    assert!(set_length(&file, u64::MAX / 2).is_err());
}

#[test]
fn entries_that_were_replaced_are_left_alone() {
    let place = Place::new();
    let open = File::open(place.path()).unwrap();
    let path = place.file("fifo", "not a fifo");
    let mut problems = Vec::new();
    let applier = Applier::new(OwnerRule::Numbers);
    applier.apply_at(
        &open,
        &entry("fifo", EntryKind::Fifo, 0o777),
        Path::new("fifo"),
        &mut problems,
    );
    assert!(matches!(
        problems[..],
        [Problem {
            error: FilesError::Replaced,
            ..
        }]
    ));
    assert_ne!(fs::metadata(&path).unwrap().mode() & 0o7777, 0o777);
    fs::remove_file(&path).unwrap();
    problems.clear();
    applier.apply_at(
        &open,
        &entry("fifo", EntryKind::Fifo, 0o777),
        Path::new("fifo"),
        &mut problems,
    );
    assert!(matches!(
        problems[..],
        [Problem {
            error: FilesError::Vanished,
            ..
        }]
    ));
}
