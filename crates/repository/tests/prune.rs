//! Prune deletes what nobody needs and nothing else: beside others at work, after crashes at any moment, with
//! deltas, in repositories that were pruned before.

#![allow(clippy::unwrap_used)] // A test says no by panicking.

mod support;

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use engine::object::{MemoryStore, ObjectKey, ObjectKind, ObjectStore};
use repository::deletion::condemned::Condemned;
use repository::deletion::runs::{self, RunKind};
use repository::prune::{PruneError, PruneOptions, PruneReport};
use repository::snapshot::Snapshot;
use repository::{Progress, Repository};
use support::hooked::{dying, watched};
use support::sources::{Picture, place};
use support::{backup, backup_options, check_clean, check_restore, create, open};
use testkit::generate::random_bytes;

/// What a snapshot has to bring back.
struct Saved {
    snapshot: Snapshot,
    picture: Arc<Picture>,
}

/// A repository in memory whose versions share some files.
struct Place {
    source: tempfile::TempDir,
    medium: Arc<MemoryStore>,
    saved: Vec<Saved>,
}

impl Place {
    fn new(versions: u64) -> Self {
        let mut this = Self {
            source: place(),
            medium: Arc::new(MemoryStore::new()),
            saved: Vec::new(),
        };
        create(this.store(), true);
        for version in 0..versions {
            this.back_up(version);
        }
        this
    }

    fn store(&self) -> Arc<dyn ObjectStore> {
        Arc::clone(&self.medium) as Arc<dyn ObjectStore>
    }

    fn repository(&self) -> Repository {
        open(self.store(), true).unwrap()
    }

    fn files(&self) -> &Path {
        self.source.path()
    }

    /// Some files of every version, some that change with each, some that are like those before.
    fn back_up(&mut self, version: u64) {
        let write = |name: String, bytes: &[u8]| {
            let path = self.files().join(name);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, bytes).unwrap();
        };
        for number in 0..8 {
            write(format!("shared/{number}"), &random_bytes(number, 20_000));
            let seed = 1000 * (version + 1) + number;
            write(format!("own/{number}"), &random_bytes(seed, 15_000));
        }
        for number in 0..4 {
            let mut similar = random_bytes(70 + number, 60_000);
            let at = 5000 * (version as usize % 10);
            similar[at..at + 300].copy_from_slice(&random_bytes(version, 300));
            write(format!("similar/{number}"), &similar);
        }
        let snapshot = backup(&self.repository(), self.files()).unwrap().snapshot;
        let picture = Arc::new(support::sources::picture(self.files()));
        self.saved.push(Saved { snapshot, picture });
    }

    fn forget(&mut self, number: usize) {
        let saved = self.saved.remove(number);
        let key = ObjectKey::new(ObjectKind::Snapshot, saved.snapshot.id);
        self.medium.delete(&key).unwrap();
    }

    fn prune(&self, options: &PruneOptions) -> Result<PruneReport, PruneError> {
        self.repository().prune(options, &Progress::default())
    }

    fn bytes(&self) -> u64 {
        let mut total = 0;
        self.medium
            .list(ObjectKind::Container, &mut |_, bytes| total += bytes)
            .unwrap();
        total
    }

    /// Everything that is still saved comes back, and check finds nothing.
    fn assert_sound(&self, what: &str) {
        let repository = self.repository();
        for saved in &self.saved {
            let same = check_restore(&repository, &saved.snapshot, self.files(), &saved.picture);
            same.unwrap_or_else(|problem| panic!("{what}: {problem}"));
        }
        check_clean(&repository).unwrap_or_else(|problem| panic!("{what}: {problem}"));
    }

    /// Chunks that are stored as deltas.
    fn delta_chunks(&self) -> u64 {
        let repository = self.repository();
        let reader = repository.engine().reader().unwrap();
        let mut objects = Vec::new();
        self.medium
            .list(ObjectKind::Container, &mut |id, _| objects.push(id))
            .unwrap();
        let keys = objects
            .into_iter()
            .map(|id| ObjectKey::new(ObjectKind::Container, id));
        keys.map(|key| reader.containers().object(key).unwrap().1.delta_chunks)
            .sum()
    }

    fn condemned(&self) -> usize {
        let repository = self.repository();
        let engine = repository.engine();
        let condemned = Condemned::load(engine.store().as_ref(), engine.vault()).unwrap();
        condemned.objects().len()
    }
}

/// Copies what `to` does not have.
fn copy_new(from: &MemoryStore, to: &MemoryStore) {
    for kind in ObjectKind::ALL {
        let ids = |store: &MemoryStore| {
            let mut ids = std::collections::BTreeSet::new();
            store
                .list(kind, &mut |id, _| {
                    ids.insert(id);
                })
                .unwrap();
            ids
        };
        for id in ids(from).difference(&ids(to)) {
            let key = ObjectKey::new(kind, *id);
            to.put(&key, &from.get(&key, 1 << 30).unwrap()).unwrap();
        }
    }
}

impl Place {
    /// Backs the same files up twice, by clients neither of which sees what the other stores.
    fn back_up_twice_at_once(&mut self, version: u64) {
        let twin = MemoryStore::new();
        copy_new(&self.medium, &twin);
        self.back_up(version);
        let other = Arc::new(twin);
        let repository = open(Arc::clone(&other) as Arc<dyn ObjectStore>, true).unwrap();
        let snapshot = backup(&repository, self.files()).unwrap().snapshot;
        copy_new(&other, &self.medium);
        let picture = Arc::clone(&self.saved.last().unwrap().picture);
        self.saved.push(Saved { snapshot, picture });
    }
}

#[test]
fn what_two_stored_at_once_is_stored_once() {
    let mut place = Place::new(1);
    place.back_up_twice_at_once(1);
    place.assert_sound("before");
    let with_both = place.bytes();
    let dry = place.prune(&PruneOptions {
        dry_run: true,
        ..PruneOptions::default()
    });
    assert!(dry.unwrap().chunks_repeated > 0);
    assert_eq!(place.bytes(), with_both);
    let report = place.prune(&PruneOptions::default()).unwrap();
    assert!(report.chunks_merged > 0 && report.chunks_merged <= report.chunks_repeated);
    place.assert_sound("merged");
    // What is version 1's own was there twice, as far as it is no delta.
    let merged = place.bytes();
    assert!(
        merged + 80_000 < with_both,
        "{with_both} bytes became {merged}"
    );
    let again = place.prune(&PruneOptions::default()).unwrap();
    assert_eq!((again.chunks_repeated, again.bytes_written), (0, 0));
    // More of that, and packed anew: it is still stored once.
    place.back_up_twice_at_once(2);
    place.prune(&eager()).unwrap();
    place.assert_sound("twice");
    let twice = place.bytes();
    place.forget(0);
    place.prune(&eager()).unwrap();
    place.assert_sound("packed");
    assert!(
        place.bytes() <= twice,
        "{twice} bytes became {}",
        place.bytes()
    );
    for _ in 0..2 {
        place.forget(1);
        place.prune(&eager()).unwrap();
        place.assert_sound("one of two");
    }
}

#[test]
fn an_index_that_is_merged_meanwhile_ends_nothing() {
    let mut place = Place::new(1);
    place.back_up_twice_at_once(1);
    let mut runs = Vec::new();
    place
        .medium
        .list(ObjectKind::Index, &mut |id, _| {
            runs.push(ObjectKey::new(ObjectKind::Index, id));
        })
        .unwrap();
    let (medium, gone) = (Arc::clone(&place.medium), runs.clone());
    let store = watched(Arc::clone(&place.medium), &runs, 1, move || {
        gone.iter().for_each(|key| medium.delete(key).unwrap());
    });
    let repository = open(Arc::new(store) as Arc<dyn ObjectStore>, true).unwrap();
    let report = repository.prune(&PruneOptions::default(), &Progress::default());
    assert_eq!(report.unwrap().chunks_merged, 0);
    // Whoever stores next takes in what no run covers.
    place.back_up(2);
    place.assert_sound("with another index");
}

#[test]
fn copies_of_different_generations_stay() {
    let mut place = Place::new(2);
    let twin = MemoryStore::new();
    copy_new(&place.medium, &twin);
    place.back_up(2);
    let other = Arc::new(twin);
    let repository = open(Arc::clone(&other) as Arc<dyn ObjectStore>, true).unwrap();
    // It comes in after another one, as what a backup stores again on purpose would.
    backup(&repository, &place.files().join("shared")).unwrap();
    backup(&repository, place.files()).unwrap();
    copy_new(&other, &place.medium);
    let report = place.prune(&PruneOptions::default()).unwrap();
    assert_eq!(report.chunks_merged, 0);
    place.assert_sound("as it was");
}

fn eager() -> PruneOptions {
    PruneOptions {
        host: "test".to_owned(),
        unused_max_thousandths: 0,
        ..PruneOptions::default()
    }
}

#[test]
fn what_nobody_needs_goes() {
    let mut place = Place::new(4);
    let before = place.bytes();
    let report = place.prune(&eager()).unwrap();
    assert_eq!((report.objects_deleted, report.bytes_unneeded), (0, 0));
    assert_eq!(report.snapshots, 4);
    place.forget(1);
    place.forget(1);
    let planned = place
        .prune(&PruneOptions {
            dry_run: true,
            ..eager()
        })
        .unwrap();
    assert_eq!(place.bytes(), before, "a dry run changes nothing");
    let report = place.prune(&eager()).unwrap();
    assert_eq!(report.objects_packed, planned.objects_packed);
    assert_eq!(report.bytes_unneeded, planned.bytes_unneeded);
    assert!(report.objects_deleted > 0 && report.waiting_for.is_empty());
    // Two of four versions had 120 kB of their own each.
    assert!(
        place.bytes() < before - 200_000,
        "{} of {before}",
        place.bytes()
    );
    place.assert_sound("after the first prune");
    let again = place.prune(&eager()).unwrap();
    assert_eq!((again.objects_deleted, again.objects_packed), (0, 0));
    // It goes on: new versions find what is there, also in what was packed.
    let stored = place.bytes();
    place.back_up(0);
    place.assert_sound("after a backup");
    assert!(place.bytes() < stored + 300_000);
    place.forget(0);
    place.prune(&eager()).unwrap();
    place.assert_sound("after the second prune");
    while !place.saved.is_empty() {
        place.forget(0);
    }
    place.prune(&eager()).unwrap();
    assert_eq!(place.bytes(), 0);
    assert_eq!(place.condemned(), 0);
}

#[test]
fn a_little_waste_is_left_alone() {
    let mut place = Place::new(3);
    // Its own files lie in one container with the first of those that all versions share.
    place.forget(0);
    let options = PruneOptions {
        unused_max_thousandths: 1000,
        ..eager()
    };
    let report = place.prune(&options).unwrap();
    assert_eq!(report.objects_packed, 0);
    let none = PruneOptions {
        repack_bytes_max: 0,
        ..eager()
    };
    assert_eq!(place.prune(&none).unwrap().objects_packed, 0);
    assert!(place.prune(&eager()).unwrap().objects_packed > 0);
    place.assert_sound("packed");
}

#[test]
fn deltas_that_stay_keep_their_bases() {
    let mut place = Place::new(3);
    let mut deltas = 0;
    for version in 3..12 {
        place.back_up(version);
        deltas += place.delta_chunks();
        // The second: what is like it was stored as deltas of it, or it of the first.
        place.forget(1);
        let report = place.prune(&PruneOptions::default()).unwrap();
        assert!(report.waiting_for.is_empty());
        place.assert_sound(&format!("version {version}"));
    }
    assert!(deltas > 0, "there were deltas to lose");
}

#[test]
fn who_is_at_work_is_waited_for() {
    let mut place = Place::new(3);
    let repository = place.repository();
    let writer = repository.register(RunKind::Writer, "elsewhere").unwrap();
    place.forget(0);
    let before = place.bytes();
    let report = place.prune(&eager()).unwrap();
    assert_eq!(report.objects_deleted, 0);
    assert_eq!(report.waiting_for.len(), 1);
    assert_eq!(report.waiting_for[0].host, "elsewhere");
    assert!(place.bytes() >= before);
    assert!(place.condemned() > 0);
    place.assert_sound("while it is waited for");
    // Whoever starts now is not waited for.
    let later = repository.register(RunKind::Writer, "later").unwrap();
    writer.end().unwrap();
    let report = place.prune(&eager()).unwrap();
    assert!(report.objects_deleted > 0);
    assert!(report.waiting_for.is_empty());
    later.end().unwrap();
    assert!(place.bytes() < before);
    place.assert_sound("after it");
}

#[test]
fn what_a_writer_needed_meanwhile_is_rescued() {
    let place = Place::new(3);
    // A backup that began before the prune and writes its snapshot after it: that of version 1 stands for it.
    let repository = place.repository();
    let writer = repository.register(RunKind::Writer, "slow").unwrap();
    let late = place.saved[1].snapshot.id;
    let key = ObjectKey::new(ObjectKind::Snapshot, late);
    let object = place.medium.get(&key, 1 << 20).unwrap();
    place.medium.delete(&key).unwrap();
    let report = place.prune(&eager()).unwrap();
    assert!(report.objects_waiting > 0);
    place.medium.put(&key, &object).unwrap();
    place.assert_sound("readers find what is condemned");
    writer.end().unwrap();
    let report = place.prune(&eager()).unwrap();
    assert!(report.chunks_rescued > 0 && report.objects_deleted > 0);
    place.assert_sound("rescued");
    let report = place.prune(&eager()).unwrap();
    assert_eq!(report.chunks_rescued, 0);
    place.assert_sound("still there");
}

#[test]
fn who_shows_no_life_is_taken_for_dead() {
    let mut place = Place::new(3);
    let repository = place.repository();
    let store = place.store();
    let dead = repository.register(RunKind::Writer, "dead").unwrap();
    place.forget(0);
    let impatient = PruneOptions {
        dead_after: Duration::ZERO,
        ..eager()
    };
    assert_eq!(place.prune(&eager()).unwrap().waiting_for.len(), 1);
    let report = place.prune(&impatient).unwrap();
    assert_eq!(report.expired.len(), 1);
    assert_eq!(report.expired[0].host, "dead");
    assert!(report.objects_deleted > 0);
    assert!(dead.is_expired().unwrap());
    assert_eq!(runs::expired(store.as_ref()).unwrap(), [dead.id()]);
    place.assert_sound("without the dead");
}

#[test]
fn a_crash_at_any_moment_loses_nothing() {
    let mut reference = Place::new(4);
    reference.forget(0);
    let mut has_packed = reference.prune(&eager()).unwrap().objects_packed > 0;
    let pruned = reference.bytes();
    let mut moments = 0;
    loop {
        let mut place = Place::new(4);
        place.forget(0);
        let medium = dying(&place.medium, moments);
        let repository = open(medium as Arc<dyn ObjectStore>, true).unwrap();
        let outcome = repository.prune(&eager(), &Progress::default());
        let is_whole = outcome.is_ok();
        // What lies together in a container is chance: somewhere along the way something must be packed.
        has_packed |= outcome.is_ok_and(|report| report.objects_packed > 0);
        place.assert_sound(&format!("died at change {moments}"));
        // What it registered is there still: others take it for dead, by and by.
        let impatient = PruneOptions {
            dead_after: Duration::ZERO,
            ..eager()
        };
        let repository = place.repository();
        let engine = repository.engine();
        for run in runs::registered(engine.store().as_ref(), engine.vault())
            .unwrap()
            .keys()
        {
            runs::expire(engine.store().as_ref(), engine.vault(), *run).unwrap();
        }
        place.prune(&impatient).unwrap();
        place.prune(&impatient).unwrap();
        assert_eq!(place.condemned(), 0, "died at change {moments}");
        assert!(
            place.bytes() <= pruned + 80_000, // How full the last containers are varies.
            "{} where {pruned} are enough, died at change {moments}",
            place.bytes()
        );
        place.assert_sound(&format!("died at change {moments}, pruned again"));
        if is_whole {
            break;
        }
        moments += 1;
    }
    assert!(moments > 8, "{moments} changes: nothing was pruned");
    assert!(has_packed, "a compaction may die, too");
}

#[test]
fn two_prunes_do_not_work_at_once() {
    let place = Place::new(1);
    let repository = place.repository();
    let other = repository.register(RunKind::Prune, "other").unwrap();
    let refused = place.prune(&eager());
    assert!(matches!(refused, Err(PruneError::AtWork { host, .. }) if host == "other"));
    other.end().unwrap();
    place.prune(&eager()).unwrap();
}

#[test]
fn a_snapshot_that_can_not_be_read_ends_it() {
    let mut place = Place::new(2);
    place.forget(0);
    let key = ObjectKey::new(ObjectKind::Snapshot, place.saved[0].snapshot.id);
    let object = place.medium.get(&key, 1 << 20).unwrap();
    let mut damaged = object.clone();
    damaged[40] ^= 1;
    place.medium.delete(&key).unwrap();
    place.medium.put(&key, &damaged).unwrap();
    let before = place.bytes();
    let refused = place.prune(&eager());
    assert!(matches!(
        refused,
        Err(PruneError::UnreadableSnapshot { .. })
    ));
    assert_eq!(place.bytes(), before);
    assert_eq!(place.condemned(), 0);
}

#[test]
fn backups_go_on_beside_it() {
    let mut place = Place::new(3);
    place.forget(0);
    // Condemned, and not deleted: somebody is at work.
    let repository = place.repository();
    let writer = repository.register(RunKind::Writer, "elsewhere").unwrap();
    place.prune(&eager()).unwrap();
    assert!(place.condemned() > 0);
    // What a new backup finds is what will stay.
    let options = backup_options();
    let source = place.files().to_owned();
    let report = repository.backup(&[source], &options, &Progress::default());
    let snapshot = report.unwrap().snapshot;
    let picture = Arc::new(support::sources::picture(place.files()));
    place.saved.push(Saved { snapshot, picture });
    writer.end().unwrap();
    let report = place.prune(&eager()).unwrap();
    assert!(report.objects_deleted > 0);
    assert_eq!(
        report.chunks_rescued, 0,
        "it referred to nothing that was condemned"
    );
    place.assert_sound("after it");
    assert_eq!(place.saved.len(), 3);
}
