//! The threads that make deltas, which come out in the order in which their chunks went in.
//!
//! Enter: batches of chunks, each with its base: bytes in memory, or an address to read it from. Leave:
//! for each chunk a delta, or, where that would not be much smaller, the chunk. A base that can't be
//! read, or is not what it was, is no reason to fail: the chunk is stored whole.
//!
//! Whoever hands batches on notes the bases that must be read, so that their groups are decompressed no
//! further than the batches on their way need.

use std::io;
use std::sync::Arc;

use super::DeltaSettings;
use super::recent::RecentChunk;
use crate::container::{ChunkAddress, CompressionLevel, Delta, DeltaMethod, NewChunk};
use crate::engine::EngineSettings;
use crate::fingerprint::Fingerprint;
use crate::pipeline::budget::{ByteBudget, Failure};
use crate::pipeline::ordered::{Emitter, OrderedPool, PoolOptions, ordered_pool};
use crate::pipeline::packer::BasePlace;
use crate::pipeline::put_pool::PutPool;
use crate::pipeline::stages::{Stage, Stages};
use crate::restore::{Reader, WantedChunks};
use crate::similarity::delta::DeltaEncoder;
use crate::similarity::prefix::PrefixEncoder;

/// A delta is stored when it has less than so many eighths of its chunk's bytes.
const WORTH_EIGHTHS: usize = 6;

/// Level of prefix deltas, which are compressed alone.
const PREFIX_LEVEL: i32 = 3;

/// Where the bytes of a base are.
#[derive(Debug)]
pub enum BaseBytes {
    /// In memory.
    Recent(RecentChunk),
    /// In a container that was there before.
    Stored(ChunkAddress),
    /// In a container of this run that is sealed.
    Sealed(ChunkAddress),
}

/// A chunk that resembles another.
#[derive(Debug)]
pub struct DeltaDraft {
    pub fingerprint: Fingerprint,
    pub length: u32,
    /// Its super-features, if it may be a base.
    pub features: Vec<u32>,
    /// Deltas from it to a chunk stored whole.
    pub depth: u8,
    pub base: BasePlace,
    pub base_bytes: BaseBytes,
}

/// Consecutive chunks of the row of deltas.
#[derive(Debug, Default)]
pub struct DeltaBatch {
    /// The chunks, one after the other.
    pub bytes: Arc<Vec<u8>>,
    pub drafts: Vec<DeltaDraft>,
}

/// What goes through the encoding workers.
#[derive(Debug)]
pub enum DeltaJob {
    Batch(DeltaBatch),
    /// Close the group after all batches before this.
    Close,
    /// Close the container.
    Flush,
}

/// What comes out of them.
#[derive(Debug)]
pub enum DeltaDone {
    Batch(EncodedBatch),
    Close,
    Flush,
}

/// A batch as it is stored.
#[derive(Debug, Default)]
pub struct EncodedBatch {
    /// Deltas, and chunks that are stored whole, one after the other.
    pub bytes: Vec<u8>,
    pub chunks: Vec<NewChunk>,
    /// The base of each chunk that is a delta.
    pub bases: Vec<Option<BasePlace>>,
}

/// What a worker has.
struct Encoder {
    method: DeltaMethod,
    instructions: DeltaEncoder,
    prefix: PrefixEncoder,
    reader: Reader,
    wanted: Arc<WantedChunks>,
    puts: PutPool,
}

/// Starts the threads that make deltas.
pub fn start_encoding(
    settings: &EngineSettings,
    with: &DeltaSettings,
    reader: &Reader,
    wanted: &Arc<WantedChunks>,
    puts: &PutPool,
    stages: &Stages,
    failure: &Failure,
) -> io::Result<OrderedPool<DeltaJob, DeltaDone>> {
    let options = PoolOptions {
        stage: Stage::Delta,
        stages: stages.clone(),
        workers: settings.threads,
        budget: ByteBudget::new(settings.shares().delta_bytes),
    };
    failure.watch(&options.budget);
    let (method, reader, puts, stages) =
        (with.method, reader.clone(), puts.clone(), stages.clone());
    let wanted = Arc::clone(wanted);
    ordered_pool(&options, move || {
        let mut encoder = Encoder {
            method,
            instructions: DeltaEncoder::new(),
            prefix: PrefixEncoder::new(
                CompressionLevel::new(PREFIX_LEVEL).unwrap_or(CompressionLevel::DEFAULT),
            ),
            reader: reader.clone(),
            wanted: Arc::clone(&wanted),
            puts: puts.clone(),
        };
        let stages = stages.clone();
        Box::new(move |job, out: &Emitter<DeltaDone>| {
            // Nobody takes results once something failed; then there is nothing to do.
            let _ = out.emit(match job {
                DeltaJob::Batch(batch) => {
                    let bytes = batch.bytes.len() as u64;
                    let meter = stages.meter(Stage::Delta);
                    DeltaDone::Batch(meter.busy(bytes, || encoder.encode(batch)))
                }
                DeltaJob::Close => DeltaDone::Close,
                DeltaJob::Flush => DeltaDone::Flush,
            });
        })
    })
}

impl Encoder {
    fn encode(&mut self, batch: DeltaBatch) -> EncodedBatch {
        let mut encoded = EncodedBatch::default();
        let mut start = 0;
        for draft in batch.drafts {
            let end = start + draft.length as usize;
            let chunk = &batch.bytes[start..end];
            start = end;
            let before = encoded.bytes.len();
            let delta = self
                .delta(&draft, chunk, &mut encoded.bytes)
                .then(|| Delta {
                    // Who places it knows.
                    base: ChunkAddress::UNKNOWN,
                    stored_bytes: (encoded.bytes.len() - before) as u32,
                    method: self.method,
                    depth: draft.depth,
                });
            if delta.is_none() {
                encoded.bytes.extend_from_slice(chunk);
            }
            encoded.bases.push(delta.map(|_| draft.base));
            encoded.chunks.push(NewChunk {
                fingerprint: draft.fingerprint,
                length: draft.length,
                delta,
                features: draft.features,
                last_byte: chunk.last().copied().unwrap_or(0),
            });
        }
        encoded
    }

    /// Appends the delta of a chunk to `out`, if it is worth it.
    fn delta(&mut self, draft: &DeltaDraft, chunk: &[u8], out: &mut Vec<u8>) -> bool {
        let read;
        let base = match &draft.base_bytes {
            BaseBytes::Recent(recent) => recent.bytes(),
            BaseBytes::Stored(address) | BaseBytes::Sealed(address) => {
                if matches!(draft.base_bytes, BaseBytes::Sealed(_)) {
                    self.puts.wait_for(address.container.own_object());
                }
                let found = self.reader.chunk_among(*address, &self.wanted);
                self.wanted.remove(*address);
                match found {
                    Ok(bytes) => {
                        read = bytes;
                        &read[..]
                    }
                    Err(_) => return false,
                }
            }
        };
        let limit = chunk.len() * WORTH_EIGHTHS / 8;
        match self.method {
            DeltaMethod::Instructions => self.instructions.encode(base, chunk, limit, out),
            DeltaMethod::Prefix => self.prefix.encode(base, chunk, limit, out),
        }
    }
}
