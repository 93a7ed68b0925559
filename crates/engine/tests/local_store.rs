//! A local store on the operating system's files: names, modes, strangers, damage, races.
#![allow(missing_docs, clippy::unwrap_used)]

use std::fs;
use std::os::unix::fs::{FileTypeExt, PermissionsExt, symlink};
use std::path::Path;
use std::time::{Duration, SystemTime};

use engine::object::{
    LocalStore, ObjectId, ObjectKey, ObjectKind, ObjectStore, PutOutcome, StoreError,
    TEMPORARY_STALE_AFTER,
};

const CONTAINER: ObjectKey = ObjectKey {
    kind: ObjectKind::Container,
    id: ObjectId([0xab; 16]),
};

fn listed(store: &LocalStore, kind: ObjectKind) -> Vec<(ObjectId, u64)> {
    let mut found = Vec::new();
    store
        .list(kind, &mut |id, object_bytes| found.push((id, object_bytes)))
        .unwrap();
    found
}

fn mode(path: &Path) -> u32 {
    fs::metadata(path).unwrap().permissions().mode() & 0o777
}

fn names(path: &Path) -> Vec<String> {
    let name = |entry: std::io::Result<fs::DirEntry>| entry.unwrap().file_name();
    let mut names: Vec<String> = fs::read_dir(path)
        .unwrap()
        .map(|entry| name(entry).into_string().unwrap())
        .collect();
    names.sort();
    names
}

#[test]
fn objects_are_files_under_their_keys() {
    let directory = tempfile::tempdir().unwrap();
    let root = directory.path().join("a/b/store");
    let store = LocalStore::create(&root).unwrap();
    let expected = [
        "condemned",
        "containers",
        "epochs",
        "expired",
        "index",
        "keys",
        "remaps",
        "runs",
        "snapshots",
        "tmp",
    ];
    assert_eq!(names(&root), expected);
    store.put(&CONTAINER, b"bytes").unwrap();
    store.put_if_absent(&ObjectKey::CONFIG, b"config").unwrap();
    assert_eq!(
        fs::read(root.join(CONTAINER.to_string())).unwrap(),
        b"bytes"
    );
    assert_eq!(fs::read(root.join("config")).unwrap(), b"config");
    assert_eq!(names(&root.join("tmp")), Vec::<String>::new());
    assert_eq!(store.location(), root.display().to_string());
}

#[test]
fn nobody_else_may_read() {
    let directory = tempfile::tempdir().unwrap();
    let root = directory.path().join("store");
    let store = LocalStore::create(&root).unwrap();
    store.put(&CONTAINER, b"bytes").unwrap();
    for path in ["", "tmp", "keys", "containers", "containers/ab"] {
        assert_eq!(mode(&root.join(path)), 0o700, "{path}");
    }
    assert_eq!(mode(&root.join(CONTAINER.to_string())), 0o600);
}

#[test]
fn create_accepts_what_is_empty_or_ours() {
    let directory = tempfile::tempdir().unwrap();
    fs::create_dir(directory.path().join("lost+found")).unwrap();
    let store = LocalStore::create(directory.path()).unwrap();
    store.put(&CONTAINER, b"bytes").unwrap();
    fs::write(directory.path().join("README"), b"mine").unwrap();
    fs::remove_dir(directory.path().join("runs")).unwrap();
    let error = LocalStore::create(directory.path()).unwrap_err();
    assert!(error.to_string().contains("README"), "{error}");
    fs::create_dir(directory.path().join("runs")).unwrap();
    let store = LocalStore::create(directory.path()).unwrap();
    assert_eq!(store.get(&CONTAINER, 10).unwrap(), b"bytes");
}

#[test]
fn create_refuses_the_directory_of_others() {
    let directory = tempfile::tempdir().unwrap();
    fs::write(directory.path().join("thesis.tex"), b"mine").unwrap();
    let error = LocalStore::create(directory.path()).unwrap_err();
    assert!(matches!(
        &error,
        StoreError::Io { action: "create", source, .. }
            if source.kind() == std::io::ErrorKind::DirectoryNotEmpty
    ));
    assert_eq!(names(directory.path()), ["thesis.tex"]);
    let error = LocalStore::open(&directory.path().join("nowhere")).unwrap_err();
    assert!(matches!(error, StoreError::Io { action: "open", .. }));
}

#[test]
fn strangers_are_passed_over() {
    let directory = tempfile::tempdir().unwrap();
    let root = directory.path();
    let store = LocalStore::create(root).unwrap();
    store.put(&CONTAINER, b"bytes").unwrap();
    let id = CONTAINER.id.to_string();
    fs::write(root.join("containers/ab/README"), b"").unwrap();
    fs::write(root.join("containers/ab").join(format!("{id}.bak")), b"").unwrap();
    fs::write(root.join("containers/ab").join(id.to_uppercase()), b"").unwrap();
    fs::create_dir(root.join("containers/cd")).unwrap();
    fs::write(root.join("containers/cd").join(&id), b"of another shard").unwrap();
    fs::create_dir(root.join("containers/AB")).unwrap();
    fs::write(root.join("containers/AB").join(&id), b"").unwrap();
    fs::write(root.join("containers").join(&id), b"").unwrap();
    fs::create_dir(root.join("keys").join(&id)).unwrap();
    symlink("/nowhere", root.join("index").join(&id)).unwrap();
    assert_eq!(listed(&store, ObjectKind::Container), [(CONTAINER.id, 5)]);
    for kind in [ObjectKind::Key, ObjectKind::Index, ObjectKind::Config] {
        assert_eq!(listed(&store, kind), [], "{kind:?}");
    }
}

#[test]
fn what_is_no_file_is_an_error_and_not_missing() {
    let directory = tempfile::tempdir().unwrap();
    let store = LocalStore::create(directory.path()).unwrap();
    let path = directory.path().join("keys").join(CONTAINER.id.to_string());
    let key = ObjectKey::new(ObjectKind::Key, CONTAINER.id);
    fs::create_dir(&path).unwrap();
    assert!(matches!(store.get(&key, 10), Err(StoreError::Io { .. })));
    assert!(matches!(store.put(&key, b""), Err(StoreError::Io { .. })));
    fs::remove_dir(&path).unwrap();
    let permissions = rustix::fs::Mode::from_raw_mode(0o600);
    rustix::fs::mknodat(
        rustix::fs::CWD,
        &path,
        rustix::fs::FileType::Fifo,
        permissions,
        0,
    )
    .unwrap();
    assert!(fs::metadata(&path).unwrap().file_type().is_fifo());
    assert!(matches!(store.get(&key, 10), Err(StoreError::Io { .. })));
}

#[test]
fn lost_directories_are_made_again() {
    let directory = tempfile::tempdir().unwrap();
    let store = LocalStore::create(directory.path()).unwrap();
    fs::remove_dir(directory.path().join("tmp")).unwrap();
    fs::remove_dir(directory.path().join("containers")).unwrap();
    assert_eq!(listed(&store, ObjectKind::Container), []);
    assert_eq!(store.remove_stale_temporaries(Duration::ZERO).unwrap(), 0);
    let store = LocalStore::open(directory.path()).unwrap();
    store.put(&CONTAINER, b"bytes").unwrap();
    assert_eq!(store.get(&CONTAINER, 10).unwrap(), b"bytes");
}

#[test]
fn an_old_object_is_never_replaced() {
    let directory = tempfile::tempdir().unwrap();
    let store = LocalStore::create(directory.path()).unwrap();
    store.put(&CONTAINER, b"first").unwrap();
    let error = store.put(&CONTAINER, b"second").unwrap_err();
    assert!(matches!(
        &error,
        StoreError::Io { source, .. } if source.kind() == std::io::ErrorKind::AlreadyExists
    ));
    assert_eq!(store.get(&CONTAINER, 10).unwrap(), b"first");
    assert_eq!(names(&directory.path().join("tmp")), Vec::<String>::new());
}

#[test]
fn two_stores_on_one_directory_race_fairly() {
    let directory = tempfile::tempdir().unwrap();
    LocalStore::create(directory.path()).unwrap();
    for round in 0..20 {
        let key = ObjectKey::new(ObjectKind::Key, ObjectId([round; 16]));
        let created: usize = std::thread::scope(|scope| {
            let racers: Vec<_> = (0..4_u8)
                .map(|racer| {
                    let root = directory.path();
                    scope.spawn(move || {
                        // A handle each, as processes have.
                        let store = LocalStore::open(root).unwrap();
                        let outcome = store.put_if_absent(&key, &[racer; 1000]).unwrap();
                        let found = store.get(&key, 1000).unwrap();
                        assert!(found.iter().all(|byte| *byte == found[0]));
                        assert!(outcome == PutOutcome::Exists || found[0] == racer);
                        usize::from(outcome == PutOutcome::Created)
                    })
                })
                .collect();
            racers.into_iter().map(|racer| racer.join().unwrap()).sum()
        });
        assert_eq!(created, 1, "round {round}");
    }
}

#[test]
fn old_temporaries_are_swept() {
    let directory = tempfile::tempdir().unwrap();
    let store = LocalStore::create(directory.path()).unwrap();
    let temporaries = directory.path().join("tmp");
    let two_days = Duration::from_secs(2 * 24 * 60 * 60);
    for (name, age) in [
        (ObjectId([1; 16]).to_string(), two_days),
        ("keys-1.claim".to_owned(), two_days),
        (ObjectId([2; 16]).to_string(), Duration::ZERO),
        ("notes".to_owned(), two_days),
    ] {
        let file = fs::File::create(temporaries.join(name)).unwrap();
        file.set_modified(SystemTime::now() - age).unwrap();
    }
    assert_eq!(
        store
            .remove_stale_temporaries(TEMPORARY_STALE_AFTER)
            .unwrap(),
        2
    );
    let expected = [ObjectId([2; 16]).to_string(), "notes".to_owned()];
    assert_eq!(names(&temporaries), expected);
}

#[test]
fn a_store_stays_on_the_directory_it_was_opened_on() {
    let directory = tempfile::tempdir().unwrap();
    let root = directory.path().join("store");
    let store = LocalStore::create(&root).unwrap();
    fs::rename(&root, directory.path().join("moved")).unwrap();
    LocalStore::create(&root).unwrap();
    store.put(&CONTAINER, b"bytes").unwrap();
    let moved = LocalStore::open(&directory.path().join("moved")).unwrap();
    assert_eq!(moved.get(&CONTAINER, 10).unwrap(), b"bytes");
    let new = LocalStore::open(&root).unwrap();
    assert!(new.get(&CONTAINER, 10).unwrap_err().is_missing());
}
