//! Tests of the stored form of entries, and entries for the tests of pages.

use engine::container::{ContainerId, Slot};
use engine::object::ObjectId;
use engine::recipe::{RecipePage, Run};
use proptest::collection::vec;
use proptest::prelude::*;

use super::*;

pub fn container(id: u8) -> ContainerId {
    ContainerId(ObjectId([id; 16]))
}

pub fn slots(id: u8, first: u16, bytes: u64) -> Run {
    Run::Slots {
        container: container(id),
        first: Slot(first),
        count: 1,
        bytes,
    }
}

/// A file of that name, small, whose content lies in one container.
pub fn file(name: &[u8], bytes: u64) -> Entry {
    let metadata = Metadata {
        mode: 0o644,
        uid: 1000,
        gid: 1000,
        user: b"anna".to_vec(),
        group: b"anna".to_vec(),
        modified: Timestamp {
            seconds: 1_700_000_000,
            nanoseconds: 5,
        },
        changed: Timestamp {
            seconds: 1_700_000_001,
            nanoseconds: 6,
        },
        inode: 77,
        attributes: Vec::new(),
    };
    let mut entry = Entry::new(name.to_vec(), EntryKind::File, metadata);
    if bytes > 0 {
        entry.size = bytes;
        entry.content = Recipe::Runs(vec![slots(1, 7, bytes)]);
        entry.check = Some(CheckValue([9; 16]));
    }
    entry
}

fn any_name() -> impl Strategy<Value = Vec<u8>> {
    vec(1u8..=255, 1..40).prop_filter("names", |name| check_name(name).is_ok())
}

fn any_time() -> impl Strategy<Value = Timestamp> {
    (any::<i64>(), 0u32..1_000_000_000).prop_map(|(seconds, nanoseconds)| Timestamp {
        seconds,
        nanoseconds,
    })
}

fn any_metadata() -> impl Strategy<Value = Metadata> {
    let bytes = || vec(any::<u8>(), 0..12);
    let attribute = (vec(1u8..=255, 1..12), bytes());
    let owner = (any::<u32>(), any::<u32>(), bytes(), bytes());
    (
        0u32..=0o7777,
        owner,
        any_time(),
        any_time(),
        any::<u64>(),
        vec(attribute, 0..4),
    )
        .prop_map(
            |(mode, (uid, gid, user, group), modified, changed, inode, mut attributes)| {
                attributes.sort();
                attributes.dedup_by(|right, left| right.0 == left.0);
                Metadata {
                    mode,
                    uid,
                    gid,
                    user,
                    group,
                    modified,
                    changed,
                    inode,
                    attributes,
                }
            },
        )
}

fn any_recipe() -> impl Strategy<Value = Recipe> {
    let run = prop_oneof![
        (0u8..5, any::<u16>(), 0u64..1 << 40)
            .prop_map(|(id, first, bytes)| slots(id, first, bytes)),
        (0u64..1 << 50).prop_map(|bytes| Run::Hole { bytes }),
    ];
    let page = (0u64..1 << 50, vec(run.clone(), 0..4))
        .prop_map(|(stream_bytes, page)| RecipePage { stream_bytes, page });
    prop_oneof![
        4 => vec(run, 0..10).prop_map(Recipe::Runs),
        1 => (1u8..=4, vec(page, 0..4)).prop_map(|(level, pages)| Recipe::Paged { level, pages }),
    ]
}

fn any_kind() -> impl Strategy<Value = EntryKind> {
    prop_oneof![
        4 => Just(EntryKind::File),
        2 => Just(EntryKind::Directory),
        1 => vec(1u8..=255, 1..60).prop_map(|target| EntryKind::Symlink { target }),
        1 => Just(EntryKind::Fifo),
        1 => any::<(u32, u32)>()
            .prop_map(|(major, minor)| EntryKind::CharacterDevice { major, minor }),
        1 => any::<(u32, u32)>().prop_map(|(major, minor)| EntryKind::BlockDevice { major, minor }),
    ]
}

/// Any entry that keeps the rules.
pub fn any_entry() -> impl Strategy<Value = Entry> {
    let hard_link = proptest::option::of(any::<(u64, u64)>());
    let check = proptest::option::of(any::<[u8; 16]>());
    let later = vec(any::<u8>(), 0..5);
    (
        any_name(),
        any_kind(),
        any_metadata(),
        any_recipe(),
        check,
        hard_link,
        later,
    )
        .prop_map(|(name, kind, metadata, recipe, check, hard_link, later)| {
            let mut entry = Entry::new(name, kind, metadata);
            if entry.kind.has_recipe() {
                entry.content = recipe;
            }
            if entry.kind == EntryKind::File {
                entry.size = entry.content.stream_bytes();
                entry.check = check.filter(|_| entry.size > 0).map(CheckValue);
            }
            if entry.kind != EntryKind::Directory {
                entry.hard_link = hard_link.map(|(device, inode)| HardLink { device, inode });
            }
            if !later.is_empty() {
                let field = engine::format::Field {
                    tag: 200,
                    value: &later,
                };
                entry.unknown.keep(field).unwrap();
            }
            entry
        })
}

fn encoded(entry: &Entry) -> (ContainerTable, Vec<u8>) {
    let (mut table, mut out) = (ContainerTable::default(), Vec::new());
    entry.encode(&mut table, &mut out);
    (table, out)
}

fn decoded(table: &ContainerTable, bytes: &[u8]) -> Result<Entry, DecodeError> {
    let mut decoder = Decoder::new(bytes);
    let entry = Entry::decode(&mut decoder, table)?;
    decoder.finish()?;
    Ok(entry)
}

proptest! {
    #[test]
    fn entries_come_back(entry in any_entry()) {
        let (table, bytes) = encoded(&entry);
        prop_assert_eq!(entry.check(), Ok(()));
        prop_assert_eq!(decoded(&table, &bytes).unwrap(), entry);
        for end in 0..bytes.len() {
            prop_assert!(decoded(&table, &bytes[..end]).is_err());
        }
    }

    #[test]
    fn damaged_entries_are_refused_or_keep_the_rules(
        entry in any_entry(), place: prop::sample::Index, mask in 1u8..,
    ) {
        let (table, mut bytes) = encoded(&entry);
        let place = place.index(bytes.len());
        bytes[place] ^= mask;
        if let Ok(read) = decoded(&table, &bytes) {
            prop_assert_eq!(read.check(), Ok(()));
            let (table, bytes) = encoded(&read);
            prop_assert_eq!(decoded(&table, &bytes).unwrap(), read);
        }
    }
}

#[test]
fn names() {
    for bad in [&b""[..], b".", b"..", b"a/b", b"/", b"a\0"] {
        assert!(check_name(bad).is_err(), "{bad:?}");
    }
    for good in [&b"..."[..], b".a", b" ", b"\xff\xfe", b"a\nb"] {
        assert!(check_name(good).is_ok(), "{good:?}");
    }
}

/// Changes a proper entry with each of these and expects that neither writer nor reader take it.
#[test]
fn broken_rules_are_refused() {
    type Change = fn(&mut Entry);
    let symlink = |target: &[u8]| EntryKind::Symlink {
        target: target.to_vec(),
    };
    let directory = Entry::new(b"d".to_vec(), EntryKind::Directory, Metadata::default());
    let link = Entry::new(b"l".to_vec(), symlink(b"x"), Metadata::default());
    let cases: [(&Entry, &str, Change); 13] = [
        (&file(b"f", 5), "exceeds 12 bits", |entry| {
            entry.metadata.mode = 0o10000
        }),
        (&file(b"f", 5), "nanoseconds", |entry| {
            entry.metadata.modified.nanoseconds = 1_000_000_000
        }),
        (&file(b"f", 5), "nanoseconds", |entry| {
            entry.metadata.changed.nanoseconds = u32::MAX
        }),
        (&file(b"f", 5), "not a name", |entry| {
            entry.name = b"a/b".to_vec()
        }),
        (&file(b"f", 5), "recipe makes 5 bytes", |entry| {
            entry.size = 6
        }),
        (&file(b"f", 0), "check value", |entry| {
            entry.check = Some(CheckValue([0; 16]))
        }),
        (&file(b"f", 0), "out of order", |entry| {
            entry.metadata.attributes = vec![(b"b".to_vec(), vec![]), (b"a".to_vec(), vec![])];
        }),
        (&file(b"f", 0), "out of order", |entry| {
            entry.metadata.attributes = vec![(b"a".to_vec(), vec![]), (b"a".to_vec(), vec![])];
        }),
        (&file(b"f", 0), "proper name", |entry| {
            entry.metadata.attributes = vec![(b"".to_vec(), vec![])];
        }),
        (&directory, "hard link", |entry| {
            entry.hard_link = Some(HardLink {
                device: 1,
                inode: 2,
            });
        }),
        (&directory, "only files", |entry| entry.size = 1),
        (&link, "target", |entry| {
            entry.kind = EntryKind::Symlink { target: vec![] }
        }),
        (&link, "content", |entry| {
            entry.content = file(b"f", 5).content
        }),
    ];
    for (proper, reason, change) in cases {
        let mut entry = proper.clone();
        assert_eq!(entry.check(), Ok(()));
        change(&mut entry);
        let message = entry.check().unwrap_err().to_string();
        assert!(message.contains(reason), "{message}");
        let (table, bytes) = encoded(&entry);
        // Content of a type that has none is not even stored.
        let stored = !matches!(entry.kind, EntryKind::Symlink { .. }) || reason != "content";
        assert_eq!(decoded(&table, &bytes).is_err(), stored, "{message}");
    }
}

/// Entries put together from raw fields: each lacks something or has something too many.
#[test]
fn fields_belong_to_types() {
    let name = (1u64, &b"n"[..]);
    let empty_recipe = (5u64, &[0u8, 0][..]);
    let cases: [&[(u64, &[u8])]; 15] = [
        &[name],
        &[(3, &[4])],
        &[name, (3, &[0])],
        &[name, (3, &[7])],
        &[name, (3, &[1])],
        &[name, (3, &[2])],
        &[name, (3, &[3])],
        &[name, (3, &[5])],
        &[name, (3, &[4]), empty_recipe],
        &[name, (3, &[1]), empty_recipe, (7, b"t")],
        &[name, (3, &[3]), (7, b"t"), (9, &[1, 2])],
        &[name, (3, &[4, 0])],
        &[name, (2, &[0xff, 0xff, 0xff, 0xff, 0x7f]), (3, &[4])],
        &[name, (3, &[4]), (201, b"")],
        &[name, (3, &[4]), (16, &[0; 16])],
    ];
    for fields in cases {
        let read = decoded(&ContainerTable::default(), &raw_entry(fields));
        assert!(read.is_err(), "{fields:?} gave {read:?}");
    }
    let fifo = raw_entry(&[name, (3, &[4]), (202, b"later")]);
    let fifo = decoded(&ContainerTable::default(), &fifo).unwrap();
    assert_eq!(fifo.kind, EntryKind::Fifo);
    assert!(!fifo.unknown.is_empty());
}

fn raw_entry(fields: &[(u64, &[u8])]) -> Vec<u8> {
    let mut list = Vec::new();
    for (tag, value) in fields {
        put_varint(&mut list, *tag);
        put_bytes(&mut list, value);
    }
    let mut out = Vec::new();
    put_bytes(&mut out, &list);
    out
}
