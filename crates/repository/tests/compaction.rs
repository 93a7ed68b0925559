//! A repository of which containers were moved, and their old objects deleted: everything reads, checks and goes on as
//! before.

mod support;

use std::collections::{BTreeMap, HashSet};
use std::sync::Arc;

use engine::container::{ContainerId, SlotSet};
use engine::object::{MemoryStore, ObjectId, ObjectKey, ObjectKind, ObjectStore};
use repository::{BackupOptions, CheckOptions, Progress, RepairIndexOptions, Repository};
use support::fixture::Fixture;
use support::{backup_options, check_clean};

/// Moves all slots of all containers, in so many compactions that each take a part of them; returns the old objects.
fn move_all(repository: &Repository, store: &MemoryStore, parts: u16) -> HashSet<ObjectId> {
    let engine = repository.engine();
    let mut containers: BTreeMap<ContainerId, SlotSet> = BTreeMap::new();
    let mut old = HashSet::new();
    let reader = engine.reader().expect("a reader");
    store
        .list(ObjectKind::Container, &mut |id, _| {
            old.insert(id);
        })
        .expect("listed");
    for &object in &old {
        let key = ObjectKey::new(ObjectKind::Container, object);
        let (metadata, _) = reader.containers().object(key).expect("a container");
        for section in metadata.sections {
            let slots = containers.entry(section.id).or_default();
            section.slots.iter().for_each(|&slot| {
                slots.insert(slot);
            });
        }
    }
    for part in 0..parts {
        let mut compactor = engine.compactor().expect("remaps are read");
        for (&container, slots) in &containers {
            let slots: SlotSet = slots.iter().filter(|slot| slot.0 % parts == part).collect();
            compactor.keep(container, &slots).expect("kept");
        }
        let compacted = compactor.finish().expect("written");
        engine.store_moved(&compacted).expect("stored");
    }
    old
}

#[test]
fn everything_goes_on_after_a_compaction() {
    for (is_encrypted, parts) in [(true, 1), (false, 1), (true, 3)] {
        let fixture = Fixture::new(is_encrypted);
        let store = Arc::new(fixture.store.fork());
        let shared = Arc::clone(&store) as Arc<dyn ObjectStore>;
        let repository = support::open(shared, is_encrypted).expect("opened");
        let old = move_all(&repository, &store, parts);
        check_clean(&repository).expect("clean with both");
        for object in old {
            let key = ObjectKey::new(ObjectKind::Container, object);
            store.delete(&key).expect("deleted");
        }
        // An index as it was, and one made anew.
        for all in [false, true] {
            let options = RepairIndexOptions {
                all,
                dry_run: false,
            };
            let repaired = repository.repair_index(options, &Progress::default());
            let repaired = repaired.expect("repaired");
            assert_eq!(repaired.containers_unreadable, 0);
            assert_eq!(repaired.chunks_indexed > 0, all);
            let opened = fixture.open(store.fork()).expect("opened");
            let lost = fixture.read_everything(&opened, "nothing").expect("right");
            assert_eq!(lost, 0);
            for read_data in [false, true] {
                let options = CheckOptions { read_data };
                let report = opened.check(options, &Progress::default());
                assert_eq!(report.expect("checked").problems, []);
            }
            // Nothing is stored again, neither of unchanged files nor of those that are read.
            for force in [false, true] {
                let options = BackupOptions {
                    force,
                    ..backup_options()
                };
                let sources = [fixture.source.root().to_owned()];
                let report = opened.backup(&sources, &options, &Progress::default());
                let report = report.expect("backed up");
                assert_eq!(report.totals.bytes_new, 0);
                assert_eq!(report.snapshot.remap_generation, u64::from(parts));
            }
            fixture
                .backups_are_whole(&opened, &backup_options())
                .expect("whole");
        }
    }
}
