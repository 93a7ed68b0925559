//! The one room that starts threads: how a stream becomes stored chunks, and how they come back.
//!
//! ```text
//! read + chunk ──▶ fingerprint ──▶ index ──new──▶ group ──▶ compress ──▶ pack + seal ──▶ put
//!  ordered pool    FingerprintPool  Writer (the caller's    ordered pool   Packer thread   PutPool
//!  (the caller's)                   thread, walk order)
//! ```
//!
//! New chunks that resemble others leave the row before they join a group, and go to containers of
//! their own as deltas (`deltas/mod.rs`).
//!
//! Each stage has a meter (`stages`): time busy and waiting, its queue, its bytes.
//! Every queue is bounded in bytes, results come back in the order of their submission, and
//! packing follows that order, never the state of a queue: the same input makes the same
//! chunks, groups and containers for any number of threads. The first failure in any stage
//! stops the others and is what the caller gets.
//!
//! ```text
//! containers ──▶ fetch ──▶ unseal ──▶ decompress ──▶ verify ──▶ write, or count
//!              fetch threads  compute threads
//! ```
//!
//! Reading back ([`ReadingRoom`]) needs no order: what is damaged costs only what wants it, and the
//! outcome is the same in whichever order the parts come. One stream alone, for a pipe, is read in
//! order, some way ahead ([`ReadingRoom::read_in_order`]).

mod adaptive;
mod budget;
mod chunk_stream;
mod compressing;
mod cutter;
mod decision_window;
mod deltas;
mod fingerprint_pool;
mod in_order_needs;
mod incoming;
mod index_merging;
mod memory;
mod metadata_packer;
mod ordered;
mod packer;
mod pending;
mod put_pool;
mod reading;
mod reading_beside;
mod reading_in_order;
mod segment_stream;
mod splicing;
mod stages;
mod trail;
mod writer;

pub use budget::{ByteBudget, Failure, Permit, Stopped};
pub use chunk_stream::{ChunkedSegment, CutSegment, StreamChunking, chunk_stream};
pub use cutter::Cutter;
pub use deltas::{DeltaLevel, DeltaSettings, DeltaSettingsError, WRITTEN_DEPTH_MAX};
pub use fingerprint_pool::{FingerprintPool, SegmentInTurn};
pub use incoming::IncomingStream;
pub use memory::{INDEX_BYTES_DEFAULT, MemoryShares};
pub use ordered::{Emitter, JobSender, OrderedPool, PoolOptions, Results, ordered_pool};
pub use pending::PendingRecipe;
pub use put_pool::PUT_THREADS_DEFAULT;
pub use reading::{Fetching, ReadingRoom, ReadingWork, Reserved};
pub use reading_beside::Pieces;
pub use reading_in_order::{InOrderError, InOrderReport, StreamPiece};
pub use splicing::{EarlierStream, SparseExtent, SparseStream, SplicedStream};
pub use stages::{Stage, StageMeter, StageReport, Stages, bottleneck};
pub use trail::Trail;
pub use writer::{WriteError, WriteTotals, Writer};
