#![forbid(unsafe_code)]
//! The lab: every method of the literature, measured on any data.
//!
//! Enters: a command line (`onefold-lab VERB …`). Leaves: tables on the standard output, JSON or
//! CSV for programs, reports with plots, data sets in a directory. No algorithm of onefold lives
//! here: the lab calls the crates that ship.

mod arguments;
mod commands;
pub mod dataset;

use clap::Parser;

use arguments::{Arguments, Command};

/// Reads the command line, runs one verb, and says how it ended.
#[must_use]
pub fn main() -> std::process::ExitCode {
    let arguments = Arguments::parse();
    let outcome = match &arguments.command {
        Command::Dataset(arguments) => commands::dataset::run(arguments),
    };
    match outcome {
        Ok(()) => std::process::ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("onefold-lab: {error:#}");
            std::process::ExitCode::FAILURE
        }
    }
}
