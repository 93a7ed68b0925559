//! Backs up a directory into a new repository and restores it: the library in a few lines.
//!
//! `cargo run -p onefold-repository --example backup_directory -- DIRECTORY`

use std::error::Error;
use std::path::PathBuf;
use std::sync::Arc;

use engine::object::LocalStore;
use repository::keys::Password;
use repository::{BackupOptions, CreateOptions, Progress, Repository, RestoreOptions, RunSettings};

fn main() -> Result<(), Box<dyn Error>> {
    let source = std::env::args_os()
        .nth(1)
        .map_or_else(|| PathBuf::from("docs"), PathBuf::from);
    let place = tempfile::tempdir()?;
    let store = Arc::new(LocalStore::create(&place.path().join("repository"))?);
    let password = Password::new("correct horse battery staple");
    let repository = Repository::create(
        store,
        Some(&password),
        &CreateOptions::default(),
        RunSettings::default(),
    )?;

    let progress = Progress::with_handler(|problem| eprintln!("{problem}"));
    let options = BackupOptions {
        host: "example".to_owned(),
        ..BackupOptions::default()
    };
    let report = repository.backup(&[source], &options, &progress)?;
    let summary = report.snapshot.summary;
    println!(
        "snapshot {}: {} files, {} bytes, {} stored",
        report.snapshot.id.short(),
        summary.files,
        summary.files_bytes,
        report.stored_bytes
    );

    let target = place.path().join("restored");
    let restored = repository.restore(
        &report.snapshot,
        None,
        &target,
        &RestoreOptions::default(),
        &Progress::default(),
    )?;
    println!(
        "restored {} files, {} failed",
        restored.files, restored.failed
    );
    Ok(())
}
