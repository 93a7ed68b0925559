//! Restore and check give the same files and say the same for any number of threads; a stop
//! leaves whole files only, a store that panics hangs nobody, holes stay holes.

mod support;

use std::collections::BTreeMap;
use std::os::unix::fs::{FileExt, MetadataExt};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex};

use engine::container::ContainerKind;
use engine::object::{MemoryStore, ObjectStore};
use repository::{
    CheckOptions, Overwrite, Progress, Repository, RestoreError, RestoreOptions, RunSettings,
};
use support::fixture::Fixture;
use support::hooked::watched;
use support::sources::{Picture, differences, picture, place};
use support::{backup, create, password, settings};

/// Threads that fetch, threads that compute.
const THREADS: [(usize, usize); 4] = [(1, 1), (4, 2), (1, 8), (4, 8)];

fn open(store: Arc<dyn ObjectStore>, (fetch, compute): (usize, usize)) -> Repository {
    let settings = RunSettings {
        threads: compute,
        read_threads: fetch,
        ..settings()
    };
    Repository::open(store, password(true).as_ref(), settings).expect("opened")
}

/// Progress, and all that it was told, in that order.
fn listener() -> (Progress, Arc<Mutex<Vec<String>>>) {
    let told = Arc::new(Mutex::new(Vec::new()));
    let progress = Progress::with_handler({
        let told = Arc::clone(&told);
        move |problem| told.lock().expect("no panic").push(problem.to_string())
    });
    (progress, told)
}

fn restore_into(
    fixture: &Fixture,
    repository: &Repository,
    target: &Path,
    progress: &Progress,
) -> Result<repository::RestoreReport, RestoreError> {
    let subpath = Some(fixture.source.root().as_os_str().as_encoded_bytes());
    let options = RestoreOptions {
        overwrite: Overwrite::Always,
        ..RestoreOptions::default()
    };
    let snapshot = &fixture.latest().snapshot;
    repository.restore(snapshot, subpath, target, &options, progress)
}

/// What a restore left, and what it said of the target's paths.
fn outcome(
    fixture: &Fixture,
    store: MemoryStore,
    threads: (usize, usize),
) -> (Picture, Vec<String>) {
    let repository = open(Arc::new(store), threads);
    let place = place();
    let target = place.path().join("target");
    let (progress, told) = listener();
    let report = restore_into(fixture, &repository, &target, &progress).expect("restored");
    assert_eq!(report.bytes > 0, report.files > 0);
    let told = told.lock().expect("no panic").clone();
    let shown = target.display().to_string();
    let told = told.iter().map(|line| line.replace(&shown, "")).collect();
    (picture(&target), told)
}

#[test]
fn restores_and_checks_do_not_depend_on_threads() {
    let fixture = Fixture::new(true);
    let mut keys = fixture.containers(ContainerKind::Data);
    keys.truncate(3);
    let sound = fixture.store.fork();
    let damaged = fixture.store.fork();
    for key in &keys {
        assert!(damaged.corrupt(key, |bytes| bytes[200] ^= 1));
    }
    for (store, is_sound) in [(sound, true), (damaged, false)] {
        let expected = outcome(&fixture, store.fork(), THREADS[0]);
        assert_eq!(expected.1.is_empty(), is_sound);
        assert_eq!(expected.0 == *fixture.latest().picture, is_sound);
        let check = |threads| {
            let (progress, told) = listener();
            let options = CheckOptions { read_data: true };
            let repository = open(Arc::new(store.fork()), threads);
            let report = repository.check(options, &progress).expect("checked");
            let told = told.lock().expect("no panic").clone();
            (report, told)
        };
        let report = check(THREADS[0]);
        // With these also containers of deltas to what they held.
        let named = &report.0.damaged_containers;
        assert_eq!(named.is_empty(), is_sound);
        let mut damaged = keys.iter().filter(|_| !is_sound);
        assert!(damaged.all(|key| named.contains(&key.id)));
        for threads in THREADS {
            let actual = outcome(&fixture, store.fork(), threads);
            assert!(differences(&expected.0, &actual.0).is_empty());
            assert_eq!(actual.1, expected.1, "{threads:?}");
            assert_eq!(check(threads), report, "{threads:?}");
        }
    }
}

#[test]
fn a_stop_leaves_whole_files_only() {
    let fixture = Fixture::new(true);
    let data = fixture.containers(ContainerKind::Data);
    for threads in THREADS {
        for reads in [1, 2, 4] {
            let (progress, _) = listener();
            let progress = Arc::new(progress);
            let stop = {
                let progress = Arc::clone(&progress);
                move || progress.is_cancelled.store(true, Ordering::SeqCst)
            };
            let watched = watched(Arc::new(fixture.store.fork()), &data, reads, stop);
            let repository = open(Arc::new(watched), threads);
            let place = place();
            let outcome = restore_into(&fixture, &repository, place.path(), &progress);
            assert!(matches!(outcome, Err(RestoreError::Interrupted)));
            let expected = &fixture.latest().files;
            let mut there: BTreeMap<_, _> = BTreeMap::new();
            for name in picture(place.path()).into_keys() {
                let path = place.path().join(&name);
                if std::fs::symlink_metadata(&path)
                    .expect("an entry")
                    .is_file()
                {
                    there.insert(name, std::fs::read(&path).expect("a file"));
                }
            }
            for (name, bytes) in &there {
                assert_eq!(expected.get(name), Some(bytes), "{}", name.display());
            }
            assert!(there.len() < expected.len());
        }
    }
}

#[test]
fn a_store_that_panics_hangs_nobody() {
    let fixture = Fixture::new(true);
    let data = fixture.containers(ContainerKind::Data);
    for threads in THREADS {
        for is_check in [false, true] {
            let panic = || panic!("meant to happen");
            let watched = watched(Arc::new(fixture.store.fork()), &data, 2, panic);
            let repository = open(Arc::new(watched), threads);
            let place = place();
            let progress = Progress::default();
            let run = || {
                if is_check {
                    let options = CheckOptions { read_data: true };
                    drop(repository.check(options, &progress));
                } else {
                    drop(restore_into(&fixture, &repository, place.path(), &progress));
                }
            };
            assert!(catch_unwind(AssertUnwindSafe(run)).is_err());
        }
    }
}

#[test]
fn holes_stay_holes_and_zeros_stay_zeros() {
    let place = tempfile::tempdir().expect("a directory");
    let source = place.path().join("source");
    std::fs::create_dir(&source).expect("made");
    let sparse = std::fs::File::create(source.join("sparse")).expect("made");
    sparse.set_len(40 << 20).expect("long");
    for block in [0u64, 3, 4, 500, 5000] {
        let bytes = [block as u8 | 1; 8192];
        sparse.write_all_at(&bytes, block * 8192).expect("written");
    }
    drop(sparse);
    std::fs::write(source.join("zeros"), vec![0; 3 << 20]).expect("written");
    std::fs::write(source.join("one-hole-at-the-end"), b"begins").expect("written");
    let end = std::fs::File::options()
        .write(true)
        .open(source.join("one-hole-at-the-end"));
    end.expect("opened").set_len(1 << 20).expect("long");
    let blocks = |directory: &Path, name| {
        let file = std::fs::File::open(directory.join(name)).expect("a file");
        file.sync_all().expect("synced");
        file.metadata().expect("metadata").blocks()
    };
    let store = Arc::new(MemoryStore::new());
    let repository = create(Arc::clone(&store) as Arc<dyn ObjectStore>, true);
    let snapshot = backup(&repository, &source).expect("backed up").snapshot;
    for threads in THREADS {
        let repository = open(Arc::new(store.fork()), threads);
        let target = place
            .path()
            .join(format!("target-{}-{}", threads.0, threads.1));
        let outcome = support::restore(&repository, &snapshot, &source, &target);
        let (report, problems) = outcome.expect("restored");
        assert_eq!((report.files, problems), (3, Vec::new()));
        assert!(differences(&picture(&source), &picture(&target)).is_empty());
        for name in ["sparse", "zeros", "one-hole-at-the-end"] {
            let (before, after) = (blocks(&source, name), blocks(&target, name));
            assert!(after <= before, "{name}: {before} blocks, then {after}");
        }
        assert!(blocks(&target, "zeros") * 512 >= 3 << 20, "zeros are data");
    }
}
