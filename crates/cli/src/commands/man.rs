//! `onefold man`: manual pages.

use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use anyhow::Context as _;
use clap::{Args, CommandFactory};
use clap_mangen::Man;

use crate::arguments::Arguments;
use crate::exit_code::ExitCode;
use crate::names;

/// Print the manual page, or write those of all verbs to a directory
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  onefold man | man -l -
  onefold man ~/.local/share/man/man1")]
pub struct ManArguments {
    /// A directory for the pages of all verbs; created where it is missing
    #[arg(value_name = "DIR")]
    directory: Option<PathBuf>,
}

pub fn run(arguments: &ManArguments) -> anyhow::Result<ExitCode> {
    match &arguments.directory {
        Some(directory) => write_all(directory)
            .with_context(|| format!("cannot write to {}", names::escaped_path(directory)))?,
        None => print_main()?,
    }
    Ok(ExitCode::Done)
}

fn print_main() -> io::Result<()> {
    let mut page = Vec::new();
    Man::new(Arguments::command()).render(&mut page)?;
    let mut out = io::stdout().lock();
    out.write_all(&page)?;
    out.flush()
}

fn write_all(directory: &Path) -> io::Result<()> {
    fs::create_dir_all(directory)?;
    clap_mangen::generate_to(Arguments::command(), directory)
}
