#![forbid(unsafe_code)]
//! The `onefold` command: reads the command line, runs one verb, and turns its outcome into
//! output and an exit code. No algorithms live here; the crate `repository` does the work.

mod arguments;
mod change;
mod commands;
mod events;
mod exit_code;
mod failure;
mod interrupt;
mod names;
mod output;
mod password;
mod progress_display;
mod rate;
mod selection;
mod session;
mod source_command;
mod stages_view;
mod table;
mod times;
mod units;

use std::ffi::OsStr;
use std::io::{self, Write};
use std::sync::Arc;

use clap::error::ErrorKind;
use clap::{CommandFactory, Parser};

use arguments::{Arguments, Command};
use exit_code::ExitCode;
use failure::Failure;
use output::Output;
use session::Session;

fn main() -> std::process::ExitCode {
    let code = match Arguments::try_parse() {
        Ok(arguments) => run(arguments),
        Err(error) => refuse(&error),
    };
    code.into()
}

fn run(arguments: Arguments) -> ExitCode {
    let global = arguments.global;
    let mut output =
        Output::new(global.json, global.quiet, global.verbose > 0).showing_stages(global.stages);
    if matches!(arguments.command, Command::Dump(_)) {
        output = output.beside_content();
    }
    let output = Arc::new(output);
    let session = Session {
        global,
        output: Arc::clone(&output),
    };
    match commands::run(&session, &arguments.command) {
        Ok(code) => code,
        Err(error) => {
            let failure = failure::explain(&error);
            if failure.code != ExitCode::OutputClosed {
                output.failure(&failure);
            }
            failure.code
        }
    }
}

/// The command line is not one of this program, or asks for help.
fn refuse(error: &clap::Error) -> ExitCode {
    let is_help = matches!(
        error.kind(),
        ErrorKind::DisplayHelp | ErrorKind::DisplayVersion
    );
    let wants_json = std::env::args_os()
        .take_while(|argument| argument != OsStr::new("--"))
        .any(|argument| argument == OsStr::new("--json"));
    if wants_json && !is_help {
        let text = error.render().to_string();
        let message = text.lines().next().unwrap_or_default();
        let message = message.strip_prefix("error: ").unwrap_or(message);
        let failure = Failure::usage(message).with_hint("`onefold --help` shows the usage");
        Output::new(true, false, false).failure(&failure);
        return ExitCode::Usage;
    }
    // Nothing is left to be done where this can't be printed.
    let _ = match error.kind() {
        ErrorKind::MissingSubcommand => {
            let help = Arguments::command().render_help();
            writeln!(io::stderr(), "{help}")
        }
        _ => error.print(),
    };
    if is_help {
        ExitCode::Done
    } else {
        ExitCode::Usage
    }
}

/// The bytes in hexadecimal digits.
fn hexadecimal(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}
