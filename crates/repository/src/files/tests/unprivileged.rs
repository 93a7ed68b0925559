//! What a user without privileges meets.

use std::fs::{self, Permissions};
use std::os::unix::fs::{MetadataExt, PermissionsExt};

use super::super::{Action, Applier, Existing, FilesError, OwnerRule, create_file, open_target};
use super::restore::{entries_below, make_tree, restore_tree};
use super::*;
use crate::tree::{EntryKind, Metadata, Timestamp};

fn set_mode(path: &Path, mode: u32) {
    fs::set_permissions(path, Permissions::from_mode(mode)).unwrap();
}

#[test]
fn what_may_not_be_read_is_a_problem() {
    if !is_unprivileged(concat!(
        module_path!(),
        "::what_may_not_be_read_is_a_problem"
    )) {
        return;
    }
    let place = Place::new();
    for file in ["closed/x", "open/readable", "open/secret", "z"] {
        place.file(file, "content");
    }
    set_mode(&place.join("closed"), 0);
    set_mode(&place.join("open/secret"), 0);
    let found = gather(
        walk_of(&[place.path()], &FilterOptions::default()),
        place.path(),
    );
    let expected = [
        "+closed",
        "!closed",
        "-closed",
        "+open",
        "open/readable",
        "open/secret",
        "-open",
        "z",
    ];
    assert_eq!(found.events, expected);
    let problem = &found.problems[0];
    assert_eq!(problem.what, Action::List);
    assert!(problem.error.is_permission_denied() && !problem.is_notice());
    let opened: Vec<bool> = found.files.iter().map(|file| file.open().is_ok()).collect();
    assert_eq!(opened, [true, false, true]);
    let refused = found.files[1].open().unwrap_err();
    assert!(refused.what == Action::Open && refused.error.is_permission_denied());

    // Names can be read, but nothing behind them.
    set_mode(&place.join("open"), 0o400);
    let found = gather(
        walk_of(&[&place.join("open")], &FilterOptions::default()),
        place.path(),
    );
    assert_eq!(
        found.events,
        ["+open", "!open/readable", "!open/secret", "-open"]
    );
    assert_eq!(found.problems[0].what, Action::Inspect);
}

#[test]
fn directories_on_the_way_need_not_be_listed() {
    if !is_unprivileged(concat!(
        module_path!(),
        "::directories_on_the_way_need_not_be_listed"
    )) {
        return;
    }
    let place = Place::new();
    let file = place.file("way/in/file", "content");
    set_mode(&place.join("way"), 0o311);
    let found = gather(walk_of(&[&file], &FilterOptions::default()), place.path());
    assert_eq!(
        found.events,
        ["+way", "+way/in", "way/in/file", "-way/in", "-way"]
    );
    assert!(found.files[0].open().is_ok());
    // As a directory to back up, it must be.
    let found = gather(
        walk_of(&[&place.join("way"), &file], &FilterOptions::default()),
        place.path(),
    );
    assert_eq!(
        found.events,
        ["+way", "!way", "+way/in", "way/in/file", "-way/in", "-way"]
    );
}

#[test]
fn own_files_come_back() {
    if !is_unprivileged(concat!(module_path!(), "::own_files_come_back")) {
        return;
    }
    let place = Place::new();
    let from = make_tree(&place);
    let to = place.join("to");
    let problems = restore_tree(&from, &to, &Applier::new(OwnerRule::Names));
    assert!(problems.is_empty(), "{}", problems[0]);
    assert_eq!(entries_below(&from), entries_below(&to));
}

#[test]
fn files_of_others_are_said_once_and_lose_their_set_id_bits() {
    if !is_unprivileged(concat!(
        module_path!(),
        "::files_of_others_are_said_once_and_lose_their_set_id_bits"
    )) {
        return;
    }
    let place = Place::new();
    let root = open_target(place.path(), 4).unwrap();
    let open = root.open().unwrap();
    let (uid, gid) = (
        rustix::process::geteuid().as_raw(),
        rustix::process::getegid().as_raw(),
    );
    let applier = Applier::new(OwnerRule::Numbers);
    for (owner, mode, expected, problem_count) in [
        ((uid, gid), 0o6755, 0o6755, 0),
        ((uid ^ 1, gid), 0o6755, 0o2755, 1),
        ((uid ^ 1, gid ^ 1), 0o6755, 0o755, 1),
    ] {
        let metadata = Metadata {
            mode,
            uid: owner.0,
            gid: owner.1,
            modified: Timestamp {
                seconds: 5,
                nanoseconds: 6,
            },
            attributes: vec![(b"user.a".to_vec(), b"1".to_vec())],
            ..Metadata::default()
        };
        let entry = Entry::new(b"f".to_vec(), EntryKind::File, metadata);
        let file = create_file(&*open, b"f", Existing::Replace).unwrap();
        let mut problems = Vec::new();
        applier.apply_open(&file, &entry, Path::new("/f"), &mut problems);
        let owners = problems
            .iter()
            .filter(|problem| problem.what == Action::SetOwner);
        assert_eq!(owners.count(), problem_count);
        let metadata = file.metadata().unwrap();
        assert_eq!(metadata.mode() & 0o7777, expected);
        assert_eq!((metadata.mtime(), metadata.mtime_nsec()), (5, 6));
        if let Some(problem) = problems.first() {
            assert!(
                problem.to_string().starts_with("/f: not restored: owner:"),
                "{problem}"
            );
        }
    }
}

#[test]
fn devices_and_privileged_attributes_are_refused_one_by_one() {
    if !is_unprivileged(concat!(
        module_path!(),
        "::devices_and_privileged_attributes_are_refused_one_by_one"
    )) {
        return;
    }
    let place = Place::new();
    let root = open_target(place.path(), 4).unwrap();
    let open = root.open().unwrap();
    let device = EntryKind::BlockDevice { major: 8, minor: 0 };
    let refused = super::super::create_special(&*open, b"sda", &device, Existing::Keep);
    assert!(matches!(&refused, Err(FilesError::Io(_))), "{refused:?}");
    let metadata = Metadata {
        mode: 0o600,
        uid: rustix::process::geteuid().as_raw(),
        gid: rustix::process::getegid().as_raw(),
        attributes: vec![
            (b"trusted.t".to_vec(), b"1".to_vec()),
            (b"user.u".to_vec(), b"2".to_vec()),
        ],
        ..Metadata::default()
    };
    let entry = Entry::new(b"f".to_vec(), EntryKind::File, metadata);
    let file = create_file(&*open, b"f", Existing::Keep).unwrap();
    let mut problems = Vec::new();
    Applier::new(OwnerRule::Numbers).apply_open(&file, &entry, Path::new("f"), &mut problems);
    let expected = Action::SetAttribute {
        name: b"trusted.t".to_vec(),
    };
    assert_eq!(problems[0].what, expected);
}
