//! Everything of a file goes into a snapshot and comes back: types, modes, owners, times, links,
//! holes, devices, extended attributes, names of any bytes. What can't be saved is named; what
//! stands in the target is not harmed unless asked.
//!
//! Some parts need root (owners, devices), some need anybody else (files that may not be read):
//! those start this test again below `setpriv`, and are skipped where it can't run.

mod support;

use std::ffi::OsStr;
use std::fs::{self, File};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{FileExt, FileTypeExt, MetadataExt, symlink};
use std::os::unix::net::UnixListener;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use engine::object::{MemoryStore, ObjectKey, ObjectKind, ObjectStore};
use repository::files::FilesError;
use repository::{Overwrite, Progress, RestoreOptions, RunSettings};
use rustix::fs::FileType;
use support::files::{
    Place, acl_of, attribute, is_root, is_unprivileged, make_special, set_attribute, set_mode,
    set_modified,
};
use support::sources::{differences, picture};
use support::{backup, backup_options, check_clean, recorder, settings};

#[test]
fn modes_and_times() {
    let place = Place::new();
    for mode in [0o644, 0o600, 0o4755, 0o2711, 0o1700, 0o444, 0o000, 0o7777] {
        let path = place.join(format!("file-{mode:o}"));
        fs::write(&path, "content").expect("written");
        if is_root() || mode & 0o400 != 0 {
            set_mode(&path, mode);
        }
    }
    for mode in [0o755, 0o555, 0o1777, 0o2770, 0o500] {
        let path = place.join(format!("directory-{mode:o}"));
        fs::create_dir(&path).expect("made");
        fs::write(path.join("inside"), "below").expect("written");
        fs::create_dir(path.join("deeper")).expect("made");
        set_mode(&path, mode);
    }
    let times = [
        ("now", 1_700_000_000, 123_456_789),
        ("epoch", 0, 0),
        ("first nanosecond", 0, 1),
        ("before", -1, 999_999_999),
        ("long before", -1_000_000_000, 7),
        ("after 2038", 4_000_000_000, 5),
    ];
    for (name, seconds, nanoseconds) in times {
        fs::write(place.join(name), name).expect("written");
        fs::create_dir(place.join(format!("{name} directory"))).expect("made");
        symlink("nowhere", place.join(format!("{name} link"))).expect("linked");
        for path in [
            name.to_owned(),
            format!("{name} directory"),
            format!("{name} link"),
        ] {
            set_modified(&place.join(path), seconds, nanoseconds);
        }
    }
    place.there_and_back();
    let restored = fs::metadata(place.target().join("before")).expect("restored");
    assert_eq!((restored.mtime(), restored.mtime_nsec()), (-1, 999_999_999));
}

#[test]
fn owners() {
    if !is_root() {
        return eprintln!("skipped: owners need root");
    }
    let place = Place::new();
    let entries = [
        ("file", 1234, 4321),
        ("root's", 0, 0),
        ("nobody's", 65534, 65534),
    ];
    for (name, user, group) in entries {
        let path = place.join(name);
        fs::write(&path, name).expect("written");
        std::os::unix::fs::chown(&path, Some(user), Some(group)).expect("given");
        // Giving a file away drops these: they come after.
        set_mode(&path, 0o6755);
    }
    symlink("file", place.join("link")).expect("linked");
    std::os::unix::fs::lchown(place.join("link"), Some(77), Some(88)).expect("given");
    fs::create_dir(place.join("directory")).expect("made");
    std::os::unix::fs::chown(place.join("directory"), Some(5), Some(6)).expect("given");
    place.there_and_back();
    let link = fs::symlink_metadata(place.target().join("link")).expect("restored");
    assert_eq!((link.uid(), link.gid()), (77, 88));
}

#[test]
fn names_of_any_bytes() {
    let place = Place::new();
    let long = "x".repeat(255);
    let names: [&[u8]; 10] = [
        b"plain",
        b"two\nlines",
        b"back\\slash",
        b"\xff\xfe no UTF-8 \x80",
        b" space and \t tab ",
        b"-dash",
        b"*?[glob]",
        b"\x01\x7f control",
        "\u{0}umlaut \u{e4}".trim_start_matches('\0').as_bytes(),
        long.as_bytes(),
    ];
    for name in names {
        fs::write(place.join(OsStr::from_bytes(name)), name).expect("written");
        let mut directory = b"d ".to_vec();
        directory.extend_from_slice(&name[..name.len().min(200)]);
        let directory = place.join(OsStr::from_bytes(&directory));
        fs::create_dir(&directory).expect("made");
        fs::write(directory.join(OsStr::from_bytes(name)), "below").expect("written");
        symlink(OsStr::from_bytes(name), directory.join("link")).expect("linked");
    }
    place.there_and_back();
    let report = place.back_up();
    assert_eq!(
        report.snapshot.summary.files_unmodified, 20,
        "names are found again"
    );
    let path = place.join(OsStr::from_bytes(names[3]));
    let mut out = Vec::new();
    let dumped = place.repository.dump(
        &report.snapshot,
        path.as_os_str().as_bytes(),
        &mut out,
        &Progress::default(),
    );
    assert_eq!(dumped.expect("dumped").bytes, out.len() as u64);
    assert_eq!(out, names[3]);
}

#[test]
fn links() {
    let place = Place::new();
    fs::write(place.join("file"), "content".repeat(1000)).expect("written");
    fs::create_dir(place.join("directory")).expect("made");
    fs::hard_link(place.join("file"), place.join("directory/other name")).expect("linked");
    fs::hard_link(place.join("file"), place.join("third name")).expect("linked");
    fs::write(place.join("empty"), "").expect("written");
    fs::hard_link(place.join("empty"), place.join("empty too")).expect("linked");
    for (target, name) in [
        ("file", "good"),
        ("nowhere/at all", "dangling"),
        ("directory", "to a directory"),
        ("/etc/passwd", "absolute"),
        ("..", "up"),
    ] {
        symlink(target, place.join(name)).expect("linked");
    }
    fs::hard_link(place.join("dangling"), place.join("hard to dangling")).expect("linked");
    make_special(&place.join("fifo"), FileType::Fifo, 0);
    fs::hard_link(place.join("fifo"), place.join("fifo too")).expect("linked");
    place.there_and_back();
    let target = place.target();
    let inode = |name: &str| {
        fs::symlink_metadata(target.join(name))
            .expect("restored")
            .ino()
    };
    assert_eq!(inode("file"), inode("directory/other name"));
    assert_eq!(inode("file"), inode("third name"));
    assert_eq!(inode("empty"), inode("empty too"));
    assert_eq!(inode("dangling"), inode("hard to dangling"));
    assert_eq!(inode("fifo"), inode("fifo too"));
    assert_ne!(inode("file"), inode("empty"));
    let summary = place.back_up().snapshot.summary;
    assert_eq!((summary.bytes_read, summary.files_unmodified), (0, 5));
}

#[test]
fn special_files_and_sockets() {
    let place = Place::new();
    make_special(&place.join("fifo"), FileType::Fifo, 0);
    set_mode(&place.join("fifo"), 0o4620);
    if is_root() {
        let null = rustix::fs::makedev(1, 3);
        make_special(&place.join("null"), FileType::CharacterDevice, null);
        let large = rustix::fs::makedev(259, 1_048_575);
        make_special(&place.join("block"), FileType::BlockDevice, large);
    }
    let _listener = UnixListener::bind(place.join("socket")).expect("a socket");
    let (progress, problems) = recorder();
    let report = place
        .repository
        .backup(&[place.source()], &backup_options(), &progress)
        .expect("backed up");
    assert_eq!(report.errors, 0);
    assert!(report.snapshot.errors.is_empty());
    let problems = problems.lock().expect("no panic").clone();
    let [socket] = &problems[..] else {
        panic!("{problems:?}")
    };
    assert!(!socket.is_error);
    assert_eq!(socket.path, place.join("socket").as_os_str().as_bytes());
    let (restored, problems) = place.restore(&report.snapshot, Overwrite::Never);
    assert_eq!((restored.failed, problems), (0, Vec::new()));
    fs::remove_file(place.join("socket")).expect("removed");
    let (mut before, mut after) = (picture(&place.source()), picture(&place.target()));
    for picture in [&mut before, &mut after] {
        assert!(picture.len() >= if is_root() { 3 } else { 1 });
    }
    assert_eq!(differences(&before, &after), []);
    if is_root() {
        let block = fs::symlink_metadata(place.target().join("block")).expect("restored");
        assert!(block.file_type().is_block_device());
        assert_eq!(rustix::fs::major(block.rdev()), 259);
        assert_eq!(rustix::fs::minor(block.rdev()), 1_048_575);
    }
}

#[test]
fn holes_stay_holes() {
    let place = Place::new();
    let make = |name: &str, size: u64, parts: &[(u64, usize)]| {
        let file = File::create_new(place.join(name)).expect("made");
        for &(offset, bytes) in parts {
            let data = testkit::generate::random_bytes(offset, bytes);
            file.write_all_at(&data, offset).expect("written");
        }
        file.set_len(size).expect("a size");
        file.sync_all().expect("synced");
    };
    make("only a hole", 16 << 20, &[]);
    make("hole first", (16 << 20) + 5000, &[(16 << 20, 5000)]);
    make("hole last", 16 << 20, &[(0, 5000)]);
    let islands = [(1 << 20, 4096), (40 << 20, 100_000), ((64 << 20) - 1, 1)];
    make("islands", 64 << 20, &islands);
    make("none", 200_000, &[(0, 200_000)]);
    let blocks = |path: PathBuf| fs::metadata(path).expect("metadata").blocks();
    let names = ["only a hole", "hole first", "hole last", "islands"];
    if names.iter().any(|name| blocks(place.join(name)) > 2048) {
        return eprintln!("skipped: no holes on this file system");
    }
    let report = place.back_up();
    assert!(
        report.snapshot.summary.bytes_read < 1 << 20,
        "holes are not read"
    );
    let (restored, problems) = place.restore(&report.snapshot, Overwrite::Never);
    assert_eq!((restored.failed, problems), (0, Vec::new()));
    for name in names {
        let restored = blocks(place.target().join(name));
        assert!(
            restored <= blocks(place.join(name)) + 16,
            "{name} takes {restored} blocks"
        );
    }
    let (before, after) = (picture(&place.source()), picture(&place.target()));
    assert_eq!(differences(&before, &after), []);
    check_clean(&place.repository).expect("clean");
}

#[test]
fn extended_attributes_and_acls() {
    let place = Place::new();
    for name in ["file", "other"] {
        fs::write(place.join(name), name).expect("written");
    }
    fs::create_dir(place.join("directory")).expect("made");
    symlink("file", place.join("link")).expect("linked");
    let long = vec![0xab; 2000];
    let user = [
        ("file", "user.text", b"value".as_slice()),
        ("file", "user.empty", b""),
        ("file", "user.bytes", b"\x00\xff\n"),
        ("file", "user.long", &long),
        ("directory", "user.on a directory", b"yes"),
    ];
    let acl = acl_of(1234);
    let others = [
        ("file", "system.posix_acl_access", acl.as_slice()),
        ("directory", "system.posix_acl_default", &acl),
        ("file", "trusted.secret", b"root's"),
        ("link", "trusted.link", b"of the link itself"),
    ];
    let mut set = Vec::new();
    for (name, attribute_name, value) in user.into_iter().chain(others) {
        if set_attribute(&place.join(name), attribute_name, value) {
            set.push((name, attribute_name));
        }
    }
    if set.is_empty() {
        return;
    }
    place.there_and_back();
    for (name, attribute_name) in set {
        assert_eq!(
            attribute(&place.target().join(name), attribute_name),
            attribute(&place.join(name), attribute_name),
            "{name}: {attribute_name}"
        );
    }
    // What nobody set is not there.
    assert_eq!(attribute(&place.target().join("other"), "user.text"), None);
}

#[test]
fn what_vanishes_is_recorded() {
    // One reader, and files that fill the queue: the walk waits for the handler, which removes
    // files that the walk has found and nobody has opened.
    let place = Place::with(RunSettings {
        memory_bytes: 48 << 20,
        ..settings()
    });
    let _listener = UnixListener::bind(place.join("a socket")).expect("a socket");
    fs::write(
        place.join("b large"),
        testkit::generate::random_bytes(1, 5 << 20),
    )
    .expect("written");
    for name in ["c vanishes", "d linked"] {
        fs::write(place.join(name), name).expect("written");
    }
    fs::hard_link(place.join("d linked"), place.join("e linked too")).expect("linked");
    fs::create_dir(place.join("f directory")).expect("made");
    fs::write(place.join("g stays"), "stays").expect("written");
    let source = place.source();
    let progress = Progress::with_handler(move |problem| {
        if problem.path.ends_with(b"socket") {
            std::thread::sleep(Duration::from_millis(300));
            fs::remove_file(source.join("c vanishes")).expect("removed");
            fs::remove_file(source.join("d linked")).expect("removed");
        }
    });
    let report = place
        .repository
        .backup(&[place.source()], &backup_options(), &progress)
        .expect("backed up");
    let errors = &report.snapshot.errors;
    assert_eq!((report.errors, errors.count), (3, 3), "{errors:?}");
    let mut named: Vec<_> = errors
        .listed
        .iter()
        .map(|error| error.path.clone())
        .collect();
    named.sort();
    let expected = ["c vanishes", "d linked", "e linked too"];
    let expected = expected.map(|name| place.join(name).into_os_string().into_encoded_bytes());
    assert_eq!(named, expected, "{errors:?}");
    let (restored, problems) = place.restore(&report.snapshot, Overwrite::Never);
    assert_eq!((restored.failed, problems), (0, Vec::new()));
    let names: Vec<_> = picture(&place.target()).into_keys().collect();
    assert_eq!(
        names,
        ["b large", "f directory", "g stays"].map(PathBuf::from)
    );
    check_clean(&place.repository).expect("clean");
    // The name that is left is saved by the next backup.
    let next = place.back_up();
    let (restored, _) = place.restore(&next.snapshot, Overwrite::Always);
    assert_eq!(restored.failed, 0);
    assert_eq!(
        fs::read(place.target().join("e linked too")).expect("read"),
        b"d linked"
    );
}

#[test]
fn a_directory_that_is_replaced_is_recorded() {
    let place = Place::new();
    let _listener = UnixListener::bind(place.join("a socket")).expect("a socket");
    fs::create_dir(place.join("b directory")).expect("made");
    for number in 0..12 {
        let content = testkit::generate::random_bytes(number, 5 << 20);
        fs::write(place.join(format!("b directory/{number:02}")), content).expect("written");
    }
    let outside = place.place.path().join("outside");
    fs::create_dir(&outside).expect("made");
    fs::write(outside.join("05"), "secret").expect("written");
    let (source, moved) = (place.source(), place.place.path().join("moved"));
    let progress = Progress::with_handler(move |problem| {
        if problem.path.ends_with(b"socket") {
            std::thread::sleep(Duration::from_millis(100));
            fs::rename(source.join("b directory"), &moved).expect("moved");
            symlink(&outside, source.join("b directory")).expect("linked");
        }
    });
    let report = place
        .repository
        .backup(&[place.source()], &backup_options(), &progress)
        .expect("backed up");
    let (restored, _) = place.restore(&report.snapshot, Overwrite::Never);
    assert_eq!(restored.failed, 0);
    // Directories stay open while they are walked: all of it, or what was there, never the other.
    for number in 0..12 {
        let path = place.target().join(format!("b directory/{number:02}"));
        if let Ok(content) = fs::read(path) {
            assert_eq!(content.len(), 5 << 20, "{number}");
        } else {
            assert!(report.errors > 0, "{number} is missing in silence");
        }
    }
    check_clean(&place.repository).expect("clean");
}

#[test]
fn what_may_not_be_read_is_recorded() {
    if !is_unprivileged("what_may_not_be_read_is_recorded") {
        return;
    }
    let place = Place::new();
    for name in ["good", "secret", "linked"] {
        fs::write(place.join(name), name).expect("written");
    }
    fs::hard_link(place.join("linked"), place.join("linked too")).expect("linked");
    fs::create_dir(place.join("closed")).expect("made");
    fs::write(place.join("closed/inside"), "inside").expect("written");
    fs::create_dir(place.join("read only")).expect("made");
    fs::write(place.join("read only/inside"), "inside").expect("written");
    for name in ["secret", "linked", "closed"] {
        set_mode(&place.join(name), 0o000);
    }
    set_mode(&place.join("read only"), 0o555);
    let report = backup(&place.repository, &place.source()).expect("backed up");
    let errors = &report.snapshot.errors;
    let mut named: Vec<_> = errors
        .listed
        .iter()
        .map(|error| error.path.clone())
        .collect();
    named.sort();
    let expected = ["closed", "linked", "linked too", "secret"];
    let expected = expected.map(|name| place.join(name).into_os_string().into_encoded_bytes());
    assert_eq!(named, expected, "{errors:?}");
    assert_eq!(report.errors, 4);
    // It is said again each time, not once.
    let again = backup(&place.repository, &place.source()).expect("backed up");
    assert_eq!(again.errors, 4);
    let (restored, problems) = place.restore(&report.snapshot, Overwrite::Never);
    assert_eq!((restored.failed, problems), (0, Vec::new()));
    let target = place.target();
    assert_eq!(fs::read(target.join("good")).expect("read"), b"good");
    assert_eq!(
        fs::read(target.join("read only/inside")).expect("read"),
        b"inside"
    );
    let mode = |name: &str| fs::metadata(target.join(name)).expect("there").mode() & 0o7777;
    assert_eq!((mode("read only"), mode("closed")), (0o555, 0o000));
    for name in ["secret", "linked", "linked too"] {
        assert!(!target.join(name).exists(), "{name}");
    }
    check_clean(&place.repository).expect("clean");
    set_mode(&target.join("closed"), 0o700);
}

#[test]
fn what_is_in_the_target_stays_unless_asked() {
    let place = Place::new();
    fs::create_dir_all(place.join("directory/deeper")).expect("made");
    for name in ["a", "b", "directory/c", "directory/deeper/d"] {
        fs::write(place.join(name), format!("backed up {name}")).expect("written");
    }
    symlink("a", place.join("link")).expect("linked");
    let report = place.back_up();
    let target = place.target();
    fs::create_dir_all(target.join("directory")).expect("made");
    fs::write(target.join("a"), "mine").expect("written");
    fs::write(target.join("directory/c"), "mine").expect("written");
    fs::write(target.join("foreign"), "mine").expect("written");
    fs::write(target.join("link"), "mine").expect("written");
    let (restored, problems) = place.restore(&report.snapshot, Overwrite::Never);
    assert_eq!((restored.files, restored.failed), (2, 3), "{problems:?}");
    let exists = FilesError::Exists.to_string();
    assert!(
        problems
            .iter()
            .all(|problem| problem.message.contains(&exists)),
        "{problems:?}"
    );
    for name in ["a", "directory/c", "foreign", "link"] {
        assert_eq!(
            fs::read(target.join(name)).expect("read"),
            b"mine",
            "{name}"
        );
    }
    assert_eq!(fs::read(target.join("b")).expect("read"), b"backed up b");
    let (restored, problems) = place.restore(&report.snapshot, Overwrite::Always);
    assert_eq!((restored.files, restored.failed), (4, 0), "{problems:?}");
    let (before, mut after) = (picture(&place.source()), picture(&target));
    assert!(
        after.remove(Path::new("foreign")).is_some(),
        "what is not in the way stays"
    );
    assert_eq!(differences(&before, &after), []);
    // A directory is not replaced by a file.
    fs::remove_file(target.join("a")).expect("removed");
    fs::create_dir(target.join("a")).expect("made");
    fs::write(target.join("a/mine"), "mine").expect("written");
    let (restored, problems) = place.restore(&report.snapshot, Overwrite::Always);
    assert_eq!((restored.files, restored.failed), (3, 1), "{problems:?}");
    assert_eq!(fs::read(target.join("a/mine")).expect("read"), b"mine");
    let names = picture(&target).into_keys();
    let left: Vec<_> = names
        .filter(|name| name.to_string_lossy().contains(".onefold"))
        .collect();
    assert_eq!(left, Vec::<PathBuf>::new());
}

#[test]
fn symlinks_in_the_target_lead_nowhere() {
    let place = Place::new();
    fs::create_dir(place.join("directory")).expect("made");
    fs::write(place.join("directory/file"), "backed up").expect("written");
    fs::write(place.join("file"), "backed up").expect("written");
    let report = place.back_up();
    let outside = place.place.path().join("outside");
    fs::create_dir(&outside).expect("made");
    fs::write(outside.join("file"), "mine").expect("written");
    let plant = || {
        let _ = fs::remove_dir_all(place.target());
        fs::create_dir(place.target()).expect("made");
        symlink(&outside, place.target().join("directory")).expect("linked");
        symlink(outside.join("file"), place.target().join("file")).expect("linked");
    };
    plant();
    let (restored, _) = place.restore(&report.snapshot, Overwrite::Never);
    assert_eq!(restored.files, 0);
    assert_eq!(restored.failed, 3, "the directory, its file, the file");
    assert!(place.target().join("file").is_symlink());
    plant();
    let (restored, problems) = place.restore(&report.snapshot, Overwrite::Always);
    assert_eq!((restored.files, restored.failed), (2, 0), "{problems:?}");
    assert_eq!(
        differences(&picture(&place.source()), &picture(&place.target())),
        []
    );
    assert_eq!(fs::read(outside.join("file")).expect("read"), b"mine");
    assert_eq!(fs::read_dir(&outside).expect("listed").count(), 1);
}

#[test]
fn a_file_that_cannot_be_restored_does_not_cost_the_one_that_is_there() {
    let store = Arc::new(MemoryStore::new());
    let place = tempfile::tempdir().expect("a directory");
    let source = place.path().join("source");
    fs::create_dir(&source).expect("made");
    for number in 0..8 {
        let content = testkit::generate::random_bytes(number, 40_000);
        fs::write(source.join(number.to_string()), content).expect("written");
    }
    let repository = support::create(Arc::clone(&store) as Arc<dyn ObjectStore>, false);
    let report = backup(&repository, &source).expect("backed up");
    let before = picture(&source);
    // The middle of one container: some groups of it are lost.
    let mut containers = store
        .keys()
        .into_iter()
        .filter(|key| key.kind == ObjectKind::Container);
    let data = containers.find(|key| store.object(key).is_some_and(|bytes| bytes.len() > 50_000));
    let data: ObjectKey = data.expect("a container of data");
    store.corrupt(&data, |bytes| bytes[25_000..30_000].fill(0));
    let (progress, problems) = recorder();
    let options = RestoreOptions {
        overwrite: Overwrite::Always,
        ..RestoreOptions::default()
    };
    let subpath = Some(source.as_os_str().as_bytes());
    let restored = repository
        .restore(&report.snapshot, subpath, &source, &options, &progress)
        .expect("restored");
    assert!((1..8).contains(&restored.failed), "{restored:?}");
    assert_eq!(restored.files + restored.failed, 8);
    assert_eq!(restored.bytes, restored.files * 40_000);
    assert_eq!(
        problems.lock().expect("no panic").len() as u64,
        restored.failed
    );
    assert_eq!(differences(&before, &picture(&source)), []);
}
