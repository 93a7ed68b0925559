//! `onefold completions`: what a shell needs to complete command lines.

use std::io::{self, Write};

use clap::{Args, CommandFactory};
use clap_complete::{Shell, generate};

use crate::arguments::Arguments;
use crate::exit_code::ExitCode;

/// Print a script that lets a shell complete command lines
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  onefold completions bash > ~/.local/share/bash-completion/completions/onefold
  onefold completions zsh > ~/.zfunc/_onefold
  onefold completions fish > ~/.config/fish/completions/onefold.fish")]
pub struct CompletionsArguments {
    /// Which shell
    shell: Shell,
}

pub fn run(arguments: &CompletionsArguments) -> anyhow::Result<ExitCode> {
    // The generator panics where it can't write; a buffer always takes it.
    let mut script = Vec::new();
    generate(
        arguments.shell,
        &mut Arguments::command(),
        "onefold",
        &mut script,
    );
    let mut out = io::stdout().lock();
    out.write_all(&script)?;
    out.flush()?;
    Ok(ExitCode::Done)
}
