//! Archives that come back, and archives that lie.

use proptest::prelude::*;

use super::super::writer::{NewMember, TarWriter};
use super::*;
use crate::timestamp::Timestamp;
use crate::tree::Entry;

fn names() -> OwnerNames {
    OwnerNames::default()
}

/// All members of an archive, with their contents.
fn read_all(bytes: &[u8]) -> Result<Vec<(Member, Vec<u8>)>, TarError> {
    let mut source = bytes;
    let mut reader = TarReader::new(&mut source, names());
    let mut members = Vec::new();
    while let Some(member) = reader.next_member()? {
        let mut content = Vec::new();
        let mut buffer = [0; 700];
        loop {
            match reader.read_content(&mut buffer)? {
                0 => break,
                count => content.extend_from_slice(&buffer[..count]),
            }
        }
        members.push((member, content));
    }
    Ok(members)
}

fn any_metadata() -> impl Strategy<Value = crate::tree::Metadata> {
    let owner = (any::<u32>(), any::<u32>(), "[a-zäö]{0,40}", "[a-z]{0,40}");
    let time = || (any::<i64>(), 0u32..1_000_000_000);
    let attributes = proptest::collection::btree_map(
        "user\\.[a-z%=]{1,20}".prop_map(String::into_bytes),
        proptest::collection::vec(any::<u8>(), 0..100),
        0..4,
    );
    (0u32..0o10000, owner, time(), time(), attributes).prop_map(
        |(mode, (uid, gid, user, group), modified, changed, attributes)| crate::tree::Metadata {
            mode,
            uid,
            gid,
            user: user.into_bytes(),
            group: group.into_bytes(),
            modified: Timestamp {
                seconds: modified.0.max(i64::MIN + 1),
                nanoseconds: modified.1,
            },
            changed: Timestamp {
                seconds: changed.0.max(i64::MIN + 1),
                nanoseconds: changed.1,
            },
            inode: 0,
            attributes: attributes.into_iter().collect(),
        },
    )
}

fn any_kind() -> impl Strategy<Value = EntryKind> {
    let target = proptest::collection::vec(1u8..=255, 1..300);
    prop_oneof![
        4 => Just(EntryKind::File),
        1 => Just(EntryKind::Directory),
        1 => target.prop_map(|target| EntryKind::Symlink { target }),
        1 => Just(EntryKind::Fifo),
        1 => (any::<u32>(), any::<u32>())
            .prop_map(|(major, minor)| EntryKind::CharacterDevice { major, minor }),
        1 => (any::<u32>(), any::<u32>())
            .prop_map(|(major, minor)| EntryKind::BlockDevice { major, minor }),
    ]
}

/// A path that does not begin or end with a slash.
fn any_path() -> impl Strategy<Value = Vec<u8>> {
    let name = proptest::collection::vec(
        any::<u8>().prop_filter("no part of a name", |byte| !matches!(byte, 0 | b'/')),
        1..120,
    );
    proptest::collection::vec(name, 1..4).prop_map(|names| names.join(&b'/'))
}

fn any_content() -> impl Strategy<Value = (Vec<u8>, Option<u64>)> {
    let bytes = proptest::collection::vec(any::<u8>(), 0..3000);
    (bytes, proptest::option::of(1u64..1 << 40))
}

/// Path, entry, stored bytes, and where these begin behind a hole.
type NewFile = (Vec<u8>, Entry, Vec<u8>, Option<u64>);

/// An archive of those members; a file with a hole has it in front of its bytes, and one behind.
fn written(members: &[NewFile]) -> Vec<u8> {
    let mut out = Vec::new();
    let mut tar = TarWriter::new(&mut out);
    for (path, entry, content, hole) in members {
        let extents = hole.map(|offset| {
            let bytes = content.len() as u64;
            let extent = Extent { offset, bytes };
            if bytes == 0 { vec![] } else { vec![extent] }
        });
        tar.member(&NewMember {
            path,
            entry,
            link: None,
            sparse: extents.as_deref(),
        })
        .unwrap();
        tar.content(content).unwrap();
        tar.fill().unwrap();
    }
    tar.finish().unwrap();
    out
}

fn any_members() -> impl Strategy<Value = Vec<NewFile>> {
    let member = (any_path(), any_kind(), any_metadata(), any_content());
    let member = member.prop_map(|(path, kind, metadata, (content, hole))| {
        let is_file = kind == EntryKind::File;
        let mut entry = Entry::new(b"unused".to_vec(), kind, metadata);
        let (content, hole) = if is_file {
            (content, hole)
        } else {
            (Vec::new(), None)
        };
        entry.size = content.len() as u64 + hole.map_or(0, |hole| 2 * hole);
        (path, entry, content, hole)
    });
    proptest::collection::vec(member, 0..5)
}

proptest! {
    #[test]
    fn members_come_back(members in any_members()) {
        let bytes = written(&members);
        let read = read_all(&bytes).unwrap();
        prop_assert_eq!(read.len(), members.len());
        for ((member, content), (path, entry, expected, hole)) in read.iter().zip(&members) {
            let mut path = path.clone();
            if entry.kind == EntryKind::Directory {
                path.push(b'/');
            }
            prop_assert_eq!(&member.path, &path);
            prop_assert_eq!(&member.kind, &MemberKind::Entry(entry.kind.clone()));
            // An empty value takes a record back: such an attribute comes back all the same.
            prop_assert_eq!(&member.metadata, &entry.metadata);
            prop_assert_eq!(member.size, entry.size);
            prop_assert_eq!(content, expected);
            let extents = hole.map(|offset| match content.len() as u64 {
                0 => vec![],
                bytes => vec![Extent { offset, bytes }],
            });
            prop_assert_eq!(&member.sparse, &extents);
            prop_assert!(member.notes.is_empty());
        }
    }

    #[test]
    fn a_tar_that_is_cut_off_is_an_error(members in any_members(), share in 0.0f64..1.0) {
        let bytes = written(&members);
        let end = bytes.iter().rposition(|&byte| byte != 0).map_or(0, |last| last + 1);
        let whole = end.next_multiple_of(BLOCK_BYTES) + 2 * BLOCK_BYTES;
        let cut = (whole as f64 * share) as usize;
        let is_error = matches!(read_all(&bytes[..cut]), Err(TarError::CutOff { .. }));
        // The last member may end in zeros, which are then the end of the archive.
        prop_assert!(is_error || read_all(&bytes[..cut]).is_ok_and(|read| read.len() == members.len()));
    }

    #[test]
    fn damaged_headers_are_told(members in any_members(), place: prop::sample::Index, bit in 0u8..8) {
        let mut bytes = written(&members);
        let headers = 512.min(bytes.len());
        let place = place.index(headers);
        // Behind the digits of a checksum there may be anything.
        prop_assume!(!(154..156).contains(&place));
        bytes[place] ^= 1 << bit;
        // Whatever comes out: no panic, and the first header is not believed.
        if !members.is_empty() {
            let read = read_all(&bytes);
            prop_assert!(matches!(read, Err(TarError::Header { .. } | TarError::Compressed { .. })), "{read:?}");
        }
    }

    #[test]
    fn hostile_bytes_never_panic(bytes in proptest::collection::vec(any::<u8>(), 0..4000)) {
        let _ = read_all(&bytes);
    }

    #[test]
    fn mutated_archives_never_panic(
        members in any_members(),
        changes in proptest::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..6),
    ) {
        let mut bytes = written(&members);
        for (place, byte) in changes {
            let place = place.index(bytes.len());
            bytes[place] = byte;
            // With a checksum that is right, so that what it says is looked at.
            let start = place / BLOCK_BYTES * BLOCK_BYTES;
            let mut block: Block = bytes[start..start + BLOCK_BYTES].try_into().unwrap();
            if !header::is_zero(&block) {
                header::seal(&mut block);
                bytes[start..start + BLOCK_BYTES].copy_from_slice(&block);
            }
        }
        let _ = read_all(&bytes);
    }
}

/// A header of GNU's or POSIX's kind, sealed.
fn block(name: &str, kind: u8, size: u64, change: impl FnOnce(&mut Block)) -> Vec<u8> {
    let mut block = header::empty();
    header::put_text(&mut block[header::NAME], name.as_bytes());
    header::put_number(&mut block[header::SIZE], size);
    block[header::TYPE] = kind;
    change(&mut block);
    header::seal(&mut block);
    block.to_vec()
}

fn padded(bytes: &[u8]) -> Vec<u8> {
    let mut bytes = bytes.to_vec();
    bytes.resize(bytes.len().next_multiple_of(BLOCK_BYTES), 0);
    bytes
}

fn pax(records: &[(&str, &str)]) -> Vec<u8> {
    let mut bytes = Vec::new();
    for (key, value) in records {
        crate::tar::pax::put_record(&mut bytes, key.as_bytes(), value.as_bytes());
    }
    [
        block("PaxHeader", b'x', bytes.len() as u64, |_| ()),
        padded(&bytes),
    ]
    .concat()
}

fn archive(parts: &[Vec<u8>]) -> Vec<u8> {
    let mut bytes = parts.concat();
    bytes.resize(bytes.len() + 2 * BLOCK_BYTES, 0);
    bytes
}

#[test]
fn holes_are_read_in_all_forms() {
    let data = b"ABCDEFGH";
    let file = |size| block("GNUSparseFile.1/name", b'0', size, |_| ());
    let old = block("name", b'S', 8, |block| {
        for (place, number) in [(386, 512), (398, 3), (410, 2048), (422, 5), (483, 4096)] {
            header::put_number(&mut block[place..place + 12], number);
        }
    });
    let parts = [
        ("GNU.sparse.offset", "512"),
        ("GNU.sparse.numbytes", "3"),
        ("GNU.sparse.offset", "2048"),
        ("GNU.sparse.numbytes", "5"),
    ];
    let v00 = pax(&[
        &[
            ("path", "name"),
            ("GNU.sparse.size", "4096"),
            ("GNU.sparse.numblocks", "2"),
        ][..],
        &parts,
    ]
    .concat());
    let v01 = pax(&[
        ("GNU.sparse.name", "name"),
        ("GNU.sparse.size", "4096"),
        ("GNU.sparse.map", "512,3,2048,5"),
    ]);
    let v10 = pax(&[
        ("GNU.sparse.name", "name"),
        ("GNU.sparse.realsize", "4096"),
        ("GNU.sparse.major", "1"),
        ("GNU.sparse.minor", "0"),
    ]);
    let map = padded(b"2\n512\n3\n2048\n5\n");
    let archives = [
        archive(&[old, padded(data)]),
        archive(&[v00, file(8), padded(data)]),
        archive(&[v01, file(8), padded(data)]),
        archive(&[v10, file(512 + 8), map, padded(data)]),
    ];
    for (form, bytes) in archives.iter().enumerate() {
        let read = read_all(bytes).unwrap();
        let (member, content) = &read[0];
        assert_eq!(
            (member.path.as_slice(), member.size),
            (&b"name"[..], 4096),
            "form {form}"
        );
        let extent = |offset, bytes| Extent { offset, bytes };
        assert_eq!(member.sparse, Some(vec![extent(512, 3), extent(2048, 5)]));
        assert_eq!(content, data);
    }
}

#[test]
fn long_names_and_global_records_count() {
    let long = "d/".repeat(200) + "file";
    let global = {
        let mut bytes = Vec::new();
        crate::tar::pax::put_record(&mut bytes, b"uname", b"everybody");
        crate::tar::pax::put_record(&mut bytes, b"mtime", b"12.25");
        [block("g", b'g', bytes.len() as u64, |_| ()), padded(&bytes)].concat()
    };
    let name = [
        block("././@LongLink", b'L', long.len() as u64 + 1, |_| ()),
        padded(format!("{long}\0").as_bytes()),
    ]
    .concat();
    let bytes = archive(&[
        global,
        name,
        block("cut", b'0', 0, |_| ()),
        pax(&[("mtime", ""), ("uname", "anna")]),
        block("second", b'0', 0, |block| {
            header::put_number(&mut block[header::TIME], 77);
        }),
    ]);
    let read = read_all(&bytes).unwrap();
    let times: Vec<i64> = read
        .iter()
        .map(|(member, _)| member.metadata.modified.seconds)
        .collect();
    assert_eq!(read[0].0.path, long.as_bytes());
    assert_eq!(
        (
            read[0].0.metadata.user.as_slice(),
            read[1].0.metadata.user.as_slice()
        ),
        (&b"everybody"[..], &b"anna"[..])
    );
    assert_eq!(times, [12, 77]);
}

#[test]
fn attributes_of_libarchive_are_read() {
    let bytes = archive(&[
        pax(&[
            ("LIBARCHIVE.xattr.user.a%20b", "aGVsbG8"),
            ("SCHILY.xattr.user.a%20b", "hello"),
            ("LIBARCHIVE.xattr.user.bad", "!!!"),
        ]),
        block("file", b'0', 0, |_| ()),
    ]);
    let read = read_all(&bytes).unwrap();
    let member = &read[0].0;
    assert_eq!(
        member.metadata.attributes,
        [(b"user.a b".to_vec(), b"hello".to_vec())]
    );
    assert_eq!(member.notes.len(), 1);
}

#[test]
fn hostile_archives_are_refused() {
    let cases = [
        // Sizes that nobody can have.
        (
            archive(&[block("x", b'x', u64::MAX >> 2, |_| ())]),
            "bytes of records",
        ),
        (
            archive(&[block("x", b'L', 1 << 30, |_| ())]),
            "bytes of records",
        ),
        (
            archive(&[
                pax(&[("size", "18446744073709551615")]),
                block("x", b'0', 0, |_| ()),
            ]),
            "beyond 64 bits",
        ),
        (
            archive(&[pax(&[("size", "1e9")]), block("x", b'0', 0, |_| ())]),
            "no number",
        ),
        (
            archive(&[pax(&[("mtime", "soon")]), block("x", b'0', 0, |_| ())]),
            "no time",
        ),
        (
            archive(&[pax(&[("uid", "4294967296")]), block("x", b'0', 0, |_| ())]),
            "32 bits",
        ),
        (
            archive(&[block("x", b'x', 10, |_| ()), padded(b"99 path=a\n")]),
            "records are damaged",
        ),
        (archive(&[pax(&[("path", "x")])]), "no member"),
        (archive(&[block("x", b'M', 0, |_| ())]), "another archive"),
        (archive(&[block("x", b'2', 0, |_| ())]), "link to nothing"),
        // Maps of holes that lie.
        (
            archive(&[
                pax(&[("GNU.sparse.map", "5,1,3,1"), ("GNU.sparse.size", "9")]),
                block("x", b'0', 2, |_| ()),
                padded(b"ab"),
            ]),
            "out of order",
        ),
        (
            archive(&[
                pax(&[("GNU.sparse.map", "5,9"), ("GNU.sparse.size", "9")]),
                block("x", b'0', 9, |_| ()),
                padded(b"ab"),
            ]),
            "beyond its end",
        ),
        (
            archive(&[
                pax(&[("GNU.sparse.map", "5"), ("GNU.sparse.size", "9")]),
                block("x", b'0', 9, |_| ()),
                padded(b"ab"),
            ]),
            "not one",
        ),
        (
            archive(&[
                pax(&[("GNU.sparse.major", "1"), ("GNU.sparse.realsize", "9")]),
                block("x", b'0', 2, |_| ()),
                padded(b"ab"),
            ]),
            "cut off",
        ),
        (
            archive(&[
                pax(&[
                    ("GNU.sparse.major", "1"),
                    ("GNU.sparse.minor", "0"),
                    ("GNU.sparse.realsize", "9223372036854775808"),
                ]),
                block("x", b'0', 512, |_| ()),
                padded(b"0\n"),
            ]),
            "beyond 63 bits",
        ),
    ];
    for (bytes, expected) in cases {
        let error = read_all(&bytes).unwrap_err().to_string();
        assert!(
            error.contains(expected),
            "{error:?} does not say {expected:?}"
        );
    }
}

#[test]
fn compressed_archives_are_told_apart() {
    for (magic, name, _) in COMPRESSED {
        let mut bytes = magic.to_vec();
        bytes.resize(2000, 7);
        match read_all(&bytes) {
            Err(TarError::Compressed { name: found, .. }) => assert_eq!(found, name),
            other => panic!("{name}: {other:?}"),
        }
    }
}
