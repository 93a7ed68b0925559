//! Writes golden samples of the stored format: small repositories that every later version must
//! be able to read (docs/format/v1.md; read by `tests/golden.rs`).
//!
//! `cargo run -p onefold-repository --example golden_sample -- testdata/golden/v1`
//!
//! Run it once for a format version; samples that are there stay. They are never made anew: ids are random, so
//! a new run makes other bytes, and what matters is that old bytes stay readable.

use std::error::Error;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use engine::container::ContainerId;
use engine::object::{LocalStore, ObjectId, ObjectKind, ObjectStore};
use engine::pipeline::DeltaLevel;
use engine::rewriting::{LookBackWindow, Rewriting};
use repository::keys::{Argon2Cost, Password};
use repository::{BackupOptions, CreateOptions, Progress, Repository, RunSettings};
use testkit::generate::stream_version;

fn main() -> Result<(), Box<dyn Error>> {
    let target = std::env::args_os()
        .nth(1)
        .map(PathBuf::from)
        .ok_or("where to?")?;
    let source = tempfile::tempdir()?;
    make_source(source.path())?;
    for (name, password) in [
        ("plain", None),
        ("encrypted", Some(Password::new("golden"))),
    ] {
        let place = target.join(name);
        fs::create_dir_all(&place)?;
        if fs::read_dir(&place)?.next().is_none() {
            make_sample(&place, password.as_ref(), source.path())?;
        }
    }
    let place = target.join("deltas");
    fs::create_dir_all(&place)?;
    if fs::read_dir(&place)?.next().is_none() {
        make_deltas(&place)?;
    }
    Ok(())
}

/// A repository with containers of deltas, in chains: versions of a stream.
fn make_deltas(place: &Path) -> Result<(), Box<dyn Error>> {
    let store = Arc::new(LocalStore::create(place)?) as Arc<dyn ObjectStore>;
    let options = CreateOptions {
        container_bytes: Some(256 << 10),
        group_bytes: Some(64 << 10),
        deltas: DeltaLevel::Best,
        ..CreateOptions::default()
    };
    let repository = Repository::create(store, None, &options, RunSettings::default())?;
    let mut expected = String::new();
    for version in 0..4 {
        let report = repository.backup_stream(
            b"stream",
            &mut stream_version(version).as_slice(),
            &mut || Ok(()),
            &BackupOptions::default(),
            &Progress::default(),
        )?;
        expected += &format!("{}\n", report.snapshot.id);
    }
    fs::write(place.with_extension("expected"), expected)?;
    Ok(())
}

/// The tree that `tests/golden.rs` expects.
fn make_source(root: &Path) -> Result<(), Box<dyn Error>> {
    fs::create_dir_all(root.join("golden/directory"))?;
    fs::write(root.join("golden/empty"), b"")?;
    fs::write(
        root.join("golden/text"),
        "a line of the golden text\n".repeat(2000),
    )?;
    let noise: Vec<u8> = (0..60_000u32)
        .map(|i| (i.wrapping_mul(2_654_435_761) >> 24) as u8)
        .collect();
    fs::write(root.join("golden/directory/noise"), &noise)?;
    fs::hard_link(
        root.join("golden/text"),
        root.join("golden/directory/text-again"),
    )?;
    std::os::unix::fs::symlink("directory/noise", root.join("golden/link"))?;
    let sparse = fs::File::create(root.join("golden/sparse"))?;
    sparse.set_len(1 << 20)?;
    std::os::unix::fs::FileExt::write_all_at(&sparse, b"data in the middle", 500_000)?;
    Ok(())
}

fn make_sample(
    place: &Path,
    password: Option<&Password>,
    source: &Path,
) -> Result<(), Box<dyn Error>> {
    let store = Arc::new(LocalStore::create(place)?);
    let options = CreateOptions {
        chunker: Some(chunking::Parameters {
            min_bytes: 512,
            avg_bytes: 2048,
            max_bytes: 8192,
            ..chunking::Parameters::new(chunking::Algorithm::FastCdc)
        }),
        container_bytes: Some(64 << 10),
        group_bytes: Some(16 << 10),
        rewriting: Rewriting::LookBackWindow(LookBackWindow::DEFAULT),
        cost: Argon2Cost {
            memory_kib: 64,
            passes: 1,
            lanes: 1,
        },
        ..CreateOptions::default()
    };
    let shared = Arc::clone(&store) as Arc<dyn ObjectStore>;
    let repository = Repository::create(shared, password, &options, RunSettings::default())?;
    let backup_options = BackupOptions {
        host: "golden".to_owned(),
        tags: vec!["sample".to_owned()],
        ..BackupOptions::default()
    };
    let golden = source.join("golden");
    let first = repository.backup(&[golden], &backup_options, &Progress::default())?;
    // One object of several sections, found through a remap.
    let mut containers = Vec::new();
    store.list(ObjectKind::Container, &mut |id, _| {
        containers.push(ContainerId(id))
    })?;
    containers.sort_unstable();
    let engine = repository.engine();
    testkit::compaction::compact(
        engine,
        &containers,
        ObjectId::random(),
        ObjectId::random(),
        &|_, _| true,
    );
    // And a second snapshot, of a stream, in objects of its own.
    let mut stream = &b"a stream of the second snapshot\n".repeat(500)[..];
    let second = repository.backup_stream(
        b"stream",
        &mut stream,
        &mut || Ok(()),
        &backup_options,
        &Progress::default(),
    )?;
    let path = source.join("golden").to_string_lossy().into_owned();
    fs::write(
        place.with_extension("expected"),
        format!("{}\n{}\n{path}\n", first.snapshot.id, second.snapshot.id),
    )?;
    Ok(())
}
