//! Copies of snapshots in another repository: the same trees, read once, resumed after anything.

mod support;

use std::collections::BTreeMap;
use std::fs;
use std::ops::ControlFlow;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use engine::format::FieldList;
use engine::object::{LocalStore, MemoryStore, ObjectId, ObjectKey, ObjectKind, ObjectStore};
use engine::pipeline::DeltaLevel;
use repository::copy::Outcome;
use repository::keys::Password;
use repository::snapshot::{DiskState, Origin, Snapshot, SnapshotChange};
use repository::tree::{Entry, EntryKind};
use repository::{CopyError, CopyOptions, CopyReport, CreateOptions, Progress, Repository};
use support::sources::Source;
use support::{
    backup, backup_options, check_clean, check_restore, create_options, password, settings,
};
use testkit::generate::random_bytes;
use testkit::{CrashDisk, CrashMode};

/// A repository in memory with its store.
fn repository(options: &CreateOptions, is_encrypted: bool) -> (Arc<MemoryStore>, Repository) {
    let store = Arc::new(MemoryStore::new());
    let shared = Arc::clone(&store) as Arc<dyn ObjectStore>;
    let password = password(is_encrypted);
    let created = Repository::create(shared, password.as_ref(), options, settings());
    (store, created.expect("created"))
}

/// Options of a repository that cuts like `source`.
fn cutting_like(source: &Repository) -> CreateOptions {
    CreateOptions {
        chunker_of: Some(source.chunker_to_share()),
        ..create_options()
    }
}

/// Options of one that cuts otherwise, and packs otherwise.
fn cutting_otherwise() -> CreateOptions {
    let mut options = create_options();
    options.chunker = options.chunker.map(|chunker| chunking::Parameters {
        min_bytes: 512,
        avg_bytes: 2048,
        max_bytes: 16_384,
        ..chunker
    });
    options.container_bytes = Some(128 << 10);
    options
}

fn options() -> CopyOptions {
    CopyOptions {
        host: "copier".to_owned(),
        force: false,
    }
}

fn all(repository: &Repository) -> Vec<Snapshot> {
    repository.snapshots().expect("listed").snapshots
}

fn copy_all(source: &Repository, target: &Repository) -> CopyReport {
    copy_with(source, target, &options()).expect("copied")
}

fn copy_with(
    source: &Repository,
    target: &Repository,
    options: &CopyOptions,
) -> Result<CopyReport, CopyError> {
    let progress = Progress::default();
    source.copy_to(
        target,
        &all(source),
        options,
        &progress,
        &mut |_, _, error| {
            assert!(error.is_none(), "{error:?}");
        },
    )
}

/// All that a tree says, but for what depends on keys and places.
fn told(repository: &Repository, snapshot: &Snapshot) -> BTreeMap<Vec<u8>, (Entry, Vec<u8>)> {
    let tree = repository.tree(snapshot).expect("a tree");
    let mut found = BTreeMap::new();
    tree.visit(b"/", true, &mut |path, entry| {
        found.insert(path.to_vec(), entry.clone());
        ControlFlow::Continue(())
    })
    .expect("visited");
    let mut told = BTreeMap::new();
    for (path, mut entry) in found {
        let mut content = Vec::new();
        if entry.kind == EntryKind::File {
            let dumped = repository.dump(snapshot, &path, &mut content, &Progress::default());
            dumped.expect("dumped");
        }
        let holes: u64 = match &entry.content {
            engine::recipe::Recipe::Runs(runs) => runs
                .iter()
                .filter(|run| matches!(run, engine::recipe::Run::Hole { .. }))
                .map(engine::recipe::Run::bytes)
                .sum(),
            engine::recipe::Recipe::Paged { .. } => 0,
        };
        content.extend_from_slice(format!(" and {holes} bytes of holes").as_bytes());
        entry.content = engine::recipe::Recipe::default();
        entry.check = entry
            .check
            .map(|_| engine::fingerprint::CheckValue([0; 16]));
        told.insert(path, (entry, content));
    }
    told
}

/// Are the copies in `target` what the snapshots of `source` are?
fn assert_copied(source: &Repository, target: &Repository) {
    let copies = all(target);
    for snapshot in all(source) {
        let origin = snapshot.origin(source.config().id);
        let copy = copies.iter().find(|copy| copy.copy_of == Some(origin));
        let copy = copy.unwrap_or_else(|| panic!("no copy of {}", snapshot.id));
        let expected = Snapshot {
            id: copy.id,
            root: copy.root.clone(),
            run: copy.run,
            parent: copy.parent,
            remap_generation: copy.remap_generation,
            replaces: Vec::new(),
            copy_of: Some(origin),
            ..snapshot.clone()
        };
        assert_eq!(*copy, expected);
        assert!(
            told(source, &snapshot) == told(target, copy),
            "{}",
            snapshot.id
        );
    }
    check_clean(target).expect("clean");
}

/// Something of every kind beside what a source has.
fn add_odd_things(root: &Path) {
    symlink("nowhere", root.join("link")).expect("linked");
    fs::hard_link(root.join("small/01"), root.join("another name")).expect("linked");
    fs::hard_link(root.join("small/02"), root.join("zz")).expect("linked");
    let sparse = fs::File::create(root.join("holes")).expect("made");
    sparse.set_len(3 << 20).expect("set");
    use std::os::unix::fs::FileExt;
    sparse
        .write_all_at(&random_bytes(9, 50_000), 1 << 20)
        .expect("written");
    support::files::set_attribute(&root.join("small/03"), "user.attribute", b"\x00value");
    fs::create_dir(root.join("never changes")).expect("made");
    fs::write(root.join("never changes/file"), random_bytes(3, 20_000)).expect("written");
}

/// A repository with three snapshots of one tree as it changes.
fn source_repository() -> (Source, Arc<MemoryStore>, Repository) {
    let source = Source::new();
    add_odd_things(source.root());
    let (store, repository) = repository(&create_options(), true);
    for version in 0..3 {
        if version > 0 {
            source.advance(version);
        }
        std::thread::sleep(std::time::Duration::from_millis(50));
        backup(&repository, source.root()).expect("backed up");
    }
    (source, store, repository)
}

#[test]
fn copies_are_what_they_are_copies_of() {
    let (files, _, source) = source_repository();
    for (kind, create, is_encrypted, is_kept) in [
        ("kept", cutting_like(&source), true, true),
        ("of other keys", create_options(), true, false),
        ("cut otherwise", cutting_otherwise(), false, false),
    ] {
        let (_, target) = repository(&create, is_encrypted);
        let report = copy_all(&source, &target);
        assert_eq!(
            (report.copied, report.there, report.failed),
            (3, 0, 0),
            "{kind}"
        );
        assert_eq!(report.is_cut_again, !is_kept, "{kind}");
        assert_eq!(source.cuts_like(&target), is_kept, "{kind}");
        assert_copied(&source, &target);
        // The last one on a disk again, bit for bit.
        let last = all(&target).pop().expect("a snapshot");
        check_restore(&target, &last, files.root(), &files.picture()).expect(kind);
        // What comes second is there: nothing is read.
        let again = copy_all(&source, &target);
        assert_eq!(
            (again.copied, again.there, again.bytes_read),
            (0, 3, 0),
            "{kind}"
        );
        assert_eq!(all(&target).len(), 3);
    }
}

#[test]
fn kept_chunks_are_read_once_and_are_those_of_backups() {
    let (files, _, source) = source_repository();
    let (_, target) = repository(&cutting_like(&source), true);
    let report = copy_all(&source, &target);
    let stats = source.stats(&Progress::default()).expect("counted");
    assert!(report.bytes_read > 0);
    assert!(
        report.bytes_read <= stats.unique_bytes,
        "{} bytes were read of {}",
        report.bytes_read,
        stats.unique_bytes
    );
    assert_eq!(report.bytes_read, report.bytes_new, "what was read was new");
    // A backup into the target finds all chunks.
    let fresh = backup(&target, files.root()).expect("backed up");
    assert_eq!(fresh.totals.chunks_new, 0);
    // And into one that shares nothing, what is cut again is cut as a backup cuts.
    let (_, target) = repository(&cutting_otherwise(), true);
    copy_all(&source, &target);
    let fresh = backup(&target, files.root()).expect("backed up");
    assert_eq!(fresh.totals.chunks_new, 0);
}

#[test]
fn the_next_copy_reads_what_changed() {
    for create in [None, Some(create_options()), Some(cutting_otherwise())] {
        let (files, store, source) = source_repository();
        let create = create.unwrap_or_else(|| cutting_like(&source));
        let (_, target) = repository(&create, true);
        let first = copy_all(&source, &target);
        files.touch(1);
        std::thread::sleep(std::time::Duration::from_millis(50));
        let report = backup(&source, files.root()).expect("backed up");
        // Another process, which knows nothing but what is stored.
        let source = support::open(store, true).expect("opened");
        let second = copy_all(&source, &target);
        assert_eq!((second.copied, second.there), (1, 3));
        assert!(
            second.directories_kept > 0 && second.files_kept > 0,
            "{second:?}"
        );
        assert!(
            second.bytes_read <= 64 << 10 && first.bytes_read > 10 * second.bytes_read,
            "{} bytes were read, and {} had changed",
            second.bytes_read,
            report.totals.bytes_new
        );
        assert_copied(&source, &target);
        let copies = all(&target);
        assert_eq!(copies[3].parent, Some(copies[2].id));
        // The same snapshot again is the root of before.
        backup(&source, files.root()).expect("backed up");
        let third = copy_all(&source, &target);
        assert_eq!((third.copied, third.bytes_read), (1, 0));
        assert_copied(&source, &target);
    }
}

#[test]
fn a_copy_that_was_found_damaged_is_made_again() {
    let (_files, store, source) = source_repository();
    let (_, target) = repository(&cutting_like(&source), true);
    let first = copy_all(&source, &target);
    // A repair in the target has made something of one of the copies, without what was lost.
    let damaged = all(&target).remove(0);
    let mut repaired = Snapshot {
        id: ObjectId::random(),
        repaired: Some(damaged.id),
        copy_of: None,
        root: Default::default(),
        ..damaged.clone()
    };
    let (place, vault) = (target.engine().store(), target.engine().vault());
    repaired.write(place.as_ref(), vault).expect("written");
    let source = support::open(store, true).expect("opened");
    let second = copy_all(&source, &target);
    assert_eq!((second.copied, second.there), (1, first.copied - 1));
    let origin = |snapshot: &&Snapshot| snapshot.copy_of == damaged.copy_of;
    let roots: Vec<_> = all(&target)
        .iter()
        .filter(origin)
        .map(|it| it.root.clone())
        .collect();
    assert_eq!(roots.len(), 2);
    assert!(roots.iter().all(|root| *root != repaired.root));
}

#[test]
fn a_file_larger_than_all_batches_is_copied() {
    let place = support::sources::place();
    let mut bytes = Vec::new();
    for number in 0..1500u64 {
        bytes.extend_from_slice(&random_bytes(number % 11, 2500));
        bytes.extend_from_slice(&random_bytes(1 << 20 | number, 900));
    }
    fs::write(place.path().join("large"), &bytes).expect("written");
    let small = repository::RunSettings {
        memory_bytes: 1 << 20,
        ..settings()
    };
    let store = Arc::new(MemoryStore::new());
    let shared = Arc::clone(&store) as Arc<dyn ObjectStore>;
    Repository::create(shared, None, &create_options(), settings()).expect("created");
    let writing = support::open(Arc::clone(&store) as _, false).expect("opened");
    backup(&writing, place.path()).expect("backed up");
    // Little memory makes small batches.
    let source = Repository::open(store, None, small).expect("opened");
    for create in [cutting_like(&source), create_options(), cutting_otherwise()] {
        let (_, target) = repository(&create, true);
        copy_all(&source, &target);
        assert_copied(&source, &target);
    }
}

#[test]
fn what_was_changed_and_copied_on_is_recognized() {
    let (_, _, source) = source_repository();
    let (_, middle) = repository(&create_options(), true);
    let (_, last) = repository(&cutting_otherwise(), false);
    copy_all(&source, &middle);
    copy_all(&middle, &last);
    // The last one names the first repository, not the one between.
    let id = source.config().id;
    let origins: Vec<Option<Origin>> = all(&last).iter().map(|copy| copy.copy_of).collect();
    let expected: Vec<_> = all(&source)
        .iter()
        .map(|snapshot| Some(snapshot.origin(id)))
        .collect();
    assert_eq!(origins, expected);
    let report = copy_all(&source, &last);
    assert_eq!((report.copied, report.there), (0, 3));
    // Nor does a snapshot come back to where it is from, whatever it is called by now.
    let changed = all(&source).remove(0);
    let change = SnapshotChange::AddTags(vec!["weekly".to_owned()]);
    source
        .change_snapshot(&changed, &change)
        .expect("changed")
        .expect("different");
    let report = copy_all(&last, &source);
    assert_eq!((report.copied, report.there), (0, 3));
    let report = copy_all(&source, &middle);
    assert_eq!((report.copied, report.there), (0, 3));
    assert_eq!(all(&source).len(), 3);
}

#[test]
fn damage_is_told_and_mended() {
    let (_, store, source) = source_repository();
    let mut containers = Vec::new();
    store
        .list(ObjectKind::Container, &mut |id, _| containers.push(id))
        .expect("listed");
    let mut failed = 0;
    for (number, id) in containers.into_iter().enumerate() {
        let create = match number % 2 {
            0 => cutting_like(&source),
            _ => create_options(),
        };
        let key = ObjectKey::new(ObjectKind::Container, id);
        let whole = store.get(&key, u64::MAX).expect("read");
        let mut bytes = whole.clone();
        let middle = bytes.len() / 3;
        bytes[middle] ^= 4;
        store.delete(&key).expect("deleted");
        store.put(&key, &bytes).expect("written");
        let damaged = support::open(Arc::clone(&store) as _, true).expect("opened");
        let (_, target) = repository(&create, true);
        let mut outcomes = Vec::new();
        let report = damaged
            .copy_to(
                &target,
                &all(&damaged),
                &options(),
                &Progress::default(),
                &mut |_, outcome, _| {
                    outcomes.push(*outcome);
                },
            )
            .expect("the others are copied");
        let wrong = outcomes
            .iter()
            .filter(|outcome| **outcome == Outcome::Failed)
            .count();
        assert_eq!(report.failed, wrong as u64);
        assert_eq!(report.copied as usize + wrong, 3);
        assert_eq!(all(&target).len(), 3 - wrong, "nothing wrong is stored");
        failed += wrong;
        // What is whole restores; when the damage is mended, so does the rest.
        check_clean(&target).expect("clean");
        store.delete(&key).expect("deleted");
        store.put(&key, &whole).expect("written");
        let report = copy_all(&source, &target);
        assert_eq!(report.copied, wrong as u64);
        assert_copied(&source, &target);
    }
    assert!(failed > 3, "damage was met {failed} times");
}

#[test]
fn lost_containers_of_the_target_are_copied_again() {
    let (files, _, source) = source_repository();
    let (store, target) = repository(&cutting_like(&source), true);
    copy_all(&source, &target);
    let mut containers = Vec::new();
    store
        .list(ObjectKind::Container, &mut |id, _| containers.push(id))
        .expect("listed");
    for id in containers.into_iter().step_by(2) {
        store
            .delete(&ObjectKey::new(ObjectKind::Container, id))
            .expect("deleted");
    }
    for snapshot in all(&target) {
        store
            .delete(&ObjectKey::new(ObjectKind::Snapshot, snapshot.id))
            .expect("deleted");
    }
    let report = copy_with(
        &source,
        &target,
        &CopyOptions {
            force: true,
            ..options()
        },
    )
    .expect("copied");
    assert_eq!(report.copied, 3);
    assert_copied(&source, &target);
    let last = all(&target).pop().expect("a snapshot");
    check_restore(&target, &last, files.root(), &files.picture()).expect("restored");
}

#[test]
fn an_interrupted_copy_goes_on() {
    let (_, _, source) = source_repository();
    for create in [cutting_like(&source), create_options()] {
        let (store, target) = repository(&create, true);
        let progress = Progress::default();
        progress.is_cancelled.store(true, Ordering::Relaxed);
        let error = source.copy_to(
            &target,
            &all(&source),
            &options(),
            &progress,
            &mut |_, _, _| (),
        );
        assert!(matches!(error, Err(CopyError::Interrupted)), "{error:?}");
        // After the first snapshot.
        let progress = Progress::default();
        let error = source.copy_to(
            &target,
            &all(&source),
            &options(),
            &progress,
            &mut |_, _, _| {
                progress.is_cancelled.store(true, Ordering::Relaxed);
            },
        );
        assert!(matches!(error, Err(CopyError::Interrupted)), "{error:?}");
        assert_eq!(all(&target).len(), 1);
        let mut runs = 0;
        store
            .list(ObjectKind::Run, &mut |_, _| runs += 1)
            .expect("listed");
        assert_eq!(runs, 0, "it has taken leave");
        let report = copy_all(&source, &target);
        assert_eq!((report.copied, report.there), (2, 1));
        assert_copied(&source, &target);
    }
}

#[test]
fn what_makes_no_sense_is_refused() {
    let (_, store, source) = source_repository();
    let same = Repository::open(store, Some(&Password::new(support::PASSWORD)), settings());
    let same = same.expect("opened");
    let error = copy_with(&source, &same, &options());
    assert!(matches!(error, Err(CopyError::SameRepository)), "{error:?}");
}

/// A snapshot that says everything that one can say.
fn put_odd_snapshot(source: &Repository) {
    let mut odd = all(source).remove(0);
    odd.time.nanoseconds = 7;
    odd.is_interrupted = true;
    odd.is_protected = true;
    odd.tags = vec!["odd".to_owned(), "\u{e4}".to_owned()];
    odd.paths = vec![b"/not \xff text".to_vec()];
    odd.excludes = vec!["*.o".to_owned()];
    odd.errors.record("/lost", "denied");
    odd.errors.count = 3;
    odd.disk = Some(DiskState {
        volume: [1; 16],
        generation_id: [2; 16],
        generation: 3,
    });
    // A field of a later version.
    let list = [90, 2, b'h', b'i'];
    let mut fields = FieldList::new(&list);
    let field = fields.next_field().expect("a field").expect("one");
    odd.unknown.keep(field).expect("kept");
    let engine = source.engine();
    odd.write(engine.store().as_ref(), engine.vault())
        .expect("written");
}

#[test]
fn deltas_and_streams_and_odd_snapshots_are_copied() {
    let options = CreateOptions {
        deltas: DeltaLevel::Best,
        ..create_options()
    };
    let files = Source::new();
    let (_, source) = repository(&options, true);
    backup(&source, files.root()).expect("backed up");
    files.advance(1);
    backup(&source, files.root()).expect("backed up");
    let mut stream = &random_bytes(4, 300_000)[..];
    source
        .backup_stream(
            b"stream",
            &mut stream,
            &mut || Ok(()),
            &backup_options(),
            &Progress::default(),
        )
        .expect("backed up");
    put_odd_snapshot(&source);
    for create in [
        CreateOptions {
            deltas: DeltaLevel::Best,
            ..cutting_like(&source)
        },
        cutting_otherwise(),
    ] {
        let (_, target) = repository(&create, true);
        let report = copy_all(&source, &target);
        assert_eq!(report.copied, 4);
        assert_copied(&source, &target);
    }
}

fn local(disk: &CrashDisk) -> Arc<LocalStore<CrashDisk>> {
    Arc::new(LocalStore::with_filesystem(disk.clone(), "crash disk"))
}

/// Copies onto a disk that may crash; returns which snapshots were told to be copied.
fn copy_until_crash(source: &Repository, disk: &CrashDisk) -> Vec<ObjectId> {
    let mut told = Vec::new();
    let copied = support::open(local(disk), true)
        .map_err(|error| error.to_string())
        .and_then(|target| {
            let progress = Progress::default();
            let copied = source.copy_to(
                &target,
                &all(source),
                &options(),
                &progress,
                &mut |_, outcome, _| {
                    if let Outcome::Copied(id) = outcome {
                        told.push(*id);
                    }
                },
            );
            copied.map_err(|error| error.to_string())
        });
    if let Err(error) = copied {
        assert!(disk.has_crashed(), "a copy failed on a sound disk: {error}");
    }
    told
}

#[test]
fn a_copy_survives_a_crash_at_any_operation() {
    let (_, _, source) = source_repository();
    for create in [cutting_like(&source), create_options()] {
        let empty = CrashDisk::new(0);
        let laid_out = LocalStore::create_with_filesystem(empty.clone(), "crash disk");
        let laid_out = Arc::new(laid_out.expect("laid out"));
        let password = password(true);
        Repository::create(laid_out, password.as_ref(), &create, settings()).expect("created");
        let fresh = || empty.after_crash(0, CrashMode::ProcessKill);
        let whole = fresh();
        assert_eq!(copy_until_crash(&source, &whole).len(), 3);
        let operations = whole.operations();
        let step = (operations / 40).max(1) as usize;
        for (number, operation) in (0..operations).step_by(step).enumerate() {
            let disk = fresh();
            disk.crash_at(operation);
            let told = copy_until_crash(&source, &disk);
            for mode in [CrashMode::PowerLoss, CrashMode::ProcessKill] {
                let found = disk.after_crash(number as u64, mode);
                let target = support::open(local(&found), true).expect("opened");
                let copies = all(&target);
                for id in &told {
                    assert!(
                        copies.iter().any(|copy| copy.id == *id),
                        "operation {operation}: {id} is lost"
                    );
                }
                check_clean(&target)
                    .unwrap_or_else(|error| panic!("operation {operation}: {error}"));
                let report = copy_all(&source, &target);
                assert_eq!(report.copied + report.there, 3, "operation {operation}");
                assert_eq!(report.there, copies.len() as u64, "operation {operation}");
                assert_copied(&source, &target);
            }
        }
    }
}
