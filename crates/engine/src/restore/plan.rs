//! Restores many streams at once: every container is read once.
//!
//! Streams enter with [`RestorePlan::add_stream`], which works out from the containers'
//! metadata which chunks go where and whether the stream's check value holds. Then
//! [`RestorePlan::execute`] goes from container to container, in the order in which the
//! streams first need them, on several threads: needed groups are read and decompressed once,
//! every chunk is verified by its full fingerprint, and neighbouring chunks of one stream are
//! handed to the sink in one piece. Memory: about 50 bytes a run until executed, and a few
//! groups a thread.

use std::collections::HashMap;
use std::sync::atomic::{AtomicUsize, Ordering};

use super::reader::{ReadError, Reader};
use crate::container::{ContainerId, LoadedSection};
use crate::fingerprint::CheckValue;
use crate::recipe::{Recipe, Run};

/// Where restored bytes go. Called from several threads; writes of one stream come in any
/// order and never overlap.
pub trait ChunkSink: Sync {
    /// Bytes of a stream, verified.
    fn write(&self, stream: u32, offset: u64, bytes: &[u8]);

    /// Bytes of a stream that can't be had: the stream is incomplete. Stands for `parts` of the
    /// parts that [`RestorePlan::add_stream`] announced.
    fn lost(&self, stream: u32, parts: usize, error: &str);
}

/// Chunks of one container that are part of a stream.
#[derive(Debug, Clone, Copy)]
struct Piece {
    stream: u32,
    first_chunk: u32,
    chunk_count: u32,
    group_count: u32,
    offset: u64,
}

/// Streams to be restored together.
#[derive(Debug, Default)]
pub struct RestorePlan {
    containers: Vec<(ContainerId, Vec<Piece>)>,
    numbers: HashMap<ContainerId, usize>,
    pieces: usize,
}

impl RestorePlan {
    /// How many runs are waiting to be restored.
    #[must_use]
    pub fn pieces(&self) -> usize {
        self.pieces
    }

    /// Adds a stream under a number of the caller's choice, and returns in how many parts it will
    /// come (each written or lost): zero for a stream without stored bytes.
    ///
    /// # Errors
    /// When its recipe does not agree with the containers' metadata, that metadata can't be
    /// read, or its check value differs; the stream is then not part of the plan.
    pub fn add_stream(
        &mut self,
        reader: &Reader,
        stream: u32,
        recipe: &Recipe,
        check: Option<CheckValue>,
    ) -> Result<usize, ReadError> {
        let mut pieces: Vec<(ContainerId, Piece)> = Vec::new();
        let mut offset = 0u64;
        let mut parts = 0;
        let (_, actual) = reader.visit_runs(recipe, &mut |run, located| {
            if let (Run::Slots { container, .. }, Some(located)) = (run, located) {
                let section = &located.section.section;
                let last = located.chunks.end - 1;
                let groups = section.group_of(last) - section.group_of(located.chunks.start) + 1;
                parts += groups;
                let piece = Piece {
                    stream,
                    first_chunk: located.chunks.start as u32,
                    chunk_count: located.chunks.len() as u32,
                    group_count: groups as u32,
                    offset,
                };
                pieces.push((*container, piece));
            }
            offset += run.bytes();
        })?;
        if check.is_some_and(|check| check != actual) {
            return Err(ReadError::Check);
        }
        self.pieces += pieces.len();
        for (container, piece) in pieces {
            let next = self.containers.len();
            let number = *self.numbers.entry(container).or_insert(next);
            if number == next {
                self.containers.push((container, Vec::new()));
            }
            self.containers[number].1.push(piece);
        }
        Ok(parts)
    }

    /// Restores all streams added so far, and empties the plan. Each (piece, group) of a stream
    /// becomes one call of the sink. Returns how many containers were read.
    pub fn execute(&mut self, reader: &Reader, threads: usize, sink: &dyn ChunkSink) -> usize {
        let plan = std::mem::take(self);
        let next = AtomicUsize::new(0);
        std::thread::scope(|scope| {
            for _ in 0..threads.clamp(1, plan.containers.len().max(1)) {
                scope.spawn(|| {
                    while let Some((container, pieces)) =
                        plan.containers.get(next.fetch_add(1, Ordering::Relaxed))
                    {
                        restore_container(reader, *container, pieces, sink);
                    }
                });
            }
        });
        plan.containers.len()
    }
}

fn restore_container(
    reader: &Reader,
    container: ContainerId,
    pieces: &[Piece],
    sink: &dyn ChunkSink,
) {
    let loaded = match reader.containers().section(container) {
        Ok(loaded) => loaded,
        Err(error) => {
            let error = error.to_string();
            for piece in pieces {
                sink.lost(piece.stream, piece.group_count as usize, &error);
            }
            return;
        }
    };
    let section = &loaded.section;
    // What each group is needed for: (piece, chunks of it in that group).
    let mut needs: Vec<Vec<(Piece, std::ops::Range<usize>)>> =
        vec![Vec::new(); section.groups.len()];
    for piece in pieces {
        let mut chunk = piece.first_chunk as usize;
        let end = chunk + piece.chunk_count as usize;
        while chunk < end {
            let index = section.group_of(chunk);
            let group = &section.groups[index];
            let group_end = (group.first_chunk + group.chunk_count) as usize;
            let part = chunk..end.min(group_end);
            chunk = part.end;
            needs[index].push((*piece, part));
        }
    }
    let wanted: Vec<usize> = (0..needs.len())
        .filter(|&index| !needs[index].is_empty())
        .collect();
    reader
        .containers()
        .read_groups(&loaded, &wanted, &mut |index, plain| match plain {
            Ok(plain) => restore_group(reader, &loaded, index, &plain, &needs[index], sink),
            Err(error) => {
                let error = error.to_string();
                for (piece, _) in &needs[index] {
                    sink.lost(piece.stream, 1, &error);
                }
            }
        });
}

/// Where a part of a piece begins in its stream.
fn offset_of(loaded: &LoadedSection, piece: &Piece, part: &std::ops::Range<usize>) -> u64 {
    let before = &loaded.section.lengths[piece.first_chunk as usize..part.start];
    piece.offset + before.iter().map(|&length| u64::from(length)).sum::<u64>()
}

fn restore_group(
    reader: &Reader,
    loaded: &LoadedSection,
    index: usize,
    plain: &[u8],
    needs: &[(Piece, std::ops::Range<usize>)],
    sink: &dyn ChunkSink,
) {
    let section = &loaded.section;
    let group = &section.groups[index];
    let first = group.first_chunk as usize;
    let count = group.chunk_count as usize;
    let mut starts = Vec::with_capacity(count + 1);
    let mut start = 0usize;
    starts.push(start);
    for &length in &section.lengths[first..first + count] {
        start += length as usize;
        starts.push(start);
    }
    // Each needed chunk is verified once, however many streams it goes to.
    let mut verified: Vec<Option<bool>> = vec![None; count];
    for (piece, part) in needs {
        let offset = offset_of(loaded, piece, part);
        let mut damage = None;
        for chunk in part.clone() {
            let known = &mut verified[chunk - first];
            if *known == Some(true) {
                continue;
            }
            let chunk_bytes = &plain[starts[chunk - first]..starts[chunk - first + 1]];
            match reader.containers().verify_chunk(loaded, chunk, chunk_bytes) {
                Ok(()) => *known = Some(true),
                Err(error) => damage = Some(error),
            }
        }
        match damage {
            None => {
                let range = starts[part.start - first]..starts[part.end - first];
                sink.write(piece.stream, offset, &plain[range]);
            }
            Some(error) => sink.lost(piece.stream, 1, &error.to_string()),
        }
    }
}
