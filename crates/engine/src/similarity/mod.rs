//! Similar chunks: a chunk that resembles one already stored is kept as its difference from it
//! (Odess; docs/format/delta.md).

pub mod delta;
pub mod prefix;
