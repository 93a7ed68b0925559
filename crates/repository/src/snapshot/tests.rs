//! Tests of snapshots: a golden body, damage at every byte, limits, and who is meant.

use std::collections::BTreeMap;

use engine::container::{ContainerId, Slot};
use engine::format::{DecodeError, seal_document};
use engine::object::MemoryStore;
use engine::recipe::{RecipePage, Run};
use proptest::collection::vec;
use proptest::prelude::*;
use zeroize::Zeroizing;

use super::*;

/// Body of [`sample`], made by a program of its own from docs/format/v1.md.
const GOLDEN: &str = "\
     0118011111111111111111111111111111111100010003028827020680c49fd50c0504046865726506050175\
     e80764080702022f61022f620a0701056461696c790c10222222222222222222222222222222220e10333333\
     33333333333333333333333333100109120d0102030405060708090a0b0c0d140c0201022f780664656e6965\
     64160d6f6e65666f6c6420302e312e30180701052a2e746d70";

fn golden() -> Vec<u8> {
    let digits = GOLDEN.as_bytes().chunks_exact(2);
    digits
        .map(|pair| u8::from_str_radix(std::str::from_utf8(pair).unwrap(), 16).unwrap())
        .collect()
}

fn vault() -> Vault {
    vault_of(7)
}

fn vault_of(secret: u8) -> Vault {
    let secrets = BTreeMap::from([(1, Zeroizing::new([secret; 32]))]);
    Vault::new(ObjectId([1; 16]), secrets, true)
}

fn id(text: &str) -> ObjectId {
    format!("{text:0<32}").parse().unwrap()
}

fn sample() -> Snapshot {
    let mut errors = SnapshotErrors::default();
    errors.record("/x", "denied");
    errors.count += 1;
    Snapshot {
        id: id("ab"),
        root: Recipe::Runs(vec![Run::Slots {
            container: ContainerId(ObjectId([0x11; 16])),
            first: Slot(3),
            count: 2,
            bytes: 5000,
        }]),
        is_interrupted: false,
        time: Timestamp {
            seconds: 1_700_000_000,
            nanoseconds: 5,
        },
        host: "here".to_owned(),
        user: "u".to_owned(),
        uid: 1000,
        gid: 100,
        paths: vec![b"/a".to_vec(), b"/b".to_vec()],
        tags: vec!["daily".to_owned()],
        parent: Some(ObjectId([0x22; 16])),
        run: Some(ObjectId([0x33; 16])),
        remap_generation: 9,
        summary: Summary {
            files: 1,
            directories: 2,
            other_entries: 3,
            files_bytes: 4,
            files_new: 5,
            files_changed: 6,
            files_unmodified: 7,
            bytes_read: 8,
            bytes_new: 9,
            bytes_stored: 10,
            chunks: 11,
            chunks_new: 12,
            milliseconds: 13,
            chunks_rewritten: 0,
            bytes_rewritten: 0,
        },
        errors,
        program: "onefold 0.1.0".to_owned(),
        excludes: vec!["*.tmp".to_owned()],
        replaces: Vec::new(),
        is_protected: false,
        disk: None,
        repaired: None,
        copy_of: None,
        is_doubtful: false,
        unknown: UnknownFields::default(),
    }
}

/// A snapshot of that id, host, second and tag, stored as [`Snapshot::write`] does.
fn put(store: &MemoryStore, at: &str, host: &str, seconds: i64, tag: &str) {
    let snapshot = Snapshot {
        host: host.to_owned(),
        time: Timestamp {
            seconds,
            nanoseconds: 0,
        },
        tags: vec![tag.to_owned()],
        ..sample()
    };
    let body = body::encode(&snapshot).unwrap();
    write_document(store, &vault(), key_of(id(at)), &body).unwrap();
}

#[test]
fn golden_body() {
    assert_eq!(body::encode(&sample()).unwrap(), golden());
    assert_eq!(body::decode(id("ab"), &golden()), Ok(sample()));
}

#[test]
fn what_was_rewritten_is_a_field_of_its_own() {
    let mut rewritten = sample();
    rewritten.summary.chunks_rewritten = 3;
    rewritten.summary.bytes_rewritten = 300;
    let bytes = body::encode(&rewritten).unwrap();
    assert_eq!(bytes, [&golden()[..], &[26, 3, 3, 0xac, 2]].concat());
    assert_eq!(body::decode(id("ab"), &bytes), Ok(rewritten));
}

#[test]
fn changes_are_fields_of_their_own() {
    let mut changed = sample();
    changed.replaces = vec![ObjectId([0x44; 16]), ObjectId([0x55; 16])];
    changed.is_protected = true;
    let bytes = body::encode(&changed).unwrap();
    let fields = [&[28, 33, 2][..], &[0x44; 16], &[0x55; 16], &[30, 0]].concat();
    assert_eq!(bytes, [golden(), fields].concat());
    assert_eq!(body::decode(id("ab"), &bytes), Ok(changed));
}

#[test]
fn an_interrupted_one_is_marked_by_a_field_that_must_be_known() {
    let interrupted = Snapshot {
        is_interrupted: true,
        ..sample()
    };
    let bytes = body::encode(&interrupted).unwrap();
    let mut expected = golden();
    let host = expected
        .windows(6)
        .position(|at| at == *b"\x04\x04here")
        .unwrap();
    expected.splice(host..host, [3, 0]);
    assert_eq!(bytes, expected);
    assert_eq!(body::decode(id("ab"), &bytes), Ok(interrupted));
}

#[test]
fn an_empty_snapshot_is_small() {
    let empty = Snapshot::default();
    let bytes = body::encode(&empty).unwrap();
    assert!(bytes.len() < 32, "{} bytes", bytes.len());
    assert_eq!(body::decode(empty.id, &bytes), Ok(empty));
    let rootless = body::decode(id("ab"), &[]);
    assert_eq!(rootless, Err(DecodeError::new("it has no root directory")));
}

#[test]
fn a_body_cut_off_never_passes_for_another() {
    // Cut at the end of a field, what is left is a snapshot of fewer fields: that the body is
    // whole is what the seal is for. Anywhere else it is an error.
    for end in 0..golden().len() {
        if let Ok(shorter) = body::decode(id("ab"), &golden()[..end]) {
            assert_ne!(shorter, sample());
            assert!(body::encode(&shorter).is_ok());
        }
    }
}

#[test]
fn what_a_copy_is_of_is_a_field_of_its_own() {
    let mut copied = golden();
    copied.extend_from_slice(&[38, 32]);
    copied.extend_from_slice(&[0x44; 16]);
    copied.extend_from_slice(&[0x55; 16]);
    let expected = Origin {
        repository: ObjectId([0x44; 16]),
        snapshot: ObjectId([0x55; 16]),
    };
    let snapshot = body::decode(id("ab"), &copied).unwrap();
    assert_eq!(snapshot.copy_of, Some(expected));
    assert_eq!(body::encode(&snapshot).unwrap(), copied);
    assert_eq!(snapshot.origin(id("cd")), expected);
    let own = sample().origin(id("cd"));
    assert_eq!((own.repository, own.snapshot), (id("cd"), id("ab")));
    copied.truncate(copied.len() - 1);
    assert!(body::decode(id("ab"), &copied).is_err());
}

#[test]
fn unknown_fields_are_kept_or_refused() {
    let mut later = golden();
    later.extend_from_slice(&[98, 2, b'h', b'i']);
    let snapshot = body::decode(id("ab"), &later).unwrap();
    assert_eq!(body::encode(&snapshot).unwrap(), later);
    let mut mandatory = golden();
    mandatory.extend_from_slice(&[99, 0]);
    let error = body::decode(id("ab"), &mandatory).unwrap_err();
    assert!(error.to_string().contains("99"), "{error}");
}

#[test]
fn limits_hold_in_both_directions() {
    let too_large = |change: fn(&mut Snapshot)| {
        let mut snapshot = sample();
        change(&mut snapshot);
        let error = snapshot.write(&MemoryStore::new(), &vault()).unwrap_err();
        assert!(matches!(error, SnapshotError::TooLarge { .. }), "{error}");
    };
    too_large(|s| s.tags = vec![String::new(); 1025]);
    too_large(|s| s.paths = vec![Vec::new(); (1 << 20) + 1]);
    too_large(|s| s.excludes = vec![String::new(); (1 << 20) + 1]);
    too_large(|s| s.replaces = vec![id("ab"); 1025]);
    too_large(|s| s.errors.count = 0);
    too_large(|s| s.excludes = vec!["x".repeat(65 << 20)]);
    too_large(|s| {
        s.errors.listed = vec![s.errors.listed[0].clone(); 1001];
        s.errors.count = 5000;
    });

    for (tag, value) in [
        (10u8, &[0x81, 8][..]),    // 1,025 tags
        (20, &[0, 1, 0, 0]),       // more errors listed than counted
        (20, &[0xff, 8, 0xe9, 7]), // 1,001 listed
        (14, &[0; 15]),
        (6, &[0, 0xff, 0xff, 0xff, 0xff, 0x1f, 0]),
        (4, &[0xff]),
        (18, &[0; 12]),
        (18, &[0; 14]),
        (26, &[1]),
        (26, &[1, 2, 3]),
        (28, &[0x81, 8]), // 1,025 earlier forms
        (28, &[1; 16]),
        (30, &[0]),
    ] {
        let mut bytes = vec![1, 3, 0, 0, 0, tag, value.len() as u8];
        bytes.extend_from_slice(value);
        assert!(body::decode(id("ab"), &bytes).is_err(), "field {tag}");
    }
}

#[test]
fn errors_are_counted_beyond_the_list() {
    let mut errors = SnapshotErrors::default();
    assert!(errors.is_empty());
    for number in 0..ERRORS_LISTED_MAX + 5 {
        errors.record(format!("/{number}"), "gone");
    }
    assert_eq!(errors.count, 1005);
    assert_eq!(errors.listed.len(), ERRORS_LISTED_MAX);
    assert_eq!(errors.listed[0].path, b"/0");
}

#[test]
fn snapshots_are_written_under_new_ids_and_loaded() {
    let store = MemoryStore::new();
    let mut snapshot = sample();
    let stored_bytes = snapshot.write(&store, &vault()).unwrap();
    assert_eq!(stored_bytes, store.stored_bytes());
    let first = snapshot.clone();
    snapshot.tags.push("kept".to_owned());
    snapshot.write(&store, &vault()).unwrap();
    assert_ne!(first.id, snapshot.id);
    assert_eq!(Snapshot::load(&store, &vault(), first.id).unwrap(), first);
    assert_eq!(
        Snapshot::load(&store, &vault(), snapshot.id).unwrap(),
        snapshot
    );
    let missing = Snapshot::load(&store, &vault(), id("00")).unwrap_err();
    assert!(
        matches!(missing, SnapshotError::Object(ObjectError::Store(error)) if error.is_missing())
    );
}

#[test]
fn damage_at_every_byte_is_corruption_of_that_object() {
    let key = key_of(id("ab"));
    let intact = seal_document(&vault(), key, &golden()).unwrap();
    for place in 0..intact.len() {
        for cut in [false, true] {
            let mut bytes = intact.clone();
            if cut {
                bytes.truncate(place);
            } else {
                bytes[place] ^= 0x40;
            }
            let store = MemoryStore::new();
            store.put(&key, &bytes).unwrap();
            let SnapshotError::Object(error) =
                Snapshot::load(&store, &vault(), key.id).unwrap_err()
            else {
                panic!("byte {place}");
            };
            // The epoch stands in the clear: a changed one names a secret that is not there.
            let in_epoch = !cut && (4..8).contains(&place);
            assert_eq!(
                matches!(error, ObjectError::UnknownEpoch { .. }),
                in_epoch,
                "{error}"
            );
            assert_eq!(error.is_damage(), !in_epoch);
            assert_eq!(error.key(), Some(key));
            let list = Snapshot::load_all(&store, &vault()).unwrap();
            assert_eq!((list.snapshots.len(), list.unreadable.len()), (0, 1));
        }
    }
}

#[test]
fn snapshots_of_another_place_or_repository_do_not_open() {
    let store = MemoryStore::new();
    put(&store, "a1", "here", 1, "t");
    let bytes = store.object(&key_of(id("a1"))).unwrap();
    store.put(&key_of(id("a2")), &bytes).unwrap();
    let error = Snapshot::load(&store, &vault(), id("a2")).unwrap_err();
    assert!(matches!(
        error,
        SnapshotError::Object(ObjectError::Corrupt { .. })
    ));
    assert!(Snapshot::load(&store, &vault_of(8), id("a1")).is_err());
    assert!(Snapshot::load(&store, &vault(), id("a1")).is_ok());
}

#[test]
fn all_are_loaded_in_order_and_bad_ones_set_aside() {
    let store = MemoryStore::new();
    for (at, seconds) in [("c3", 5), ("a1", 9), ("b2", 5), ("d4", 1)] {
        put(&store, at, "here", seconds, "t");
    }
    store.corrupt(&key_of(id("d4")), |bytes| bytes.truncate(20));
    let list = Snapshot::load_all(&store, &vault()).unwrap();
    let ids: Vec<ObjectId> = list.snapshots.iter().map(|snapshot| snapshot.id).collect();
    assert_eq!(ids, [id("b2"), id("c3"), id("a1")]);
    assert_eq!(list.unreadable.len(), 1);
    assert_eq!(list.unreadable[0].id, id("d4"));
}

#[test]
fn specs_parse() {
    let spec = |text: &str| text.parse::<SnapshotSpec>().ok();
    assert_eq!(spec("latest"), Some(SnapshotSpec::Latest));
    assert_eq!(spec("aB3"), Some(SnapshotSpec::Prefix("ab3".to_owned())));
    assert_eq!(
        spec(&id("ab").to_string().to_uppercase()),
        Some(SnapshotSpec::Id(id("ab")))
    );
    for bad in ["", "Latest", "xyz", "ab ", "äb", &"a".repeat(33)] {
        let error = bad.parse::<SnapshotSpec>().unwrap_err();
        assert!(matches!(error, SnapshotError::BadSpec { .. }), "{bad}");
    }
}

/// Which snapshot, of those at `a1…`, `a2…` and `b1…`, is meant by what was typed.
#[test]
fn prefixes_resolve() {
    let store = MemoryStore::new();
    for (at, seconds) in [("a1", 1), ("a2", 2), ("b1", 3)] {
        put(&store, at, "here", seconds, "t");
    }
    let resolve = |text: &str| {
        let spec: SnapshotSpec = text.parse().unwrap();
        let narrow = SnapshotFilter {
            hosts: vec!["nowhere".to_owned()],
            ..Default::default()
        };
        spec.resolve(&store, &vault(), &narrow)
            .map(|resolved| resolved.snapshot.id)
    };
    for (text, found) in [
        ("a1", "a1"),
        ("A10", "a1"),
        ("b", "b1"),
        (&id("a2").to_string(), "a2"),
    ] {
        assert_eq!(resolve(text).unwrap(), id(found), "{text}");
    }
    for text in ["c", "a11", &id("c").to_string()] {
        let error = resolve(text).unwrap_err();
        assert!(
            matches!(error, SnapshotError::NotFound { .. }),
            "{text}: {error}"
        );
        assert!(
            error.to_string().contains("the 3 that are there"),
            "{error}"
        );
    }
    let error = resolve("a").unwrap_err();
    let SnapshotError::Ambiguous { matches, .. } = &error else {
        panic!("{error}");
    };
    assert_eq!(*matches, [id("a1"), id("a2")]);
    assert!(error.to_string().contains(&id("a2").to_string()), "{error}");

    store.corrupt(&key_of(id("b1")), |bytes| bytes.truncate(20));
    assert!(matches!(resolve("b"), Err(SnapshotError::Object(_))));
}

#[test]
fn latest_is_narrowed_by_host_path_and_tag() {
    let store = MemoryStore::new();
    for (at, host, seconds, tag) in [
        ("a1", "one", 1, "x"),
        ("a2", "one", 2, "y"),
        ("b1", "two", 3, "x"),
        ("b2", "two", 3, "x"),
    ] {
        put(&store, at, host, seconds, tag);
    }
    let resolve = |hosts: &[&str], paths: &[&str], tags: &[&str]| {
        let texts = |items: &[&str]| items.iter().map(|&item| item.to_owned()).collect();
        let filter = SnapshotFilter {
            hosts: texts(hosts),
            paths: paths.iter().map(|path| path.as_bytes().to_vec()).collect(),
            tags: texts(tags),
        };
        SnapshotSpec::Latest
            .resolve(&store, &vault(), &filter)
            .map(|resolved| resolved.snapshot.id)
    };
    assert_eq!(resolve(&[], &[], &[]).unwrap(), id("b2"));
    assert_eq!(resolve(&["one"], &[], &[]).unwrap(), id("a2"));
    assert_eq!(resolve(&["one"], &["/a"], &["x"]).unwrap(), id("a1"));
    assert_eq!(
        resolve(&["one", "two"], &["/b", "/a"], &[]).unwrap(),
        id("b2")
    );
    for (outcome, word) in [
        (resolve(&["three"], &[], &[]), "hosts are one, two"),
        (resolve(&[], &["/a/"], &[]), "paths are /a, /b"),
        (resolve(&[], &[], &["z"]), "tags are x, y"),
        (resolve(&["two"], &[], &["y"]), "all of them by none"),
    ] {
        let error = outcome.unwrap_err();
        assert!(matches!(error, SnapshotError::NotFound { .. }), "{error}");
        assert!(error.to_string().contains(word), "{error}");
    }
}

#[test]
fn what_was_interrupted_is_nobodys_latest() {
    let of = |at: &str, seconds: i64, is_interrupted: bool| Snapshot {
        id: id(at),
        time: Timestamp {
            seconds,
            nanoseconds: 0,
        },
        is_interrupted,
        ..sample()
    };
    let all = SnapshotFilter::default();
    let snapshots = [of("a1", 1, true), of("a2", 2, false), of("a3", 3, true)];
    let whole = latest(&snapshots, &all);
    assert_eq!(whole.map(|snapshot| snapshot.id), Some(id("a2")));
    let since = |since| {
        let found = interrupted_since(&snapshots, &all, since);
        found.iter().map(|found| found.id).collect::<Vec<_>>()
    };
    assert_eq!(since(whole), [id("a3")]);
    assert_eq!(since(None), [id("a3"), id("a1")], "the last one first");
    assert_eq!(since(Some(&snapshots[2])), []);

    let store = MemoryStore::new();
    let body = body::encode(&of("a1", 1, true)).unwrap();
    write_document(&store, &vault(), key_of(id("a1")), &body).unwrap();
    let resolve = || SnapshotSpec::Latest.resolve(&store, &vault(), &all);
    let error = resolve().unwrap_err().to_string();
    assert!(error.contains("interrupted"), "{error}");
    put(&store, "a2", "here", 0, "t");
    assert_eq!(resolve().unwrap().snapshot.id, id("a2"));
}

#[test]
fn a_damaged_snapshot_is_named_when_latest_is_asked_for() {
    let store = MemoryStore::new();
    let resolve = || SnapshotSpec::Latest.resolve(&store, &vault(), &SnapshotFilter::default());
    let error = resolve().unwrap_err();
    assert!(error.to_string().contains("no snapshots"), "{error}");
    for (at, seconds) in [("a1", 1), ("a2", 2)] {
        put(&store, at, "here", seconds, "t");
    }
    store.corrupt(&key_of(id("a2")), |bytes| bytes[30] ^= 1);
    let resolved = resolve().unwrap();
    assert_eq!(resolved.snapshot.id, id("a1"));
    assert_eq!(resolved.unreadable[0].id, id("a2"));
    store.corrupt(&key_of(id("a1")), |bytes| bytes[30] ^= 1);
    let error = resolve().unwrap_err();
    assert!(error.to_string().contains("2 can't be read"), "{error}");
}

fn any_run() -> impl Strategy<Value = Run> {
    let slots = (0u8..5, 0u16..2000, 1u32..500, 0u64..1 << 40);
    prop_oneof![
        slots.prop_map(|(container, first, count, bytes)| Run::Slots {
            container: ContainerId(ObjectId([container; 16])),
            first: Slot(first),
            count,
            bytes,
        }),
        (0u64..1 << 50).prop_map(|bytes| Run::Hole { bytes }),
    ]
}

fn any_root() -> impl Strategy<Value = Recipe> {
    let page = (0u64..1 << 50, vec(any_run(), 0..4))
        .prop_map(|(stream_bytes, page)| RecipePage { stream_bytes, page });
    prop_oneof![
        vec(any_run(), 0..9).prop_map(Recipe::Runs),
        (1u8..=4, vec(page, 0..4)).prop_map(|(level, pages)| Recipe::Paged { level, pages }),
    ]
}

prop_compose! {
    fn any_snapshot()(
        root in any_root(),
        (seconds, nanoseconds) in (any::<i64>(), 0u32..1_000_000_000),
        (host, user, program) in ("\\PC{0,9}", "\\PC{0,9}", "\\PC{0,9}"),
        (uid, gid) in any::<(u32, u32)>(),
        paths in vec(vec(any::<u8>(), 0..9), 0..4),
        (tags, excludes) in (vec("\\PC{0,9}", 0..4), vec("\\PC{0,9}", 0..4)),
        (parent, run, repaired) in any::<(Option<[u8; 16]>, Option<[u8; 16]>, Option<[u8; 16]>)>(),
        disk in any::<Option<([u8; 16], [u8; 16], u32)>>(),
        copy_of in any::<Option<([u8; 16], [u8; 16])>>(),
        (remap_generation, milliseconds, files) in any::<(u64, u64, u64)>(),
        listed in vec((vec(any::<u8>(), 0..9), "\\PC{0,9}"), 0..4),
        (replaces, is_protected) in (vec(any::<[u8; 16]>(), 0..4), any::<bool>()),
    ) -> Snapshot {
        let mut errors = SnapshotErrors::default();
        listed.into_iter().for_each(|(path, message)| errors.record(path, message));
        Snapshot {
            id: id("ab"),
            root,
            is_interrupted: false,
            time: Timestamp { seconds, nanoseconds },
            host,
            user,
            uid,
            gid,
            paths,
            tags,
            parent: parent.map(ObjectId),
            run: run.map(ObjectId),
            remap_generation,
            summary: Summary { milliseconds, files, ..Summary::default() },
            errors,
            program,
            excludes,
            replaces: replaces.into_iter().map(ObjectId).collect(),
            is_protected,
            disk: disk.map(|(volume, generation_id, generation)| DiskState {
                volume,
                generation_id,
                generation,
            }),
            repaired: repaired.map(ObjectId),
            copy_of: copy_of.map(|(repository, snapshot)| Origin {
                repository: ObjectId(repository),
                snapshot: ObjectId(snapshot),
            }),
            is_doubtful: false,
            unknown: UnknownFields::default(),
        }
    }
}

proptest! {
    #[test]
    fn snapshots_come_back(snapshot in any_snapshot()) {
        let bytes = body::encode(&snapshot).unwrap();
        prop_assert_eq!(body::decode(snapshot.id, &bytes).unwrap(), snapshot);
    }

    #[test]
    fn hostile_bodies_never_panic(bytes in vec(any::<u8>(), 0..200)) {
        let _ = body::decode(id("ab"), &bytes);
    }

    #[test]
    fn damaged_bodies_never_panic(
        snapshot in any_snapshot(), place: prop::sample::Index, value: u8,
    ) {
        let mut bytes = body::encode(&snapshot).unwrap();
        let place = place.index(bytes.len());
        bytes[place] = value;
        if let Ok(read) = body::decode(snapshot.id, &bytes) {
            // Whatever is read can be written, and is then read the same.
            let again = body::encode(&read).unwrap();
            prop_assert_eq!(body::decode(snapshot.id, &again).unwrap(), read);
        }
    }
}

#[test]
fn the_snapshot_that_was_repaired_is_a_field_of_its_own() {
    let plain = Snapshot::default();
    let repaired = Snapshot {
        repaired: Some(id("c4")),
        ..plain.clone()
    };
    let (plain, bytes) = (
        body::encode(&plain).unwrap(),
        body::encode(&repaired).unwrap(),
    );
    // Tag 40, 16 bytes, at the end.
    let field = [&[40, 16][..], &id("c4").0].concat();
    assert_eq!(bytes, [plain, field].concat());
    assert_eq!(body::decode(repaired.id, &bytes).unwrap(), repaired);
}
