//! The one room that starts threads: how a stream becomes stored chunks, and how they come back.
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
//!
//! ```text
//! containers ──▶ fetch ──▶ unseal ──▶ decompress ──▶ verify ──▶ write, or count
//!              fetch threads  compute threads
//! ```
//!
//! Reading back ([`ReadingRoom`]) needs no order: what is damaged costs only what wants it, and the
//! outcome is the same in whichever order the parts come.

mod budget;
mod chunk_stream;
mod cutter;
mod metadata_packer;
mod ordered;
mod packer;
mod pending;
mod put_pool;
mod reading;
mod segment_stream;
mod stages;
mod trail;
mod writer;

pub use budget::{ByteBudget, Failure, Permit, Stopped};
pub use chunk_stream::{ChunkedSegment, Sectioning, StreamChunking, chunk_stream};
pub use cutter::Cutter;
pub use ordered::{Emitter, JobSender, Results, ordered_pool};
pub use pending::PendingRecipe;
pub use reading::{Fetching, ReadingRoom, ReadingWork, Reserved};
pub use stages::{Stage, StageMeter, StageReport, Stages, bottleneck};
pub use trail::Trail;
pub use writer::{WriteError, WriteTotals, Writer};
