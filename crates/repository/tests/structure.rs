//! Tars in a repository: they come back bit for bit, and share contents with tars of other times, with
//! streams and with the files themselves.

#![allow(clippy::unwrap_used)] // A test says no by panicking.

mod support;

use std::fs;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use chunking::structure::Structure;
use engine::object::MemoryStore;
use repository::config::Acceleration;
use repository::{CreateOptions, Progress, Repository, RunSettings};
use testkit::generate::random_bytes;
use testkit::tar::{TAR_BLOCK_BYTES, TAR_FORMATS, TarBuilder, TarFormat};

const FILES: u64 = 60;

fn create(acceleration: &str, structure: Option<Structure>, threads: usize) -> Repository {
    let mut acceleration = Acceleration::from_name(acceleration).unwrap();
    if let Acceleration::Segments { segment_bytes, .. } = &mut acceleration {
        *segment_bytes = 50_000;
    }
    let options = CreateOptions {
        // Without a key, so that two repositories cut alike.
        chunker: Some(chunking::Parameters {
            min_bytes: 512,
            avg_bytes: 1024,
            max_bytes: 4096,
            ..chunking::Parameters::new(chunking::Algorithm::Crc32)
        }),
        acceleration,
        structure,
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

fn content(number: u64) -> Vec<u8> {
    random_bytes(number, 600 + 211 * number as usize)
}

fn tar(format: TarFormat, modified: u64) -> Vec<u8> {
    let mut tar = TarBuilder::new(format);
    tar.modified = modified;
    for number in 0..FILES {
        tar.file(&format!("file-{number}"), &content(number));
    }
    tar.finish()
}

/// Backs the tree up, checks that it comes back, and says how many bytes were new.
fn store(repository: &Repository, source: &Path) -> u64 {
    let picture = support::sources::picture(source);
    let report = support::backup(repository, source).unwrap();
    assert_eq!(report.errors, 0);
    support::check_restore(repository, &report.snapshot, source, &picture).unwrap();
    report.totals.bytes_new
}

/// Reads a few bytes at a time.
struct Dribble<'a>(&'a [u8], usize);

impl Read for Dribble<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
        self.1 = self.1 % 997 + 1;
        let count = self.1.min(buffer.len());
        self.0.read(&mut buffer[..count])
    }
}

fn store_stream(repository: &Repository, bytes: &[u8]) -> u64 {
    let report = repository.backup_stream(
        b"stream.tar",
        &mut Dribble(bytes, 0),
        &mut || Ok(()),
        &support::backup_options(),
        &Progress::default(),
    );
    let report = report.unwrap();
    let mut out = Vec::new();
    let progress = Progress::default();
    let dumped = repository.dump(&report.snapshot, b"stream.tar", &mut out, &progress);
    dumped.unwrap();
    assert!(out == bytes);
    report.totals.bytes_new
}

/// Headers of all files, and what fills the blocks in front of them.
const HEADERS_MOST: u64 = 2 * (FILES + 2) * TAR_BLOCK_BYTES as u64;

#[test]
fn tars_of_other_times_share_all_contents_whatever_cuts() {
    let cutters = ["none", "two-stage", "rapid-ff+rwt+fpt", "rapid-ff"];
    for acceleration in cutters {
        let mut found = Vec::new();
        for threads in [1, 3] {
            let repository = create(acceleration, None, threads);
            assert_eq!(repository.config().structure, Structure::Tar);
            let place = support::sources::place();
            let source = place.path().join("source");
            fs::create_dir(&source).unwrap();
            for format in TAR_FORMATS {
                fs::write(source.join("a.tar"), tar(format, 1_000_000_000)).unwrap();
                let first = store(&repository, &source);
                fs::write(source.join("a.tar"), tar(format, 1_234_567_890)).unwrap();
                let second = store(&repository, &source);
                assert!(second <= HEADERS_MOST, "{acceleration}: {second}");
                // A stream, however it comes, is cut as a file.
                let stream = store_stream(&repository, &tar(format, 1_234_567_890));
                assert!(acceleration == "rapid-ff" || stream == 0, "{stream}");
                found.push((threads, first, second));
            }
        }
        let (one, three) = found.split_at(3);
        let bytes = |it: &(usize, u64, u64)| (it.1, it.2);
        assert!(one.iter().map(bytes).eq(three.iter().map(bytes)));
    }
    let without = create("none", Some(Structure::None), 1);
    let streams = [1_000_000_000, 1_234_567_890].map(|modified| {
        let tar = tar(TarFormat::Gnu, modified);
        store_stream(&without, &tar)
    });
    assert!(streams[1] > 2 * HEADERS_MOST, "{streams:?}");
}

#[test]
fn a_tar_shares_its_contents_with_the_files() {
    let repository = create("none", None, 2);
    let place = support::sources::place();
    let source = place.path().join("source");
    fs::create_dir(&source).unwrap();
    for number in 0..FILES {
        fs::write(source.join(number.to_string()), content(number)).unwrap();
    }
    store(&repository, &source);
    let new = store_stream(&repository, &tar(TarFormat::Ustar, 1));
    assert!(new <= HEADERS_MOST, "{new}");
}

#[test]
fn tars_of_gnu_tar_come_back_in_every_format() {
    let golden = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../testdata/golden/sections");
    let golden = golden.canonicalize().unwrap();
    for structure in [None, Some(Structure::None)] {
        let repository = create("none", structure, 2);
        store(&repository, &golden);
        for entry in fs::read_dir(&golden).unwrap() {
            let bytes = fs::read(entry.unwrap().path()).unwrap();
            assert_eq!(store_stream(&repository, &bytes), 0);
            // Cut off, and with a bit flipped in every block.
            store_stream(&repository, &bytes[..bytes.len() / 2 + 100]);
            let mut damaged = bytes;
            for at in (130..damaged.len()).step_by(3 * TAR_BLOCK_BYTES) {
                damaged[at] ^= 0x41;
            }
            store_stream(&repository, &damaged);
        }
    }
}

#[test]
fn segments_have_no_structure() {
    let repository = create("segments", None, 2);
    assert_eq!(repository.config().structure, Structure::None);
    let options = CreateOptions {
        acceleration: Acceleration::from_name("segments").unwrap(),
        structure: Some(Structure::Tar),
        ..support::create_options()
    };
    let error = Repository::check_options(false, &options).unwrap_err();
    assert!(error.to_string().contains("cut by segments"), "{error}");
}
