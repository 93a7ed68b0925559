//! What is captured about an entry.

use std::fs::{self, File, FileTimes, Permissions};
use std::os::unix::fs::{FileExt, MetadataExt, PermissionsExt, symlink};

use rustix::fs::{AtFlags, CWD, Timespec, Timestamps, UTIME_OMIT};

use super::super::{Captured, Capturer, Extent, Extents, OwnerNames};
use super::*;
use crate::tree::{EntryKind, HardLink, Timestamp};

fn capture(directory: &Path, name: &str) -> (Captured, Vec<Problem>) {
    let mut problems = Vec::new();
    let handle = File::open(directory).unwrap();
    let path = directory.join(name);
    let captured = Capturer::default().capture(&handle, OsStr::new(name), &path, &mut problems);
    (captured.unwrap(), problems)
}

fn captured(place: &Place, name: &str) -> Entry {
    let (captured, problems) = capture(place.path(), name);
    assert!(problems.is_empty(), "{}", problems[0]);
    captured.entry
}

#[test]
fn metadata_of_files_and_directories() {
    let place = Place::new();
    let path = place.file("file", "12345");
    fs::set_permissions(&path, Permissions::from_mode(0o6751)).unwrap();
    let entry = captured(&place, "file");
    let metadata = fs::metadata(&path).unwrap();
    assert_eq!((entry.kind, entry.size), (EntryKind::File, 5));
    assert_eq!(entry.metadata.mode, 0o6751);
    assert_eq!(
        (entry.metadata.uid, entry.metadata.gid),
        (metadata.uid(), metadata.gid())
    );
    assert_eq!(entry.metadata.inode, metadata.ino());
    let changed = Timestamp {
        seconds: metadata.ctime(),
        nanoseconds: metadata.ctime_nsec() as u32,
    };
    assert_eq!(entry.metadata.changed, changed);
    assert_eq!(entry.hard_link, None);

    fs::create_dir(place.join("directory")).unwrap();
    fs::set_permissions(place.join("directory"), Permissions::from_mode(0o3710)).unwrap();
    let entry = captured(&place, "directory");
    assert_eq!((entry.kind, entry.size), (EntryKind::Directory, 0));
    assert_eq!(entry.metadata.mode, 0o3710);
    assert_eq!(
        entry.hard_link, None,
        "the links of a directory are not names"
    );
}

#[test]
fn owners_have_names() {
    let place = Place::new();
    place.file("file", "");
    let entry = captured(&place, "file");
    let names = OwnerNames::of_system();
    assert_eq!(entry.metadata.user, names.user(entry.metadata.uid));
    assert_eq!(entry.metadata.group, names.group(entry.metadata.gid));
    if is_root() && names.uid(b"root") == Some(0) {
        assert_eq!(entry.metadata.user, b"root");
        std::os::unix::fs::chown(place.join("file"), Some(3_000_000_001), None).unwrap();
        let entry = captured(&place, "file");
        assert_eq!(
            (entry.metadata.uid, entry.metadata.user),
            (3_000_000_001, Vec::new())
        );
    }
}

#[test]
fn times_before_1970_have_nanoseconds() {
    let place = Place::new();
    for (name, seconds, nanoseconds) in [
        ("a", -1, 999_999_999),
        ("b", -86_400 * 365, 1),
        ("c", 0, 0),
        ("d", 2_000_000_000, 123_456_789),
    ] {
        place.file(name, "");
        let times = Timestamps {
            last_access: Timespec {
                tv_sec: 0,
                tv_nsec: UTIME_OMIT,
            },
            last_modification: Timespec {
                tv_sec: seconds,
                tv_nsec: nanoseconds,
            },
        };
        rustix::fs::utimensat(CWD, place.join(name), &times, AtFlags::empty()).unwrap();
        let modified = captured(&place, name).metadata.modified;
        assert_eq!(
            modified,
            Timestamp {
                seconds,
                nanoseconds: nanoseconds as u32
            }
        );
    }
}

#[test]
fn hard_links_share_an_identity() {
    let place = Place::new();
    let one = place.file("one", "x");
    fs::hard_link(&one, place.join("two")).unwrap();
    symlink("one", place.join("link")).unwrap();
    fs::hard_link(place.join("link"), place.join("link-too")).unwrap();
    let metadata = fs::metadata(&one).unwrap();
    let expected = HardLink {
        device: metadata.dev(),
        inode: metadata.ino(),
    };
    assert_eq!(captured(&place, "one").hard_link, Some(expected));
    assert_eq!(captured(&place, "two").hard_link, Some(expected));
    let link = captured(&place, "link");
    assert!(link.hard_link.is_some());
    assert_eq!(link.hard_link, captured(&place, "link-too").hard_link);
    assert_eq!(
        link.kind,
        EntryKind::Symlink {
            target: b"one".to_vec()
        }
    );
}

#[test]
fn sparse_files_have_their_size_and_extents() {
    let place = Place::new();
    let file = File::create_new(place.join("sparse")).unwrap();
    file.write_all_at(b"end", 10 << 20).unwrap();
    let (captured, _) = capture(place.path(), "sparse");
    assert_eq!(captured.entry.size, (10 << 20) + 3);
    let (size, stored) = (captured.status.size, captured.status.stored_bytes);
    let extents: Vec<Extent> = Extents::new(&file, size, stored).collect();
    if stored < size {
        assert_eq!(
            extents,
            [
                Extent::Hole {
                    offset: 0,
                    bytes: 10 << 20
                },
                Extent::Data {
                    offset: 10 << 20,
                    bytes: 3
                }
            ]
        );
    }
}

#[test]
fn extended_attributes() {
    let place = Place::new();
    let file = place.file("file", "x");
    fs::create_dir(place.join("directory")).unwrap();
    symlink("nowhere", place.join("link")).unwrap();
    if !set_attribute(&file, "user.b", b"value\0with\xffbytes") {
        return;
    }
    // More than fits into the first buffers, of names and of values.
    for number in 0..12 {
        set_attribute(
            &file,
            &format!("user.a-name-that-is-long-enough-{number:02}"),
            b"",
        );
    }
    set_attribute(&file, "user.large", &[7; 1500]);
    let has_acl = set_attribute(&file, "system.posix_acl_access", &acl_of(1234));
    let has_trusted = set_attribute(&file, "trusted.t", b"t");
    let attributes = captured(&place, "file").metadata.attributes;
    let value = |name: &[u8]| {
        attributes
            .iter()
            .find(|(found, _)| found == name)
            .map(|(_, value)| value)
    };
    assert_eq!(value(b"user.b").unwrap(), b"value\0with\xffbytes");
    assert_eq!(value(b"user.large").unwrap(), &[7; 1500]);
    assert_eq!(
        value(b"system.posix_acl_access").cloned(),
        has_acl.then(|| acl_of(1234))
    );
    assert_eq!(value(b"trusted.t").is_some(), has_trusted);
    let of_user = attributes
        .iter()
        .filter(|(name, _)| name.starts_with(b"user."))
        .count();
    assert_eq!(of_user, 14);
    assert!(attributes.is_sorted_by(|left, right| left.0 < right.0));

    // A symlink has its own attributes, never those of what it points to.
    symlink("file", place.join("to-file")).unwrap();
    assert_eq!(captured(&place, "to-file").metadata.attributes, []);
    if set_attribute(&place.join("link"), "trusted.link", b"l") {
        let attributes = captured(&place, "link").metadata.attributes;
        assert_eq!(attributes, [(b"trusted.link".to_vec(), b"l".to_vec())]);
    }
    set_attribute(&place.join("directory"), "user.d", b"d");
    let attributes = captured(&place, "directory").metadata.attributes;
    assert_eq!(attributes, [(b"user.d".to_vec(), b"d".to_vec())]);

    // Whoever only counts gets the same entries, but for the attributes.
    let counting = WalkOptions {
        attributes: false,
        ..WalkOptions::default()
    };
    let given = [place.path().to_owned()];
    let walk = Walk::new(&given, Path::new("/"), counting).unwrap();
    let counted = gather(walk, place.path());
    let found = gather(
        walk_of(&[place.path()], &FilterOptions::default()),
        place.path(),
    );
    assert_eq!(counted.events, found.events);
    let without = |(path, mut entry): (PathBuf, Entry)| {
        entry.metadata.attributes.clear();
        (path, entry)
    };
    let expected: Vec<_> = found.entries.into_iter().map(without).collect();
    assert_eq!(counted.entries, expected);
}

/// More attributes than an entry may hold: those that fit are kept, the others named.
#[test]
fn too_many_attributes() {
    let Ok(place) = tempfile::tempdir_in("/dev/shm") else {
        return;
    };
    let file = place.path().join("file");
    fs::write(&file, "").unwrap();
    for number in 0..10 {
        let taken = rustix::fs::lsetxattr(
            &file,
            format!("user.{number}"),
            &[number; 60_000],
            rustix::fs::XattrFlags::empty(),
        );
        if taken.is_err() {
            eprintln!("skipped: no large attributes here");
            return;
        }
    }
    let (captured, problems) = capture(place.path(), "file");
    assert_eq!(
        captured.entry.metadata.attributes.len() + problems.len(),
        10
    );
    assert!(!problems.is_empty());
    assert!(
        problems[0].to_string().contains("extended attribute user."),
        "{}",
        problems[0]
    );
}

#[test]
fn reading_leaves_no_trace() {
    let place = Place::new();
    let path = place.file("file", "content");
    let long_ago = std::time::UNIX_EPOCH + std::time::Duration::from_secs(1_000_000);
    File::open(&path)
        .unwrap()
        .set_times(FileTimes::new().set_accessed(long_ago))
        .unwrap();
    let found = gather(
        walk_of(&[place.path()], &FilterOptions::default()),
        place.path(),
    );
    let content = std::io::read_to_string(found.files[0].open().unwrap().file).unwrap();
    assert_eq!(content, "content");
    assert_eq!(fs::metadata(&path).unwrap().accessed().unwrap(), long_ago);
}
