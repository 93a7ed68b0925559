//! Damage of every kind to every kind of object (in the manner of conserve's `tests/damage.rs`):
//! never a panic, never wrong bytes; an error that names the object and what it means; what is
//! not damaged is restored, what is lost is named; `check --read-data` finds everything; and
//! new backups make good what they can.

mod support;

use std::sync::Arc;

use engine::container::ContainerKind;
use engine::object::{MemoryStore, ObjectId, ObjectKey, ObjectKind, ObjectStore};
use repository::config::ConfigError;
use repository::keys::{KeyError, KeySlot, Password, open_secrets};
use repository::snapshot::{SnapshotFilter, SnapshotSpec};
use repository::{
    BackupOptions, CheckOptions, CheckReport, Progress, RepairIndexOptions, Repository,
    RepositoryError,
};
use support::damage::Change;
use support::fixture::Fixture;
use support::hooked::dying;
use support::{backup, backup_options, settings};

fn check(repository: &Repository, read_data: bool) -> Result<CheckReport, String> {
    repository
        .check(CheckOptions { read_data }, &Progress::default())
        .map_err(|error| format!("check: {error}"))
}

/// Does the report name `word`, with what that means, and is it a loss?
fn names(report: &CheckReport, word: &str, is_loss: bool) -> Result<(), String> {
    let named = report.problems.iter().find(|problem| {
        problem.is_loss == is_loss
            && !problem.meaning.is_empty()
            && (problem.subject.contains(word) || problem.message.contains(word))
    });
    match named {
        Some(_) => Ok(()),
        None => Err(format!("check does not name {word}: {:?}", report.problems)),
    }
}

fn force() -> BackupOptions {
    BackupOptions {
        force: true,
        ..backup_options()
    }
}

#[test]
fn a_damaged_config_is_refused() {
    for encrypted in [true, false] {
        let fixture = Fixture::new(encrypted);
        fixture.damage(ObjectKey::CONFIG, |change, store| {
            let again = store.fork();
            let error = match fixture.open(store) {
                Ok(_) => return Err("it opens".to_owned()),
                Err(error) => error,
            };
            let is_right = match (&error, change) {
                (RepositoryError::Config(ConfigError::Damaged { .. }), _) => true,
                // Nothing says that it ever was a config, or of this repository.
                (RepositoryError::Config(ConfigError::NotARepository { .. }), change) => {
                    matches!(
                        change,
                        Change::Delete | Change::Flip(0 | 5) | Change::Zeros(0, _)
                    )
                }
                (RepositoryError::Key(_), Change::Swap) => true,
                _ => false,
            };
            if !is_right || (change != Change::Swap && !error.to_string().contains("config")) {
                return Err(format!("{error:?}"));
            }
            // It is not buried under a new one.
            let password = support::password(encrypted);
            let options = support::create_options();
            let created =
                Repository::create(Arc::new(again), password.as_ref(), &options, settings());
            match created {
                Ok(_) => Err("a new repository is created on it".to_owned()),
                Err(_) => Ok(()),
            }
        });
    }
}

#[test]
fn a_damaged_key_slot_is_no_wrong_password() {
    for encrypted in [true, false] {
        let fixture = Fixture::new(encrypted);
        let [key] = fixture.keys(ObjectKind::Key)[..] else {
            panic!("one slot");
        };
        fixture.damage(key, |change, store| {
            let error = match fixture.open(store) {
                Ok(_) => return Err("it opens".to_owned()),
                Err(RepositoryError::Key(error)) => error,
                Err(error) => return Err(format!("{error:?}")),
            };
            let is_right = match (change, &error) {
                (Change::Delete, KeyError::NoSlots { .. }) => error.is_damage(),
                // Intact, but another one: that can't be told from a wrong password.
                (Change::Swap, KeyError::WrongPassword { .. }) => encrypted,
                (Change::Swap, KeyError::NoUsableSlot { unusable }) => {
                    matches!(unusable[..], [KeyError::ForeignSlot { .. }])
                }
                (_, KeyError::NoUsableSlot { unusable }) => {
                    matches!(unusable[..], [KeyError::DamagedSlot { slot, .. }] if slot == key.id)
                        && error.is_damage()
                        && error.to_string().contains(&key.id.to_string())
                }
                _ => false,
            };
            if is_right {
                Ok(())
            } else {
                Err(format!("{error:?}"))
            }
        });
    }
    let fixture = Fixture::new(true);
    let wrong = Password::new("wrong");
    let opened = Repository::open(Arc::new(fixture.store.fork()), Some(&wrong), settings());
    match opened {
        Err(RepositoryError::Key(error @ KeyError::WrongPassword { .. })) => {
            assert!(!error.is_damage());
            assert_eq!(error.to_string(), "wrong password (1 key slots tried)");
        }
        other => panic!("{other:?}"),
    }
}

#[test]
fn one_damaged_slot_of_two_is_told() {
    let fixture = Fixture::new(true);
    let [first] = fixture.keys(ObjectKind::Key)[..] else {
        panic!("one slot");
    };
    let config = fixture
        .open(fixture.store.fork())
        .expect("opened")
        .config()
        .clone();
    let password = Password::new(support::PASSWORD);
    let opened = open_secrets(
        &fixture.store,
        config.id,
        config.encryption,
        Some(&password),
    );
    let secrets = opened.expect("opened").secrets;
    let other = Password::new("another");
    let id = ObjectId([7; 16]);
    let slot = KeySlot::seal_password(&secrets, &other, support::CHEAP, config.id, id);
    slot.expect("sealed")
        .write(&fixture.store)
        .expect("written");
    let open_with = |store: MemoryStore, password| {
        Repository::open(Arc::new(store), Some(password), settings())
    };
    fixture.damage(first, |change, store| {
        if matches!(change, Change::Swap | Change::Delete) {
            return Ok(()); // What is left is intact.
        }
        let slot = first.id.to_string();
        let repository = open_with(store.fork(), &other).map_err(|error| error.to_string())?;
        if !repository
            .warnings()
            .iter()
            .any(|warning| warning.contains(&slot))
        {
            return Err("no warning".to_owned());
        }
        let report = check(&repository, false)?;
        names(&report, &first.to_string(), false)?;
        if report.losses > 0 {
            return Err("a loss".to_owned());
        }
        match open_with(store, &password) {
            Err(RepositoryError::Key(KeyError::WrongPassword { unusable, .. }))
                if matches!(unusable[..], [KeyError::DamagedSlot { .. }]) =>
            {
                Ok(())
            }
            other => Err(format!("{other:?}")),
        }
    });
}

/// What every word about the damage must contain. A swap damages a second container as well.
fn word_for(key: ObjectKey, change: Change) -> String {
    match change {
        Change::Swap => "containers/".to_owned(),
        _ => key.id.to_string(),
    }
}

/// What must hold of a damaged container, of data or of metadata.
fn judge_container(
    fixture: &Fixture,
    key: ObjectKey,
    change: Change,
    store: &MemoryStore,
) -> Result<(), String> {
    let id = word_for(key, change);
    let repository = fixture
        .open(store.fork())
        .map_err(|error| error.to_string())?;
    let lost = fixture.read_everything(&repository, &id)?;
    let structure = check(&repository, false)?;
    let full = check(&repository, true)?;
    names(&full, &id, true)?;
    if structure.problem_count > full.problem_count {
        return Err("a thorough check finds less".to_owned());
    }
    // What is made of its chunks is damaged then, and not what is not there.
    if change == Change::Delete && (lost == 0 || full.damaged_containers.contains(&key.id)) {
        return Err(format!(
            "{lost} lost, {:?} damaged",
            full.damaged_containers
        ));
    }
    let is_of_another_epoch = full
        .problems
        .iter()
        .any(|problem| problem.message.contains("epoch") && problem.subject.contains(&id));
    let is_named = full.damaged_containers.contains(&key.id);
    if change != Change::Delete && is_named == is_of_another_epoch {
        return Err("it is not named as damaged".to_owned());
    }
    // A dry run says what it meets and changes nothing.
    let keys = store.keys();
    let dry = BackupOptions {
        dry_run: true,
        ..force()
    };
    let sources = [fixture.source.root().to_owned()];
    let report = repository.backup(&sources, &dry, &Progress::default());
    report.map_err(|error| format!("a dry run fails: {error}"))?;
    if store.keys() != keys {
        return Err("a dry run stores something".to_owned());
    }
    // What the container's metadata shows, a backup that reads everything meets and makes good.
    let reader = repository
        .engine()
        .reader()
        .map_err(|error| error.to_string())?;
    let is_seen = reader.containers().object(key).is_err();
    if is_seen {
        let repository = fixture
            .open(store.fork())
            .map_err(|error| error.to_string())?;
        fixture
            .backups_are_whole(&repository, &force())
            .map_err(|error| format!("after a forced backup: {error}"))?;
    }
    // Whether it is damaged or sealed by somebody who knows more can't be told.
    if is_of_another_epoch {
        return Ok(());
    }
    // What a check has found is set aside, and made good by any backup.
    let copy = store.fork();
    let repository = fixture
        .open(copy.fork())
        .map_err(|error| error.to_string())?;
    repository
        .set_aside(&full.damaged_containers)
        .map_err(|error| format!("not set aside: {error}"))?;
    fixture
        .backups_are_whole(&repository, &backup_options())
        .map_err(|error| format!("once it is set aside: {error}"))?;
    // What was intact in it still is.
    let lost_then = fixture.read_old(&repository, &id)?;
    if lost_then != lost {
        return Err(format!(
            "{lost} were lost, {lost_then} once it is set aside"
        ));
    }
    Ok(())
}

#[test]
fn a_damaged_container_of_data_costs_its_files_only() {
    for encrypted in [true, false] {
        let fixture = Fixture::new(encrypted);
        let keys = fixture.containers(ContainerKind::Data);
        assert!(keys.len() >= 5, "{} containers", keys.len());
        for key in [keys[0], keys[keys.len() - 1]] {
            let mut most_lost = 0;
            fixture.damage(key, |change, store| {
                let repository = fixture
                    .open(store.fork())
                    .map_err(|error| error.to_string())?;
                let lost = fixture.read_everything(&repository, &word_for(key, change))?;
                if change != Change::Swap {
                    most_lost = most_lost.max(lost);
                }
                judge_container(&fixture, key, change, &store)
            });
            let all: usize = fixture.saved.iter().map(|saved| saved.picture.len()).sum();
            assert!(
                (1..all).contains(&most_lost),
                "{most_lost} of {all} are lost"
            );
        }
    }
}

#[test]
fn a_damaged_container_of_metadata_is_made_good_by_the_next_backup() {
    for encrypted in [true, false] {
        let fixture = Fixture::new(encrypted);
        let keys = fixture.containers(ContainerKind::Metadata);
        assert_eq!(keys.len(), 2);
        for key in keys {
            fixture.damage(key, |change, store| {
                judge_container(&fixture, key, change, &store)?;
                // Without any check before: the backup reads the parent's directories.
                let repository = fixture
                    .open(store.fork())
                    .map_err(|error| error.to_string())?;
                for options in [backup_options(), force()] {
                    fixture
                        .backups_are_whole(&repository, &options)
                        .map_err(|error| format!("without a check: {error}"))?;
                }
                Ok(())
            });
        }
    }
}

#[test]
fn a_damaged_index_run_costs_nothing_but_space() {
    for encrypted in [true, false] {
        let fixture = Fixture::new(encrypted);
        for key in fixture.keys(ObjectKind::Index) {
            fixture.damage(key, |change, store| {
                let id = key.id.to_string();
                let repository = fixture
                    .open(store.fork())
                    .map_err(|error| error.to_string())?;
                let lost = fixture.read_everything(&repository, &id)?;
                let report = check(&repository, true)?;
                if lost > 0 || report.losses > 0 {
                    return Err(format!("{lost} lost: {:?}", report.problems));
                }
                match change {
                    Change::Delete => names(&report, "index", false)?,
                    _ => names(&report, &id, false)?,
                }
                index_is_repaired(&fixture, &store.fork())?;
                fixture.backups_are_whole(&repository, &force())?;
                if check(&repository, true)?.losses > 0 {
                    return Err("a loss after the next backup".to_owned());
                }
                Ok(())
            });
        }
    }
}

/// One repair makes the index whole: nothing is wrong any more, and nothing is stored again.
fn index_is_repaired(fixture: &Fixture, store: &MemoryStore) -> Result<(), String> {
    let repository = fixture
        .open(store.fork())
        .map_err(|error| error.to_string())?;
    let repair = |all| {
        let options = RepairIndexOptions {
            all,
            dry_run: false,
        };
        let progress = Progress::default();
        let repaired = repository.repair_index(options, &progress);
        repaired.map_err(|error| error.to_string())?;
        Ok::<_, String>(progress.errors.into_inner())
    };
    // A run whose epoch is not known may be sound, and stays unless all is to be built again.
    if repair(false)? > 0 && repair(true)? > 0 {
        return Err("the repair did not get through".to_owned());
    }
    let report = check(&repository, true)?;
    if report.problem_count > 0 {
        return Err(format!("after the repair: {:?}", report.problems));
    }
    let sources = [fixture.source.root().to_owned()];
    let saved = repository.backup(&sources, &force(), &Progress::default());
    let saved = saved.map_err(|error| error.to_string())?;
    if saved.totals.bytes_new > 0 || !saved.repository_warnings.is_empty() {
        return Err(format!("{:?}", saved.totals));
    }
    Ok(())
}

#[test]
fn a_sound_index_is_built_again_where_that_is_asked_for() {
    let fixture = Fixture::new(true);
    let store = Arc::new(fixture.store.fork());
    let damaged = fixture.containers(ContainerKind::Data)[0];
    let open = || support::open(Arc::clone(&store) as Arc<dyn ObjectStore>, true).expect("opened");
    let repair = |all, dry_run| {
        let options = RepairIndexOptions { all, dry_run };
        let report = open().repair_index(options, &Progress::default());
        report.expect("repaired")
    };
    let keys = || -> Vec<ObjectKey> {
        let all = store.keys().into_iter();
        all.filter(|key| key.kind == ObjectKind::Index).collect()
    };
    let before = keys();
    let report = repair(false, false);
    assert_eq!((report.runs_replaced, report.containers_indexed), (0, 0));
    let planned = repair(true, true);
    assert_eq!(keys(), before);
    assert_eq!(planned.runs_replaced, before.len() as u64);
    assert_eq!(planned.containers_indexed, planned.containers);
    assert_eq!(repair(true, false), planned);
    assert!(keys().iter().all(|key| !before.contains(key)));
    assert_eq!(check(&open(), true).expect("checked").problem_count, 0);

    // What was set aside stays aside; what can't be read is counted.
    let sound = store.object(&damaged).expect("there");
    store.corrupt(&damaged, |bytes| bytes[100] ^= 1);
    open().set_aside(&[damaged.id]).expect("set aside");
    let report = repair(true, false);
    assert_eq!(report.containers_indexed, report.containers - 1);
    store.insert_raw(damaged, sound);
    let sources = [fixture.source.root().to_owned()];
    let saved = open().backup(&sources, &force(), &Progress::default());
    assert!(
        saved.expect("backed up").totals.bytes_new > 0,
        "still aside"
    );

    let other = fixture.containers(ContainerKind::Data)[1];
    store.corrupt(&other, |bytes| {
        let end = bytes.len() - 40;
        bytes[end] ^= 1;
    });
    let report = repair(true, false);
    assert_eq!(report.containers_unreadable, 1);
}

/// A repair that dies at any change of the store leaves an index that is no worse.
#[test]
fn a_repair_of_the_index_may_die() {
    let fixture = Fixture::new(true);
    let run = fixture.keys(ObjectKind::Index)[0];
    let mut is_done = false;
    for changes in 0..20 {
        let store = fixture.store.fork();
        store.corrupt(&run, |bytes| bytes[100] ^= 1);
        let medium = Arc::new(store);
        let repository = support::open(dying(&medium, changes), true).expect("opened");
        let options = RepairIndexOptions {
            all: true,
            dry_run: false,
        };
        let outcome = repository.repair_index(options, &Progress::default());
        is_done |= outcome.is_ok();
        let problems = check(&fixture.open(medium.fork()).expect("opened"), true);
        let problems = problems.expect("checked");
        assert_eq!(problems.losses, 0);
        assert!(problems.problem_count <= 2, "{:?}", problems.problems);
        index_is_repaired(&fixture, &medium).expect("repaired");
    }
    assert!(is_done);
}

#[test]
fn a_lost_index_is_rebuilt_from_the_containers() {
    let fixture = Fixture::new(true);
    let store = fixture.store.fork();
    for key in fixture.keys(ObjectKind::Index) {
        store.remove_raw(&key);
    }
    let repository = fixture.open(store).expect("opened");
    let report = repository
        .backup(
            &[fixture.source.root().to_owned()],
            &force(),
            &Progress::default(),
        )
        .expect("backed up");
    assert_eq!(report.totals.bytes_new, 0);
    assert!(report.repository_warnings.is_empty());
}

#[test]
fn what_is_set_aside_stays_aside() {
    let fixture = Fixture::new(false);
    let key = fixture.containers(ContainerKind::Data)[0];
    let store = Arc::new(fixture.store.fork());
    // A group is damaged, and no index run names its container: a dead backup's, say.
    store.corrupt(&key, |bytes| bytes[100] ^= 1);
    for index in fixture.keys(ObjectKind::Index) {
        store.remove_raw(&index);
    }
    let open = || support::open(Arc::clone(&store) as Arc<dyn ObjectStore>, false).expect("opened");
    let report = check(&open(), true).expect("checked");
    // And those with deltas of what it had.
    assert!(report.damaged_containers.contains(&key.id));
    open()
        .set_aside(&report.damaged_containers)
        .expect("set aside");
    // Merges keep it aside, too.
    for version in 0..12 {
        fixture.source.touch(version);
        backup(&open(), fixture.source.root()).expect("backed up");
    }
    std::fs::remove_file(fixture.source.root().join("touched")).expect("removed");
    let runs = store
        .keys()
        .into_iter()
        .filter(|key| key.kind == ObjectKind::Index);
    assert!(runs.count() <= 8, "index runs are merged");
    for options in [backup_options(), force(), backup_options()] {
        let sources = [fixture.source.root().to_owned()];
        let progress = Progress::default();
        let report = open()
            .backup(&sources, &options, &progress)
            .expect("backed up");
        assert_eq!(report.repository_warnings, []);
        let (root, picture) = (fixture.source.root(), fixture.source.picture());
        support::check_restore(&open(), &report.snapshot, root, &picture).expect("whole");
    }
}

#[test]
fn a_damaged_snapshot_costs_that_snapshot() {
    for encrypted in [true, false] {
        let fixture = Fixture::new(encrypted);
        for (number, saved) in fixture.saved.iter().enumerate() {
            let key = ObjectKey::new(ObjectKind::Snapshot, saved.snapshot.id);
            let other = &fixture.saved[1 - number].snapshot;
            fixture.damage(key, |change, store| {
                let id = key.id.to_string();
                let repository = fixture
                    .open(store.fork())
                    .map_err(|error| error.to_string())?;
                fixture.read_everything(&repository, &id)?;
                let swapped = change == Change::Swap;
                let spec = |id| SnapshotSpec::Id(id);
                let filter = SnapshotFilter::default();
                let error = match repository.snapshot(&spec(key.id), &filter) {
                    Ok(_) => return Err("it is there".to_owned()),
                    Err(error) => error.to_string(),
                };
                if !error.contains(&id) {
                    return Err(error);
                }
                let list = repository.snapshots().map_err(|error| error.to_string())?;
                let is_gone = change == Change::Delete;
                let unreadable = if is_gone { 0 } else { 1 + usize::from(swapped) };
                if list.unreadable.len() != unreadable {
                    return Err(format!("{:?}", list.unreadable));
                }
                let report = check(&repository, true)?;
                if is_gone {
                    if report.problem_count > 0 {
                        return Err(format!("{:?}", report.problems));
                    }
                } else {
                    names(&report, &key.to_string(), true)?;
                }
                if !swapped {
                    let found = repository.snapshot(&SnapshotSpec::Latest, &filter);
                    let found = found.map_err(|error| error.to_string())?;
                    if found.snapshot.id != other.id || found.unreadable.len() != unreadable {
                        return Err(format!("latest is {:?}", found.snapshot.id));
                    }
                }
                let report = backup(&repository, fixture.source.root())
                    .map_err(|error| error.to_string())?;
                if report.repository_warnings.len() != unreadable {
                    return Err(format!("{:?}", report.repository_warnings));
                }
                if report.totals.bytes_new > 0 {
                    return Err("chunks are stored again".to_owned());
                }
                fixture.backups_are_whole(&repository, &backup_options())
            });
        }
    }
}
