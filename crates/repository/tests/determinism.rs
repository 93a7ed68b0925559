//! The same input, keys and settings make the same repository, whatever the number of threads and
//! the memory: the same chunks in the same groups in the same containers, but for the ids of
//! containers, the same recipes, the same tree, and its pages at the same places.

#![allow(clippy::unwrap_used)] // A test says no by panicking.

mod support;

use std::fs;
use std::path::Path;
use std::sync::Arc;

use engine::container::{ContainerId, ContainerKind};
use engine::object::{MemoryStore, ObjectStore};
use engine::recipe::{Recipe, Run};
use engine::rewriting::{Capping, LookBackWindow, Rewriting};
use repository::listing::SnapshotTree;
use repository::tree::{Entry, EntryKind};
use repository::{Repository, RunSettings};

/// Bytes that repeat now and then, so that there is something to deduplicate, and compress a
/// little.
fn some_bytes(seed: u64, bytes: usize) -> Vec<u8> {
    let mut random = vec![0; bytes / 2 + 1];
    blake3::Hasher::new()
        .update(&seed.to_le_bytes())
        .finalize_xof()
        .fill(&mut random);
    let mut out: Vec<u8> = Vec::with_capacity(bytes + 5000);
    for (number, part) in random.chunks(3000).enumerate() {
        out.extend_from_slice(part);
        match number % 5 {
            0 => out.extend_from_slice(&random[..3000.min(random.len())]),
            1 => out.resize(out.len() + 3000, b' '),
            _ => {}
        }
    }
    out.truncate(bytes);
    out
}

/// Files of all sizes: some share segments of others, one is sparse, several are of many segments.
fn make(root: &Path) {
    for directory in 0..4u64 {
        let place = root.join(format!("d{directory}/below"));
        fs::create_dir_all(&place).unwrap();
        for file in 0..60 {
            let bytes = some_bytes(file % 50, 40 * (file * file) as usize);
            fs::write(place.join(format!("f{file}")), bytes).unwrap();
        }
        let large = some_bytes(1000 + directory, 5_300_000 + 7 * directory as usize);
        fs::write(root.join(format!("d{directory}/large")), large).unwrap();
        std::os::unix::fs::symlink("large", root.join(format!("d{directory}/link"))).unwrap();
    }
    // New and known chunks in turn: a recipe of several pages, which come between those of
    // directories.
    for directory in ["d1", "d3"] {
        let known = some_bytes(1000, 5_300_000);
        let mut mixed = Vec::new();
        for (number, part) in known.chunks(6000).enumerate() {
            mixed.extend_from_slice(part);
            mixed.extend_from_slice(&some_bytes(77_000 + number as u64, 3000));
        }
        mixed.extend_from_slice(directory.as_bytes());
        fs::write(root.join(directory).join("mixed"), mixed.repeat(2)).unwrap();
    }
    let sparse = fs::File::create(root.join("sparse")).unwrap();
    sparse.set_len(9 << 20).unwrap();
    for at in [1 << 20, 5 << 20] {
        let data = some_bytes(at, 1_400_000);
        std::os::unix::fs::FileExt::write_all_at(&sparse, &data, at).unwrap();
    }
    fs::hard_link(root.join("d0/large"), root.join("zz-again")).unwrap();
}

/// A repository like that one, which is new: the same keys.
fn twin(store: &MemoryStore, settings: RunSettings) -> Repository {
    let password = support::password(true);
    Repository::open(Arc::new(store.fork()), password.as_ref(), settings).unwrap()
}

/// What a repository holds, in words, with containers numbered in the order of first use.
struct Picture {
    containers: Vec<ContainerId>,
    lines: Vec<String>,
    paged: usize,
}

impl Picture {
    fn of(repository: &Repository, source: &Path) -> Vec<String> {
        let report = support::backup(repository, source).unwrap();
        assert_eq!(report.errors, 0);
        let tree = repository.tree(&report.snapshot).unwrap();
        let mut summary = report.snapshot.summary;
        summary.milliseconds = 0;
        // Pages hold ids of containers, which are random: they compress by some bytes more or less.
        summary.bytes_stored = 0;
        let mut picture = Self {
            containers: Vec::new(),
            lines: vec![format!("{summary:?}")],
            paged: 0,
        };
        // Directories above are not ours: others change them.
        let top = tree
            .entry(source.as_os_str().as_encoded_bytes())
            .unwrap()
            .unwrap();
        picture.directory(&tree, &top.content, b"");
        assert!(picture.paged >= 2, "recipes of several pages");
        picture.lines
    }

    fn directory(&mut self, tree: &SnapshotTree, recipe: &Recipe, path: &[u8]) {
        for entry in tree.directory(recipe, path) {
            let entry = entry.unwrap();
            let path = [path, b"/", &entry.name].concat();
            self.entry(tree, &entry, &path);
            if entry.kind == EntryKind::Directory {
                self.directory(tree, &entry.content, &path);
            }
        }
    }

    fn entry(&mut self, tree: &SnapshotTree, entry: &Entry, path: &[u8]) {
        let place = self.place(tree, &entry.content);
        let mut runs = String::new();
        if entry.kind == EntryKind::File {
            let all = tree.reader().runs(&entry.content);
            let all: Vec<Run> = all.map(|run| run.unwrap()).collect();
            runs = self.runs(tree, &all);
        }
        let path = String::from_utf8_lossy(path).into_owned();
        let shape = (entry.size, entry.check, &entry.metadata, entry.hard_link);
        self.lines.push(format!("{path} {shape:?} {place} {runs}"));
    }

    /// Where the pages of a directory or of a long recipe lie.
    fn place(&mut self, tree: &SnapshotTree, recipe: &Recipe) -> String {
        let runs = match recipe {
            Recipe::Runs(runs) => return self.runs(tree, runs),
            Recipe::Paged { pages, .. } => pages.iter().flat_map(|page| page.page.clone()),
        };
        let runs: Vec<Run> = runs.collect();
        self.paged += 1;
        format!("pages {}", self.runs(tree, &runs))
    }

    fn runs(&mut self, tree: &SnapshotTree, runs: &[Run]) -> String {
        let mut words = Vec::new();
        for run in runs {
            words.push(match run {
                Run::Hole { bytes } => format!("hole of {bytes}"),
                Run::Slots {
                    container,
                    first,
                    count,
                    bytes,
                } => {
                    let number = self.number(tree, *container);
                    format!("{number}: {first:?} + {count} ({bytes})")
                }
            });
        }
        words.join(", ")
    }

    /// The number of a container; at first sight it is described.
    fn number(&mut self, tree: &SnapshotTree, id: ContainerId) -> usize {
        if let Some(number) = self.containers.iter().position(|&seen| seen == id) {
            return number;
        }
        let number = self.containers.len();
        self.containers.push(id);
        let loaded = tree.reader().containers().section(id).unwrap();
        let section = &loaded.section;
        let (slots, lengths) = (&section.slots, &section.lengths);
        let mut line = format!(
            "container {number}: {:?} {slots:?} {lengths:?}",
            section.kind
        );
        // Pages hold ids of containers, which are random: so are their fingerprints, and they
        // compress by some bytes more or less.
        if section.kind == ContainerKind::Data {
            line += &format!(" {:?} {:?}", section.fingerprints, section.groups);
        }
        self.lines.push(line);
        number
    }
}

#[test]
fn the_same_repository_for_any_number_of_threads() {
    let place = support::sources::place();
    let source = place.path().join("source");
    fs::create_dir(&source).unwrap();
    make(&source);
    // So that all times of change are old enough to be stored.
    std::thread::sleep(std::time::Duration::from_millis(50));
    let store = Arc::new(MemoryStore::new());
    drop(support::create(
        Arc::clone(&store) as Arc<dyn ObjectStore>,
        true,
    ));
    let expected = same_for_all(&store, &source);
    assert!(expected.iter().any(|line| line.starts_with("container 9:")));
}

#[test]
fn so_it_is_where_duplicates_are_stored_again() {
    for rewriting in [
        Rewriting::Capping(Capping {
            segment_bytes: 1 << 20,
            containers_max: 18,
        }),
        Rewriting::LookBackWindow(LookBackWindow {
            rewritten_permille_max: 500,
            ..LookBackWindow::DEFAULT
        }),
    ] {
        let place = support::sources::place();
        let source = place.path().join("source");
        fs::create_dir(&source).unwrap();
        make(&source);
        std::thread::sleep(std::time::Duration::from_millis(50));
        let store = Arc::new(MemoryStore::new());
        let shared = Arc::clone(&store) as Arc<dyn ObjectStore>;
        let repository = support::create_rewriting(shared, rewriting);
        support::backup(&repository, &source).unwrap();
        drop(repository);
        // New chunks, and old ones from all over, in files of all sizes.
        for file in 0..40 {
            let mut mixed = Vec::new();
            for part in 0..file * 2 {
                let old = some_bytes(1000 + part % 4, 5_300_000);
                let start = (part * 977 % 350) as usize * 10_000;
                mixed.extend_from_slice(&old[start..start + 9_000]);
                mixed.extend_from_slice(&some_bytes(5000 + part, 11_000));
            }
            fs::write(source.join(format!("d2/mixed{file}")), mixed).unwrap();
        }
        std::thread::sleep(std::time::Duration::from_millis(50));
        let expected = same_for_all(&store, &source);
        assert!(
            !expected[0].contains("chunks_rewritten: 0,"),
            "{}",
            expected[0]
        );
        let repository = twin(&store, support::settings());
        let report = support::backup(&repository, &source).unwrap();
        let picture = support::sources::picture(&source);
        support::check_restore(&repository, &report.snapshot, &source, &picture).unwrap();
        support::check_clean(&repository).unwrap();
    }
}

/// What a backup makes of a repository like that one, with other settings each time.
fn same_for_all(store: &MemoryStore, source: &Path) -> Vec<String> {
    let settings = |threads, read_threads, memory_mib: usize| RunSettings {
        threads,
        read_threads,
        memory_bytes: memory_mib << 20,
        ..support::settings()
    };
    // Memory is the same: which bases can be had follows from how much there is.
    let expected = Picture::of(&twin(store, settings(1, 1, 64)), source);
    for (threads, read_threads, memory_mib) in [(1, 4, 64), (2, 1, 64), (3, 3, 64), (8, 5, 64)] {
        let settings = settings(threads, read_threads, memory_mib);
        let actual = Picture::of(&twin(store, settings.clone()), source);
        for (line, (actual, expected)) in actual.iter().zip(&expected).enumerate() {
            assert_eq!(actual, expected, "line {line} with {settings:?}");
        }
        assert_eq!(actual.len(), expected.len());
    }
    expected
}
