//! Recipes back into bytes.
//!
//! [`Reader`] gives a stream in order (`dump`, directories). [`RestorePlan`] gives many
//! streams at once: every container is read once, its chunks go to wherever they belong.

mod plan;
mod reader;

pub use plan::{ChunkSink, RestorePlan};
pub use reader::{ReadError, Reader, Runs, StreamReader};
