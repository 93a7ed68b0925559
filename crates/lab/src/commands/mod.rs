//! The verbs, one file each: arguments, and what is printed; `output` is what they share.

pub mod chunk;
pub mod chunk_passes;
pub mod dataset;
pub mod keys;
mod output;
pub mod paper;
