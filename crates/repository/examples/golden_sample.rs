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
use engine::object::{LocalStore, ObjectId, ObjectKey, ObjectKind, ObjectStore};
use engine::pipeline::DeltaLevel;
use engine::rewriting::{LookBackWindow, Rewriting};
use repository::keys::{Argon2Cost, Password, SlotLabel};
use repository::snapshot::SnapshotChange;
use repository::timestamp::Timestamp;
use repository::{BackupOptions, CreateOptions, Keyring, Progress, Repository, RunSettings};
use testkit::generate::stream_version;

const CHEAP: Argon2Cost = Argon2Cost {
    memory_kib: 64,
    passes: 1,
    lanes: 1,
};

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
    let place = target.join("changed");
    fs::create_dir_all(&place)?;
    if fs::read_dir(&place)?.next().is_none() {
        make_changed(&place)?;
    }
    let place = target.join("rotated");
    fs::create_dir_all(&place)?;
    if fs::read_dir(&place)?.next().is_none() {
        make_rotated(&place)?;
    }
    Ok(())
}

/// A repository with two keys that have pairs, whose secret was changed between its two snapshots.
fn make_rotated(place: &Path) -> Result<(), Box<dyn Error>> {
    let store = Arc::new(LocalStore::create(place)?);
    let shared = || Arc::clone(&store) as Arc<dyn ObjectStore>;
    let options = CreateOptions {
        container_bytes: Some(64 << 10),
        group_bytes: Some(16 << 10),
        chunker: Some(chunking::Parameters {
            min_bytes: 512,
            avg_bytes: 2048,
            max_bytes: 8192,
            ..chunking::Parameters::default()
        }),
        cost: CHEAP,
        label: Some(SlotLabel::default()),
        ..CreateOptions::default()
    };
    let password = Password::new("golden");
    Repository::create(shared(), Some(&password), &options, RunSettings::default())?;
    let keyring = Keyring::open(shared(), Some(&password))?;
    keyring.add(&Password::new("silver"), CHEAP, &SlotLabel::default())?;
    let mut expected = String::new();
    for version in 0..2 {
        if version == 1 {
            Keyring::open(shared(), Some(&password))?.rotate(false)?;
        }
        let repository = Repository::open(shared(), Some(&password), RunSettings::default())?;
        let report = repository.backup_stream(
            b"stream",
            &mut format!("version {version}\n").repeat(500).as_bytes(),
            &mut || Ok(()),
            &BackupOptions::default(),
            &Progress::default(),
        )?;
        expected += &format!("{}\n", report.snapshot.id);
    }
    fs::write(place.with_extension("expected"), expected)?;
    Ok(())
}

/// A repository with two labelled keys and with snapshots that were changed; of one, the earlier form
/// is still there.
fn make_changed(place: &Path) -> Result<(), Box<dyn Error>> {
    let store = Arc::new(LocalStore::create(place)?);
    let shared = || Arc::clone(&store) as Arc<dyn ObjectStore>;
    let label = |name: &str| SlotLabel {
        created: Timestamp {
            seconds: 1_795_176_000,
            nanoseconds: 0,
        },
        host: "golden".to_owned(),
        user: "somebody".to_owned(),
        name: name.to_owned(),
    };
    let options = CreateOptions {
        container_bytes: Some(64 << 10),
        group_bytes: Some(16 << 10),
        chunker: Some(chunking::Parameters {
            min_bytes: 512,
            avg_bytes: 2048,
            max_bytes: 8192,
            ..chunking::Parameters::default()
        }),
        cost: CHEAP,
        label: Some(label("first")),
        ..CreateOptions::default()
    };
    let password = Password::new("golden");
    let settings = RunSettings::default();
    let repository = Repository::create(shared(), Some(&password), &options, settings)?;
    let keyring = Keyring::open(shared(), Some(&password))?;
    keyring.add(&Password::new("silver"), CHEAP, &label("second"))?;
    let mut expected = String::new();
    for version in 0..2 {
        let report = repository.backup_stream(
            b"stream",
            &mut format!("version {version}\n").repeat(500).as_bytes(),
            &mut || Ok(()),
            &BackupOptions::default(),
            &Progress::default(),
        )?;
        let snapshot = report.snapshot;
        expected += &format!("{}\n", snapshot.id);
        let key = ObjectKey::new(ObjectKind::Snapshot, snapshot.id);
        let earlier = store.get(&key, 1 << 20)?;
        let tag = SnapshotChange::AddTags(vec!["kept".to_owned()]);
        let tagged = repository.change_snapshot(&snapshot, &tag)?;
        let tagged = tagged.ok_or("it had no tags")?;
        if version == 0 {
            repository.change_snapshot(&tagged, &SnapshotChange::Protect)?;
        } else {
            store.put(&key, &earlier)?;
        }
    }
    fs::write(place.with_extension("expected"), expected)?;
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
        cost: CHEAP,
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
