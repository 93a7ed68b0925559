//! Recipes back into bytes.
//!
//! [`Reader`] gives a stream in order (directories), and single chunks. [`RestorePlan`] gives many
//! streams at once: every container is read once, its chunks go to wherever they belong.
//! [`verify_objects`] reads containers for the sake of knowing that they can be read.

mod bases;
mod chunks;
mod delta_nodes;
mod group_cache;
mod look_ahead;
mod metadata;
mod plan;
mod reader;
mod restoring;
mod verify;
mod wanted;

pub use bases::{WrongBase, wrong_bases};
pub use chunks::ChunkBytes;
pub(crate) use chunks::StoredChunk;
pub use look_ahead::{GroupPlace, LookAhead};
pub use metadata::{MetadataSink, read_metadata};
pub use plan::{ChunkSink, PlannedStep, RestorePlan, StreamParts, StreamPlanner};
pub(crate) use reader::add_to_check;
pub use reader::{LocatedFront, LocatedRun, ReadError, Reader, Runs, StreamReader};
pub use verify::{ExamineSink, VerifySink, examine_objects, verify_objects};
pub use wanted::WantedChunks;
