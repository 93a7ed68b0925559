//! Snapshots as tars, and tars as snapshots: with GNU tar and bsdtar on the other side.
//!
//! Parts that need root (owners, devices) are left out for anybody else; a test whose program is not installed says so and
//! passes.

#[path = "archives/tree.rs"]
mod tree;

mod support;

use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;

use engine::object::MemoryStore;
use repository::snapshot::Snapshot;
use repository::tar::TarError;
use repository::{BackupError, BackupReport, ImportOptions, Overwrite, Progress, Repository};
use support::files::Place;
use support::sources::{differences, picture};
use support::{backup_options, check_clean, create_options, recorder, settings};
use testkit::generate::random_bytes;
use tree::{fill, whole_picture};

fn filled() -> Place {
    let place = Place::new();
    fill(&place.source());
    place
}

fn export(place: &Place, snapshot: &Snapshot, subpath: Option<&[u8]>) -> Vec<u8> {
    let mut out = Vec::new();
    let report = place
        .repository
        .export(snapshot, subpath, &mut out, &Progress::default());
    assert_eq!(report.expect("exported").archive_bytes, out.len() as u64);
    out
}

/// What is below the source, as a tar.
fn exported(place: &Place) -> Vec<u8> {
    let report = place.back_up();
    let source = place.source();
    export(place, &report.snapshot, Some(source.as_os_str().as_bytes()))
}

fn import(
    repository: &Repository,
    mut archive: &[u8],
    path: &[u8],
) -> Result<BackupReport, BackupError> {
    let options = ImportOptions {
        backup: backup_options(),
        time: None,
        path: path.to_vec(),
    };
    repository.import_tar(&mut archive, &options, &Progress::default())
}

/// Another repository, with keys of its own.
fn other() -> Repository {
    let store = Arc::new(MemoryStore::new());
    Repository::create(store, None, &create_options(), settings()).expect("created")
}

/// Restores all of a snapshot, which is said to be below `path`, into the place's target.
fn restore_into(repository: &Repository, snapshot: &Snapshot, path: &Path, target: &Path) {
    let (progress, problems) = recorder();
    let options = repository::RestoreOptions {
        overwrite: Overwrite::Never,
        numeric_ids: true,
        ..repository::RestoreOptions::default()
    };
    let subpath = Some(path.as_os_str().as_bytes());
    let report = repository.restore(snapshot, subpath, target, &options, &progress);
    let problems = problems.lock().expect("no panic");
    assert_eq!(
        (report.expect("restored").failed, problems.as_slice()),
        (0, &[][..])
    );
}

fn assert_same(expected: &Path, actual: &Path, what: &str) {
    let (expected, actual) = (whole_picture(expected), whole_picture(actual));
    assert_eq!(differences(&expected, &actual), [], "{what}");
}

/// Is there such a program?
fn has(program: &str) -> bool {
    let is_there = Command::new(program).arg("--version").output().is_ok();
    if !is_there {
        eprintln!("skipped: there is no {program}");
    }
    is_there
}

fn run(program: &str, arguments: &[&str], directory: &Path) {
    let output = Command::new(program)
        .args(arguments)
        .current_dir(directory)
        .env("LC_ALL", "C.UTF-8")
        .output()
        .expect("run");
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{program} {arguments:?}: {errors}");
}

fn stored_blocks(path: &Path) -> u64 {
    fs::metadata(path).expect("metadata").blocks()
}

#[test]
fn gnu_tar_and_bsdtar_read_what_is_exported() {
    let place = filled();
    let archive = place.place.path().join("archive.tar");
    fs::write(&archive, exported(&place)).expect("written");
    for (program, arguments) in [
        (
            "tar",
            &[
                "--xattrs",
                "--xattrs-include=*",
                "--acls",
                "--numeric-owner",
                "-xpf",
            ][..],
        ),
        (
            "bsdtar",
            &["--xattrs", "--acls", "--numeric-owner", "-xpSf"],
        ),
    ] {
        if !has(program) {
            continue;
        }
        let target = place.place.path().join(program);
        fs::create_dir(&target).expect("made");
        let archive = archive.to_str().expect("text");
        run(program, &[arguments, &[archive]].concat(), &target);
        let mut expected = whole_picture(&place.source());
        if program == "bsdtar" {
            // libarchive 3.6 does not know how an `=` in the name of an attribute is written, and counts fractions of
            // seconds before 1970 in the wrong direction.
            for line in expected.values_mut() {
                *line = line.replace(" user.a=b%c=odd", " user.a%3Db%25c=odd");
                *line = line.replace("-5.250000000", "-4.750000000");
            }
        }
        let sorted = |line: &String| {
            let mut words: Vec<&str> = line.split(' ').collect();
            words.sort_unstable();
            words.join(" ")
        };
        expected.values_mut().for_each(|line| *line = sorted(line));
        let mut actual = whole_picture(&target);
        actual.values_mut().for_each(|line| *line = sorted(line));
        assert_eq!(differences(&expected, &actual), [], "{program}");
        if stored_blocks(&place.join("only a hole")) == 0 {
            for name in ["only a hole", "holes between"] {
                assert!(
                    stored_blocks(&target.join(name)) < 200,
                    "{program}: {name} has no holes"
                );
            }
        }
    }
}

#[test]
fn what_is_exported_is_imported_as_it_was() {
    let place = filled();
    let archive = exported(&place);
    let source = place.source();
    for is_own in [false, true] {
        let other = other();
        let repository = if is_own { &place.repository } else { &other };
        let report = import(repository, &archive, source.as_os_str().as_bytes()).expect("imported");
        assert_eq!(report.errors, 0, "{:?}", report.snapshot.errors);
        assert_eq!(report.snapshot.paths, [source.as_os_str().as_bytes()]);
        if is_own {
            assert_eq!(
                report.totals.chunks_new, 0,
                "the contents are cut as a backup cuts them"
            );
        }
        let target = place.place.path().join(format!("target {is_own}"));
        restore_into(repository, &report.snapshot, &source, &target);
        assert_same(&source, &target, "restored");
        check_clean(repository).expect("clean");
        // And the same archive comes out again.
        let mut again = Vec::new();
        let subpath = Some(source.as_os_str().as_bytes());
        let out = repository.export(&report.snapshot, subpath, &mut again, &Progress::default());
        out.expect("exported");
        assert!(archive == again, "another archive comes out");
    }
}

#[test]
fn what_gnu_tar_and_bsdtar_write_is_imported() {
    let place = filled();
    place.back_up();
    let source = place.source();
    let path = source.as_os_str().as_bytes();
    let pax: [&str; 2] = ["--format=posix", "--xattrs"];
    for (program, arguments) in [
        (
            "tar",
            &[
                "--format=posix",
                "--sparse",
                "--sparse-version=1.0",
                "--xattrs",
                "--xattrs-include=*",
                "--acls",
            ][..],
        ),
        (
            "tar",
            &[
                "--format=posix",
                "--sparse",
                "--sparse-version=0.1",
                "--xattrs",
                "--xattrs-include=*",
                "--acls",
            ],
        ),
        (
            "tar",
            &[
                "--format=posix",
                "--sparse",
                "--sparse-version=0.0",
                "--xattrs",
                "--xattrs-include=*",
                "--acls",
            ],
        ),
        ("tar", &["--format=gnu", "--sparse", "--numeric-owner"]),
        ("tar", &["--format=gnu", "--sort=name"]),
        ("bsdtar", &["--format=pax", "--xattrs", "--acls"]),
    ] {
        if !has(program) {
            continue;
        }
        let archive = place.place.path().join("archive.tar");
        let file = archive.to_str().expect("text");
        let source_text = source.to_str().expect("text");
        run(
            program,
            &[arguments, &["-cf", file, "-C", source_text, "."]].concat(),
            &source,
        );
        let bytes = fs::read(&archive).expect("read");
        let report = import(&place.repository, &bytes, path).expect("imported");
        assert_eq!(
            report.errors, 0,
            "{program} {arguments:?}: {:?}",
            report.snapshot.errors
        );
        let target = place.place.path().join("target");
        restore_into(&place.repository, &report.snapshot, &source, &target);
        let is_pax = pax.iter().any(|argument| arguments.contains(argument));
        if is_pax && program == "tar" {
            assert_eq!(report.totals.chunks_new, 0, "{arguments:?}");
            assert_same(&source, &target, &format!("{program} {arguments:?}"));
        } else if is_pax {
            // libarchive 3.6 counts fractions of seconds before 1970 in the wrong direction.
            let picture = |root: &Path| {
                let mut picture = whole_picture(root);
                picture.remove(Path::new("empty file"));
                picture
            };
            assert_eq!(differences(&picture(&source), &picture(&target)), []);
        } else {
            // GNU's own format has neither attributes nor fractions of a second.
            let contents = |root: &Path| -> Vec<(PathBuf, Vec<u8>)> {
                let names = picture(root).into_keys();
                let names = names.filter(|name| {
                    root.join(name)
                        .symlink_metadata()
                        .is_ok_and(|entry| entry.is_file())
                });
                names
                    .map(|name| (name.clone(), fs::read(root.join(name)).expect("read")))
                    .collect()
            };
            assert!(
                contents(&source) == contents(&target),
                "{program} {arguments:?}"
            );
            assert_eq!(
                picture(&source).keys().collect::<Vec<_>>(),
                picture(&target).keys().collect::<Vec<_>>()
            );
        }
        fs::remove_dir_all(&target).expect("removed");
    }
    check_clean(&place.repository).expect("clean");
}

/// A plain member.
fn member(name: &str, kind: u8, content: &[u8], link: &str) -> Vec<u8> {
    let mut block = [0u8; 512];
    block[..name.len()].copy_from_slice(name.as_bytes());
    block[100..107].copy_from_slice(b"0000644");
    block[124..135].copy_from_slice(format!("{:011o}", content.len()).as_bytes());
    block[136..147].copy_from_slice(b"00000000012");
    block[156] = kind;
    block[157..157 + link.len()].copy_from_slice(link.as_bytes());
    block[257..265].copy_from_slice(b"ustar\x0000");
    block[148..156].fill(b' ');
    let sum: u32 = block.iter().map(|&byte| u32::from(byte)).sum();
    block[148..156].copy_from_slice(format!("{sum:06o}\0 ").as_bytes());
    let mut bytes = block.to_vec();
    bytes.extend_from_slice(content);
    bytes.resize(bytes.len().next_multiple_of(512), 0);
    bytes
}

fn archive(members: &[Vec<u8>]) -> Vec<u8> {
    let mut bytes = members.concat();
    bytes.resize(bytes.len() + 1024, 0);
    bytes
}

#[test]
fn hostile_archives_make_no_snapshot() {
    let repository = other();
    let file = |name| member(name, b'0', b"content", "");
    let mut damaged = archive(&[file("a"), file("b")]);
    damaged[1024] ^= 1;
    let cut = archive(&[file("a"), file("b")]);
    let cases: [(Vec<u8>, &str); 9] = [
        (archive(&[file("a/../../b")]), "'..'"),
        (archive(&[file(".."), file("a")]), "'..'"),
        (archive(&[file("a"), file("a/b")]), "no directory"),
        (
            archive(&[file("x/a/b"), member("x/a", b'2', b"", "/etc")]),
            "no directory",
        ),
        (
            archive(&[file("a"), member("b", b'1', b"", "../a")]),
            "'..'",
        ),
        (damaged, "checksum"),
        (cut[..1300].to_vec(), "cut off"),
        (cut[..cut.len() - 1024].to_vec(), "cut off"),
        (b"this is no archive at all".repeat(100), "checksum"),
    ];
    for (bytes, expected) in cases {
        match import(&repository, &bytes, b"/") {
            Err(BackupError::Archive(error)) => {
                assert!(
                    error.to_string().contains(expected),
                    "{error} lacks {expected}"
                );
            }
            other => panic!("{expected}: {other:?}"),
        }
    }
    assert!(repository.snapshots().expect("listed").snapshots.is_empty());
    check_clean(&repository).expect("clean");
    // What they stored is used by the next one, and nobody stays registered.
    let report = import(&repository, &archive(&[file("a")]), b"/").expect("imported");
    assert_eq!(report.totals.chunks_new, 0);
    assert!(matches!(
        import(&repository, b"\x1f\x8b\x08 and so on", b"/"),
        Err(BackupError::Archive(TarError::Compressed { .. }))
    ));
}

#[test]
fn archives_that_say_things_twice_or_in_any_order() {
    let repository = other();
    let bytes = archive(&[
        member("z/last", b'0', b"z", ""),
        member("a.b", b'0', b"dot", ""),
        member("/absolute", b'0', b"slash", ""),
        member("./a/./b", b'0', b"first", ""),
        member("a/b", b'0', b"second", ""),
        member("linked", b'1', b"", "a/b"),
        member("linked again", b'1', b"", "linked"),
        member("a/b", b'1', b"", "a/b"),
        member("nowhere", b'1', b"", "not there"),
        member("odd", b'Q', b"what is it", ""),
        member("a/", b'5', b"", ""),
        member("z", b'5', b"", ""),
    ]);
    let (progress, problems) = recorder();
    let options = ImportOptions {
        backup: backup_options(),
        time: None,
        path: b"/put/here".to_vec(),
    };
    let report = repository
        .import_tar(&mut &bytes[..], &options, &progress)
        .expect("imported");
    assert_eq!(report.errors, 2, "{:?}", problems.lock());
    assert_eq!(report.snapshot.errors.listed.len(), 2);
    let tree = repository.tree(&report.snapshot).expect("a tree");
    let mut names = Vec::new();
    let mut links = Vec::new();
    tree.visit(b"/put/here", true, &mut |path, entry| {
        names.push(String::from_utf8_lossy(&path["/put/here/".len()..]).into_owned());
        links.extend(entry.hard_link);
        std::ops::ControlFlow::Continue(())
    })
    .expect("visited");
    assert_eq!(
        names,
        [
            "a",
            "a/b",
            "a.b",
            "absolute",
            "linked",
            "linked again",
            "z",
            "z/last"
        ]
    );
    assert_eq!(links.len(), 3);
    assert!(links.iter().all(|link| *link == links[0]));
    let mut content = Vec::new();
    repository
        .dump(
            &report.snapshot,
            b"/put/here/linked again",
            &mut content,
            &Progress::default(),
        )
        .expect("dumped");
    assert_eq!(content, b"second");
    check_clean(&repository).expect("clean");
}

#[test]
fn long_files_and_many_members_come_back() {
    // More runs than a recipe has without pages, and more members than a batch.
    let place = Place::new();
    let mut long = Vec::new();
    for number in 0..3000u64 {
        long.extend_from_slice(&random_bytes(number % 7, 3000));
        long.extend_from_slice(&random_bytes(1000 + number, 500));
    }
    fs::write(place.join("long"), &long).expect("written");
    fs::create_dir(place.join("many")).expect("made");
    for number in 0..5000 {
        fs::write(place.join(format!("many/{number}")), number.to_string()).expect("written");
    }
    let archive = exported(&place);
    let source = place.source();
    let report =
        import(&place.repository, &archive, source.as_os_str().as_bytes()).expect("imported");
    assert_eq!((report.errors, report.totals.chunks_new), (0, 0));
    restore_into(
        &place.repository,
        &report.snapshot,
        &source,
        &place.target(),
    );
    assert_same(&source, &place.target(), "restored");
}

#[test]
fn damage_ends_an_export() {
    let place = filled();
    let report = place.back_up();
    let store = place.repository.engine().store();
    let mut containers = Vec::new();
    store
        .list(engine::object::ObjectKind::Container, &mut |id, _| {
            containers.push(id)
        })
        .expect("listed");
    let mut failures = 0;
    for id in containers {
        let key = engine::object::ObjectKey::new(engine::object::ObjectKind::Container, id);
        let whole = store.get(&key, u64::MAX).expect("read");
        let mut bytes = whole.clone();
        let middle = bytes.len() / 3;
        bytes[middle] ^= 0x10;
        store.delete(&key).expect("deleted");
        store.put(&key, &bytes).expect("written");
        let mut out = Vec::new();
        let exported =
            place
                .repository
                .export(&report.snapshot, None, &mut out, &Progress::default());
        failures += usize::from(exported.is_err());
        store.delete(&key).expect("deleted");
        store.put(&key, &whole).expect("written");
    }
    assert!(failures > 0, "no damage was noticed");
}
