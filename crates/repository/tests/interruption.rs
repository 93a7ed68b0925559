//! A backup that is stopped half way leaves a snapshot of what it has, from which the next goes on.

#![allow(clippy::unwrap_used)] // A test says no by panicking.

mod support;

use std::fs;
use std::os::unix::net::UnixListener;
use std::path::Path;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex, mpsc};
use std::time::Duration;

use engine::object::{MemoryStore, ObjectStore};
use engine::rewriting::{LookBackWindow, Rewriting};
use repository::{BackupError, BackupReport, Progress, Repository};

const FILES: u64 = 400;

fn make(root: &Path) {
    for number in 0..FILES {
        let directory = root.join(format!("d{:02}", number / 20));
        fs::create_dir_all(&directory).unwrap();
        let mut bytes = vec![0; 20_000];
        blake3::Hasher::new()
            .update(&number.to_le_bytes())
            .finalize_xof()
            .fill(&mut bytes);
        fs::write(directory.join(format!("f{number:03}")), bytes).unwrap();
    }
    // So that all times of change are old enough to be stored.
    std::thread::sleep(Duration::from_millis(50));
}

/// Backs up, and asks for a stop when the backup comes to a socket in that directory, which it
/// tells of and does not store: what stands before is done, what stands behind is not.
fn interrupted(repository: &Repository, source: &Path, directory: &str) -> BackupReport {
    let socket = source.join(directory).join("a-socket");
    drop(UnixListener::bind(&socket).unwrap());
    let (told, is_told) = mpsc::channel();
    let (go_on, may_go_on) = mpsc::channel::<()>();
    let may_go_on = Mutex::new(may_go_on);
    let progress = Progress::with_handler(move |_| {
        told.send(()).unwrap();
        may_go_on.lock().unwrap().recv().unwrap();
    });
    let outcome = std::thread::scope(|scope| {
        let progress = &progress;
        scope.spawn(move || {
            is_told.recv().unwrap();
            progress.is_cancelled.store(true, Ordering::Relaxed);
            go_on.send(()).unwrap();
        });
        let options = support::backup_options();
        repository.backup(&[source.to_owned()], &options, progress)
    });
    fs::remove_file(socket).unwrap();
    match outcome {
        Err(BackupError::Interrupted(report)) => *report,
        other => panic!("{other:?}"),
    }
}

#[test]
fn the_next_backup_goes_on_from_an_interrupted_one() {
    goes_on(Rewriting::Off);
}

#[test]
fn so_it_does_where_chunks_wait_to_be_decided() {
    goes_on(Rewriting::LookBackWindow(LookBackWindow::DEFAULT));
}

fn goes_on(rewriting: Rewriting) {
    let place = support::sources::place();
    let source = place.path().join("source");
    make(&source);
    let store = Arc::new(MemoryStore::new());
    let repository =
        support::create_rewriting(Arc::clone(&store) as Arc<dyn ObjectStore>, rewriting);
    let first = interrupted(&repository, &source, "d03");
    assert!(first.snapshot.is_interrupted && first.is_written);
    assert_eq!(first.snapshot.summary.files, 60);

    // One that comes less far is of no use, and not kept.
    let nearer = interrupted(&repository, &source, "d01");
    assert!(nearer.snapshot.is_interrupted && !nearer.is_written);
    assert_eq!(nearer.snapshot.summary.files_unmodified, 20);

    // One that has something new does not make the others forgotten.
    fs::write(source.join("d00/a-new"), b"new").unwrap();
    std::thread::sleep(Duration::from_millis(50));
    let nearer = interrupted(&repository, &source, "d01");
    assert!(nearer.is_written);
    assert_eq!(nearer.snapshot.summary.files, 21);
    fs::remove_file(source.join("d00/a-new")).unwrap();

    let second = interrupted(&repository, &source, "d07");
    assert!(second.snapshot.is_interrupted && second.is_written);
    let summary = second.snapshot.summary;
    assert_eq!(summary.files, 140);
    assert_eq!(
        summary.files_unmodified, 60,
        "what the first had is not read again"
    );

    let latest = repository.snapshots().unwrap().snapshots;
    assert_eq!(latest.len(), 3);
    let filter = repository::snapshot::SnapshotFilter::default();
    assert!(repository::snapshot::latest(&latest, &filter).is_none());

    let whole = support::backup(&repository, &source).unwrap();
    let summary = &whole.snapshot.summary;
    assert!(!whole.snapshot.is_interrupted);
    assert_eq!(summary.files, FILES);
    assert_eq!(summary.files_unmodified, 140);
    let picture = support::sources::picture(&source);
    support::check_restore(&repository, &whole.snapshot, &source, &picture).unwrap();

    // What was interrupted before the latest snapshot is of no use any more.
    let again = support::backup(&repository, &source).unwrap();
    assert_eq!(again.snapshot.parent, Some(whole.snapshot.id));
    assert_eq!(again.snapshot.summary.files_unmodified, FILES);
}

#[test]
fn no_snapshot_is_written_when_no_file_was_stored() {
    let place = support::sources::place();
    let source = place.path().join("source");
    make(&source);
    let repository = support::create(Arc::new(MemoryStore::new()), true);
    let report = interrupted(&repository, &source, "d00");
    assert_eq!(report.snapshot.summary.files, 0);
    assert!(!report.is_written);
    assert!(repository.snapshots().unwrap().snapshots.is_empty());
}
