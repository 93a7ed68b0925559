//! The command line: the list of verbs.
//!
//! Each verb's own arguments stand in its file under `commands/`.

use clap::{Parser, Subcommand};

use crate::commands;

/// The whole command line.
#[derive(Debug, Parser)]
#[command(
    name = "onefold-lab",
    version,
    about = "Measures every method of deduplication on any data",
    subcommand_required = true,
    arg_required_else_help = true,
    max_term_width = 100
)]
pub struct Arguments {
    /// What to do.
    #[command(subcommand)]
    pub command: Command,
}

/// The verbs.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Build a data set
    Dataset(commands::dataset::DatasetArguments),
    /// Measure algorithms that cut data into chunks
    Chunk(Box<commands::chunk::ChunkArguments>),
    /// Build an index of fingerprints and measure it
    Index(commands::index::IndexArguments),
    /// Compare chunkers over many keys, and at equal mean chunks
    Keys(commands::keys::KeysArguments),
    /// Cut data so many times and print nothing
    #[command(hide = true)]
    ChunkPasses(commands::chunk_passes::ChunkPassesArguments),
    /// Find similar chunks, store them as deltas, compress them together, and measure that
    Similar(Box<commands::similar::SimilarArguments>),
    /// Run the experiments of a paper, beside its own figures
    Paper(commands::paper::PaperArguments),
}
