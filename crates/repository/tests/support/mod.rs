//! What the reliability tests share: small repositories on any store, their recovery and what
//! must hold of them; trees of files to back up and what a person would compare of them
//! ([`sources`], [`files`]); disks and stores that break their promises ([`broken`]); objects
//! that are damaged ([`damage`], [`fixture`]).
//!
//! Containers are small (64 KiB), so that a few hundred KB of files fill several; a guess at
//! the password costs nothing.

#![allow(dead_code, reason = "every test takes a part of this")]

pub mod broken;
pub mod damage;
pub mod files;
pub mod fixture;
pub mod hooked;
pub mod sources;

use std::path::Path;
use std::sync::{Arc, Mutex};

use engine::container::CompressionLevel;
use engine::object::{ObjectId, ObjectStore};
use engine::rewriting::Rewriting;
use repository::keys::{Argon2Cost, Password};
use repository::snapshot::Snapshot;
use repository::{
    BackupError, BackupOptions, BackupReport, CheckOptions, CreateOptions, Progress, Repository,
    RepositoryError, RestoreOptions, RestoreReport, RunSettings,
};

use sources::Picture;

/// The password of encrypted repositories.
pub const PASSWORD: &str = "correct horse";

/// The host of all backups.
pub const HOST: &str = "test";

pub const CHEAP: Argon2Cost = Argon2Cost {
    memory_kib: 8,
    passes: 1,
    lanes: 1,
};

/// One worker a stage: runs are as alike as threads allow.
pub fn settings() -> RunSettings {
    RunSettings {
        compression: CompressionLevel::new(1).expect("zstd has a level 1").into(),
        threads: 1,
        read_threads: 1,
        store_threads: None,
        memory_bytes: 32 << 20,
        index_memory_bytes: None,
    }
}

pub fn create_options() -> CreateOptions {
    CreateOptions {
        chunker: Some(chunking::Parameters {
            min_bytes: 256,
            avg_bytes: 1024,
            max_bytes: 8192,
            ..chunking::Parameters::default()
        }),
        container_bytes: Some(64 << 10),
        group_bytes: Some(16 << 10),
        cost: CHEAP,
        ..CreateOptions::default()
    }
}

pub fn password(encrypted: bool) -> Option<Password> {
    encrypted.then(|| Password::new(PASSWORD))
}

pub fn create(store: Arc<dyn ObjectStore>, encrypted: bool) -> Repository {
    let password = password(encrypted);
    Repository::create(store, password.as_ref(), &create_options(), settings()).expect("created")
}

/// An encrypted one that stores duplicates again.
pub fn create_rewriting(store: Arc<dyn ObjectStore>, rewriting: Rewriting) -> Repository {
    let options = CreateOptions {
        rewriting,
        ..create_options()
    };
    Repository::create(store, password(true).as_ref(), &options, settings()).expect("created")
}

pub fn open(store: Arc<dyn ObjectStore>, encrypted: bool) -> Result<Repository, RepositoryError> {
    Repository::open(store, password(encrypted).as_ref(), settings())
}

pub fn backup_options() -> BackupOptions {
    BackupOptions {
        host: HOST.to_owned(),
        ..BackupOptions::default()
    }
}

pub fn backup(repository: &Repository, source: &Path) -> Result<BackupReport, BackupError> {
    repository.backup(
        &[source.to_owned()],
        &backup_options(),
        &Progress::default(),
    )
}

/// Progress, and what it was told.
pub fn recorder() -> (Progress, Arc<Mutex<Vec<repository::Problem>>>) {
    let problems = Arc::new(Mutex::new(Vec::new()));
    let told = Arc::clone(&problems);
    let progress = Progress::with_handler(move |problem| {
        told.lock().expect("no panic").push(problem.clone());
    });
    (progress, problems)
}

/// Restores what `source` was into a directory of its own, and says what was told meanwhile.
pub fn restore(
    repository: &Repository,
    snapshot: &Snapshot,
    source: &Path,
    target: &Path,
) -> Result<(RestoreReport, Vec<repository::Problem>), repository::RestoreError> {
    let (progress, problems) = recorder();
    let subpath = Some(source.as_os_str().as_encoded_bytes());
    let options = RestoreOptions::default();
    let report = repository.restore(snapshot, subpath, target, &options, &progress)?;
    let problems = std::mem::take(&mut *problems.lock().expect("no panic"));
    Ok((report, problems))
}

/// Is the snapshot the picture of what was backed up?
pub fn check_restore(
    repository: &Repository,
    snapshot: &Snapshot,
    source: &Path,
    expected: &Picture,
) -> Result<(), String> {
    let id = snapshot.id.short();
    let place = sources::place();
    let target = place.path().join("target");
    let (report, problems) = restore(repository, snapshot, source, &target)
        .map_err(|error| format!("snapshot {id} is not restored: {error}"))?;
    if report.failed > 0 || !problems.is_empty() {
        return Err(format!("snapshot {id} is not restored whole: {problems:?}"));
    }
    let actual = sources::picture(&target);
    if actual != *expected {
        let differences = sources::differences(expected, &actual);
        return Err(format!(
            "snapshot {id} differs from what was backed up: {differences:?}"
        ));
    }
    Ok(())
}

/// Is `check --read-data` clean?
pub fn check_clean(repository: &Repository) -> Result<(), String> {
    let options = CheckOptions { read_data: true };
    match repository.check(options, &Progress::default()) {
        Ok(report) if report.problem_count == 0 && report.losses == 0 => Ok(()),
        Ok(report) => Err(format!("check: {:?}", report.problems)),
        Err(error) => Err(format!("check: {error}")),
    }
}

/// What was reported as saved, and what it was.
#[derive(Debug, Clone, Default)]
pub struct History {
    pub reported: Vec<(ObjectId, Arc<Picture>)>,
}

impl History {
    pub fn with(&self, id: ObjectId, picture: &Arc<Picture>) -> Self {
        let mut history = self.clone();
        history.reported.push((id, Arc::clone(picture)));
        history
    }

    /// Everything reported restores bit for bit, nothing is damaged; snapshots that appeared
    /// without being reported are pictures of `latest`. Returns how many of these there are.
    pub fn check(
        &self,
        repository: &Repository,
        source: &Path,
        latest: &Picture,
    ) -> Result<usize, String> {
        let list = repository.snapshots().map_err(|error| error.to_string())?;
        if let Some(unreadable) = list.unreadable.first() {
            return Err(format!("a snapshot is unreadable: {}", unreadable.error));
        }
        for (id, _) in &self.reported {
            if list.snapshots.iter().all(|snapshot| snapshot.id != *id) {
                return Err(format!("snapshot {} was reported and is lost", id.short()));
            }
        }
        for snapshot in &list.snapshots {
            let known = self.reported.iter().find(|(id, _)| *id == snapshot.id);
            let picture = known.map_or(latest, |(_, picture)| picture);
            check_restore(repository, snapshot, source, picture)?;
        }
        check_clean(repository)?;
        Ok(list.snapshots.len() - self.reported.len())
    }
}

/// Every error that an error stands for, in words.
pub fn chain_of(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut next = error.source();
    while let Some(error) = next {
        text.push_str(&format!(": {error}"));
        next = error.source();
    }
    text
}
