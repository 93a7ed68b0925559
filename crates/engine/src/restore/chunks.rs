//! Single chunks at random, stored whole or as deltas.
//!
//! Enters: the address of a chunk. Leave: its bytes, verified by its full fingerprint. Of a chunk stored
//! as a delta the bases are followed to one that is stored whole; then delta after delta is applied.
//! A base is less deep than what is made of it (docs/format/v1.md, §6), which ends every chain after at
//! most [`DELTA_DEPTH_MAX`](crate::container::DELTA_DEPTH_MAX) deltas, and makes of a circle an error.
//!
//! Groups come through the reader's cache: neighbours asked for one after the other, by whatever threads,
//! cost one read and one decompression a group. Who knows what will be asked for soon
//! ([`WantedChunks`]) has no more of a group decompressed than that.

use std::ops::{Deref, Range};
use std::sync::Arc;

use super::group_cache::CachedGroup;
use super::reader::{ReadError, Reader};
use super::wanted::WantedChunks;
use crate::container::{
    ChunkAddress, ContainerKind, ContainerReader, Delta, LoadedSection, Section,
};
use crate::format::{DecodeError, ObjectError};

/// The bytes of a chunk. Holds the group that they came in: whoever keeps them for long copies them.
#[derive(Debug, Clone)]
pub struct ChunkBytes(Bytes);

#[derive(Debug, Clone)]
enum Bytes {
    OfGroup(Arc<CachedGroup>, Range<usize>),
    Restored(Arc<Vec<u8>>),
}

impl Deref for ChunkBytes {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        match &self.0 {
            Bytes::OfGroup(group, range) => &group.plain[range.clone()],
            Bytes::Restored(bytes) => bytes,
        }
    }
}

/// A chunk, and the metadata of its container.
#[derive(Debug, Clone)]
pub(crate) struct StoredChunk {
    pub loaded: Arc<LoadedSection>,
    /// Its index in the section.
    pub chunk: usize,
}

impl StoredChunk {
    pub fn address(&self) -> ChunkAddress {
        self.loaded.section.address(self.chunk)
    }

    /// How it is stored, if not whole.
    pub fn delta(&self) -> Option<&Delta> {
        self.loaded.section.delta(self.chunk)
    }

    /// The base of the delta as which it is stored, checked to be one.
    ///
    /// # Errors
    /// When its container is not readable, or the base is not there, can be no base, or is as deep as the
    /// chunk itself.
    pub fn base(
        &self,
        containers: &ContainerReader,
        delta: &Delta,
    ) -> Result<StoredChunk, ReadError> {
        let base = delta.base;
        let fail = |error: ReadError| ReadError::base(self.address(), base, error);
        let found = containers.find(base);
        let found = found.map_err(|error| fail(error.into()))?;
        let (loaded, chunk) = found.ok_or_else(|| fail(ReadError::NoChunk(base)))?;
        check_base(&loaded.section, chunk, delta).map_err(fail)?;
        Ok(StoredChunk { loaded, chunk })
    }
}

/// Checks that a chunk, which lies where the base of a delta should, can be one.
///
/// # Errors
/// When it can't, or is as deep as the delta.
pub(super) fn check_base(section: &Section, chunk: usize, delta: &Delta) -> Result<(), ReadError> {
    let base = delta.base;
    if section.kind == ContainerKind::Metadata {
        return Err(ReadError::NotData(base));
    }
    let depth = section.delta(chunk).map_or(0, |delta| delta.depth);
    match depth < delta.depth {
        true => Ok(()),
        false => Err(ReadError::TooDeep {
            depth,
            delta_depth: delta.depth,
        }),
    }
}

/// Less than this share of a group is decompressed alone: zstd copies such a front once more.
const FRONT_SHARE: (usize, usize) = (7, 8);

impl Reader {
    /// The chunk in that place. Several threads may ask at once.
    ///
    /// # Errors
    /// When there is none, it can't be read, or it is not what was stored; the same for the bases of one
    /// that is stored as a delta.
    pub fn chunk(&self, address: ChunkAddress) -> Result<ChunkBytes, ReadError> {
        self.while_objects_go(|| self.stored_chunk(self.located(address)?))
    }

    /// The same of a chunk that was located.
    ///
    /// # Errors
    /// As [`Reader::chunk`].
    pub(super) fn located_chunk(&self, chunk: StoredChunk) -> Result<ChunkBytes, ReadError> {
        let address = chunk.address();
        let error = match self.stored_chunk(chunk) {
            Ok(bytes) => return Ok(bytes),
            Err(error) => error,
        };
        match error.missing_object() {
            Some(object) => {
                self.containers().note_gone(object);
                self.chunk(address)
            }
            None => Err(error),
        }
    }

    /// What is stored of a chunk, and where: itself, verified, or a delta.
    ///
    /// # Errors
    /// As [`Reader::chunk`], but for the bases.
    pub(super) fn stored(
        &self,
        address: ChunkAddress,
    ) -> Result<(StoredChunk, ChunkBytes), ReadError> {
        self.while_objects_go(|| {
            let chunk = self.located(address)?;
            let bytes = self.stored_bytes(&chunk, None)?;
            if chunk.delta().is_none() {
                self.verify(&chunk, &bytes)?;
            }
            Ok((chunk, bytes))
        })
    }

    /// Tries again when an object is missing, for what it held may have been moved: once for each object.
    fn while_objects_go<T>(
        &self,
        attempt: impl Fn() -> Result<T, ReadError>,
    ) -> Result<T, ReadError> {
        let mut gone = Vec::new();
        loop {
            let error = match attempt() {
                Ok(done) => return Ok(done),
                Err(error) => error,
            };
            match error.missing_object() {
                Some(object) if !gone.contains(&object) => {
                    self.containers().note_gone(object);
                    gone.push(object);
                }
                _ => return Err(error),
            }
        }
    }

    /// The same; of its group as much is decompressed as this one and `wanted` ones need.
    ///
    /// # Errors
    /// As [`Reader::chunk`].
    pub fn chunk_among(
        &self,
        address: ChunkAddress,
        wanted: &WantedChunks,
    ) -> Result<ChunkBytes, ReadError> {
        self.while_objects_go(|| {
            let chunk = self.located(address)?;
            if chunk.delta().is_some() {
                return self.stored_chunk(chunk);
            }
            let bytes = self.stored_bytes(&chunk, Some(wanted))?;
            self.verify(&chunk, &bytes)?;
            Ok(bytes)
        })
    }

    fn located(&self, address: ChunkAddress) -> Result<StoredChunk, ReadError> {
        let found = self.containers().find(address)?;
        let (loaded, chunk) = found.ok_or(ReadError::NoChunk(address))?;
        Ok(StoredChunk { loaded, chunk })
    }

    fn stored_chunk(&self, wanted: StoredChunk) -> Result<ChunkBytes, ReadError> {
        let mut chain = Vec::new();
        let mut root = wanted;
        while let Some(&delta) = root.delta() {
            let base = root.base(self.containers(), &delta)?;
            chain.push((std::mem::replace(&mut root, base), delta));
        }
        if chain.is_empty() {
            let bytes = self.stored_bytes(&root, None)?;
            self.verify(&root, &bytes)?;
            return Ok(bytes);
        }
        // If the last one is right, so were those before; if not, the first wrong one is looked for.
        self.follow(&root, &chain, false)
            .or_else(|_| self.follow(&root, &chain, true))
    }

    /// Applies the deltas of a chain, the last one first, to its root. Verifies what comes out, with
    /// `verify_all` every step.
    fn follow(
        &self,
        root: &StoredChunk,
        chain: &[(StoredChunk, Delta)],
        verify_all: bool,
    ) -> Result<ChunkBytes, ReadError> {
        let wanted = chain[0].0.address();
        let fail = |error, chunk: &StoredChunk| match chunk.address() {
            address if address == wanted => error,
            address => ReadError::base(wanted, address, error),
        };
        let read = |chunk: &StoredChunk| self.stored_bytes(chunk, None).map_err(|e| fail(e, chunk));
        let mut bytes = read(root)?;
        if verify_all {
            self.verify(root, &bytes).map_err(|e| fail(e, root))?;
        }
        for (number, (chunk, _)) in chain.iter().enumerate().rev() {
            let delta = read(chunk)?;
            let restored = self.undelta(chunk, &bytes, &delta);
            let restored = restored.map_err(|error| fail(error.into(), chunk))?;
            if verify_all || number == 0 {
                let verified = self.verify(chunk, &restored);
                verified.map_err(|error| fail(error, chunk))?;
            }
            bytes = ChunkBytes(Bytes::Restored(Arc::new(restored)));
        }
        Ok(bytes)
    }

    /// What a delta makes of its base: not compared with the chunk's fingerprint.
    ///
    /// # Panics
    /// When the chunk is stored whole.
    pub(crate) fn undelta(
        &self,
        chunk: &StoredChunk,
        base: &[u8],
        delta: &[u8],
    ) -> Result<Vec<u8>, ObjectError> {
        let method = chunk.delta().expect("a chunk stored as a delta").method;
        let length = chunk.loaded.section.lengths[chunk.chunk];
        let restored = self.deltas().apply(method, base, delta, length);
        restored.map_err(|error| ObjectError::Corrupt {
            key: chunk.loaded.object,
            part: "delta",
            reason: DecodeError::new(format!("that in {}: {error}", chunk.address())),
        })
    }

    fn verify(&self, chunk: &StoredChunk, bytes: &[u8]) -> Result<(), ReadError> {
        let containers = self.containers();
        Ok(containers.verify_chunk(&chunk.loaded, chunk.chunk, bytes)?)
    }

    /// What is stored of a chunk, itself or a delta, out of its group. Of the group all is decompressed,
    /// or, at first, as much as it and the wanted chunks need.
    fn stored_bytes(
        &self,
        chunk: &StoredChunk,
        wanted: Option<&WantedChunks>,
    ) -> Result<ChunkBytes, ReadError> {
        let section = &chunk.loaded.section;
        let index = section.group_of(chunk.chunk);
        let is_enough = |group: &CachedGroup| group.places.of(chunk.chunk).end <= group.plain.len();
        let open = |was_short: bool| {
            let places = section.places_in(index);
            let front_bytes = match wanted {
                Some(wanted) if !was_short => {
                    let last = last_wanted(section, index, wanted);
                    places
                        .of(last.map_or(chunk.chunk, |last| last.max(chunk.chunk)))
                        .end
                }
                _ => usize::MAX,
            };
            let plain = self.open_group(&chunk.loaded, index, front_bytes)?;
            Ok::<_, ObjectError>(CachedGroup { plain, places })
        };
        let key = (chunk.loaded.object.id, section.groups[index].number);
        let group = self.groups().get(key, is_enough, open)?;
        let range = group.places.of(chunk.chunk);
        Ok(ChunkBytes(Bytes::OfGroup(group, range)))
    }

    /// A group's plaintext, or only the front of it where that is much less.
    fn open_group(
        &self,
        loaded: &LoadedSection,
        index: usize,
        front_bytes: usize,
    ) -> Result<Vec<u8>, ObjectError> {
        let containers = self.containers();
        let plain_bytes = loaded.section.groups[index].plain_bytes as usize;
        if front_bytes < plain_bytes / FRONT_SHARE.1 * FRONT_SHARE.0 {
            let mut decompressor = self.idle_fronts().pop().unwrap_or_default();
            let front = containers.read_front(loaded, index, front_bytes, &mut decompressor);
            self.idle_fronts().push(decompressor);
            return front;
        }
        let mut outcome = None;
        containers.read_groups(loaded, &[index], &mut |_, plain| outcome = Some(plain));
        outcome.expect("a group asked for is visited")
    }
}

/// The last chunk of a group that is wanted.
fn last_wanted(section: &Section, group: usize, wanted: &WantedChunks) -> Option<usize> {
    let group = &section.groups[group];
    let first = group.first_chunk as usize;
    let last = first + group.chunk_count as usize - 1;
    let slots = section.slots[first]..=section.slots[last];
    section.chunk_in(wanted.last_in(section.id, &slots)?)
}
