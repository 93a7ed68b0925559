//! A store that takes objects and lets nobody delete one, as a bucket for backups alone may be set up.
//!
//! Backups go on and restore; what they could not delete is told and harms nobody; whoever may delete tidies up.

mod support;

use std::fs;
use std::sync::Arc;

use engine::object::{MemoryStore, ObjectKind};
use repository::CheckOptions;
use repository::Progress;
use support::hooked::append_only;
use support::sources::Source;
use support::{backup, check_restore, create, open};

/// Backups: more than runs of the index that are left alone.
const BACKUPS: usize = 12;

fn count(medium: &MemoryStore, kind: ObjectKind) -> usize {
    let keys = medium.keys();
    keys.iter().filter(|key| key.kind == kind).count()
}

#[test]
fn backups_need_not_delete() {
    let source = Source::new();
    let medium = Arc::new(MemoryStore::new());
    create(Arc::clone(&medium) as Arc<_>, true);
    let mut history = Vec::new();
    for number in 0..BACKUPS {
        let bytes = testkit::generate::random_bytes(number as u64, 30_000);
        fs::write(source.root().join(format!("new-{number}")), bytes).expect("written");
        let repository = open(append_only(&medium), true).expect("opened");
        let report = backup(&repository, source.root()).expect("backed up");
        let told = |text: &str| {
            let warnings = report.repository_warnings.iter();
            warnings
                .filter(|warning| warning.message.contains(text))
                .count()
        };
        assert_eq!(
            told("cannot take leave"),
            1,
            "{:?}",
            report.repository_warnings
        );
        history.push((report.snapshot.id, source.picture()));
    }
    assert_eq!(count(&medium, ObjectKind::Run), BACKUPS);
    let repository = open(append_only(&medium), true).expect("opened");
    let list = repository.snapshots().expect("listed");
    assert_eq!(list.snapshots.len(), BACKUPS);
    let (id, picture) = history.last().expect("some were made");
    let latest = list.snapshots.iter().find(|snapshot| snapshot.id == *id);
    let latest = latest.expect("it is listed");
    check_restore(&repository, latest, source.root(), picture).expect("as it was");
    let options = CheckOptions::default();
    let report = repository
        .check(options, &Progress::default())
        .expect("checked");
    assert_eq!(report.problem_count, 0, "{:?}", report.problems);
    // Somebody who may delete backs up, and the index is tidied.
    let runs = count(&medium, ObjectKind::Index);
    let registered = count(&medium, ObjectKind::Run);
    let repository = open(Arc::clone(&medium) as Arc<_>, true).expect("opened");
    backup(&repository, source.root()).expect("backed up");
    assert!(count(&medium, ObjectKind::Index) < runs, "of {runs}");
    assert_eq!(count(&medium, ObjectKind::Run), registered, "its own went");
}
