//! Files whose plan does not fit the memory are restored in several batches: whole, with their
//! links, and with a word about damage.

mod support;

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use engine::container::{ContainerId, ContainerKind};
use engine::object::{MemoryStore, ObjectKey, ObjectKind, ObjectStore};
use engine::recipe::Run;
use repository::{Overwrite, Progress, Repository, RestoreOptions, RunSettings};
use support::hooked::watched;
use support::sources::{differences, picture, place};
use support::{backup, create, password, settings};
use testkit::generate::random_bytes;

/// Known and new chunks in turn: a recipe of several thousand runs.
fn make(root: &Path) {
    let known = random_bytes(1, 12_000_000);
    fs::write(root.join("a-known"), &known).expect("written");
    let mut mixed = Vec::new();
    for (number, part) in known.chunks(6000).enumerate() {
        mixed.extend_from_slice(part);
        mixed.extend_from_slice(&random_bytes(100 + number as u64, 3000));
    }
    fs::write(root.join("b-small"), b"before").expect("written");
    fs::write(root.join("c-mixed"), &mixed).expect("written");
    fs::hard_link(root.join("c-mixed"), root.join("d-the-same")).expect("linked");
    fs::write(root.join("e-small"), b"after").expect("written");
}

fn open(store: impl ObjectStore + 'static) -> Repository {
    let settings = RunSettings {
        memory_bytes: 1 << 20,
        ..settings()
    };
    let password = password(true);
    Repository::open(Arc::new(store), password.as_ref(), settings).expect("opened")
}

#[test]
fn files_that_do_not_fit_a_plan_come_whole() {
    let place = place();
    let source = place.path().join("source");
    fs::create_dir(&source).expect("made");
    make(&source);
    let store = Arc::new(MemoryStore::new());
    let repository = create(Arc::clone(&store) as Arc<dyn ObjectStore>, true);
    let snapshot = backup(&repository, &source).expect("backed up").snapshot;
    let tree = repository.tree(&snapshot).expect("a tree");
    let subpath = source.as_os_str().as_encoded_bytes();
    let path = [subpath, b"/c-mixed"].concat();
    let mixed = tree.entry(&path).expect("read").expect("there");
    let runs = tree.reader().runs(&mixed.content).count();
    assert!(runs > 3000, "{runs} runs");
    // One late in the file, of new chunks, and so of nothing but it.
    let containers_of = |name: &str| -> Vec<ContainerId> {
        let path = [subpath, name.as_bytes()].concat();
        let entry = tree.entry(&path).expect("read").expect("there");
        let runs = tree.reader().runs(&entry.content);
        let of_run = |run| match run {
            Run::Slots { container, .. } => Some(container),
            Run::Hole { .. } => None,
        };
        runs.filter_map(|run| of_run(run.expect("a run"))).collect()
    };
    let known = containers_of("/a-known");
    let mut own = containers_of("/c-mixed");
    own.retain(|container| !known.contains(container));
    let late = own[own.len() * 3 / 4];
    let sound = store.fork();
    let damaged = store.fork();
    let key = ObjectKey::new(ObjectKind::Container, late.0);
    assert!(damaged.corrupt(&key, |bytes| bytes[100] ^= 1));
    let section = tree.reader().containers().section(late);
    assert_ne!(
        section.expect("read").section.kind,
        ContainerKind::Metadata,
        "damage to data"
    );
    for (store, is_sound) in [(sound, true), (damaged, false)] {
        let repository = open(store);
        let target = place.path().join(format!("target-{is_sound}"));
        let options = RestoreOptions {
            overwrite: Overwrite::Always,
            ..RestoreOptions::default()
        };
        let progress = Progress::default();
        let report = repository
            .restore(&snapshot, Some(subpath), &target, &options, &progress)
            .expect("restored");
        assert!(report.containers_read > report.containers);
        if is_sound {
            assert_eq!((report.files, report.failed), (4, 0));
            assert!(differences(&picture(&source), &picture(&target)).is_empty());
            let links = [target.join("c-mixed"), target.join("d-the-same")];
            let inodes = links.map(|path| fs::metadata(path).expect("there").ino());
            assert_eq!(inodes[0], inodes[1]);
        } else {
            // The file, and the link to it.
            assert_eq!(report.failed, 2, "{report:?}");
            assert!(!target.join("c-mixed").exists());
            for name in ["a-known", "b-small", "e-small"] {
                let expected = fs::read(source.join(name)).expect("there");
                assert_eq!(fs::read(target.join(name)).expect("restored"), expected);
            }
        }
    }
}

/// Whenever somebody asks for a stop, what stands in the target is whole.
#[test]
fn a_stop_leaves_no_part_of_a_long_file() {
    let place = place();
    let source = place.path().join("source");
    fs::create_dir(&source).expect("made");
    make(&source);
    let store = Arc::new(MemoryStore::new());
    let repository = create(Arc::clone(&store) as Arc<dyn ObjectStore>, true);
    let snapshot = backup(&repository, &source).expect("backed up").snapshot;
    let subpath = source.as_os_str().as_encoded_bytes();
    let data: Vec<ObjectKey> = store
        .keys()
        .into_iter()
        .filter(|key| key.kind == ObjectKind::Container)
        .collect();
    let mut was_cut = false;
    for reads in (1..2000).step_by(97) {
        let progress = Arc::new(Progress::default());
        let stop = {
            let progress = Arc::clone(&progress);
            move || progress.is_cancelled.store(true, Ordering::SeqCst)
        };
        let repository = open(watched(Arc::new(store.fork()), &data, reads, stop));
        let target = place.path().join(format!("target-{reads}"));
        let options = RestoreOptions::default();
        let outcome = repository.restore(&snapshot, Some(subpath), &target, &options, &progress);
        was_cut |= outcome.is_err() && reads > 200;
        for name in ["a-known", "b-small", "c-mixed", "d-the-same", "e-small"] {
            if let Ok(actual) = fs::read(target.join(name)) {
                let expected = fs::read(source.join(name)).expect("there");
                assert!(actual == expected, "{name} after {reads} reads");
            }
        }
        fs::remove_dir_all(&target).expect("removed");
    }
    assert!(was_cut);
}
