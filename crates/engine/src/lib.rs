#![forbid(unsafe_code)]
//! The deduplication engine: byte stream ↔ recipe.
//!
//! An [`Engine`] is an object store with the keys and settings to use it. Its [`pipeline::Writer`]
//! stores streams, each chunk once, and gives their recipes; its [`restore::Reader`] gives the
//! streams back. See `examples/store_stream.rs`.
//!
//! Rooms: [`object`] (stores), [`format`] (building blocks of stored bytes), [`fingerprint`],
//! [`container`], [`recipe`], [`index`], [`pipeline`] (threads), [`restore`],
//! [`rewriting`] (which duplicates are stored again), [`similarity`] (chunks that are alike, and their differences).

pub mod container;
mod engine;
pub mod fingerprint;
pub mod format;
pub mod index;
pub mod object;
pub mod pipeline;
pub mod recipe;
pub mod restore;
pub mod rewriting;
pub mod similarity;

pub use engine::{Engine, EngineSettings};
