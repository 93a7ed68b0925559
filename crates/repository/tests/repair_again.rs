//! A repair after a repair, when more is damaged meanwhile: what the first one saved stays.

#![allow(clippy::unwrap_used)] // A test says no by panicking.

mod support;

use std::sync::Arc;

use engine::container::ContainerKind;
use engine::object::{MemoryStore, ObjectKey, ObjectKind, ObjectStore};
use repository::snapshot::Snapshot;
use repository::{Progress, RepairSnapshotsOptions, Repository, SnapshotOutcome};
use support::sources::place;
use support::{backup, create};
use testkit::generate::random_bytes;

const FILES: usize = 6;

fn open(store: &Arc<MemoryStore>) -> Repository {
    support::open(Arc::clone(store) as Arc<dyn ObjectStore>, true).unwrap()
}

fn containers(store: &MemoryStore, kind: ContainerKind, repository: &Repository) -> Vec<ObjectKey> {
    let reader = repository.engine().reader().unwrap();
    let mut keys = Vec::new();
    store
        .list(ObjectKind::Container, &mut |id, _| {
            keys.push(ObjectKey::new(ObjectKind::Container, id));
        })
        .unwrap();
    keys.retain(|key| {
        let (metadata, _) = reader.containers().object(*key).unwrap();
        metadata.sections[0].kind == kind
    });
    keys
}

/// The files of the tree that can be read.
fn readable(repository: &Repository, snapshot: &Snapshot, root: &std::path::Path) -> Vec<usize> {
    let is_readable = |number: &usize| {
        let path = root.join(format!("file-{number}"));
        let path = path.as_os_str().as_encoded_bytes();
        let mut content = Vec::new();
        let dumped = repository.dump(snapshot, path, &mut content, &Progress::default());
        dumped.is_ok() && content == random_bytes(*number as u64, 300_000)
    };
    (0..FILES).filter(is_readable).collect()
}

#[test]
fn what_a_repair_saved_is_not_given_up_for_less() {
    for forget in [false, true] {
        let files = place();
        for number in 0..FILES {
            let path = files.path().join(format!("file-{number}"));
            std::fs::write(path, random_bytes(number as u64, 300_000)).unwrap();
        }
        let store = Arc::new(MemoryStore::new());
        create(Arc::clone(&store) as Arc<dyn ObjectStore>, true);
        let original = backup(&open(&store), files.path()).unwrap().snapshot;
        let pages = containers(&store, ContainerKind::Metadata, &open(&store));
        let data = containers(&store, ContainerKind::Data, &open(&store));
        assert!(store.corrupt(&data[0], |object| object[20] ^= 4));
        let repair = |forget| {
            let options = RepairSnapshotsOptions {
                forget,
                ..RepairSnapshotsOptions::default()
            };
            let repaired = open(&store).repair_snapshots(&options, &Progress::default());
            repaired.unwrap()
        };
        let first = repair(false);
        assert_eq!(first.snapshots[0].outcome, SnapshotOutcome::Repaired);
        let snapshots = open(&store).snapshots().unwrap().snapshots;
        let repaired = snapshots.iter().find(|it| it.id != original.id).unwrap();
        let saved = readable(&open(&store), repaired, files.path());
        assert!(!saved.is_empty() && saved.len() < FILES, "{saved:?}");
        // Now the directories of the original are lost, too; the repaired one has its own.
        for key in &pages {
            assert!(store.corrupt(key, |object| object[20] ^= 4));
        }
        repair(forget);
        let list = open(&store).snapshots().unwrap().snapshots;
        let best = list
            .iter()
            .map(|it| readable(&open(&store), it, files.path()).len());
        assert_eq!(best.max(), Some(saved.len()), "forget: {forget}");
    }
}
