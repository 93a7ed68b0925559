//! What each level of a check reads, and what it finds.

#![allow(clippy::unwrap_used)] // A test says no by panicking.

mod support;

use std::collections::BTreeSet;
use std::sync::Arc;

use engine::container::ContainerKind;
use engine::object::{MemoryStore, ObjectKey, ObjectStore};
use repository::{CheckLevel, CheckReport, Progress, Repository, Sample, SampleSize};
use support::fixture::Fixture;

fn check(store: &MemoryStore, level: CheckLevel) -> CheckReport {
    let repository = support::open(Arc::new(store.fork()) as Arc<dyn ObjectStore>, true).unwrap();
    repository.check(level, &Progress::default()).unwrap()
}

fn sample(size: SampleSize, seed: u32) -> CheckLevel {
    CheckLevel::Sample(Sample { size, seed })
}

/// The groups of all containers: object, where its bytes begin, how many.
fn groups(repository: &Repository, keys: &[ObjectKey]) -> Vec<(ObjectKey, u64, u64)> {
    let reader = repository.engine().reader().unwrap();
    let mut groups = Vec::new();
    for &key in keys {
        let (metadata, _) = reader.containers().object(key).unwrap();
        let all = metadata.sections.iter().flat_map(|section| &section.groups);
        groups.extend(all.map(|group| (key, group.offset, u64::from(group.sealed_bytes))));
    }
    groups
}

#[test]
fn parts_together_read_every_group_once_and_find_what_is_damaged() {
    let fixture = Fixture::new(true);
    let repository = fixture.open(fixture.store.fork()).unwrap();
    let keys = fixture.keys(engine::object::ObjectKind::Container);
    let groups = groups(&repository, &keys);
    assert!(groups.len() > 20, "{}", groups.len());
    let total: u64 = groups.iter().map(|(_, _, bytes)| bytes).sum();
    let part = |part| sample(SampleSize::Part { part, of: 5 }, 0);
    let reports = (1..=5).map(|number| check(&fixture.store, part(number)));
    let reports: Vec<_> = reports.collect();
    assert!(reports.iter().all(|report| report.problem_count == 0));
    assert!(reports.iter().all(|report| report.groups_verified > 0));
    let verified: u64 = reports.iter().map(|report| report.bytes_verified).sum();
    assert_eq!(verified, total);
    let count: u64 = reports.iter().map(|report| report.groups_verified).sum();
    assert_eq!(count, groups.len() as u64);

    // One byte of one group: one part finds it, always the same, and the structure does not show it.
    for &(key, offset, bytes) in groups.iter().step_by(7) {
        let store = fixture.store.fork();
        store.corrupt(&key, |object| object[(offset + bytes / 2) as usize] ^= 1);
        let is_data = fixture.containers(ContainerKind::Data).contains(&key);
        let structure = check(&store, CheckLevel::Structure);
        if is_data {
            assert_eq!(structure.problem_count, 0);
        }
        let finds = |level| check(&store, level).damaged_containers.contains(&key.id);
        let finding: Vec<u32> = (1..=5).filter(|&number| finds(part(number))).collect();
        assert_eq!(finding.len(), 1, "{key}: found by {finding:?}");
        assert!(finds(part(finding[0])), "again");
        assert!(finds(CheckLevel::Data));
        assert!(finds(sample(SampleSize::Millionths(1_000_000), 9)));
        assert!(finds(sample(SampleSize::Bytes(u64::MAX), 9)));
    }
}

#[test]
fn a_share_reads_about_as_much_and_other_groups_with_another_seed() {
    let fixture = Fixture::new(true);
    let half = |seed| {
        check(
            &fixture.store,
            sample(SampleSize::Millionths(500_000), seed),
        )
    };
    let all = check(&fixture.store, CheckLevel::Data);
    let reports: Vec<_> = (0..8).map(half).collect();
    let read: u64 = reports.iter().map(|report| report.bytes_verified).sum();
    let share = read as f64 / (8 * all.containers_bytes) as f64;
    assert!((0.3..0.7).contains(&share), "{share}");
    let different: BTreeSet<u64> = reports.iter().map(|report| report.bytes_verified).collect();
    assert!(different.len() > 2, "{different:?}");
    assert_eq!(half(3), reports[3], "the same seed reads the same");
    let none = check(&fixture.store, CheckLevel::Structure);
    assert_eq!((none.bytes_verified, none.groups_verified), (0, 0));
    assert_eq!(all.bytes_verified, all.containers_bytes);
    let little = check(&fixture.store, sample(SampleSize::Bytes(1), 1));
    assert!(little.groups_verified <= 1, "{little:?}");
}
