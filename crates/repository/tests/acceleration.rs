//! Repositories with accelerated cutting: versions go in and come back, and are deduplicated as well
//! as without.

#![allow(clippy::unwrap_used)] // A test says no by panicking.

mod support;

use std::fs;
use std::path::Path;
use std::sync::Arc;

use engine::object::MemoryStore;
use repository::config::Acceleration;
use repository::{BackupReport, CheckOptions, CreateOptions, Progress, Repository, RunSettings};

/// Without keys, so that two repositories cut alike.
const ALGORITHMS: [chunking::Algorithm; 2] = [
    chunking::Algorithm::Crc32,
    chunking::Algorithm::FastCdcCrateV2020,
];

fn create(
    acceleration: Acceleration,
    algorithm: chunking::Algorithm,
    threads: usize,
) -> Repository {
    let options = CreateOptions {
        chunker: Some(chunking::Parameters {
            min_bytes: 512,
            avg_bytes: 1024,
            max_bytes: 4096,
            ..chunking::Parameters::new(algorithm)
        }),
        acceleration,
        ..support::create_options()
    };
    let settings = RunSettings {
        threads,
        read_threads: threads,
        ..support::settings()
    };
    let store = Arc::new(MemoryStore::new());
    Repository::create(store, None, &options, settings).unwrap()
}

/// Every acceleration, with segments that the files have several of.
fn all() -> Vec<Acceleration> {
    let all = Acceleration::names().map(|(name, _)| {
        let mut acceleration = Acceleration::from_name(name).unwrap();
        assert_eq!(acceleration.to_string(), name);
        if let Acceleration::Segments { segment_bytes, .. } = &mut acceleration {
            *segment_bytes = 50_000;
        }
        acceleration
    });
    all.collect()
}

fn noise(seed: u64, bytes: usize) -> Vec<u8> {
    let mut noise = vec![0; bytes];
    blake3::Hasher::new()
        .update(&seed.to_le_bytes())
        .finalize_xof()
        .fill(&mut noise);
    noise
}

/// A large file, one with holes, a tar, and small ones.
fn make(root: &Path) {
    fs::create_dir(root).unwrap();
    fs::write(root.join("large"), noise(1, 3 << 20)).unwrap();
    fs::write(root.join("text"), "so many lines of text\n".repeat(20_000)).unwrap();
    fs::write(root.join("empty"), b"").unwrap();
    for number in 0..20 {
        fs::write(
            root.join(format!("small-{number}")),
            noise(number, 777 * number as usize),
        )
        .unwrap();
    }
    let mut tar = testkit::tar::TarBuilder::new(testkit::tar::TarFormat::Gnu);
    for number in 0..40 {
        tar.file("member", &noise(200 + number, 999 * number as usize));
    }
    fs::write(root.join("archive.tar"), tar.finish()).unwrap();
    let sparse = fs::File::create(root.join("sparse")).unwrap();
    sparse.set_len(1 << 20).unwrap();
    std::os::unix::fs::FileExt::write_all_at(&sparse, &noise(9, 200_000), 300_000).unwrap();
}

/// Puts in, takes out and writes over, in several places of the large file; others grow or go.
fn change(root: &Path, step: u64) {
    let path = root.join("large");
    let mut data = fs::read(&path).unwrap();
    let places = noise(100 + step, 8 * 40);
    for (number, place) in places.as_chunks::<8>().0.iter().enumerate() {
        let at = u64::from_le_bytes(*place) as usize % (data.len() - 100);
        match number % 3 {
            0 => drop(data.splice(at..at, noise(step + number as u64, 100))),
            1 => drop(data.drain(at..at + 100)),
            _ => data[at..at + 100].copy_from_slice(&noise(step + number as u64, 100)),
        }
    }
    if step == 2 {
        data.truncate(2_500_000);
    }
    fs::write(&path, data).unwrap();
    fs::write(root.join("text"), "so many lines\n".repeat(9000)).unwrap();
    fs::write(root.join(format!("new-{step}")), noise(50 + step, 30_000)).unwrap();
}

/// Backs up three versions; what each report says, after each was restored and checked.
fn versions(repository: &Repository) -> Vec<BackupReport> {
    let place = support::sources::place();
    let source = place.path().join("source");
    make(&source);
    let mut reports = Vec::new();
    for step in 0..3 {
        if step > 0 {
            change(&source, step);
        }
        let picture = support::sources::picture(&source);
        let report = support::backup(repository, &source).unwrap();
        assert_eq!(report.errors, 0);
        assert!(report.repository_warnings.is_empty());
        support::check_restore(repository, &report.snapshot, &source, &picture).unwrap();
        reports.push(report);
    }
    let check = CheckOptions { read_data: true };
    let report = repository.check(check, &Progress::default()).unwrap();
    assert_eq!(report.problems, []);
    reports
}

fn new_bytes(reports: &[BackupReport]) -> Vec<u64> {
    let new = reports.iter().map(|report| report.totals.bytes_new);
    new.collect()
}

#[test]
fn versions_come_back_and_are_deduplicated() {
    for algorithm in ALGORITHMS {
        let plain = new_bytes(&versions(&create(Acceleration::None, algorithm, 1)));
        let has_two_stages = chunking::Rolling::TwoStage.is_of(algorithm);
        let is_possible = |it: &Acceleration| has_two_stages || *it != Acceleration::TwoStage;
        for acceleration in all().into_iter().filter(is_possible) {
            let reports = versions(&create(acceleration, algorithm, 1));
            let found = new_bytes(&reports);
            println!("{algorithm} {acceleration}: {found:?}, without {plain:?}");
            let total: u64 = found.iter().sum();
            let expected: u64 = plain.iter().sum();
            let most = match acceleration.name() {
                "none" | "two-stage" | "rapid-ff+rwt+fpt" => expected,
                "rapid-ff+rwt" => expected + expected / 1000 + 4096,
                "rapid-ff+mt" => expected + expected / 200 + 4096,
                // Segments of a few chunks. What is put in moves every border behind it.
                "segments" => expected + expected / 10,
                "segments-unjoined" => expected * 3 / 2,
                _ => expected * 11 / 10,
            };
            assert!(total <= most, "{acceleration}: {total}, at most {most}");
            // The same cuts on any number of threads.
            let again = versions(&create(acceleration, algorithm, 3));
            assert_eq!(new_bytes(&again), found, "{acceleration}");
        }
    }
}

#[test]
fn hints_that_can_be_had_are_taken() {
    // Who always accepts them cuts otherwise where there are changes: so they were there.
    let algorithm = ALGORITHMS[0];
    let ff = Acceleration::from_name("rapid-ff").unwrap();
    let plain = new_bytes(&versions(&create(Acceleration::None, algorithm, 1)));
    let hinted = new_bytes(&versions(&create(ff, algorithm, 1)));
    assert_eq!(hinted[0], plain[0], "nothing was there before");
    assert!(hinted[1] > plain[1], "{hinted:?} {plain:?}");
}

#[test]
fn streams_have_hints_too() {
    for acceleration in all() {
        let repository = create(acceleration, chunking::Algorithm::FastCdc, 1);
        let mut data = noise(3, 1 << 20);
        let mut ids = Vec::new();
        for step in 0..3u64 {
            let mut stream = &data[..];
            let report = repository
                .backup_stream(
                    b"stream",
                    &mut stream,
                    &mut || Ok(()),
                    &support::backup_options(),
                    &Progress::default(),
                )
                .unwrap();
            assert!(step == 0 || report.totals.bytes_new < 100_000);
            ids.push((report.snapshot, data.clone()));
            data.splice(500_000..500_000, noise(step, 100));
        }
        for (snapshot, data) in ids {
            let mut out = Vec::new();
            repository
                .dump(&snapshot, b"stream", &mut out, &Progress::default())
                .unwrap();
            assert!(out == data);
        }
    }
}
