//! Real directories go into a repository and come back bit for bit.

#![allow(clippy::unwrap_used)] // A test says no by panicking.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use engine::object::{LocalStore, MemoryStore, ObjectStore};
use repository::keys::{Argon2Cost, Password};
use repository::{
    BackupOptions, BackupReport, Change, CheckOptions, CreateOptions, Progress, Repository,
    RestoreOptions, RunSettings,
};

fn create(store: Arc<dyn ObjectStore>, encrypted: bool) -> Repository {
    let options = CreateOptions {
        cost: Argon2Cost {
            memory_kib: 64,
            passes: 1,
            lanes: 1,
        },
        ..CreateOptions::default()
    };
    let password = encrypted.then(|| Password::new("secret"));
    Repository::create(store, password.as_ref(), &options, RunSettings::default()).unwrap()
}

fn backup(repository: &Repository, source: &Path) -> BackupReport {
    let options = BackupOptions {
        host: "test".to_owned(),
        ..BackupOptions::default()
    };
    let progress = Progress::default();
    repository
        .backup(&[source.to_owned()], &options, &progress)
        .unwrap()
}

/// What a person would compare: type, content, mode, mtime of everything below a directory.
fn picture(root: &Path) -> BTreeMap<PathBuf, String> {
    let mut picture = BTreeMap::new();
    let mut waiting = vec![root.to_owned()];
    while let Some(path) = waiting.pop() {
        let metadata = fs::symlink_metadata(&path).unwrap();
        let content = if metadata.is_dir() {
            waiting.extend(
                fs::read_dir(&path)
                    .unwrap()
                    .map(|entry| entry.unwrap().path()),
            );
            "directory".to_owned()
        } else if metadata.is_symlink() {
            format!("-> {}", fs::read_link(&path).unwrap().display())
        } else {
            blake3::hash(&fs::read(&path).unwrap()).to_string()
        };
        let name = path.strip_prefix(root).unwrap().to_owned();
        let line = format!(
            "{content} {:o} {}.{}",
            metadata.mode(),
            metadata.mtime(),
            metadata.mtime_nsec()
        );
        picture.insert(name, line);
    }
    picture
}

fn make_tree(root: &Path) {
    fs::create_dir_all(root.join("a/b/c")).unwrap();
    fs::create_dir(root.join("empty")).unwrap();
    for number in 0..300usize {
        let text = format!("file {number}\n").repeat(number * 7 % 500);
        fs::write(root.join(format!("a/file-{number:03}")), text).unwrap();
    }
    let mut large = Vec::new();
    for number in 0..200_000u32 {
        large.extend_from_slice(&number.wrapping_mul(2_654_435_761).to_le_bytes());
    }
    fs::write(root.join("a/b/large"), &large).unwrap();
    fs::write(root.join("a/b/c/copy"), &large).unwrap();
    fs::write(root.join("zero"), b"").unwrap();
    symlink("a/b/large", root.join("link")).unwrap();
    fs::hard_link(root.join("a/b/large"), root.join("hard")).unwrap();
    fs::set_permissions(root.join("a/file-007"), fs::Permissions::from_mode(0o751)).unwrap();
    // A file changed this very moment is read again by the next backup; these are to be older.
    std::thread::sleep(std::time::Duration::from_millis(50));
}

fn restore_latest(repository: &Repository, source: &Path, target: &Path) {
    let list = repository.snapshots().unwrap();
    let snapshot = list.snapshots.last().unwrap();
    let subpath = source.as_os_str().as_encoded_bytes();
    let problems = Arc::new(Mutex::new(Vec::new()));
    let progress = Progress::with_handler({
        let problems = Arc::clone(&problems);
        move |problem| problems.lock().unwrap().push(problem.to_string())
    });
    let options = RestoreOptions::default();
    let report = repository
        .restore(snapshot, Some(subpath), target, &options, &progress)
        .unwrap();
    assert_eq!(report.failed, 0, "{:?}", problems.lock().unwrap());
    assert_eq!(*problems.lock().unwrap(), Vec::<String>::new());
}

fn assert_clean(repository: &Repository) {
    let options = CheckOptions { read_data: true };
    let report = repository.check(options, &Progress::default()).unwrap();
    assert_eq!(report.problems, []);
}

#[test]
fn directories_come_back() {
    for encrypted in [true, false] {
        let place = tempfile::tempdir().unwrap();
        let source = place.path().join("source");
        make_tree(&source);
        let store = LocalStore::create(&place.path().join("repository")).unwrap();
        let repository = create(Arc::new(store), encrypted);
        let report = backup(&repository, &source);
        assert_eq!(report.errors, 0);
        assert_eq!(report.snapshot.summary.files, 304);
        let target = place.path().join("target");
        restore_latest(&repository, &source, &target);
        let (mut expected, mut actual) = (picture(&source), picture(&target));
        expected.remove(Path::new(""));
        actual.remove(Path::new(""));
        assert_eq!(actual, expected);
        let links = |name| fs::metadata(target.join(name)).unwrap().ino();
        assert_eq!(links("hard"), links("a/b/large"));
        assert_clean(&repository);
    }
}

#[test]
fn unchanged_files_are_not_read_again() {
    let place = tempfile::tempdir().unwrap();
    let source = place.path().join("source");
    make_tree(&source);
    let repository = create(Arc::new(MemoryStore::new()), true);
    backup(&repository, &source);
    let again = backup(&repository, &source);
    assert_eq!(again.snapshot.summary.bytes_read, 0);
    assert_eq!(again.snapshot.summary.files_unmodified, 304);
    assert_eq!(again.totals.chunks_new, 0);
    // The root's page has the time of the system's temporary directory, which others use too.
    assert!(again.totals.pages_new <= 1);

    fs::write(source.join("a/file-100"), "changed").unwrap();
    fs::write(source.join("a/new"), "new").unwrap();
    fs::remove_file(source.join("zero")).unwrap();
    let changed = backup(&repository, &source);
    let summary = changed.snapshot.summary;
    assert_eq!((summary.files_changed, summary.files_new), (1, 1));
    assert_eq!(summary.bytes_read, 10);
    let target = place.path().join("target");
    restore_latest(&repository, &source, &target);
    assert_eq!(fs::read(target.join("a/file-100")).unwrap(), b"changed");
    assert!(!target.join("zero").exists());
    assert_clean(&repository);

    let list = repository.snapshots().unwrap();
    let mut changes = Vec::new();
    let source_bytes = source.as_os_str().as_encoded_bytes().len();
    let summary = repository
        .diff(&list.snapshots[1], &list.snapshots[2], &mut |difference| {
            if !difference.is_directory {
                let name = String::from_utf8(difference.path[source_bytes..].to_vec()).unwrap();
                changes.push((name, difference.change));
            }
        })
        .unwrap();
    let changed = Change::Changed {
        content: true,
        metadata: true,
        kind: false,
    };
    let expected = [
        ("/a/file-100".to_owned(), changed),
        ("/a/new".to_owned(), Change::Added),
        ("/zero".to_owned(), Change::Removed),
    ];
    assert_eq!(changes, expected);
    assert_eq!((summary.added, summary.removed), (1, 1));
}

#[test]
fn streams_are_files() {
    let repository = create(Arc::new(MemoryStore::new()), true);
    let stream = b"a line of the stream\n".repeat(50_000);
    let options = BackupOptions::default();
    let report = repository
        .backup_stream(
            b"dump.sql",
            &mut stream.as_slice(),
            &mut || Ok(()),
            &options,
            &Progress::default(),
        )
        .unwrap();
    let mut out = Vec::new();
    repository
        .dump(
            &report.snapshot,
            b"/dump.sql",
            &mut out,
            &Progress::default(),
        )
        .unwrap();
    assert_eq!(out, stream);
    let failed = repository.backup_stream(
        b"dump.sql",
        &mut stream.as_slice(),
        &mut || Err("the command failed".to_owned()),
        &options,
        &Progress::default(),
    );
    assert!(failed.is_err());
    assert_eq!(repository.snapshots().unwrap().snapshots.len(), 1);
    assert_clean(&repository);
}
