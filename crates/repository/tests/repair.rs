//! Repairs: what can be had is had afterwards, what is lost is named, nothing is worse, whatever is damaged and
//! whenever a repair dies.

#![allow(clippy::unwrap_used)] // A test says no by panicking.

mod support;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use engine::container::ContainerKind;
use engine::object::{MemoryStore, ObjectKey, ObjectKind, ObjectStore};
use repository::deletion::runs;
use repository::listing::join_path;
use repository::prune::PruneOptions;
use repository::snapshot::Snapshot;
use repository::tree::EntryKind;
use repository::{
    BackupOptions, CheckLevel, CheckReport, Progress, RecoverOptions, RepairContainersOptions,
    RepairError, RepairIndexOptions, RepairRemapsOptions, RepairSnapshotsOptions,
    RepairSnapshotsReport, Repository, SnapshotOutcome,
};
use support::fixture::Fixture;
use support::hooked::dying;
use support::sources::Source;
use support::{backup, backup_options, check_restore};
use testkit::random::Random;

fn shared(store: &Arc<MemoryStore>) -> Arc<dyn ObjectStore> {
    Arc::clone(store) as Arc<dyn ObjectStore>
}

fn open(store: &Arc<MemoryStore>) -> Repository {
    support::open(shared(store), true).unwrap()
}

fn check(repository: &Repository) -> CheckReport {
    let checked = repository.check(CheckLevel::Data, &Progress::default());
    checked.unwrap()
}

fn repair_snapshots(
    repository: &Repository,
    options: &RepairSnapshotsOptions,
) -> RepairSnapshotsReport {
    let repaired = repository.repair_snapshots(options, &Progress::default());
    repaired.unwrap()
}

fn forgetting() -> RepairSnapshotsOptions {
    RepairSnapshotsOptions {
        forget: true,
        ..RepairSnapshotsOptions::default()
    }
}

fn outcomes(report: &RepairSnapshotsReport) -> Vec<SnapshotOutcome> {
    let all = report.snapshots.iter();
    all.map(|snapshot| snapshot.outcome).collect()
}

/// What can be read of all snapshots: contents by path, each with a hash.
type Readable = BTreeMap<Vec<u8>, BTreeSet<[u8; 32]>>;

fn readable_of(repository: &Repository, snapshot: &Snapshot, readable: &mut Readable) {
    let tree = repository.tree(snapshot).unwrap();
    let mut waiting = vec![(Vec::new(), tree.root().clone())];
    while let Some((path, recipe)) = waiting.pop() {
        for entry in tree.directory(&recipe, &path) {
            let Ok(entry) = entry else { break };
            let path = join_path(&path, &entry.name);
            match entry.kind {
                EntryKind::Directory => waiting.push((path, entry.content)),
                EntryKind::File => {
                    let mut content = Vec::new();
                    let dumped =
                        repository.dump(snapshot, &path, &mut content, &Progress::default());
                    if dumped.is_ok() {
                        let hash = *blake3::hash(&content).as_bytes();
                        readable.entry(path).or_default().insert(hash);
                    }
                }
                _ => {}
            }
        }
    }
}

fn readable(repository: &Repository) -> Readable {
    let mut readable = Readable::new();
    for snapshot in &repository.snapshots().unwrap().snapshots {
        readable_of(repository, snapshot, &mut readable);
    }
    readable
}

/// Is all of `before` in `after`?
fn assert_not_worse(before: &Readable, after: &Readable, what: &str) {
    for (path, contents) in before {
        let now = after.get(path);
        let path = String::from_utf8_lossy(path);
        for content in contents {
            let is_there = now.is_some_and(|now| now.contains(content));
            assert!(is_there, "{what}: {path} could be read before");
        }
    }
}

/// Damages a byte in the middle of the group of that number of a container.
fn damage_group(store: &MemoryStore, repository: &Repository, key: ObjectKey, number: usize) {
    let reader = repository.engine().reader().unwrap();
    let (metadata, _) = reader.containers().object(key).unwrap();
    let groups: Vec<_> = metadata
        .sections
        .iter()
        .flat_map(|section| &section.groups)
        .collect();
    let group = groups[number % groups.len()];
    let place = group.offset as usize + group.sealed_bytes as usize / 2;
    store.corrupt(&key, |object| object[place] ^= 4);
}

/// A repository of two versions one of whose data containers has a damaged group, with the container.
fn damaged() -> (Fixture, Arc<MemoryStore>, ObjectKey) {
    let fixture = Fixture::new(true);
    let store = Arc::new(fixture.store.fork());
    let repository = open(&store);
    let reader = repository.engine().reader().unwrap();
    let groups = |key: &ObjectKey| {
        let (metadata, _) = reader.containers().object(*key).unwrap();
        metadata.sections[0].groups.len()
    };
    let keys = fixture.containers(ContainerKind::Data);
    let key = keys.into_iter().max_by_key(groups).unwrap();
    assert!(groups(&key) > 2);
    damage_group(&store, &repository, key, 1);
    (fixture, store, key)
}

#[test]
fn a_damaged_snapshot_is_made_again_without_what_is_lost() {
    let (fixture, store, _) = damaged();
    let repository = open(&store);
    let before = readable(&repository);
    let objects = store.keys();
    let dry = RepairSnapshotsOptions {
        dry_run: true,
        ..RepairSnapshotsOptions::default()
    };
    let planned = repair_snapshots(&repository, &dry);
    assert_eq!(store.keys(), objects, "a dry run changes nothing");

    let (progress, problems) = support::recorder();
    let done = repository.repair_snapshots(&RepairSnapshotsOptions::default(), &progress);
    let done = done.unwrap();
    assert_eq!(outcomes(&planned), outcomes(&done));
    let lost: Vec<_> = done
        .snapshots
        .iter()
        .flat_map(|snapshot| &snapshot.losses)
        .collect();
    assert!(!lost.is_empty());
    assert_eq!(problems.lock().unwrap().len(), lost.len(), "each is named");
    assert!(lost.iter().all(|loss| loss.bytes_lost > 0 && !loss.is_kept));
    let after = readable(&repository);
    assert_not_worse(&before, &after, "repaired");
    let list = repository.snapshots().unwrap().snapshots;
    for found in &done.snapshots {
        if found.outcome == SnapshotOutcome::Whole {
            continue;
        }
        assert_eq!(found.outcome, SnapshotOutcome::Repaired);
        let new = list.iter().find(|it| Some(it.id) == found.new).unwrap();
        let old = list.iter().find(|it| it.id == found.id).unwrap();
        assert_eq!((new.repaired, new.time), (Some(old.id), old.time));
        assert_eq!(new.errors.count, found.losses.len() as u64);
        assert_eq!(
            new.summary.files + found.losses.len() as u64,
            old.summary.files
        );
        // Everything in it can be read, and the lost files are not in it.
        let (root, place) = (fixture.source.root(), support::sources::place());
        let target = place.path().join("target");
        let (report, problems) = support::restore(&repository, new, root, &target).unwrap();
        assert_eq!((report.failed, problems.len()), (0, 0));
        for loss in &found.losses {
            let path = std::str::from_utf8(&loss.path).unwrap();
            let name = std::path::Path::new(path).strip_prefix(root).unwrap();
            assert!(!target.join(name).exists(), "{path}");
        }
    }
    // Again: there is nothing left to do. Instead of the damaged ones: nothing but the new ones.
    let again = repair_snapshots(&repository, &RepairSnapshotsOptions::default());
    let is_done = |outcome: &SnapshotOutcome| {
        matches!(
            outcome,
            SnapshotOutcome::Whole | SnapshotOutcome::WasRepaired
        )
    };
    assert!(
        outcomes(&again).iter().all(is_done),
        "{:?}",
        outcomes(&again)
    );
    assert_eq!(repository.snapshots().unwrap().snapshots.len(), list.len());
    let forgotten = repair_snapshots(&repository, &forgetting());
    assert!(
        forgotten
            .snapshots
            .iter()
            .any(|snapshot| snapshot.is_forgotten)
    );
    let count = repository.snapshots().unwrap().snapshots.len();
    assert_eq!(
        count,
        fixture.saved.len(),
        "what was made before is gone, too"
    );
    let left = repair_snapshots(&repository, &forgetting());
    assert!(
        outcomes(&left)
            .iter()
            .all(|outcome| *outcome == SnapshotOutcome::Whole)
    );
    assert_not_worse(&before, &readable(&repository), "forgotten");
}

#[test]
fn what_is_stored_elsewhere_as_well_is_whole_again() {
    let (fixture, store, key) = damaged();
    let repository = open(&store);
    let damaged = check(&repository).damaged_containers;
    assert!(damaged.contains(&key.id));
    repository.set_aside(&damaged).unwrap();
    let options = BackupOptions {
        force: true,
        ..backup_options()
    };
    let sources = [fixture.source.root().to_owned()];
    let stored = repository
        .backup(&sources, &options, &Progress::default())
        .unwrap();
    assert!(stored.snapshot.summary.chunks_new > 0);
    let report = repair_snapshots(&repository, &forgetting());
    let latest = &report.snapshots[1];
    assert_eq!(latest.id, fixture.latest().snapshot.id);
    assert!(
        latest.files_relinked > 0 && latest.losses.is_empty(),
        "{latest:?}"
    );
    let list = repository.snapshots().unwrap().snapshots;
    let new = list.iter().find(|it| Some(it.id) == latest.new).unwrap();
    assert_eq!(new.errors.count, 0);
    let picture = &fixture.latest().picture;
    check_restore(&repository, new, fixture.source.root(), picture).unwrap();
}

#[test]
fn files_that_are_stored_again_are_whole_again_where_nothing_is_known_of_their_chunks() {
    let fixture = Fixture::new(true);
    let store = Arc::new(fixture.store.fork());
    for (number, key) in fixture
        .containers(ContainerKind::Data)
        .into_iter()
        .enumerate()
    {
        match number % 2 {
            0 => drop(store.remove_raw(&key)),
            _ => drop(store.corrupt(&key, |object| object.truncate(object.len() / 2))),
        }
    }
    let repository = open(&store);
    repository
        .repair_containers(&RepairContainersOptions::default(), &Progress::default())
        .unwrap();
    let options = BackupOptions {
        force: true,
        ..backup_options()
    };
    let sources = [fixture.source.root().to_owned()];
    repository
        .backup(&sources, &options, &Progress::default())
        .unwrap();
    let report = repair_snapshots(&repository, &forgetting());
    let latest = &report.snapshots[1];
    assert_eq!(latest.id, fixture.latest().snapshot.id);
    assert!(
        latest.files_relinked > 0 && latest.losses.is_empty(),
        "{latest:?}"
    );
    // Files that have changed since are lost, and no others.
    let first = &report.snapshots[0];
    assert!(first.files_relinked > 0 && !first.losses.is_empty());
    let (old, new) = (&fixture.saved[0].files, &fixture.latest().files);
    for loss in &first.losses {
        let path = std::str::from_utf8(&loss.path).unwrap();
        let name = std::path::Path::new(path)
            .strip_prefix(fixture.source.root())
            .unwrap();
        assert_ne!(old.get(name), new.get(name), "{path}");
    }
    let list = repository.snapshots().unwrap().snapshots;
    let whole = list.iter().find(|it| Some(it.id) == latest.new).unwrap();
    let picture = &fixture.latest().picture;
    check_restore(&repository, whole, fixture.source.root(), picture).unwrap();
    repository.prune(&eager(), &Progress::default()).unwrap();
    let checked = check(&repository);
    assert_eq!(checked.problem_count, 0, "{:?}", checked.problems);
}

#[test]
fn what_nobody_can_read_stays_as_long_as_a_snapshot_needs_it() {
    let fixture = Fixture::new(true);
    let store = Arc::new(fixture.store.fork());
    let key = fixture.containers(ContainerKind::Data)[0];
    let whole = store.object(&key).unwrap();
    store.corrupt(&key, |object| object.truncate(object.len() - 100));
    let repository = open(&store);
    let containers = RepairContainersOptions::default();
    let done = repository
        .repair_containers(&containers, &Progress::default())
        .unwrap();
    assert_eq!((done.damaged, done.unreadable, done.chunks_kept), (1, 1, 0));
    let refused = repository
        .prune(&eager(), &Progress::default())
        .unwrap_err();
    assert!(
        refused.to_string().contains("is needed and is nowhere"),
        "{refused}"
    );
    // Brought back from a copy, it is whole again, although it was condemned: what is needed of it is packed anew.
    let brought_back = Arc::new(store.fork());
    brought_back.insert_raw(key, whole.to_vec());
    let repository = open(&brought_back);
    repository.prune(&eager(), &Progress::default()).unwrap();
    assert!(brought_back.object(&key).is_none());
    assert_eq!(check(&repository).problem_count, 0);
    for saved in &fixture.saved {
        let (root, picture) = (fixture.source.root(), &saved.picture);
        check_restore(&repository, &saved.snapshot, root, picture).unwrap();
    }
}

#[test]
fn parts_are_kept_with_zeros_for_the_rest() {
    let (fixture, store, _) = damaged();
    let repository = open(&store);
    let options = RepairSnapshotsOptions {
        keep_parts: true,
        ..forgetting()
    };
    let report = repair_snapshots(&repository, &options);
    let mut kept = 0;
    for found in &report.snapshots {
        let list = repository.snapshots().unwrap().snapshots;
        let Some(new) = list.iter().find(|it| Some(it.id) == found.new) else {
            continue;
        };
        for loss in found.losses.iter().filter(|loss| loss.is_kept) {
            kept += 1;
            let path = [&loss.path[..], b".damaged"].concat();
            let mut content = Vec::new();
            let progress = Progress::default();
            repository
                .dump(new, &path, &mut content, &progress)
                .unwrap();
            assert_eq!(content.len() as u64, loss.bytes_readable + loss.bytes_lost);
            let name = std::str::from_utf8(&loss.path).unwrap();
            let name = std::path::Path::new(name)
                .strip_prefix(fixture.source.root())
                .unwrap();
            let saved = fixture
                .saved
                .iter()
                .find(|it| it.snapshot.id == found.id)
                .unwrap();
            let original = &saved.files[name];
            let different = original.iter().zip(&content).filter(|(a, b)| a != b);
            let different: Vec<_> = different.map(|(_, now)| *now).collect();
            assert!(!different.is_empty() && different.iter().all(|&byte| byte == 0));
            assert!(different.len() as u64 <= loss.bytes_lost);
        }
    }
    assert!(kept > 0);
    let again = repair_snapshots(&repository, &options);
    assert!(
        outcomes(&again)
            .iter()
            .all(|outcome| *outcome == SnapshotOutcome::Whole)
    );
}

#[test]
fn a_doubt_without_ground_is_cleared() {
    let fixture = Fixture::new(true);
    let store = Arc::new(fixture.store.fork());
    let repository = open(&store);
    let engine = repository.engine();
    let run = fixture.latest().snapshot.run.unwrap();
    runs::expire(engine.store().as_ref(), engine.vault(), run).unwrap();
    let doubtful = || {
        let list = repository.snapshots().unwrap().snapshots;
        list.iter().filter(|snapshot| snapshot.is_doubtful).count()
    };
    assert_eq!(doubtful(), 1);
    // What lies in condemned objects may be gone tomorrow.
    let condemned = fixture
        .containers(ContainerKind::Data)
        .into_iter()
        .map(|key| key.id);
    let condemned = condemned.collect::<BTreeSet<_>>();
    let (bytes, vault) = (engine.store().as_ref(), engine.vault());
    repository::deletion::condemned::condemn(bytes, vault, &condemned).unwrap();
    let report = repair_snapshots(&repository, &RepairSnapshotsOptions::default());
    assert_eq!(outcomes(&report)[1], SnapshotOutcome::StillDoubtful);
    assert_eq!(doubtful(), 1);
    for key in store.keys() {
        if key.kind == ObjectKind::Condemned {
            store.remove_raw(&key);
        }
    }
    let report = repair_snapshots(&repository, &RepairSnapshotsOptions::default());
    assert_eq!(
        outcomes(&report),
        [SnapshotOutcome::Whole, SnapshotOutcome::Cleared]
    );
    assert_eq!(
        (doubtful(), repository.snapshots().unwrap().snapshots.len()),
        (0, 2)
    );
    assert_eq!(check(&repository).problem_count, 0);
}

#[test]
fn what_is_whole_of_a_container_is_moved_and_the_rest_goes_once_nobody_needs_it() {
    let (_fixture, store, key) = damaged();
    let repository = open(&store);
    let before = readable(&repository);
    let (dry, wet) = (
        RepairContainersOptions {
            dry_run: true,
            ..RepairContainersOptions::default()
        },
        RepairContainersOptions::default(),
    );
    let objects = store.keys();
    let planned = repository
        .repair_containers(&dry, &Progress::default())
        .unwrap();
    assert_eq!(store.keys(), objects);
    let done = repository
        .repair_containers(&wet, &Progress::default())
        .unwrap();
    assert_eq!((done.damaged, done.unreadable), (1, 0));
    assert_eq!(
        (
            planned.chunks_kept,
            planned.chunks_lost,
            planned.snapshots.len()
        ),
        (done.chunks_kept, done.chunks_lost, done.snapshots.len())
    );
    assert!(
        done.chunks_kept > 0 && done.chunks_lost > 0 && !done.snapshots.is_empty(),
        "{done:?}"
    );
    assert_not_worse(&before, &readable(&repository), "moved");
    let again = repository
        .repair_containers(&wet, &Progress::default())
        .unwrap();
    assert_eq!((again.damaged, again.objects_written), (0, 0));
    // As long as a snapshot needs what is lost, nothing is deleted.
    let options = PruneOptions {
        host: "test".to_owned(),
        ..PruneOptions::default()
    };
    let refused = repository.prune(&options, &Progress::default());
    assert!(refused.is_err(), "{refused:?}");
    assert!(store.object(&key).is_some());
    repair_snapshots(&repository, &forgetting());
    repository.prune(&options, &Progress::default()).unwrap();
    assert!(store.object(&key).is_none());
    let checked = check(&repository);
    assert_eq!(checked.problem_count, 0, "{:?}", checked.problems);
    assert_not_worse(&before, &readable(&repository), "pruned");
}

fn eager() -> PruneOptions {
    PruneOptions {
        host: "test".to_owned(),
        unused_max_thousandths: 0,
        ..PruneOptions::default()
    }
}

/// A repository that was pruned: with remaps, and objects of several sections.
fn pruned() -> (Source, Arc<MemoryStore>) {
    let source = Source::new();
    let store = Arc::new(MemoryStore::new());
    let repository = support::create(shared(&store), true);
    let mut snapshots = Vec::new();
    for version in 0..4 {
        if version > 0 {
            source.advance(version);
        }
        snapshots.push(backup(&repository, source.root()).unwrap().snapshot.id);
    }
    for id in [snapshots[0], snapshots[2]] {
        store
            .delete(&ObjectKey::new(ObjectKind::Snapshot, id))
            .unwrap();
    }
    let report = repository.prune(&eager(), &Progress::default()).unwrap();
    assert!(report.objects_packed > 0 && report.objects_deleted > 0);
    (source, store)
}

fn keys_of(store: &MemoryStore, kind: ObjectKind) -> Vec<ObjectKey> {
    store
        .keys()
        .into_iter()
        .filter(|key| key.kind == kind)
        .collect()
}

#[test]
fn remaps_are_made_again_from_what_objects_say() {
    let (_source, store) = pruned();
    let whole = readable(&open(&store));
    let remaps = keys_of(&store, ObjectKind::Remap);
    assert!(!remaps.is_empty());
    let options = RepairRemapsOptions::default();
    let progress = Progress::default();
    let nothing = open(&store).repair_remaps(&options, &progress).unwrap();
    assert_eq!(
        (nothing.damaged, nothing.replaced, nothing.places_gone),
        (0, 0, 0)
    );
    for &key in &remaps {
        store.corrupt(&key, |bytes| bytes[20] ^= 1);
    }
    let repository = open(&store);
    assert!(repository.check(CheckLevel::Structure, &progress).is_err());
    let dry = RepairRemapsOptions {
        dry_run: true,
        ..RepairRemapsOptions::default()
    };
    repository.repair_remaps(&dry, &progress).unwrap();
    assert_eq!(keys_of(&store, ObjectKind::Remap), remaps);
    let report = repository.repair_remaps(&options, &progress).unwrap();
    assert_eq!(report.damaged, remaps.len() as u64);
    assert!(report.places_found > 0);
    assert_eq!(readable(&repository), whole);
    assert_eq!(check(&repository).problem_count, 0);
    let again = repository.repair_remaps(&options, &progress).unwrap();
    assert_eq!((again.damaged, again.replaced), (0, 0));
    // A place that is gone is dropped, and all others stay.
    let named = repository.engine().reader().unwrap().containers().remaps();
    let gone = engine::container::ContainerId(engine::object::ObjectId([7; 16]));
    let missing = engine::object::ObjectId([8; 16]);
    let count = named.moved().count() as u64;
    repository
        .engine()
        .store_remap(vec![(gone, missing)])
        .unwrap();
    let report = repository.repair_remaps(&options, &progress).unwrap();
    assert_eq!((report.places, report.places_gone), (count + 1, 1));
    assert_eq!(readable(&repository), whole);
    let kept = repository.engine().reader().unwrap().containers().remaps();
    assert_eq!(kept.moved().count() as u64, count);
}

#[test]
fn a_deleted_snapshot_is_found_again() {
    let fixture = Fixture::new(true);
    let store = Arc::new(fixture.store.fork());
    let whole = readable(&open(&store));
    for saved in &fixture.saved {
        let key = ObjectKey::new(ObjectKind::Snapshot, saved.snapshot.id);
        store.delete(&key).unwrap();
    }
    let repository = open(&store);
    let dry = RecoverOptions {
        dry_run: true,
        ..RecoverOptions::default()
    };
    let planned = repository.recover(&dry, &Progress::default()).unwrap();
    assert_eq!((planned.directories, planned.snapshot), (2, None));
    assert!(repository.snapshots().unwrap().snapshots.is_empty());
    let done = repository
        .recover(&RecoverOptions::default(), &Progress::default())
        .unwrap();
    assert_eq!((done.directories, done.losses.len()), (2, 0));
    let list = repository.snapshots().unwrap().snapshots;
    assert_eq!(list.len(), 1);
    assert!(list[0].is_interrupted && list[0].tags == ["recovered"]);
    let mut found = Readable::new();
    for (path, contents) in readable(&repository) {
        let (first, rest) = path.split_at(b"/found-0001".len());
        assert!(first.starts_with(b"/found-000"));
        found.entry(rest.to_vec()).or_default().extend(contents);
    }
    assert_eq!(found, whole);
    assert_eq!(check(&repository).problem_count, 0);
    let again = repository
        .recover(&RecoverOptions::default(), &Progress::default())
        .unwrap();
    assert_eq!(
        (again.pages, again.directories, again.snapshot),
        (0, 0, None)
    );
}

#[test]
fn one_deleted_snapshot_of_two_is_the_root_itself() {
    let fixture = Fixture::new(true);
    let store = Arc::new(fixture.store.fork());
    let latest = fixture.latest();
    store
        .delete(&ObjectKey::new(ObjectKind::Snapshot, latest.snapshot.id))
        .unwrap();
    let repository = open(&store);
    let done = repository
        .recover(&RecoverOptions::default(), &Progress::default())
        .unwrap();
    assert_eq!(done.directories, 1);
    let list = repository.snapshots().unwrap().snapshots;
    let new = list.iter().find(|it| Some(it.id) == done.snapshot).unwrap();
    check_restore(&repository, new, fixture.source.root(), &latest.picture).unwrap();
}

#[test]
fn what_a_backup_left_that_died_before_its_snapshot_is_found() {
    let source = Source::new();
    let medium = Arc::new(MemoryStore::new());
    support::create(shared(&medium), true);
    let mut is_found = false;
    // It dies one change earlier each time: before the snapshot, before the index run, before the last containers.
    let mut changes = 0;
    let copy = || Arc::new(medium.fork());
    loop {
        let store = copy();
        let repository = support::open(dying(&store, changes), true).unwrap();
        if backup(&repository, source.root()).is_ok() {
            break;
        }
        changes += 1;
    }
    for left in 0..changes {
        let store = copy();
        let repository = support::open(dying(&store, left), true).unwrap();
        backup(&repository, source.root()).unwrap_err();
        let repository = open(&store);
        let done = repository
            .recover(&RecoverOptions::default(), &Progress::default())
            .unwrap();
        if let Some(snapshot) = done.snapshot {
            is_found = true;
            assert!(done.losses.is_empty(), "{:?}", done.losses);
            let list = repository.snapshots().unwrap().snapshots;
            assert_eq!(list[0].id, snapshot);
            // All that is there was in the source.
            for (path, contents) in readable(&repository) {
                let path = std::str::from_utf8(&path).unwrap();
                let content = std::fs::read(path).unwrap();
                assert!(
                    contents.contains(blake3::hash(&content).as_bytes()),
                    "{path}"
                );
            }
        }
        assert_eq!(check(&repository).problem_count, 0);
    }
    assert!(
        is_found,
        "the tree was complete before the snapshot was written"
    );
}

/// Does some damage to some objects.
fn damage_at_random(store: &MemoryStore, random: &mut Random) -> Vec<String> {
    let kinds = [ObjectKind::Container, ObjectKind::Index, ObjectKind::Remap];
    let keys = store.keys().into_iter();
    let keys: Vec<_> = keys.filter(|key| kinds.contains(&key.kind)).collect();
    let mut done = Vec::new();
    for _ in 0..=random.below(3) {
        let key = keys[random.index(keys.len())];
        let Some(bytes) = store.object(&key).map(|bytes| bytes.len()) else {
            continue;
        };
        let place = random.index(bytes.max(1));
        let what = random.below(4);
        match what {
            0 => drop(store.corrupt(&key, |object| object.truncate(place))),
            1 => drop(store.remove_raw(&key)),
            2 => {
                let end = (place + 1 + random.index(20_000)).min(bytes);
                store.corrupt(&key, |object| object[place.min(end)..end].fill(0));
            }
            _ => {
                store.corrupt(&key, |object| {
                    if let Some(byte) = object.get_mut(place) {
                        *byte ^= 0x20;
                    }
                });
            }
        }
        done.push(format!("{key}: {what} at {place} of {bytes}"));
    }
    done
}

/// All repairs, in the order of the guide.
fn repair_all(repository: &Repository) -> Result<(), RepairError> {
    let progress = Progress::default();
    repository.repair_remaps(&RepairRemapsOptions::default(), &progress)?;
    repository.repair_index(RepairIndexOptions::default(), &progress)?;
    repository.repair_containers(&RepairContainersOptions::default(), &progress)?;
    repository.repair_snapshots(&forgetting(), &progress)?;
    Ok(())
}

/// A damaged copy, and what can be read of it: nothing where its remaps can't be.
fn damaged_copy(whole: &MemoryStore, seed: u64) -> (Arc<MemoryStore>, Readable, Vec<String>) {
    let mut random = Random::new(seed);
    let store = Arc::new(whole.fork());
    let damage = damage_at_random(&store, &mut random);
    let repository = open(&store);
    let before = match repository.engine().reader() {
        Ok(_) => readable(&repository),
        Err(_) => Readable::new(),
    };
    (store, before, damage)
}

#[test]
fn whatever_is_damaged_nothing_is_worse_afterwards_and_check_is_clean() {
    let (_source, whole) = pruned();
    let right = readable(&open(&whole));
    for seed in 0..48 {
        let (store, before, damage) = damaged_copy(&whole, seed);
        let what = format!("seed {seed}, {damage:?}");
        let repository = open(&store);
        repair_all(&repository).unwrap_or_else(|error| panic!("{what}: {error}"));
        let after = readable(&repository);
        assert_not_worse(&before, &after, &what);
        assert_not_worse(&after, &right, &format!("{what}: something is wrong"));
        let pruned = repository.prune(&eager(), &Progress::default());
        pruned.unwrap_or_else(|error| panic!("{what}: prune: {error}"));
        let checked = check(&repository);
        assert_eq!(checked.problem_count, 0, "{what}: {:?}", checked.problems);
        assert_eq!(readable(&repository), after, "{what}: after the prune");
        // It is idempotent.
        let (snapshots, containers) = (
            keys_of(&store, ObjectKind::Snapshot),
            keys_of(&store, ObjectKind::Container),
        );
        repair_all(&repository).unwrap();
        assert_eq!(keys_of(&store, ObjectKind::Snapshot), snapshots, "{what}");
        assert_eq!(keys_of(&store, ObjectKind::Container), containers, "{what}");
    }
}

/// A damaged repository, what can be read of it, and what has to be readable once it is repaired.
struct Scenario {
    what: String,
    store: Arc<MemoryStore>,
    before: Readable,
    then: Readable,
}

/// Damage at random, and one of each kind that every repair has something to do for.
fn scenarios(whole: &Arc<MemoryStore>) -> Vec<Scenario> {
    let right = readable(&open(whole));
    let mut scenarios = Vec::new();
    for seed in [1, 4, 9] {
        let (store, before, damage) = damaged_copy(whole, seed);
        scenarios.push(Scenario {
            what: format!("seed {seed}, {damage:?}"),
            store,
            then: before.clone(),
            before,
        });
    }
    let id = |number| engine::object::ObjectId([number; 16]);
    let stale = Arc::new(whole.fork());
    let engine = open(&stale).engine().clone();
    let gone = (engine::container::ContainerId(id(7)), id(8));
    engine.store_remap(vec![gone]).unwrap();
    scenarios.push(Scenario {
        what: "a place that is gone".to_owned(),
        store: stale,
        before: right.clone(),
        then: right.clone(),
    });
    let damaged = Arc::new(whole.fork());
    for key in keys_of(&damaged, ObjectKind::Remap) {
        damaged.corrupt(&key, |bytes| bytes[15] ^= 1);
    }
    scenarios.push(Scenario {
        what: "damaged remaps".to_owned(),
        store: damaged,
        before: Readable::new(),
        then: right,
    });
    let group = Arc::new(whole.fork());
    let repository = open(&group);
    for key in keys_of(&group, ObjectKind::Container)
        .into_iter()
        .step_by(2)
    {
        damage_group(&group, &repository, key, 1);
    }
    let before = readable(&open(&group));
    scenarios.push(Scenario {
        what: "damaged groups".to_owned(),
        store: group,
        then: before.clone(),
        before,
    });
    scenarios
}

#[test]
fn a_repair_that_dies_at_any_change_makes_nothing_worse() {
    let (_source, whole) = pruned();
    let right = readable(&open(&whole));
    for scenario in scenarios(&whole) {
        let before = &scenario.before;
        for changes in 0.. {
            let store = Arc::new(scenario.store.fork());
            let repository = support::open(dying(&store, changes), true).unwrap();
            let is_done = repair_all(&repository).is_ok();
            let what = format!("{}, {changes} changes", scenario.what);
            let repository = open(&store);
            if repository.engine().reader().is_ok() {
                let after = readable(&repository);
                assert_not_worse(before, &after, &what);
                assert_not_worse(&after, &right, &format!("{what}: something is wrong"));
            } else {
                assert!(before.is_empty(), "{what}: remaps can't be read any more");
            }
            if is_done {
                break;
            }
            // A prune comes before the next repair, and sees that this one has died.
            for key in keys_of(&store, ObjectKind::Run) {
                store.remove_raw(&key);
            }
            if repository.engine().reader().is_ok() {
                let before = readable(&repository);
                let _ = repository.prune(&eager(), &Progress::default());
                assert_not_worse(&before, &readable(&repository), &format!("{what}, pruned"));
            }
            // The next one goes on.
            repair_all(&repository).unwrap_or_else(|error| panic!("{what}: {error}"));
            let after = readable(&repository);
            assert_not_worse(&scenario.then, &after, &format!("{what}, then repaired"));
        }
    }
}
