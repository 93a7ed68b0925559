//! Snapshots (docs/format/v1.md, §10).

use engine::format::{open_document, write_document};
use engine::object::{MemoryStore, ObjectId, ObjectKey, ObjectKind, ObjectStore};
use engine::recipe::Recipe;
use repository::snapshot::{Snapshot, Summary};
use repository::timestamp::Timestamp;

use super::{REPOSITORY, paged_recipe, secrets, slots};

fn key(id: ObjectId) -> ObjectKey {
    ObjectKey::new(ObjectKind::Snapshot, id)
}

/// A body: what it says is written and read again.
pub fn snapshot(bytes: &[u8]) {
    let store = MemoryStore::new();
    let vault = secrets().vault(REPOSITORY, false);
    let id = ObjectId([2; 16]);
    write_document(&store, &vault, key(id), bytes).expect("memory takes it");
    let list = Snapshot::load_all(&store, &vault).expect("memory can be listed");
    let Ok(mut snapshot) = Snapshot::load(&store, &vault, id) else {
        assert_eq!((list.snapshots.len(), list.unreadable.len()), (0, 1));
        return;
    };
    assert_eq!(list.snapshots, [snapshot.clone()]);
    snapshot
        .write(&store, &vault)
        .expect("it was stored before");
    let again = Snapshot::load(&store, &vault, snapshot.id).expect("our own is read");
    assert_eq!(again, snapshot);
}

pub fn snapshot_samples() -> Vec<Vec<u8>> {
    let mut full = Snapshot {
        root: paged_recipe(),
        time: Timestamp {
            seconds: 1_700_000_000,
            nanoseconds: 999_999_999,
        },
        host: "here".to_owned(),
        user: "anna".to_owned(),
        uid: 1000,
        gid: u32::MAX,
        paths: vec![b"/home/anna".to_vec(), b"/not\xffUTF-8".to_vec()],
        tags: vec!["daily".to_owned()],
        parent: Some(ObjectId([5; 16])),
        run: Some(ObjectId([6; 16])),
        remap_generation: 300,
        summary: Summary {
            files: 70_000,
            bytes_read: 1 << 40,
            ..Summary::default()
        },
        program: "onefold 0.1.0".to_owned(),
        excludes: vec!["*.tmp".to_owned()],
        ..Snapshot::default()
    };
    full.errors.record("/srv/secret", "permission denied");
    let least = Snapshot {
        root: Recipe::Runs(vec![slots(1, 1, 100)]),
        ..Snapshot::default()
    };
    vec![body(full), body(least)]
}

fn body(mut snapshot: Snapshot) -> Vec<u8> {
    let store = MemoryStore::new();
    let vault = secrets().vault(REPOSITORY, false);
    snapshot.write(&store, &vault).expect("memory takes it");
    let key = key(snapshot.id);
    let object = store.get(&key, 1 << 20).expect("it is there");
    open_document(&vault, key, object).expect("it opens")
}
