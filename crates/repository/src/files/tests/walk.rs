//! Order, merging of paths, what is missing or changes meanwhile, depth.

use std::fs;
use std::os::unix::fs::{FileTypeExt, MetadataExt, symlink};
use std::os::unix::net::UnixListener;

use rustix::fs::{CWD, FileType, Mode};

use super::super::{
    Action, Existing, FilesError, Walk, create_directory, create_file, open_target,
};
use super::*;
use crate::tree::EntryKind;

fn all(given: &[&Path], base: &Path) -> Vec<String> {
    events_of(given, &FilterOptions::default(), base)
}

#[test]
fn events_come_depth_first_in_byte_order() {
    let place = Place::new();
    for file in ["b/2", "b/1", "b.txt", "a", "B", "b/c/x"] {
        place.file(file, "content");
    }
    fs::write(place.join(name(b"\xff\xfe")), b"").unwrap();
    symlink("b", place.join("link")).unwrap();
    fs::create_dir(place.join("empty")).unwrap();
    let expected = [
        "B",
        "a",
        "+b",
        "b/1",
        "b/2",
        "+b/c",
        "b/c/x",
        "-b/c",
        "-b",
        "b.txt",
        "+empty",
        "-empty",
        "=link",
        "\u{fffd}\u{fffd}",
    ];
    assert_eq!(all(&[place.path()], place.path()), expected);

    let found = gather(
        walk_of(&[place.path()], &FilterOptions::default()),
        place.path(),
    );
    let (path, entry) = found.entries.last().unwrap();
    assert_eq!(entry.name, b"\xff\xfe");
    assert_eq!(path.file_name().unwrap().as_bytes(), b"\xff\xfe");
    let sizes: Vec<u64> = found.files.iter().map(|file| file.entry.size).collect();
    assert_eq!(sizes, [7, 7, 7, 7, 7, 7, 0]);
}

#[test]
fn everything_lies_below_the_root() {
    let place = Place::new();
    let file = place.file("d/file", "x");
    let mut walk = walk_of(&[&file], &FilterOptions::default());
    let Some(WalkEvent::EnterDirectory(root)) = walk.next() else {
        panic!("the root comes first");
    };
    assert_eq!(
        (root.path.as_path(), root.entry.name.as_slice()),
        (Path::new("/"), &b""[..])
    );
    assert_eq!(
        root.entry.metadata.mode,
        fs::metadata("/").unwrap().mode() & 0o7777
    );
    let mut depth = 1i64;
    let mut entered = vec![root.path];
    for event in walk {
        match event {
            WalkEvent::EnterDirectory(directory) => {
                let metadata = fs::metadata(&directory.path).unwrap();
                assert_eq!(directory.entry.metadata.inode, metadata.ino());
                assert_eq!(directory.entry.metadata.modified.seconds, metadata.mtime());
                entered.push(directory.path);
                depth += 1;
            }
            WalkEvent::LeaveDirectory { .. } => depth -= 1,
            WalkEvent::File(found) => assert_eq!(found.path, file),
            other => panic!("{other:?}"),
        }
    }
    assert_eq!(depth, 0);
    let above: Vec<&Path> = file.ancestors().skip(1).collect();
    assert!(entered.iter().rev().eq(above.iter()));
}

#[test]
fn paths_are_merged() {
    let place = Place::new();
    for file in ["a/1", "a/b/2", "a/b/3", "c/4", "c/5", "d/6"] {
        place.file(file, "");
    }
    let [a, b, two, five] = ["a", "a/b", "a/b/2", "c/5"].map(|path| place.join(path));
    let whole = ["+a", "a/1", "+a/b", "a/b/2", "a/b/3", "-a/b", "-a"];
    for given in [&[a.as_path(), &b, &two][..], &[&two, &a, &a], &[&b, &a]] {
        assert_eq!(all(given, place.path()), whole);
    }
    let apart = ["+a", "+a/b", "a/b/2", "-a/b", "-a", "+c", "c/5", "-c"];
    assert_eq!(all(&[&five, &two], place.path()), apart);

    let given = [PathBuf::from("./d/../c//5"), PathBuf::from("a/b/../../c/5")];
    let walk = Walk::new(&given, place.path(), WalkOptions::default()).unwrap();
    assert_eq!(walk.paths(), [five]);
    assert_eq!(gather(walk, place.path()).events, ["+c", "c/5", "-c"]);

    // Given paths inside of what is left out are meant all the same.
    let options = FilterOptions {
        patterns: vec!["b".to_owned(), "5".to_owned()],
        ..FilterOptions::default()
    };
    let events = events_of(&[&a, &two, &place.join("c/5")], &options, place.path());
    let expected = [
        "+a", "a/1", "+a/b", "a/b/2", "-a/b", "-a", "+c", "c/5", "-c",
    ];
    assert_eq!(events, expected);
}

#[test]
fn missing_paths_are_problems() {
    let place = Place::new();
    let there = place.file("there", "");
    let given = [place.join("gone"), there];
    let walk = Walk::new(&given, Path::new("/"), WalkOptions::default()).unwrap();
    let found = gather(walk, place.path());
    assert_eq!(found.events, ["!gone", "there"]);
    assert_eq!(found.problems[0].what, Action::FindSource);
    assert!(!found.problems[0].is_notice());
    let alone = Walk::new(&given[..1], Path::new("/"), WalkOptions::default());
    assert!(matches!(alone, Err(FilesError::NoSource { .. })));
}

#[test]
fn symlinks_are_followed_only_on_the_way_to_a_path() {
    let place = Place::new();
    place.file("real/file", "x");
    place.file("real/other", "x");
    symlink("real", place.join("link")).unwrap();
    let link = place.join("link");
    assert_eq!(all(&[&link], place.path()), ["=link"]);
    let through = place.join("link/file");
    assert_eq!(
        all(&[&through], place.path()),
        ["+link", "link/file", "-link"]
    );

    let found = gather(
        walk_of(&[&through], &FilterOptions::default()),
        place.path(),
    );
    let entry = &found.entries[found.entries.len() - 2].1;
    assert_eq!(entry.name, b"link");
    assert_eq!(entry.kind, EntryKind::Directory);
    assert!(found.files[0].open().is_ok());

    // Both the symlink and something behind it are meant: the directory wins, and it is said.
    let found = gather(
        walk_of(&[place.path(), &through], &FilterOptions::default()),
        place.path(),
    );
    let expected = [
        "!link",
        "+link",
        "link/file",
        "-link",
        "+real",
        "real/file",
        "real/other",
        "-real",
    ];
    assert_eq!(found.events, expected);
    assert!(matches!(
        found.problems[0].error,
        FilesError::SymlinkTakenAsDirectory
    ));
}

#[test]
fn types_of_entries() {
    let place = Place::new();
    let _listener = UnixListener::bind(place.join("socket")).unwrap();
    rustix::fs::mknodat(CWD, place.join("fifo"), FileType::Fifo, Mode::RUSR, 0).unwrap();
    symlink("no/such\n", place.join("link")).unwrap();
    let has_device = is_root() && {
        let device = rustix::fs::makedev(1, 3);
        let made = rustix::fs::mknodat(
            CWD,
            place.join("null"),
            FileType::CharacterDevice,
            Mode::RUSR,
            device,
        );
        made.is_ok()
    };
    let found = gather(
        walk_of(&[place.path()], &FilterOptions::default()),
        place.path(),
    );
    let mut expected = vec!["=fifo", "=link", "=null", "!socket"];
    expected.retain(|event| has_device || *event != "=null");
    assert_eq!(found.events, expected);
    assert!(matches!(found.problems[0].error, FilesError::Socket));
    assert!(found.problems[0].is_notice());
    assert!(
        place
            .join("socket")
            .metadata()
            .unwrap()
            .file_type()
            .is_socket()
    );

    let kinds: Vec<&EntryKind> = found.entries.iter().map(|(_, entry)| &entry.kind).collect();
    assert!(kinds.contains(&&EntryKind::Fifo));
    assert!(kinds.contains(&&EntryKind::Symlink {
        target: b"no/such\n".to_vec()
    }));
    if has_device {
        assert!(kinds.contains(&&EntryKind::CharacterDevice { major: 1, minor: 3 }));
    }
    for (_, entry) in found
        .entries
        .iter()
        .filter(|(_, entry)| !entry.name.is_empty())
    {
        assert_eq!(entry.check(), Ok(()));
    }
}

/// Takes events up to and with the entering of `path`, so that its names are read.
fn walk_into(walk: &mut Walk, path: &Path) {
    let is_it = |event: WalkEvent| match event {
        WalkEvent::EnterDirectory(directory) => directory.path == path,
        _ => false,
    };
    assert!(walk.any(is_it));
}

#[test]
fn what_vanishes_or_is_replaced_meanwhile() {
    let place = Place::new();
    for file in ["d/1", "d/2", "d/3", "d/4", "d/sub/x"] {
        place.file(file, "content");
    }
    let mut walk = walk_of(&[place.path()], &FilterOptions::default());
    walk_into(&mut walk, &place.join("d"));
    fs::remove_file(place.join("d/1")).unwrap();
    let found = gather(walk, place.path());
    assert_eq!(
        found.events,
        [
            "!d/1", "d/2", "d/3", "d/4", "+d/sub", "d/sub/x", "-d/sub", "-d"
        ]
    );
    assert!(matches!(found.problems[0].error, FilesError::Vanished));
    assert_eq!(found.problems[0].what, Action::Inspect);

    // Between the walk and the opening.
    fs::remove_file(place.join("d/2")).unwrap();
    fs::remove_file(place.join("d/3")).unwrap();
    symlink("4", place.join("d/3")).unwrap();
    fs::rename(place.join("d/sub/x"), place.join("d/x")).unwrap();
    place.file("d/sub/x", "other");
    let errors: Vec<FilesError> = found
        .files
        .iter()
        .filter_map(|file| file.open().err())
        .map(|problem| problem.error)
        .collect();
    assert!(
        matches!(
            errors[..],
            [
                FilesError::Vanished,
                FilesError::Replaced,
                FilesError::Replaced
            ]
        ),
        "{errors:?}"
    );
    let four = found
        .files
        .iter()
        .find(|file| file.entry.name == b"4")
        .unwrap();
    fs::write(place.join("d/4"), "longer content").unwrap();
    let open = four.open().unwrap();
    assert_eq!((open.status.size, four.entry.size), (14, 7));
    // A FIFO in its place must not block.
    fs::remove_file(place.join("d/4")).unwrap();
    rustix::fs::mknodat(CWD, place.join("d/4"), FileType::Fifo, Mode::RUSR, 0).unwrap();
    assert!(matches!(
        four.open().unwrap_err().error,
        FilesError::Replaced
    ));
}

#[test]
fn a_directory_that_is_swapped_leads_nowhere_else() {
    let place = Place::new();
    place.file("outside/secret", "secret");
    for file in ["d/1", "d/2", "d/secret", "e"] {
        place.file(file, "");
    }
    let given = vec![place.join("d"), place.join("e")];
    let options = WalkOptions {
        open_directories_max: 1,
        ..WalkOptions::default()
    };
    // Swapped after it was listed, its handle closed meanwhile.
    let mut walk = Walk::new(&given, Path::new("/"), options.clone()).unwrap();
    walk_into(&mut walk, &place.join("d"));
    let Some(WalkEvent::File(first)) = walk.next() else {
        panic!("a file comes next");
    };
    let other = first
        .directory
        .child(name(b".."), first.directory.identity());
    assert!(other.open().is_err(), "another directory stands there");
    let above = walk_of(&[place.path()], &FilterOptions::default());
    drop(above);
    fs::rename(place.join("d"), place.join("moved")).unwrap();
    symlink("outside", place.join("d")).unwrap();
    let found = gather(walk, place.path());
    for file in found
        .files
        .iter()
        .filter(|file| file.path.starts_with(place.join("d")))
    {
        // The open handle still means the directory that was walked.
        assert!(fs::read(place.join("moved").join(file.path.file_name().unwrap())).is_ok());
    }
    fs::remove_file(place.join("d")).unwrap();
    fs::rename(place.join("moved"), place.join("d")).unwrap();

    // Swapped before it was entered.
    let mut walk = Walk::new(&given, Path::new("/"), options).unwrap();
    walk_into(&mut walk, place.path());
    fs::rename(place.join("d"), place.join("moved")).unwrap();
    symlink("outside", place.join("d")).unwrap();
    assert_eq!(gather(walk, place.path()).events, ["=d", "e"]);
}

/// 2,000 directories below each other, with a limit of 40 open files: names after the deep one
/// make the walk come back to directories that were closed meanwhile.
#[test]
fn deep_trees_with_few_open_files() {
    const LEVELS: usize = 2000;
    if !in_child(
        concat!(module_path!(), "::deep_trees_with_few_open_files"),
        &["prlimit", "--nofile=40"],
    ) {
        return;
    }
    let place = Place::in_memory();
    let top = place.join("deep");
    let mut directory = open_target(&top, 8).unwrap();
    let mut handles = Vec::new();
    for level in 0..LEVELS {
        if level % 100 == 0 {
            create_file(&*directory.open().unwrap(), b"z-after", Existing::Keep).unwrap();
        }
        let (child, is_new) = create_directory(&directory, b"directory", Existing::Keep).unwrap();
        assert!(is_new);
        handles.push(directory);
        directory = child;
    }
    create_file(&*directory.open().unwrap(), b"bottom", Existing::Keep).unwrap();
    assert_eq!(directory.path().components().count(), LEVELS);
    for handle in handles.iter().step_by(501) {
        handle.open().unwrap();
    }
    drop(handles);

    let options = WalkOptions {
        open_directories_max: 8,
        ..WalkOptions::default()
    };
    let walk = Walk::new(&[top], Path::new("/"), options).unwrap();
    let found = gather(walk, place.path());
    assert!(found.problems.is_empty(), "{}", found.problems[0]);
    assert_eq!(found.files.len(), LEVELS / 100 + 1);
    assert_eq!(found.events.len(), 2 * (LEVELS + 1) + found.files.len());
    // All are opened now, the deepest first: every handle on the way was closed.
    for file in &found.files {
        file.open().unwrap();
    }
}

#[test]
fn a_walk_runs_on_a_thread_of_its_own() {
    let place = Place::new();
    for number in 0..500 {
        place.file(format!("d{}/f{number}", number % 7), number.to_string());
    }
    let walk = walk_of(&[place.path()], &FilterOptions::default());
    let (sender, receiver) = std::sync::mpsc::sync_channel(16);
    let walker = std::thread::spawn(move || walk.for_each(|event| sender.send(event).unwrap()));
    let mut bytes = 0;
    for event in receiver {
        if let WalkEvent::File(file) = event {
            let open = file.open().unwrap();
            bytes += std::io::read_to_string(open.file).unwrap().len();
        }
    }
    walker.join().unwrap();
    assert_eq!(
        bytes,
        (0..500)
            .map(|number: i32| number.to_string().len())
            .sum::<usize>()
    );
}

#[test]
fn one_file_system() {
    if !is_root()
        || !in_child(
            concat!(module_path!(), "::one_file_system"),
            &["unshare", "--mount", "--propagation", "private"],
        )
    {
        return;
    }
    let place = Place::new();
    place.file("a/file", "");
    for directory in ["a/mounted", "b"] {
        fs::create_dir(place.join(directory)).unwrap();
    }
    let mounted = place.join("a/mounted");
    let status = Command::new("mount")
        .args(["-t", "tmpfs", "none"])
        .arg(&mounted)
        .status();
    if !status.unwrap().success() {
        eprintln!("skipped: no mount");
        return;
    }
    place.file("a/mounted/inside", "");
    place.file("a/mounted/deep/x", "");
    let options = FilterOptions {
        one_file_system: true,
        ..FilterOptions::default()
    };
    let a = place.join("a");
    let stays = ["+a", "a/file", "+a/mounted", "-a/mounted", "-a"];
    assert_eq!(events_of(&[&a], &options, place.path()), stays);
    assert_eq!(all(&[&a], place.path()).len(), stays.len() + 4);
    // Another file system is entered where it was given.
    let inside = [
        "+a",
        "+a/mounted",
        "+a/mounted/deep",
        "a/mounted/deep/x",
        "-a/mounted/deep",
    ];
    let events = events_of(&[&mounted], &options, place.path());
    assert_eq!(events[..5], inside);
    let events = events_of(&[&a, &place.join("a/mounted/deep")], &options, place.path());
    assert_eq!(
        events,
        [
            "+a",
            "a/file",
            "+a/mounted",
            "+a/mounted/deep",
            "a/mounted/deep/x",
            "-a/mounted/deep",
            "-a/mounted",
            "-a"
        ]
    );
    let _ = Command::new("umount").arg(&mounted).status();
}
