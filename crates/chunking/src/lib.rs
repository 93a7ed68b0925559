#![forbid(unsafe_code)]
//! Content-defined chunking: bytes to cut points.
//!
//! Enters: bytes, as a slice ([`Chunker::chunks`]), as a reader ([`StreamChunker`]) or piece by
//! piece ([`FeedChunker`]), with
//! [`Parameters`] and, where wanted, a secret ([`KeyMaterial`]). Leaves: chunks, runs of bytes
//! between two cut points. Cut points follow from contents, so that bytes put in or taken out
//! move only the cuts near them, and equal data far apart gives equal chunks.
//!
//! Invariants, of every algorithm here:
//! - chunks laid end to end are the data;
//! - a chunk has at least 1 and at most `max_bytes` bytes, and only the last of a stream may have
//!   fewer than `min_bytes`;
//! - the same data, parameters and key give the same cuts, whatever the machine, the instruction
//!   set or the sizes of reads. Cuts are stored in repositories: they never change for a given
//!   algorithm number, and golden tests hold them.
//!
//! Two accelerations stand beside them, over any algorithm, with cuts of their own: [`segments`] cuts
//! parts of a stream at the same time (P-Dedupe), [`rapid`] tries the lengths that followed a chunk
//! when it came before (RapidCDC).
//!
//! No I/O but [`std::io::Read`] in the stream adapter, no threads, no settings from outside.
//!
//! ```
//! use chunking::{Chunker, KeyMaterial, Parameters};
//! let chunker = Chunker::new(&Parameters::default(), KeyMaterial::Unkeyed)?;
//! let data = vec![7u8; 100_000];
//! let lengths: Vec<usize> = chunker.chunks(&data).map(|chunk| chunk.len()).collect();
//! assert_eq!(lengths, [65_536, 34_464]);
//! # Ok::<(), chunking::ParameterError>(())
//! ```
//!
//! Before a chunker, [`structure`] divides a stream where its format says that something else begins, such as a
//! member of a tar; each section is cut as a stream of its own.
//!
//! Chunkers of a window run in two stages where that is faster, and have jobs for many threads
//! ([`two_stage`]).
//!
//! To add an algorithm: a row in [`ALGORITHMS`], its rules, a module under `methods/`, an arm in
//! `Chunker`, its definition in docs/format/chunkers.md, golden cuts and a naive form in the tests.
//! Its hot loop goes to the `kernels` crate.

mod algorithm;
mod chunker;
mod feed;
mod gear_table;
mod methods;
mod own;
mod parameter_error;
mod parameters;
mod polynomial;
pub mod rapid;
mod rules;
pub mod segments;
mod stream;
pub mod structure;
pub mod two_stage;

pub use algorithm::{ALGORITHMS, Algorithm, AlgorithmInfo, UnknownAlgorithm};
pub use chunker::{Chunker, Cuts};
pub use feed::FeedChunker;
pub use gear_table::{KeyMaterial, UNKEYED_GEAR_TABLE, gear_table_from_bytes};
pub use kernels::gear::GearTable;
pub use kernels::isa::{Isa, UnknownIsa};
pub use methods::fastcdc::Rolling;
pub use own::{OWN_PARAMETERS, OwnParameter, OwnParameterInfo, OwnParameters};
pub use parameter_error::ParameterError;
pub use parameters::Parameters;
pub use stream::StreamChunker;
