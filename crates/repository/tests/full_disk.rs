//! A disk that fills up in the middle of a backup, and syncs that fail.
//!
//! The error says what happened and that what is stored stays; older snapshots restore and
//! `check` is clean while the disk is still full; with room again the next backup succeeds and
//! uses what had been stored.

mod support;

use std::sync::Arc;

use engine::format::ObjectError;
use engine::object::{LocalStore, StoreError};
use engine::pipeline::WriteError;
use repository::snapshot::SnapshotError;
use repository::{BackupError, Repository, RepositoryError};
use support::sources::Source;
use support::{History, backup, create, open};
use testkit::{CrashDisk, CrashMode};

/// Amounts of room that are tried.
const ROOMS: u64 = 40;

fn store(disk: &CrashDisk) -> Arc<LocalStore<CrashDisk>> {
    Arc::new(LocalStore::with_filesystem(disk.clone(), "crash disk"))
}

fn copy(disk: &CrashDisk) -> CrashDisk {
    disk.after_crash(0, CrashMode::ProcessKill)
}

/// A repository with one snapshot, and a second version of the source to be backed up.
struct Scene {
    encrypted: bool,
    source: Source,
    base: CrashDisk,
    history: History,
    /// New bytes of an undisturbed backup.
    bytes_new: u64,
    /// Bytes that an undisturbed backup writes.
    bytes_written: u64,
    /// Syncs of an undisturbed backup.
    syncs: u64,
}

fn bytes_on(disk: &CrashDisk) -> u64 {
    use engine::object::FileSystem;
    let paths = disk.file_paths().into_iter();
    paths
        .map(|path| disk.status(&path).expect("status").bytes)
        .sum()
}

impl Scene {
    fn new(encrypted: bool) -> Self {
        let source = Source::new();
        let base = CrashDisk::new(0);
        let layout = LocalStore::create_with_filesystem(base.clone(), "crash disk");
        let repository = create(Arc::new(layout.expect("laid out")), encrypted);
        let report = backup(&repository, source.root()).expect("backed up");
        let history = History::default().with(report.snapshot.id, &source.picture());
        source.advance(1);
        let whole = copy(&base);
        let repository = open(store(&whole), encrypted).expect("opened");
        let report = backup(&repository, source.root()).expect("backed up");
        Self {
            encrypted,
            bytes_new: report.totals.bytes_new,
            bytes_written: bytes_on(&whole) - bytes_on(&base),
            syncs: whole.sync_points().len() as u64,
            source,
            base,
            history,
        }
    }

    fn open(&self, disk: &CrashDisk) -> Repository {
        open(store(disk), self.encrypted).expect("opened")
    }

    /// The older snapshot restores, nothing is damaged.
    fn check(&self, disk: &CrashDisk, history: &History) -> Result<usize, String> {
        let repository = self.open(disk);
        history.check(&repository, self.source.root(), &self.source.picture())
    }

    /// The next backup succeeds, and what it reports survives a power failure.
    fn go_on(&self, repository: &Repository, disk: &CrashDisk) -> Result<u64, String> {
        let report = backup(repository, self.source.root()).map_err(|error| error.to_string())?;
        let picture = self.source.picture();
        let history = self.history.with(report.snapshot.id, &picture);
        self.check(disk, &history)?;
        for seed in 0..2 {
            let later = disk.after_crash(seed, CrashMode::PowerLoss);
            self.check(&later, &history)
                .map_err(|error| format!("after a power failure: {error}"))?;
        }
        Ok(report.totals.bytes_new)
    }
}

/// What the store said, below what the repository made of it.
fn store_error(error: &BackupError) -> Option<&StoreError> {
    let object = match error {
        BackupError::Write(WriteError::Object(error))
        | BackupError::Repository(
            RepositoryError::Object(error)
            | RepositoryError::Snapshot(SnapshotError::Object(error)),
        ) => error,
        _ => return None,
    };
    match object {
        ObjectError::Store(error) => Some(error),
        _ => None,
    }
}

#[test]
fn a_full_disk_is_said_and_harms_nothing() {
    for encrypted in [false, true] {
        let scene = Scene::new(encrypted);
        assert!(scene.bytes_written > 10_000, "{}", scene.bytes_written);
        let mut reused = 0;
        for step in 0..ROOMS {
            let room = scene.bytes_written * step / ROOMS;
            let disk = copy(&scene.base);
            disk.fail_after_bytes(room);
            let repository = scene.open(&disk);
            let error = backup(&repository, scene.source.root()).expect_err("it does not fit");
            let Some(StoreError::Full { .. }) = store_error(&error) else {
                panic!("room for {room} bytes: {error:?}");
            };
            assert!(
                error.to_string().contains("no space left in crash disk"),
                "{error}"
            );
            let unreported = scene.check(&disk, &scene.history);
            assert_eq!(unreported, Ok(0), "room for {room} bytes");
            let after = disk.after_crash(step, CrashMode::PowerLoss);
            assert_eq!(
                scene.check(&after, &scene.history),
                Ok(0),
                "room for {room} bytes"
            );

            disk.stop_failing();
            // With the repository that failed, or as the next process would.
            let again = if step % 2 == 0 {
                repository
            } else {
                scene.open(&disk)
            };
            let bytes_new = scene.go_on(&again, &disk);
            let bytes_new = bytes_new.unwrap_or_else(|error| panic!("room for {room}: {error}"));
            assert!(bytes_new <= scene.bytes_new);
            reused += u64::from(bytes_new < scene.bytes_new);
        }
        assert!(reused > ROOMS / 3, "what was stored is used: {reused}");
    }
}

#[test]
fn room_for_everything_but_the_end_keeps_the_snapshot_out_or_whole() {
    let scene = Scene::new(false);
    for missing in 1..200 {
        let disk = copy(&scene.base);
        // Compressed sizes differ a little from run to run: ids are random.
        disk.fail_after_bytes(scene.bytes_written.saturating_sub(missing * 16));
        let outcome = backup(&scene.open(&disk), scene.source.root());
        let history = match &outcome {
            Ok(report) => scene
                .history
                .with(report.snapshot.id, &scene.source.picture()),
            Err(_) => scene.history.clone(),
        };
        assert_eq!(
            scene.check(&disk, &history),
            Ok(0),
            "{missing}: {outcome:?}"
        );
    }
}

#[test]
fn a_failed_sync_is_said_and_harms_nothing() {
    let scene = Scene::new(false);
    assert!(scene.syncs > 10, "{} syncs", scene.syncs);
    for number in 0..scene.syncs {
        let disk = copy(&scene.base);
        disk.fail_syncs(number..number + 1);
        let repository = scene.open(&disk);
        let error = match backup(&repository, scene.source.root()) {
            Err(error) => error,
            // Containers have random ids, so that runs differ by a directory or two.
            Ok(_) if disk.sync_points().len() as u64 <= number => continue,
            // The snapshot stands, and what came after it is told.
            Ok(report) if !report.repository_warnings.is_empty() => continue,
            Ok(_) => panic!("sync {number} failed in silence"),
        };
        match store_error(&error) {
            Some(StoreError::Io {
                action: "write", ..
            }) => {}
            other => panic!("sync {number}: {other:?}: {error}"),
        }
        assert_eq!(scene.check(&disk, &scene.history), Ok(0), "sync {number}");
        // A failed sync is a matter for the medium: first the power goes off and on.
        let after = disk.after_crash(number, CrashMode::PowerLoss);
        let unreported = scene.check(&after, &scene.history);
        assert!(unreported.is_ok(), "sync {number}: {unreported:?}");
        let bytes_new = scene.go_on(&scene.open(&after), &after);
        let bytes_new = bytes_new.unwrap_or_else(|error| panic!("sync {number}: {error}"));
        assert!(bytes_new <= scene.bytes_new);
        // The next process may also just try again.
        let report = backup(&scene.open(&disk), scene.source.root()).expect("backed up");
        let history = scene
            .history
            .with(report.snapshot.id, &scene.source.picture());
        assert_eq!(scene.check(&disk, &history), Ok(0), "sync {number}");
    }
}

#[test]
fn syncs_that_fail_from_some_moment_on_end_the_backup() {
    let scene = Scene::new(true);
    for number in (0..scene.syncs).step_by(3) {
        let disk = copy(&scene.base);
        disk.fail_syncs(number..u64::MAX);
        let outcome = backup(&scene.open(&disk), scene.source.root());
        assert!(outcome.is_err() || disk.sync_points().len() as u64 <= number);
        assert_eq!(
            scene.check(&disk, &scene.history).map(|more| more <= 1),
            Ok(true)
        );
        let after = disk.after_crash(number, CrashMode::PowerLoss);
        let unreported = scene.check(&after, &scene.history);
        assert!(unreported.is_ok(), "sync {number}: {unreported:?}");
    }
}
