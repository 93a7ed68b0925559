#![forbid(unsafe_code)]
//! The lab: every method of the literature, measured on any data.
//!
//! Enters: a command line (`onefold-lab VERB …`). Leaves: tables on the standard output, JSON or
//! CSV for programs, reports with plots, data sets in a directory. No algorithm of onefold lives
//! here: the lab calls the crates that ship.

mod arguments;
mod chunk;
mod commands;
pub mod dataset;
mod failure;
mod index;
mod interrupt;
mod names;
mod paper;
mod progress;
mod report;
mod restore_caches;
mod similar;
mod units;

use clap::Parser;

use arguments::{Arguments, Command};

/// Reads the command line, runs one verb, and says how it ended.
#[must_use]
pub fn main() -> std::process::ExitCode {
    let arguments = Arguments::parse();
    match &arguments.command {
        Command::Dataset(arguments) => failure::tell(commands::dataset::run(arguments), false),
        Command::Chunk(arguments) => failure::tell(commands::chunk::run(arguments), arguments.json),
        Command::Index(arguments) => failure::tell(commands::index::run(arguments), arguments.json),
        Command::Keys(arguments) => failure::tell(commands::keys::run(arguments), arguments.json),
        Command::ChunkPasses(arguments) => {
            failure::tell(commands::chunk_passes::run(arguments), false)
        }
        Command::Similar(arguments) => {
            failure::tell(commands::similar::run(arguments), arguments.json)
        }
        Command::Paper(arguments) => {
            failure::tell(commands::paper::run(arguments), arguments.is_json())
        }
    }
}
