//! Tests of changing snapshots: what is left at every point, and who wins when several change.

use std::collections::BTreeMap;

use engine::object::MemoryStore;
use zeroize::Zeroizing;

use super::super::{SnapshotFilter, SnapshotSpec};
use super::*;

fn vault() -> Vault {
    let secrets = BTreeMap::from([(1, Zeroizing::new([7; 32]))]);
    Vault::new(ObjectId([1; 16]), secrets, true)
}

fn stored(store: &MemoryStore, seconds: i64) -> Snapshot {
    let mut snapshot = Snapshot::default();
    snapshot.time.seconds = seconds;
    snapshot.write(store, &vault()).unwrap();
    snapshot
}

fn tags(tags: &[&str]) -> Vec<String> {
    tags.iter().map(|&tag| tag.to_owned()).collect()
}

fn with_tag(snapshot: &Snapshot, tag: &str) -> Snapshot {
    let change = SnapshotChange::AddTags(tags(&[tag]));
    change.of(snapshot).unwrap()
}

fn find(store: &MemoryStore, text: &str) -> Result<ObjectId, SnapshotError> {
    let list = Snapshot::load_all(store, &vault()).unwrap();
    let spec: SnapshotSpec = text.parse().unwrap();
    let filter = SnapshotFilter::default();
    let found = list.find(&spec, &filter).map(|snapshot| snapshot.id);
    let resolved = spec.resolve(store, &vault(), &filter);
    match (&found, resolved) {
        (Ok(id), Ok(resolved)) => assert_eq!(*id, resolved.snapshot.id),
        (Err(_), Err(_)) => {}
        (found, resolved) => panic!("{found:?}, {resolved:?}"),
    }
    found
}

#[test]
fn changes_change_what_they_say_and_nothing_else() {
    let snapshot = Snapshot {
        tags: tags(&["a", "b"]),
        ..Snapshot::default()
    };
    let changed = |change: SnapshotChange| change.of(&snapshot).map(|changed| changed.tags);
    let add = |list: &[&str]| changed(SnapshotChange::AddTags(tags(list)));
    assert_eq!(add(&["c", "a", "c"]), Some(tags(&["a", "b", "c"])));
    assert_eq!(add(&["b", "a"]), None);
    let remove = |list: &[&str]| changed(SnapshotChange::RemoveTags(tags(list)));
    assert_eq!(remove(&["a", "x"]), Some(tags(&["b"])));
    assert_eq!(remove(&["x"]), None);
    let set = |list: &[&str]| changed(SnapshotChange::SetTags(tags(list)));
    assert_eq!(set(&["x", "x"]), Some(tags(&["x"])));
    assert_eq!(set(&[]), Some(Vec::new()));
    assert_eq!(set(&["a", "b"]), None);

    let protected = SnapshotChange::Protect.of(&snapshot).unwrap();
    assert!(protected.is_protected);
    assert_eq!(SnapshotChange::Protect.of(&protected), None);
    assert_eq!(SnapshotChange::Unprotect.of(&protected), Some(snapshot));
}

#[test]
fn a_changed_snapshot_is_found_by_every_id_it_had() {
    let store = MemoryStore::new();
    let first = stored(&store, 1);
    let second = first
        .replace(with_tag(&first, "x"), &store, &vault())
        .unwrap();
    let third = second
        .replace(with_tag(&second, "y"), &store, &vault())
        .unwrap();
    assert_eq!(third.replaces, [first.id, second.id]);
    assert_eq!(third.original(), first.id);
    assert_eq!(third.tags, tags(&["x", "y"]));
    assert_eq!(third.time, first.time);
    assert_eq!(store.keys(), [key_of(third.id)]);
    for id in [first.id, second.id, third.id] {
        assert_eq!(find(&store, &id.to_string()).unwrap(), third.id);
        assert_eq!(find(&store, &id.to_string()[..20]).unwrap(), third.id);
    }
    let error = find(&store, &ObjectId([9; 16]).to_string()).unwrap_err();
    assert!(matches!(error, SnapshotError::NotFound { .. }), "{error}");
}

#[test]
fn a_pair_that_was_left_is_shown_once_and_cleaned_up() {
    let store = MemoryStore::new();
    let first = stored(&store, 1);
    let before = store.fork();
    let second = first
        .replace(with_tag(&first, "x"), &store, &vault())
        .unwrap();
    let old = before.object(&key_of(first.id)).unwrap();
    store.insert_raw(key_of(first.id), old);

    let list = Snapshot::load_all(&store, &vault()).unwrap();
    assert_eq!(list.snapshots[..], *std::slice::from_ref(&second));
    assert_eq!(list.replaced, [first.id]);
    let left = store.fork();
    assert_eq!(list.delete_replaced(&store).unwrap(), 1);
    assert_eq!(store.keys(), [key_of(second.id)]);

    // Forgetting takes both, the old one first.
    list.delete(&second, &left).unwrap();
    assert_eq!(left.keys(), []);
}

#[test]
fn the_first_id_stays_in_a_list_that_is_full() {
    let store = MemoryStore::new();
    let ids = (0..REPLACES_MAX).map(|number| ObjectId((number as u128).to_be_bytes()));
    let mut snapshot = Snapshot {
        replaces: ids.collect(),
        ..Snapshot::default()
    };
    snapshot.write(&store, &vault()).unwrap();
    let changed = snapshot
        .replace(with_tag(&snapshot, "x"), &store, &vault())
        .unwrap();
    assert_eq!(changed.replaces.len(), REPLACES_MAX);
    assert_eq!(changed.original(), ObjectId([0; 16]));
    assert_eq!(changed.replaces[1].0[15], 2);
    assert_eq!(changed.replaces.last(), Some(&snapshot.id));
}

#[test]
fn what_was_forgotten_does_not_come_back_by_a_change() {
    let store = MemoryStore::new();
    let snapshot = stored(&store, 1);
    store.delete(&key_of(snapshot.id)).unwrap();
    let error = snapshot
        .replace(with_tag(&snapshot, "x"), &store, &vault())
        .unwrap_err();
    assert!(matches!(error, SnapshotError::Vanished { id } if id == snapshot.id));
    assert_eq!(store.keys(), []);
}

#[test]
fn two_changes_at_the_same_time_are_both_kept() {
    let store = MemoryStore::new();
    let snapshot = stored(&store, 1);
    let old = store.object(&key_of(snapshot.id)).unwrap();
    let one = snapshot
        .replace(with_tag(&snapshot, "x"), &store, &vault())
        .unwrap();
    store.insert_raw(key_of(snapshot.id), old);
    let two = snapshot
        .replace(with_tag(&snapshot, "y"), &store, &vault())
        .unwrap();
    let list = Snapshot::load_all(&store, &vault()).unwrap();
    let mut expected = [one.id, two.id];
    expected.sort_unstable();
    let ids: Vec<ObjectId> = list.snapshots.iter().map(|snapshot| snapshot.id).collect();
    assert_eq!(ids, expected);
    let error = find(&store, &snapshot.id.to_string()).unwrap_err();
    assert!(matches!(error, SnapshotError::Ambiguous { .. }), "{error}");
}

#[test]
fn the_protected_are_not_deleted() {
    let store = MemoryStore::new();
    let snapshot = stored(&store, 1);
    let protected = SnapshotChange::Protect.of(&snapshot).unwrap();
    let protected = snapshot.replace(protected, &store, &vault()).unwrap();
    let list = Snapshot::load_all(&store, &vault()).unwrap();
    let error = list.delete(&protected, &store).unwrap_err();
    assert!(
        matches!(&error, SnapshotError::Protected { ids } if *ids == [protected.id]),
        "{error}"
    );
    assert_eq!(store.keys(), [key_of(protected.id)]);
}

#[test]
fn one_that_can_not_be_read_is_named() {
    let store = MemoryStore::new();
    let snapshot = stored(&store, 1);
    store.corrupt(&key_of(snapshot.id), |bytes| bytes[20] ^= 1);
    let list = Snapshot::load_all(&store, &vault()).unwrap();
    let spec = SnapshotSpec::Id(snapshot.id);
    let error = list.find(&spec, &SnapshotFilter::default()).unwrap_err();
    assert!(
        matches!(error, SnapshotError::Unreadable { id, .. } if id == snapshot.id),
        "{error}"
    );
}
