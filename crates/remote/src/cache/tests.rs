//! Copies of metadata: what is answered from them, and what never is.

use super::*;
use engine::object::MemoryStore;
use std::fs;
use std::path::PathBuf;
use tempfile::TempDir;
use testkit::conformance;
use testkit::generate::random_bytes;
use testkit::random::Random;

struct Place {
    directory: TempDir,
    server: Arc<MemoryStore>,
}

impl Place {
    fn new() -> Self {
        Self {
            directory: TempDir::new().unwrap(),
            server: Arc::new(MemoryStore::new()),
        }
    }

    fn store(&self) -> CachingStore {
        self.limited(1 << 30)
    }

    fn limited(&self, bytes: u64) -> CachingStore {
        let inner = Arc::clone(&self.server) as Arc<dyn ObjectStore>;
        CachingStore::new(inner, self.directory.path(), bytes).unwrap()
    }

    /// All copies.
    fn files(&self) -> Vec<PathBuf> {
        let mut found = Vec::new();
        let mut waiting = vec![self.directory.path().to_owned()];
        while let Some(next) = waiting.pop() {
            for entry in fs::read_dir(next).unwrap() {
                let path = entry.unwrap().path();
                let is_other = ["lock", "bytes"].iter().any(|name| path.ends_with(name));
                match path.is_dir() {
                    true => waiting.push(path),
                    false if is_other => {}
                    false => found.push(path),
                }
            }
        }
        found.sort();
        found
    }

    fn bytes(&self) -> u64 {
        let length = |path: &PathBuf| fs::metadata(path).unwrap().len();
        self.files().iter().map(length).sum()
    }
}

fn key(kind: ObjectKind, number: u8) -> ObjectKey {
    ObjectKey::new(kind, ObjectId([number; ObjectId::BYTES]))
}

fn list(store: &CachingStore, kind: ObjectKind) {
    store.list(kind, &mut |_, _| {}).unwrap();
}

#[test]
fn a_store_with_copies_keeps_every_rule() {
    let places = std::cell::RefCell::new(Vec::new());
    conformance::object_store(&|| {
        let place = Place::new();
        let store = place.store();
        places.borrow_mut().push(place);
        Box::new(store)
    });
}

#[test]
fn a_second_run_asks_for_nothing_that_it_has() {
    let place = Place::new();
    let bytes = random_bytes(1, 300_000);
    let (index, pages, data) = (
        key(ObjectKind::Index, 1),
        key(ObjectKind::Container, 2),
        key(ObjectKind::Container, 3),
    );
    let snapshot = key(ObjectKind::Snapshot, 4);
    let first = place.store();
    let mut writer = first.create(&index).unwrap();
    for part in bytes.chunks(70_001) {
        writer.write(part).unwrap();
    }
    writer.finish().unwrap();
    first.put_metadata(&pages, &bytes).unwrap();
    first.put(&data, &bytes).unwrap();
    first.put(&snapshot, &bytes[..100]).unwrap();
    drop(first);
    place.server.reset_counts();
    let second = place.store();
    for kind in [
        ObjectKind::Index,
        ObjectKind::Container,
        ObjectKind::Snapshot,
    ] {
        list(&second, kind);
    }
    assert_eq!(second.get(&snapshot, 100).unwrap(), bytes[..100]);
    assert_eq!(
        second.get_tail(&index, 1000).unwrap().bytes,
        bytes[299_000..]
    );
    assert_eq!(
        second.get_range(&index, 5, 200_000).unwrap(),
        bytes[5..200_005]
    );
    assert_eq!(
        second.get_metadata_range(&pages, 16_384, 16_385).unwrap(),
        bytes[16_384..32_769]
    );
    let tail = second.get_tail(&data, 60_000).unwrap();
    assert_eq!(
        (&tail.bytes[..], tail.object_bytes),
        (&bytes[240_000..], 300_000)
    );
    let counts = place.server.reset_counts();
    assert_eq!((counts.reads(), counts.lists), (0, 3));
    assert_eq!((second.counts().hits, second.counts().misses), (5, 0));
    // Contents of files are no metadata.
    second.get_range(&data, 0, 10).unwrap();
    second.get_range(&data, 0, 10).unwrap();
    assert_eq!(place.server.reset_counts().ranges, 2);
    // What was fetched once is kept.
    second.get_tail(&data, 100_000).unwrap();
    second.get_tail(&data, 100_000).unwrap();
    assert_eq!(place.server.reset_counts().tails, 1);
}

#[test]
fn what_is_gone_from_the_server_is_gone_here() {
    let place = Place::new();
    let kinds = [
        ObjectKind::Index,
        ObjectKind::Snapshot,
        ObjectKind::Remap,
        ObjectKind::Container,
    ];
    let store = place.store();
    for kind in kinds {
        store.put(&key(kind, 1), &[1; 100]).unwrap();
        store.put(&key(kind, 2), &[2; 100]).unwrap();
    }
    assert_eq!(place.files().len(), 8);
    drop(store);
    for kind in kinds {
        place.server.remove_raw(&key(kind, 1));
    }
    let store = place.store();
    for kind in kinds {
        // Not listed yet: nobody knows.
        if kind != ObjectKind::Container {
            place.server.reset_counts();
            assert!(store.get(&key(kind, 1), 100).unwrap_err().is_missing());
            assert!(store.get_tail(&key(kind, 1), 10).unwrap_err().is_missing());
        }
        list(&store, kind);
        assert!(store.get(&key(kind, 1), 100).unwrap_err().is_missing());
        assert!(store.get_tail(&key(kind, 1), 10).unwrap_err().is_missing());
        assert!(
            store
                .get_metadata_range(&key(kind, 1), 0, 10)
                .unwrap_err()
                .is_missing()
        );
        assert_eq!(store.get(&key(kind, 2), 100).unwrap(), [2; 100]);
    }
    assert_eq!(place.files().len(), 4);
    // Whether something is there, the server says.
    place.server.remove_raw(&key(ObjectKind::Snapshot, 2));
    let asked = store.get_tail(&key(ObjectKind::Snapshot, 2), 0);
    assert!(asked.unwrap_err().is_missing());
}

#[test]
fn copies_by_others_of_what_is_gone_do_not_count() {
    let place = Place::new();
    for kind in [ObjectKind::Index, ObjectKind::Remap, ObjectKind::Container] {
        let gone = key(kind, 1);
        let (slow, quick) = (place.store(), place.store());
        place.server.put(&gone, &[1; 100]).unwrap();
        list(&slow, kind);
        place.server.remove_raw(&gone);
        list(&quick, kind);
        // It had read it before that, and keeps it only now.
        slow.directory.keep(&gone, Piece::Whole, 0, 100, &[1; 100]);
        assert!(quick.get_tail(&gone, 10).unwrap_err().is_missing());
        assert!(
            quick
                .get_metadata_range(&gone, 0, 10)
                .unwrap_err()
                .is_missing()
        );
        assert!(quick.get(&gone, 100).unwrap_err().is_missing());
        if kind != ObjectKind::Container {
            let new = place.store();
            assert!(new.get(&gone, 100).unwrap_err().is_missing());
        }
    }
}

#[test]
fn who_is_at_work_is_never_answered_from_here() {
    let place = Place::new();
    let store = place.store();
    let kinds = [
        ObjectKind::Run,
        ObjectKind::Condemned,
        ObjectKind::Expired,
        ObjectKind::Key,
    ];
    for kind in kinds {
        store.put(&key(kind, 1), b"x").unwrap();
        list(&store, kind);
        store.get(&key(kind, 1), 1).unwrap();
        store.get_tail(&key(kind, 1), 1).unwrap();
    }
    assert!(place.files().is_empty());
    assert_eq!(store.counts(), CacheCounts::default());
}

#[test]
fn copies_that_are_damaged_are_fetched_anew() {
    let place = Place::new();
    let bytes = random_bytes(2, 50_000);
    let asked = key(ObjectKind::Snapshot, 1);
    place.server.put(&asked, &bytes).unwrap();
    let mut random = Random::new(3);
    for round in 0..400u32 {
        let store = place.store();
        list(&store, ObjectKind::Snapshot);
        assert!(store.get(&asked, u64::MAX).unwrap() == bytes);
        drop(store);
        let files = place.files();
        assert_eq!(files.len(), 1);
        let mut file = fs::read(&files[0]).unwrap();
        let at = match round {
            0..50 => random.index(40),
            _ => random.index(file.len()),
        };
        match random.below(4) {
            0 => file.truncate(at),
            1 => file.extend_from_slice(&[0; 9]),
            2 => file[at..].fill(0),
            _ => file[at] ^= 1 << random.below(8),
        }
        fs::write(&files[0], file).unwrap();
    }
    // A copy under the name of another object.
    let other = key(ObjectKind::Snapshot, 2);
    place.server.put(&other, &random_bytes(9, 50_000)).unwrap();
    let store = place.store();
    list(&store, ObjectKind::Snapshot);
    store.get(&asked, u64::MAX).unwrap();
    let from = place.directory.path().join(asked.to_string());
    fs::copy(from, place.directory.path().join(other.to_string())).unwrap();
    assert!(store.get(&other, u64::MAX).unwrap() == random_bytes(9, 50_000));
}

#[test]
fn the_limit_holds_and_the_oldest_go_first() {
    let place = Place::new();
    let limit = 1_000_000;
    for number in 0..100u8 {
        let store = place.limited(limit);
        store
            .put(
                &key(ObjectKind::Snapshot, number),
                &random_bytes(number.into(), 50_000),
            )
            .unwrap();
        drop(store);
        assert!(
            place.bytes() < limit + limit / 16 + 60_000,
            "{}",
            place.bytes()
        );
    }
    let store = place.limited(limit);
    list(&store, ObjectKind::Snapshot);
    place.server.reset_counts();
    store.get(&key(ObjectKind::Snapshot, 99), u64::MAX).unwrap();
    assert_eq!(place.server.reset_counts().gets, 0, "the newest is there");
    store.get(&key(ObjectKind::Snapshot, 0), u64::MAX).unwrap();
    assert_eq!(place.server.reset_counts().gets, 1, "the oldest is not");
}

#[test]
fn processes_share_copies() {
    let place = Place::new();
    let objects: Vec<_> = (0..40u8)
        .map(|number| {
            (
                key(ObjectKind::Remap, number),
                random_bytes(number.into(), 20_000),
            )
        })
        .collect();
    for (key, bytes) in &objects {
        place.server.put(key, bytes).unwrap();
    }
    // A small limit: copies come and go under the hands of all.
    std::thread::scope(|scope| {
        for _ in 0..4 {
            let (place, objects) = (&place, &objects);
            scope.spawn(move || {
                for _ in 0..5 {
                    let store = place.limited(200_000);
                    list(&store, ObjectKind::Remap);
                    for (key, bytes) in objects {
                        assert!(&store.get(key, u64::MAX).unwrap() == bytes);
                    }
                }
            });
        }
    });
    let temporary = place.directory.path().join("tmp");
    assert_eq!(fs::read_dir(temporary).unwrap().count(), 0);
}
