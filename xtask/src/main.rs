#![forbid(unsafe_code)]
//! Chores of the workspace: `cargo xtask CHORE`. Light on dependencies, because every CI run
//! builds it.

mod compare;
mod scale;
mod tidy;

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Result, bail};

const USAGE: &str = "\
usage: cargo xtask CHORE

  tidy                   check the house rules; fails when one is broken
  compare [OPTIONS] DIR  install several backup tools, back the versions in DIR up, compare
  scale [OPTIONS]        store 100 million chunks, and see what memory every verb takes
";

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    match run(&arguments) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("xtask: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn run(arguments: &[String]) -> Result<()> {
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    match words.as_slice() {
        ["tidy"] => tidy::run(&workspace_root()),
        ["compare", options @ ..] => compare::run(options),
        ["scale", options @ ..] => scale::run(options),
        [] | ["help" | "--help" | "-h"] => {
            print!("{USAGE}\n{}\n{}", compare::USAGE, scale::USAGE);
            Ok(())
        }
        _ => bail!("no such chore: {}\n{USAGE}", words.join(" ")),
    }
}

/// The directory that this crate lies in, as a workspace.
fn workspace_root() -> PathBuf {
    let crate_directory = Path::new(env!("CARGO_MANIFEST_DIR"));
    crate_directory
        .parent()
        .map_or_else(|| crate_directory.to_owned(), Path::to_owned)
}
