//! The one room that starts threads: how a stream becomes stored chunks.
//!
//! ```text
//! read + chunk + fingerprint ──▶ look-up ──new──▶ group ──▶ compress ──▶ place + seal ──▶ put
//!  OrderedPool (the caller's)     Writer (the caller's     OrderedPool    Packer thread    PutPool
//!                                 thread, walk order)
//! ```
//!
//! Every queue is bounded in bytes, results come back in the order of their submission, and
//! packing follows that order, never the state of a queue: the same input makes the same
//! chunks, groups and containers for any number of threads. The first failure in any stage
//! stops the others and is what the caller gets.

mod budget;
mod chunk_stream;
mod cutter;
mod metadata_packer;
mod ordered;
mod packer;
mod pending;
mod put_pool;
mod segment_stream;
mod stages;
mod trail;
mod writer;

pub use budget::{ByteBudget, Failure, Permit, Stopped};
pub use chunk_stream::{ChunkedSegment, Sectioning, StreamChunking, chunk_stream};
pub use cutter::Cutter;
pub use ordered::{Emitter, JobSender, Results, ordered_pool};
pub use pending::PendingRecipe;
pub use stages::{Stage, StageMeter, StageReport, Stages, bottleneck};
pub use trail::Trail;
pub use writer::{WriteError, WriteTotals, Writer};
