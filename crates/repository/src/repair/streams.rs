//! What is left of a stream, and where lost chunks are stored elsewhere.
//!
//! Enters: a recipe. Leave: its parts in order, runs of chunks that can be read, and lengths of what is lost between
//! them. A chunk that is lost in its place is looked for by its full fingerprint, and read where it was found.

use engine::container::{ChunkAddress, Slot};
use engine::fingerprint::Fingerprint;
use engine::pipeline::Writer;
use engine::recipe::{Recipe, RecipePage, Run, RunJoiner};
use engine::restore::Reader;

use super::RepairError;
use super::health::ChunkState;
use super::tree::{TreeRepair, unless_damaged};

/// A part of a stream.
pub(super) enum Piece {
    Run(Run),
    /// So many bytes can't be had.
    Lost(u64),
}

/// What is left of a stream.
pub(super) struct Left {
    pub runs: Vec<Run>,
    pub lost_bytes: u64,
}

impl TreeRepair<'_> {
    /// Where the chunk is stored elsewhere that can't be read in its place, if it is.
    pub(super) fn found_elsewhere(
        &mut self,
        address: ChunkAddress,
        writer: &mut Writer,
    ) -> Result<Option<ChunkAddress>, RepairError> {
        match reader_fingerprint(self.reader, address)? {
            Some((fingerprint, length)) => self.elsewhere(fingerprint, length, writer),
            None => Ok(None),
        }
    }

    /// A place of the chunk of that fingerprint which can be read, if there is one.
    fn elsewhere(
        &mut self,
        fingerprint: Fingerprint,
        length: u32,
        writer: &mut Writer,
    ) -> Result<Option<ChunkAddress>, RepairError> {
        if let Some(known) = self.elsewhere.get(&fingerprint) {
            return Ok(*known);
        }
        let mut found = writer.find_stored(&fingerprint)?;
        if let Some(address) = found {
            let is_whole = match self.reader.chunk(address) {
                Ok(bytes) => bytes.len() == length as usize,
                Err(error) => unless_damaged(error).map(|()| false)?,
            };
            found = found.filter(|_| is_whole);
        }
        self.elsewhere.insert(fingerprint, found);
        Ok(found)
    }

    /// The parts of a stream: where chunks can be read, and what is lost.
    pub(super) fn pieces(
        &mut self,
        recipe: &Recipe,
        writer: &mut Writer,
        pieces: &mut Vec<Piece>,
    ) -> Result<(), RepairError> {
        match recipe {
            Recipe::Runs(runs) => {
                for run in runs {
                    self.run_pieces(*run, writer, pieces)?;
                }
            }
            Recipe::Paged { level, pages } => {
                for page in pages {
                    match self.recipe_page(page, *level, writer)? {
                        Some(below) => self.pieces(&below, writer, pieces)?,
                        None => pieces.push(Piece::Lost(page.stream_bytes)),
                    }
                }
            }
        }
        Ok(())
    }

    /// A page of a recipe, from its place or from elsewhere.
    fn recipe_page(
        &mut self,
        page: &RecipePage,
        level: u8,
        writer: &mut Writer,
    ) -> Result<Option<Recipe>, RepairError> {
        match self.reader.recipe_page(page, level) {
            Ok(recipe) => return Ok(Some(recipe)),
            Err(error) => unless_damaged(error)?,
        }
        let mut pieces = Vec::new();
        for run in &page.page {
            self.run_pieces(*run, writer, &mut pieces)?;
        }
        let Left { runs, lost_bytes } = joined(pieces);
        if lost_bytes > 0 || runs == page.page {
            return Ok(None);
        }
        let other = RecipePage {
            stream_bytes: page.stream_bytes,
            page: runs,
        };
        match self.reader.recipe_page(&other, level) {
            Ok(recipe) => Ok(Some(recipe)),
            Err(error) => unless_damaged(error).map(|()| None),
        }
    }

    /// The parts of a run. Where lengths of lost chunks are not known, what lies between two of them can't be placed,
    /// and is lost with them.
    fn run_pieces(
        &mut self,
        run: Run,
        writer: &mut Writer,
        pieces: &mut Vec<Piece>,
    ) -> Result<(), RepairError> {
        let Run::Slots {
            container,
            first: Slot(first),
            count,
            bytes,
        } = run
        else {
            pieces.push(Piece::Run(run));
            return Ok(());
        };
        let slots = (first..=u16::MAX).take(count as usize).map(Slot);
        let mut found = Vec::with_capacity(count as usize);
        for slot in slots {
            let address = ChunkAddress { container, slot };
            found.push((slot, self.health.chunk(self.reader, address)?));
        }
        let length = |state: &ChunkState| match state {
            ChunkState::Whole(length) | ChunkState::Lost(Some((_, length))) => {
                Some(u64::from(*length))
            }
            ChunkState::Lost(None) => None,
        };
        let known: u64 = found.iter().filter_map(|(_, state)| length(state)).sum();
        let is_unknown = |(_, state): &(Slot, ChunkState)| length(state).is_none();
        let unknown = found.iter().position(is_unknown);
        let is_possible = match unknown {
            None => known == bytes,
            Some(_) => known < bytes,
        };
        if !is_possible || found.len() != count as usize {
            pieces.push(Piece::Lost(bytes));
            return Ok(());
        }
        let (mut placed, mut unplaced) = (0, None);
        if let Some(start) = unknown {
            let end = found
                .iter()
                .rposition(is_unknown)
                .map_or(start, |last| last + 1);
            let outside = found[..start].iter().chain(&found[end..]);
            let outside: u64 = outside.filter_map(|(_, state)| length(state)).sum();
            unplaced = Some((start..end, bytes - outside));
        }
        while placed < found.len() {
            if let Some((range, lost)) = &unplaced
                && range.start == placed
            {
                pieces.push(Piece::Lost(*lost));
                placed = range.end;
                continue;
            }
            let (slot, state) = found[placed];
            pieces.push(self.chunk_piece(ChunkAddress { container, slot }, state, writer)?);
            placed += 1;
        }
        Ok(())
    }

    fn chunk_piece(
        &mut self,
        address: ChunkAddress,
        state: ChunkState,
        writer: &mut Writer,
    ) -> Result<Piece, RepairError> {
        let (address, length) = match state {
            ChunkState::Whole(length) => (address, length),
            ChunkState::Lost(Some((fingerprint, length))) => {
                match self.elsewhere(fingerprint, length, writer)? {
                    Some(other) => (other, length),
                    None => return Ok(Piece::Lost(u64::from(length))),
                }
            }
            ChunkState::Lost(None) => return Ok(Piece::Lost(0)),
        };
        Ok(Piece::Run(Run::Slots {
            container: address.container,
            first: address.slot,
            count: 1,
            bytes: u64::from(length),
        }))
    }
}

/// Fingerprint and length of a chunk, if its container's metadata can be read.
fn reader_fingerprint(
    reader: &Reader,
    address: ChunkAddress,
) -> Result<Option<(Fingerprint, u32)>, RepairError> {
    match reader.containers().find(address) {
        Ok(Some((loaded, chunk))) => {
            let section = &loaded.section;
            Ok(Some((section.fingerprints[chunk], section.lengths[chunk])))
        }
        Ok(None) => Ok(None),
        Err(error) if error.is_damage() => Ok(None),
        Err(error) => Err(error.into()),
    }
}

/// Parts as runs, with holes for what is lost.
pub(super) fn joined(pieces: Vec<Piece>) -> Left {
    let mut runs = RunJoiner::default();
    let mut lost_bytes = 0;
    for piece in pieces {
        match piece {
            Piece::Run(run) => runs.push(run),
            Piece::Lost(0) => {}
            Piece::Lost(bytes) => {
                lost_bytes += bytes;
                runs.push(Run::Hole { bytes });
            }
        }
    }
    Left {
        runs: runs.finish(),
        lost_bytes,
    }
}
