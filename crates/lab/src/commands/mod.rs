//! The verbs, one file each: arguments, and what is printed.

pub mod chunk;
pub mod chunk_passes;
pub mod dataset;
pub mod paper;
