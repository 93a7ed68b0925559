//! Golden samples: repositories of each format version must stay readable, byte for byte.
//!
//! Version v1: `testdata/golden/v1`, made by `examples/golden_sample.rs`. Every file there is read
//! by this test through a copy, so that nothing is written into the samples.

#![allow(clippy::unwrap_used)] // A test says no by panicking.

use std::fs;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use engine::container::ContainerId;
use engine::object::{LocalStore, ObjectKind};
use engine::pipeline::DeltaLevel;
use engine::rewriting::{LookBackWindow, Rewriting};
use repository::keys::Password;
use repository::snapshot::{SnapshotFilter, SnapshotSpec};
use repository::tree::EntryKind;
use repository::{CheckOptions, Keyring, Progress, Repository, RestoreOptions, RunSettings};
use testkit::generate::stream_version;

fn golden(version: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../../testdata/golden")
        .join(version)
}

fn copy(from: &Path, to: &Path) {
    fs::create_dir_all(to).unwrap();
    for entry in fs::read_dir(from).unwrap() {
        let entry = entry.unwrap();
        let target = to.join(entry.file_name());
        if entry.file_type().unwrap().is_dir() {
            copy(&entry.path(), &target);
        } else {
            fs::copy(entry.path(), target).unwrap();
        }
    }
}

#[test]
fn every_version_is_tested() {
    let mut versions: Vec<_> = fs::read_dir(golden(""))
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        // Cut points and sections have tests of their own, in the crate chunking; features and deltas in
        // the crate engine.
        .filter(|name| !["chunkers", "sections", "similarity"].contains(&name.as_str()))
        .collect();
    versions.sort();
    assert_eq!(
        versions,
        ["v1"],
        "a new version needs a test of its own here"
    );
}

#[test]
fn v1_with_deltas_is_readable() {
    let sample = golden("v1").join("deltas");
    let place = tempfile::tempdir().unwrap();
    copy(&sample, &place.path().join("repository"));
    let store = LocalStore::open(&place.path().join("repository")).unwrap();
    let repository = Repository::open(Arc::new(store), None, RunSettings::default()).unwrap();
    assert_eq!(repository.config().deltas, DeltaLevel::Best);
    let progress = Progress::default();
    let read_data = CheckOptions { read_data: true };
    assert_eq!(repository.check(read_data, &progress).unwrap().problems, []);
    let stats = repository.stats(&progress).unwrap();
    assert_eq!((stats.snapshots, stats.unreadable), (4, 0));
    let expected = fs::read_to_string(sample.with_extension("expected")).unwrap();
    for (version, id) in expected.lines().enumerate() {
        let spec: SnapshotSpec = id.parse().unwrap();
        let filter = SnapshotFilter::default();
        let snapshot = repository.snapshot(&spec, &filter).unwrap().snapshot;
        let mut out = Vec::new();
        repository
            .dump(&snapshot, b"stream", &mut out, &progress)
            .unwrap();
        assert!(out == stream_version(version), "version {version}");
        let target = place.path().join(id);
        let options = RestoreOptions::default();
        let report = repository.restore(&snapshot, None, &target, &options, &progress);
        assert_eq!(report.unwrap().failed, 0);
        assert!(fs::read(target.join("stream")).unwrap() == stream_version(version));
    }
    let mut deepest = 0;
    let reader = repository.engine().reader().unwrap();
    let mut note = |id, _| {
        let section = reader.containers().section(ContainerId(id)).unwrap();
        let depths = section
            .section
            .deltas
            .iter()
            .flatten()
            .map(|delta| delta.depth);
        deepest = depths.max().unwrap_or(0).max(deepest);
    };
    let store = repository.engine().store();
    store.list(ObjectKind::Container, &mut note).unwrap();
    assert!(deepest >= 2, "deltas of deltas are among them");
}

#[test]
fn v1_with_two_epochs_is_readable() {
    let sample = golden("v1").join("rotated");
    let place = tempfile::tempdir().unwrap();
    copy(&sample, &place.path().join("repository"));
    let store = || Arc::new(LocalStore::open(&place.path().join("repository")).unwrap());
    let expected = fs::read_to_string(sample.with_extension("expected")).unwrap();
    for password in ["golden", "silver"].map(Password::new) {
        let keyring = Keyring::open(store(), Some(&password)).unwrap();
        let epochs = keyring.epochs().unwrap();
        assert_eq!(epochs.len(), 2);
        assert!(epochs.iter().all(|epoch| epoch.is_open));
        let (keys, problems) = keyring.list().unwrap();
        assert_eq!((keys.len(), problems.len()), (2, 0));
        assert!(keys.iter().all(|key| key.opens_newest == Some(true)));

        let settings = RunSettings::default();
        let repository = Repository::open(store(), Some(&password), settings).unwrap();
        assert_eq!(repository.warnings(), [""; 0]);
        let progress = Progress::default();
        let read_data = CheckOptions { read_data: true };
        assert_eq!(repository.check(read_data, &progress).unwrap().problems, []);
        let mut sealed_in = Vec::new();
        for (version, id) in expected.lines().enumerate() {
            let (spec, filter) = (id.parse().unwrap(), SnapshotFilter::default());
            let snapshot = repository.snapshot(&spec, &filter).unwrap().snapshot;
            let mut out = Vec::new();
            repository
                .dump(&snapshot, b"stream", &mut out, &progress)
                .unwrap();
            assert_eq!(out, format!("version {version}\n").repeat(500).as_bytes());
            let object = format!("repository/snapshots/{id}");
            let header = fs::read(place.path().join(object)).unwrap();
            sealed_in.push(u32::from_le_bytes(header[4..8].try_into().unwrap()));
        }
        assert_eq!(sealed_in, [epochs[0].epoch, epochs[1].epoch]);
    }
}

#[test]
fn v1_with_changes_is_readable() {
    let sample = golden("v1").join("changed");
    let place = tempfile::tempdir().unwrap();
    copy(&sample, &place.path().join("repository"));
    let store = || Arc::new(LocalStore::open(&place.path().join("repository")).unwrap());
    for (password, name) in [("golden", "first"), ("silver", "second")] {
        let keyring = Keyring::open(store(), Some(&Password::new(password))).unwrap();
        let (keys, problems) = keyring.list().unwrap();
        assert_eq!((keys.len(), problems.len()), (2, 0));
        let current = keys.iter().find(|key| key.is_current).unwrap();
        let label = current.label.as_ref().unwrap();
        assert_eq!((&label.name[..], &label.host[..]), (name, "golden"));
        assert_eq!(label.user, "somebody");
        assert_eq!(label.created.seconds, 1_795_176_000);
    }

    let password = Password::new("golden");
    let repository = Repository::open(store(), Some(&password), RunSettings::default()).unwrap();
    let progress = Progress::default();
    let read_data = CheckOptions { read_data: true };
    assert_eq!(repository.check(read_data, &progress).unwrap().problems, []);
    let expected = fs::read_to_string(sample.with_extension("expected")).unwrap();
    let [first, second] = expected.lines().collect::<Vec<_>>()[..] else {
        panic!("two lines are expected");
    };
    let list = repository.snapshots().unwrap();
    let facts = list.snapshots.iter().map(|snapshot| {
        let original = snapshot.original().to_string();
        (original, snapshot.replaces.len(), snapshot.is_protected)
    });
    let expected = [(first.to_owned(), 2, true), (second.to_owned(), 1, false)];
    assert_eq!(facts.collect::<Vec<_>>(), expected);
    assert_eq!(list.replaced.len(), 1, "the earlier form of the second");
    assert_eq!(list.replaced[0].to_string(), second);
    for (snapshot, version) in list.snapshots.iter().zip(0..) {
        assert_eq!(snapshot.tags, ["kept"]);
        let mut out = Vec::new();
        repository
            .dump(snapshot, b"stream", &mut out, &progress)
            .unwrap();
        assert_eq!(out, format!("version {version}\n").repeat(500).as_bytes());
    }
}

#[test]
fn v1_is_readable() {
    for (name, password) in [
        ("plain", None),
        ("encrypted", Some(Password::new("golden"))),
    ] {
        let sample = golden("v1").join(name);
        let place = tempfile::tempdir().unwrap();
        copy(&sample, &place.path().join("repository"));
        let store = LocalStore::open(&place.path().join("repository")).unwrap();
        let settings = RunSettings::default();
        let repository = Repository::open(Arc::new(store), password.as_ref(), settings).unwrap();
        assert_eq!(repository.config().chunker.avg_bytes, 2048);
        let window = Rewriting::LookBackWindow(LookBackWindow::DEFAULT);
        assert_eq!(repository.config().rewriting, window);
        let expected = fs::read_to_string(sample.with_extension("expected")).unwrap();
        let [first, second, path] = expected.lines().collect::<Vec<_>>()[..] else {
            panic!("three lines are expected");
        };

        let report = repository
            .check(CheckOptions { read_data: true }, &Progress::default())
            .unwrap();
        assert_eq!(report.problems, []);
        assert_eq!((report.snapshots, report.files), (2, 6));

        let find = |id: &str| {
            let spec: SnapshotSpec = id.parse().unwrap();
            repository
                .snapshot(&spec, &SnapshotFilter::default())
                .unwrap()
                .snapshot
        };
        let files = find(first);
        assert_eq!(
            (files.host.as_str(), &files.tags[..]),
            ("golden", &["sample".to_owned()][..])
        );
        let mut names = Vec::new();
        repository
            .tree(&files)
            .unwrap()
            .visit(path.as_bytes(), true, &mut |found, entry| {
                let name = String::from_utf8(found[path.len()..].to_vec()).unwrap();
                names.push((name, entry.kind == EntryKind::File, entry.size));
                ControlFlow::Continue(())
            })
            .unwrap();
        let entry = |name: &str, is_file, size| (name.to_owned(), is_file, size);
        let expected = [
            entry("/directory", false, 0),
            entry("/directory/noise", true, 60_000),
            entry("/directory/text-again", true, 52_000),
            entry("/empty", true, 0),
            entry("/link", false, 0),
            entry("/sparse", true, 1 << 20),
            entry("/text", true, 52_000),
        ];
        assert_eq!(names, expected);

        let target = place.path().join("target");
        let options = RestoreOptions::default();
        let progress = Progress::default();
        let report = repository
            .restore(&files, Some(path.as_bytes()), &target, &options, &progress)
            .unwrap();
        assert_eq!(report.failed, 0);
        let text = "a line of the golden text\n".repeat(2000);
        assert_eq!(
            fs::read_to_string(target.join("directory/text-again")).unwrap(),
            text
        );
        let noise: Vec<u8> = (0..60_000u32)
            .map(|i| (i.wrapping_mul(2_654_435_761) >> 24) as u8)
            .collect();
        assert_eq!(fs::read(target.join("directory/noise")).unwrap(), noise);
        let mut sparse = vec![0; 1 << 20];
        sparse[500_000..500_018].copy_from_slice(b"data in the middle");
        assert_eq!(fs::read(target.join("sparse")).unwrap(), sparse);

        let mut out = Vec::new();
        repository
            .dump(&find(second), b"stream", &mut out, &Progress::default())
            .unwrap();
        assert_eq!(out, b"a stream of the second snapshot\n".repeat(500));
    }
}
