//! Repositories of before are brought to what this version can do, or stay as they are.

mod support;

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use engine::object::{LocalStore, MemoryStore, ObjectId, ObjectKey, ObjectKind, ObjectStore};
use repository::config::{Config, ConfigError, Encryption, Features};
use repository::deletion::runs::RunKind;
use repository::keys::{KeySlot, Password, Secrets};
use repository::migrate::{MIGRATIONS, MigrateError, Migration};
use repository::prune::{PruneError, PruneOptions};
use repository::{Keyring, PROGRAM, Progress, Repository, RepositoryError};
use support::{check_clean, settings};
use testkit::{CrashDisk, CrashMode};

fn several_sections() -> Migration {
    Migration::named("several-sections").expect("a migration")
}

fn copy(from: &Path, to: &Path) {
    fs::create_dir_all(to).expect("made");
    for entry in fs::read_dir(from).expect("listed") {
        let entry = entry.expect("an entry");
        let target = to.join(entry.file_name());
        if entry.file_type().expect("a type").is_dir() {
            copy(&entry.path(), &target);
        } else {
            fs::copy(entry.path(), target).expect("copied");
        }
    }
}

fn golden(name: &str) -> PathBuf {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    root.join("../../testdata/golden/v1").join(name)
}

/// A repository as they were made before there was a flag, without snapshots.
fn make_old(store: &dyn ObjectStore) {
    let id = ObjectId([7; 16]);
    let secrets = Secrets::random();
    let mut config = Config::new(id, Encryption::None, 1_700_000_000, PROGRAM);
    config.features = Features::default();
    KeySlot::seal_plain(&secrets, id, ObjectId([8; 16]))
        .write(store)
        .expect("written");
    config.create(store, &secrets).expect("created");
}

#[test]
fn samples_of_before_are_migrated() {
    for (name, password) in [
        ("plain", None),
        ("encrypted", Some(Password::new("golden"))),
    ] {
        let place = tempfile::tempdir().expect("a directory");
        copy(&golden(name), &place.path().join("repository"));
        let local = || {
            let store = LocalStore::open(&place.path().join("repository"));
            Arc::new(store.expect("opened"))
        };
        let mut keyring = Keyring::open(local(), password.as_ref()).expect("opened");
        let before = keyring.config().clone();
        assert!(!before.may_have_multi_section());
        let config = || fs::read(place.path().join("repository/config")).expect("read");
        let bytes_before = config();
        let migration = several_sections();
        assert!(!migration.is_done(&before));
        assert!(keyring.migrate(&migration, "here").expect("migrated"));
        assert!(migration.is_done(keyring.config()));
        // The flag, and what authenticates it; nothing else.
        let bytes = config();
        assert_eq!(bytes.len(), bytes_before.len());
        assert_eq!(bytes[..32], bytes_before[..32]);
        assert_eq!(bytes[32] ^ bytes_before[32], 0x4);
        assert_eq!(
            bytes[33..bytes.len() - 64],
            bytes_before[33..bytes.len() - 64]
        );
        assert_ne!(bytes[bytes.len() - 64..], bytes_before[bytes.len() - 64..]);
        assert!(
            !keyring
                .migrate(&migration, "here")
                .expect("there is nothing to do")
        );
        assert_eq!(config(), bytes);
        let repository = Repository::open(local(), password.as_ref(), settings());
        let repository = repository.expect("opened");
        let mut expected = before;
        expected.features.incompatible |= Features::MULTI_SECTION;
        assert_eq!(*repository.config(), expected);
        check_clean(&repository).expect("clean");
        let mut runs = 0;
        local()
            .list(ObjectKind::Run, &mut |_, _| runs += 1)
            .expect("listed");
        assert_eq!(runs, 0, "it has taken leave");
    }
}

#[test]
fn nothing_is_packed_that_older_versions_could_not_read() {
    let store = Arc::new(MemoryStore::new());
    make_old(store.as_ref());
    let open = || Repository::open(Arc::clone(&store) as _, None, settings()).expect("opened");
    let prune = || open().prune(&PruneOptions::default(), &Progress::default());
    assert!(matches!(
        prune(),
        Err(PruneError::Repository(RepositoryError::Config(
            ConfigError::OneSection
        )))
    ));
    let mut keyring = Keyring::open(Arc::clone(&store) as _, None).expect("opened");
    keyring
        .migrate(&several_sections(), "here")
        .expect("migrated");
    prune().expect("pruned");
}

#[test]
fn what_is_at_work_is_waited_for() {
    let store = Arc::new(MemoryStore::new());
    make_old(store.as_ref());
    let repository = Repository::open(Arc::clone(&store) as _, None, settings()).expect("opened");
    let mut keyring = Keyring::open(Arc::clone(&store) as _, None).expect("opened");
    let before = store.get(&ObjectKey::CONFIG, u64::MAX).expect("read");
    for kind in [RunKind::Writer, RunKind::Prune, RunKind::Reader] {
        let registration = repository.register(kind, "elsewhere").expect("registered");
        match keyring.migrate(&several_sections(), "here") {
            Err(MigrateError::AtWork { runs }) => {
                assert_eq!((runs.len(), runs[0].kind), (1, kind));
            }
            other => panic!("{other:?}"),
        }
        assert_eq!(
            store.get(&ObjectKey::CONFIG, u64::MAX).expect("read"),
            before
        );
        registration.end().expect("ended");
    }
    // Two who read the old one: the second finds what the first did.
    let mut second = Keyring::open(Arc::clone(&store) as _, None).expect("opened");
    assert!(
        keyring
            .migrate(&several_sections(), "here")
            .expect("migrated")
    );
    assert!(!second.migrate(&several_sections(), "here").expect("done"));
    assert!(several_sections().is_done(second.config()));
}

#[test]
fn migrations_have_names_of_their_own() {
    for migration in MIGRATIONS {
        assert_eq!(Migration::named(migration.name), Some(migration));
        assert!(!migration.about.is_empty());
    }
    assert_eq!(Migration::named("no such"), None);
}

#[test]
fn a_crash_leaves_the_old_one_or_the_new_one() {
    let old = CrashDisk::new(0);
    let store = LocalStore::create_with_filesystem(old.clone(), "crash disk").expect("laid out");
    make_old(&store);
    let local =
        |disk: &CrashDisk| Arc::new(LocalStore::with_filesystem(disk.clone(), "crash disk"));
    let fresh = || old.after_crash(0, CrashMode::ProcessKill);
    let migrate = |disk: &CrashDisk| {
        let mut keyring = Keyring::open(local(disk), None).map_err(|error| error.to_string())?;
        let done = keyring.migrate(&several_sections(), "here");
        done.map_err(|error| error.to_string())
    };
    let whole = fresh();
    assert_eq!(migrate(&whole), Ok(true));
    let (mut found_old, mut found_new) = (0, 0);
    for operation in 0..whole.operations() {
        let disk = fresh();
        disk.crash_at(operation);
        let reported = migrate(&disk);
        assert!(reported.is_ok() || disk.has_crashed(), "{reported:?}");
        for seed in 0..16 {
            for mode in [CrashMode::PowerLoss, CrashMode::ProcessKill] {
                let found = disk.after_crash(seed, mode);
                let keyring = Keyring::open(local(&found), None);
                let keyring = keyring.unwrap_or_else(|error| {
                    panic!("operation {operation}, seed {seed}, {mode:?}: {error}")
                });
                let is_new = several_sections().is_done(keyring.config());
                assert!(
                    is_new || reported.is_err(),
                    "operation {operation}: what was reported is lost"
                );
                found_new += usize::from(is_new);
                found_old += usize::from(!is_new);
                let repository = Repository::open(local(&found), None, settings()).expect("opened");
                // Whoever died is known to be dead, for its process has ended; here it is this one.
                for run in [ObjectKind::Run, ObjectKind::Expired] {
                    let mut ids = Vec::new();
                    let store = repository.engine().store();
                    store.list(run, &mut |id, _| ids.push(id)).expect("listed");
                    for id in ids {
                        store.delete(&ObjectKey::new(run, id)).expect("deleted");
                    }
                }
                assert_eq!(migrate(&found), Ok(!is_new));
            }
        }
    }
    assert!(
        found_old > 0 && found_new > 0,
        "{found_old} old, {found_new} new"
    );
}
