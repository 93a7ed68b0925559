//! A repository of which a part is stored as deltas: everything reads as before, damage to a base is
//! named with what is made of it, and new backups make good what they can.

mod support;

use std::sync::Arc;

use engine::container::{ContainerId, ContainerKind};
use engine::object::{ObjectId, ObjectKey, ObjectStore};
use engine::pipeline::DeltaLevel;
use repository::{
    BackupOptions, CheckOptions, CheckReport, CreateOptions, Progress, RepairIndexOptions,
    Repository,
};
use support::damage::{Change, damaged};
use support::fixture::Fixture;
use support::{backup_options, check_clean, create_options};

/// A repository whose containers of data, but for the last, are containers of deltas now; each with the
/// container of its bases.
fn fixture() -> (Fixture, Vec<(ObjectKey, ObjectKey)>) {
    // It makes none by itself, whose depths those made here would break.
    let options = CreateOptions {
        deltas: DeltaLevel::Off,
        ..create_options()
    };
    let mut fixture = Fixture::with(true, &options);
    let mut keys = fixture.containers(ContainerKind::Data);
    keys.pop();
    let store = Arc::new(fixture.store.fork());
    let shared = Arc::clone(&store) as Arc<dyn ObjectStore>;
    let repository = support::open(shared, true).expect("opened");
    let mut both = Vec::new();
    for (number, &key) in keys.iter().enumerate() {
        let bases = ContainerId(ObjectId([100 + number as u8; 16]));
        testkit::deltas::make_deltas(repository.engine(), ContainerId(key.id), bases);
        both.push((key, bases.own_object()));
    }
    // The index names the containers of bases, as it would had a backup written them.
    let options = RepairIndexOptions {
        all: true,
        dry_run: false,
    };
    let repaired = repository.repair_index(options, &Progress::default());
    assert_eq!(repaired.expect("repaired").containers_unreadable, 0);
    fixture.store = store.fork();
    assert_eq!(fixture.containers(ContainerKind::Deltas), keys);
    (fixture, both)
}

fn check(repository: &Repository, read_data: bool) -> CheckReport {
    let options = CheckOptions { read_data };
    repository
        .check(options, &Progress::default())
        .expect("checked")
}

#[test]
fn everything_reads_as_before() {
    let (fixture, both) = fixture();
    let repository = fixture.open(fixture.store.fork()).expect("opened");
    let lost = fixture
        .read_everything(&repository, "nothing")
        .expect("right");
    assert_eq!(lost, 0);
    check_clean(&repository).expect("clean");
    let sound = fixture.open(fixture.store.fork()).expect("opened");
    let options = BackupOptions {
        force: true,
        ..backup_options()
    };
    fixture.backups_are_whole(&sound, &options).expect("whole");
    let sources = [fixture.source.root().to_owned()];
    let report = sound.backup(&sources, &options, &Progress::default());
    assert_eq!(report.expect("backed up").totals.bytes_new, 0);

    let stats = repository.stats(&Progress::default()).expect("counted");
    assert_eq!(stats.delta_containers, both.len() as u64);
    let filling = stats.delta_filling;
    let counted = filling.full.containers + filling.smaller.containers;
    assert_eq!(counted, stats.delta_containers);
    assert!((0.5..=1.0).contains(&stats.filling_ratio().expect("some")));
    let deltas = stats.deltas;
    assert!(deltas.chunks > stats.chunks / 4 && deltas.chunks < stats.chunks);
    assert!(deltas.chunk_bytes < stats.unique_bytes);
    let [dcr, dce, scr] = [
        stats.delta_compression_ratio(),
        deltas.efficiency(),
        stats.similar_chunk_ratio(),
    ]
    .map(|ratio| ratio.expect("there are deltas"));
    let before = stats.unique_bytes as f64;
    let after = before - deltas.chunk_bytes as f64 + deltas.delta_bytes as f64;
    assert!((dcr - before / after).abs() < 1e-9 && dcr > 1.0);
    assert!(dce > 0.0 && dce < 1.0);
    let whole = (stats.chunks - deltas.chunks) as f64;
    assert!((scr - deltas.chunks as f64 / whole).abs() < 1e-9);
    let depth = deltas.mean_depth().expect("there are deltas");
    assert!((1.0..2.0).contains(&depth), "{depth}");
}

#[test]
fn a_lost_base_is_named_with_what_is_made_of_it_and_made_good() {
    let (fixture, both) = fixture();
    let (deltas, base) = both[0];
    let (other, _) = both[1];
    let object = fixture.store.object(&base).expect("there");
    let other_object = fixture.store.object(&other).expect("there");
    for change in [
        Change::Delete,
        Change::Flip(5),
        Change::Flip(object.len() - 60),
    ] {
        let store = damaged(&fixture.store, base, change, (other, &other_object));
        let open = || fixture.open(store.fork()).expect("opened");
        let word = base.id.to_string();
        let lost = fixture
            .read_everything(&open(), &word)
            .expect("nothing is wrong");
        assert!(lost > 0, "{change}");

        let structure = check(&open(), false);
        let full = check(&open(), true);
        // What lies in a group only who reads it sees.
        assert_eq!(structure.losses == 0, change == Change::Flip(5), "{change}");
        let named = full.problems.iter().find(|problem| {
            problem.subject == deltas.to_string() && problem.message.contains(&word)
        });
        let named = named.unwrap_or_else(|| panic!("{change}: {:?}", full.problems));
        assert!(
            named.is_loss && named.message.contains("can't be made"),
            "{}",
            named.message
        );
        assert!(full.damaged_containers.contains(&deltas.id));
        let is_there = change != Change::Delete;
        assert_eq!(full.damaged_containers.contains(&base.id), is_there);
        assert!(full.damaged_containers.is_sorted());
        // Others are sound.
        assert!(!full.damaged_containers.contains(&other.id));

        let repository = open();
        repository
            .set_aside(&full.damaged_containers)
            .expect("set aside");
        let whole = fixture.backups_are_whole(&repository, &backup_options());
        whole.unwrap_or_else(|error| panic!("{change}: {error}"));
        assert_eq!(fixture.read_old(&repository, &word), Ok(lost), "{change}");
        if !is_there {
            // A backup sees by itself that it is gone.
            let whole = fixture.backups_are_whole(&open(), &backup_options());
            whole.unwrap_or_else(|error| panic!("{change}, without a check: {error}"));
        }
    }
}

/// A base that is a delta itself, and lost: what is made of it is named, from depth to depth.
#[test]
fn what_is_made_of_lost_deltas_is_named() {
    use engine::container::DeltaMethod;
    use testkit::deltas::{HandChunk, container, place, store_container};

    let fixture = Fixture::new(false);
    let store = fixture.store.fork();
    let store = Arc::new(store);
    let shared = Arc::clone(&store) as Arc<dyn ObjectStore>;
    let repository = support::open(shared, false).expect("opened");
    let engine = repository.engine();
    let bytes = b"words and words and words".repeat(50);
    let whole = [vec![HandChunk::whole(bytes.clone())]];
    store_container(engine, container(200), ContainerKind::Data, &whole, |_| {});
    // Objects are visited in the order of their names: the last in the chain first.
    for depth in 1..=4u8 {
        let base = (place(201 - depth, 0), &bytes[..]);
        let delta = HandChunk::delta(bytes.clone(), base, DeltaMethod::Instructions, depth);
        let groups = [vec![delta]];
        let id = container(200 - depth);
        store_container(engine, id, ContainerKind::Deltas, &groups, |_| {});
    }
    assert_eq!(check(&repository, true).losses, 0);
    let root = container(200).own_object();
    store.delete(&root).expect("deleted");
    let repository = fixture.open(store.fork()).expect("opened");
    for read_data in [false, true] {
        let report = check(&repository, read_data);
        let subjects: Vec<_> = report.problems.iter().map(|p| p.subject.clone()).collect();
        let expected: Vec<_> = (196..200)
            .map(|n| container(n).own_object().to_string())
            .collect();
        assert_eq!(subjects, expected);
        assert!(report.problems[3].message.contains(&root.to_string()));
        assert!(report.problems[0].message.contains("can't be made itself"));
        let damaged: Vec<_> = (196..200).map(|n| ObjectId([n; 16])).collect();
        assert_eq!(report.damaged_containers, damaged);
    }
}
