//! `edits`: one random file, edited again and again (Ni §3.4.2; RapidCDC, SoCC 2019).
//!
//! Enters: a seed, the bytes of the first version, and an [`EditPlan`]: how many edits a version gets,
//! of which kind, in which part of the file. Leaves: version after version ([`EditedFile`]), in memory
//! for `onefold-lab paper`, or as files `v01.bin`, `v02.bin` ….
//!
//! As in the paper: the first version is random, each other is the one before with edits of 100
//! bytes at random places, inserts and deletes in equal chance or overwrites, and no chunk of
//! the version before gets more than one. Whose chunks: those of the paper's default chunker, Rabin
//! with a window of 256 bytes and 4, 8, 12 KiB, whatever is measured later. Exact from a seed.

use std::fs;
use std::ops::Range;
use std::str::FromStr;

use anyhow::{Context, Result};
use chunking::{Algorithm, Chunker, KeyMaterial, OwnParameter, Parameters};

use super::seeded::Seeded;
use super::site::Site;
use crate::failure::Failure;

/// Bytes of one edit.
pub const EDIT_BYTES: usize = 100;

/// Bytes of a version for which there is one edit, unless another number is asked for: the paper's
/// 1,000 in 500 MiB.
pub const BYTES_AN_EDIT: u64 = 512 << 10;

/// Most chunks that a file of the largest data set can have.
const EDITS_HIGHEST: u64 = u32::MAX as u64;

/// Purposes of random numbers.
const START: u64 = 1;
const STEP: u64 = 2;

/// What an edit does.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
pub enum EditKind {
    /// Puts bytes in or takes bytes out, with equal chance: what is behind moves.
    #[default]
    InsertDelete,
    /// Writes over bytes: nothing moves.
    Overwrite,
}

impl EditKind {
    /// Its name in commands and in `dataset.json`.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::InsertDelete => "insert-delete",
            Self::Overwrite => "overwrite",
        }
    }
}

impl FromStr for EditKind {
    type Err = String;

    fn from_str(name: &str) -> Result<Self, String> {
        [Self::InsertDelete, Self::Overwrite]
            .into_iter()
            .find(|kind| kind.name() == name)
            .ok_or_else(|| "there are insert-delete and overwrite".to_owned())
    }
}

/// How each version differs from the one before.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct EditPlan {
    /// How many edits it gets.
    pub edits: usize,
    /// What they do.
    pub kind: EditKind,
    /// In which part of the file they lie, in hundredths of it from its start: 1 to 100.
    pub range_percent: u32,
}

/// What may be asked of [`EditPlan`]; what is not has a default.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct EditRequest {
    /// How many edits a version gets; one for every [`BYTES_AN_EDIT`] when not given.
    pub edits: Option<u64>,
    /// What they do.
    pub kind: Option<EditKind>,
    /// In which part of the file, in hundredths.
    pub range_percent: Option<u32>,
}

impl EditRequest {
    /// Whether anything is asked.
    #[must_use]
    pub fn is_some(&self) -> bool {
        *self != Self::default()
    }

    /// The plan for versions of so many bytes.
    #[must_use]
    pub fn plan(&self, version_bytes: u64) -> EditPlan {
        let edits = self.edits.unwrap_or(version_bytes.div_ceil(BYTES_AN_EDIT));
        EditPlan {
            edits: edits.min(EDITS_HIGHEST) as usize,
            kind: self.kind.unwrap_or_default(),
            range_percent: self.range_percent.unwrap_or(100),
        }
    }
}

/// More edits were asked for than there are chunks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TooManyEdits {
    /// How many were asked for.
    pub edits: usize,
    /// How many there could be.
    pub chunks: usize,
}

impl std::fmt::Display for TooManyEdits {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(
            f,
            "{} edits are too many: there are {} chunks to be edited, at most once each",
            self.edits, self.chunks
        )
    }
}

impl std::error::Error for TooManyEdits {}

/// The file at one moment.
#[derive(Debug, Clone)]
pub struct EditedFile {
    seed: u64,
    plan: EditPlan,
    /// Whose chunks get one edit at most.
    chunker: Chunker,
    version: u64,
    data: Vec<u8>,
}

/// The paper's default chunker (§3.4.1): Rabin, 256 bytes, 4, 8, 12 KiB.
#[must_use]
pub fn paper_parameters() -> Parameters {
    let mut parameters = Parameters {
        min_bytes: 4 << 10,
        avg_bytes: 8 << 10,
        max_bytes: 12 << 10,
        ..Parameters::new(Algorithm::Rabin)
    };
    parameters.own.set(OwnParameter::WindowBytes, 256);
    parameters
}

impl EditedFile {
    /// The first version, of so many bytes.
    ///
    /// # Panics
    /// Never: the paper's parameters are possible.
    #[must_use]
    pub fn start(seed: u64, bytes: usize, plan: EditPlan) -> Self {
        let mut data = vec![0; bytes];
        Seeded::new(seed, &[START]).fill(&mut data);
        let chunker = Chunker::new(&paper_parameters(), KeyMaterial::Unkeyed);
        Self {
            seed,
            plan,
            chunker: chunker.expect("the paper's parameters are possible"),
            version: 1,
            data,
        }
    }

    /// The bytes of this version.
    #[must_use]
    pub fn data(&self) -> &[u8] {
        &self.data
    }

    /// The number of this version, from 1.
    #[must_use]
    pub fn version(&self) -> u64 {
        self.version
    }

    /// Edits the file: the next version.
    ///
    /// # Errors
    /// When there are fewer chunks than edits; then it stays as it is.
    pub fn step(&mut self) -> Result<(), TooManyEdits> {
        let mut numbers = Seeded::new(self.seed, &[STEP, self.version]);
        let chunks = self.chosen_chunks(&mut numbers)?;
        let mut edited = Vec::with_capacity(self.data.len() + chunks.len() * EDIT_BYTES);
        let mut taken = 0;
        for chunk in chunks {
            // Strictly inside: no byte of a neighbour is touched, and no cut is between.
            let places = chunk.len() - EDIT_BYTES;
            let at = chunk.start + 1 + numbers.index(places);
            edited.extend_from_slice(&self.data[taken..at]);
            let is_insert = numbers.is_one_of(500);
            let is_overwrite = self.plan.kind == EditKind::Overwrite;
            if is_insert || is_overwrite {
                let mut bytes = [0; EDIT_BYTES];
                numbers.fill(&mut bytes);
                edited.extend_from_slice(&bytes);
            }
            let is_taken = is_overwrite || !is_insert;
            taken = at + if is_taken { EDIT_BYTES } else { 0 };
        }
        edited.extend_from_slice(&self.data[taken..]);
        self.data = edited;
        self.version += 1;
        Ok(())
    }

    /// As many chunks as there are to be edits, each once, in order.
    fn chosen_chunks(&self, numbers: &mut Seeded) -> Result<Vec<Range<usize>>, TooManyEdits> {
        let percent = u128::from(self.plan.range_percent.min(100));
        let end = (self.data.len() as u128 * percent / 100) as usize;
        // The one byte more is what an edit leaves standing in front of it.
        let chunks = self.chunker.chunks(&self.data);
        let mut chunks: Vec<Range<usize>> = chunks
            .take_while(|chunk| chunk.end <= end)
            .filter(|chunk| chunk.len() > EDIT_BYTES + 1)
            .collect();
        let edits = self.plan.edits;
        if chunks.len() < edits {
            let chunks = chunks.len();
            return Err(TooManyEdits { edits, chunks });
        }
        for place in 0..edits {
            let other = place + numbers.index(chunks.len() - place);
            chunks.swap(place, other);
        }
        chunks.truncate(edits);
        chunks.sort_unstable_by_key(|chunk| chunk.start);
        Ok(chunks)
    }
}

/// Writes the versions that the site lacks, as `v01.bin` ….
pub fn build(site: &mut Site) -> Result<()> {
    let versions = site.versions_asked();
    let bytes = site.bytes_asked() / versions as u64;
    let plan = site.edits().plan(bytes);
    let bytes = usize::try_from(bytes).context("a version does not fit the memory")?;
    let mut file = EditedFile::start(site.seed(), bytes, plan);
    let scratch = site.fresh("file")?;
    for number in 1..=versions {
        if number > 1 {
            let stepped = file.step();
            stepped.map_err(|error| {
                Failure::usage(error.to_string())
                    .with_hint("ask for fewer with --edits, or for more bytes with --size")
            })?;
        }
        if site.lacks(number) {
            let path = scratch.join("file");
            fs::write(&path, file.data())
                .with_context(|| format!("cannot write {}", path.display()))?;
            let label = match number {
                1 => "random bytes".to_owned(),
                _ => format!("{} edits, {}", plan.edits, plan.kind.name()),
            };
            site.add(number, &path, ".bin", &label)?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plan(edits: usize, kind: EditKind, range_percent: u32) -> EditPlan {
        EditPlan {
            edits,
            kind,
            range_percent,
        }
    }

    fn chunk_count(file: &EditedFile) -> usize {
        file.chunker.chunks(file.data()).count()
    }

    #[test]
    fn overwrites_touch_so_many_chunks_and_no_other_byte() {
        let mut file = EditedFile::start(3, 4 << 20, plan(50, EditKind::Overwrite, 100));
        let before = file.data().to_vec();
        let chunks: Vec<_> = file.chunker.chunks(&before).collect();
        file.step().expect("there are about 450 chunks");
        assert_eq!(file.data().len(), before.len());
        let touched = chunks
            .iter()
            .filter(|chunk| before[(*chunk).clone()] != file.data()[(*chunk).clone()]);
        assert_eq!(touched.count(), 50);
        let differ = before.iter().zip(file.data()).filter(|(a, b)| a != b);
        assert!((4800..=5000).contains(&differ.count()));
    }

    #[test]
    fn the_range_is_kept_and_the_seed_decides() {
        let step = |seed, percent| {
            let mut file =
                EditedFile::start(seed, 4 << 20, plan(20, EditKind::InsertDelete, percent));
            let before = file.data().to_vec();
            file.step().expect("enough chunks");
            (before, file.data().to_vec())
        };
        let (before, after) = step(1, 10);
        let behind = before.len() - before.len() / 10;
        assert!(before.ends_with(&after[after.len() - behind..]));
        assert_eq!(before.len() % EDIT_BYTES, after.len() % EDIT_BYTES);
        assert_eq!(step(1, 10), (before, after.clone()));
        assert_ne!(step(2, 10).1, after);
        assert_ne!(step(1, 100).1, after);
    }

    #[test]
    fn inserts_and_deletes_are_about_as_many() {
        let mut file = EditedFile::start(5, 4 << 20, plan(400, EditKind::InsertDelete, 100));
        let before = file.data().len() as i64;
        for version in 2..6 {
            file.step().expect("enough chunks");
            assert_eq!(file.version(), version);
        }
        // 1,600 fair coins: 40 is one deviation.
        let moved = (file.data().len() as i64 - before) / EDIT_BYTES as i64;
        assert!(moved.abs() < 200, "{moved}");
    }

    #[test]
    fn more_edits_than_chunks_are_refused() {
        let mut file = EditedFile::start(1, 100_000, plan(50, EditKind::Overwrite, 100));
        let before = file.data().to_vec();
        let error = file.step().expect_err("about ten chunks");
        assert!(error.chunks <= chunk_count(&file) && error.edits == 50);
        assert_eq!(file.data(), before);
        let mut none = EditedFile::start(1, 0, plan(0, EditKind::Overwrite, 100));
        assert_eq!(none.step(), Ok(()));
    }

    #[test]
    fn defaults_have_the_density_of_the_paper() {
        let plan = EditRequest::default().plan(500 << 20);
        assert_eq!((plan.edits, plan.range_percent), (1000, 100));
        assert_eq!(plan.kind, EditKind::InsertDelete);
        assert!("insert".parse::<EditKind>().is_err());
        assert_eq!("overwrite".parse(), Ok(EditKind::Overwrite));
    }
}
