#![forbid(unsafe_code)]
//! The `onefold` command: reads the command line, runs one verb, and turns its outcome into
//! output and an exit code. No algorithms live here; the crate `repository` does the work.

mod arguments;
mod change;
mod commands;
mod events;
mod exit_code;
mod failure;
mod hooks;
mod interrupt;
mod metrics;
mod names;
mod output;
mod password;
mod place;
mod profile;
mod progress_display;
mod rate;
mod repair_events;
mod selection;
mod server_view;
mod session;
mod source_command;
mod stages_view;
mod table;
mod times;
mod units;

use std::ffi::{OsStr, OsString};
use std::io::{self, Write};
use std::path::Path;
use std::sync::Arc;
use std::time::{Instant, SystemTime};

use clap::error::ErrorKind;
use clap::{ArgMatches, CommandFactory, FromArgMatches};

use arguments::{Arguments, Command};
use exit_code::ExitCode;
use failure::Failure;
use hooks::Surroundings;
use metrics::Ended;
use output::Output;
use profile::Profile;
use session::Session;

fn main() -> std::process::ExitCode {
    let words: Vec<OsString> = std::env::args_os().collect();
    let code = match profile::expand(words) {
        Ok(line) => match parsed(&line.words) {
            Ok((arguments, verb)) => run(arguments, &verb, line.profile),
            Err(error) => refuse(&error, line.profile.as_ref()),
        },
        Err(failure) => {
            Output::new(wants_json(), false, false).failure(&failure);
            failure.code
        }
    };
    code.into()
}

/// The command line, and the verb in it.
fn parsed(words: &[OsString]) -> Result<(Arguments, String), clap::Error> {
    let matches = Arguments::command().try_get_matches_from(words)?;
    let mut verb: Vec<&str> = Vec::new();
    let mut below: Option<&ArgMatches> = Some(&matches);
    while let Some((name, next)) = below.and_then(ArgMatches::subcommand) {
        verb.push(name);
        below = Some(next);
    }
    let verb = verb.join(" ");
    Ok((Arguments::from_arg_matches(&matches)?, verb))
}

fn run(arguments: Arguments, verb: &str, profile: Option<Profile>) -> ExitCode {
    let mut global = arguments.global;
    // What is looked at is what the server has.
    global.remote.no_cache |= matches!(arguments.command, Command::Check(_) | Command::Repair(_));
    let metrics_file = global.metrics_file.clone();
    let mut output = Output::new(global.json, global.quiet, global.verbose > 0)
        .showing_stages(global.stages)
        .keeping_summary(metrics_file.is_some());
    let is_stdout_content = match &arguments.command {
        Command::Dump(_) => true,
        Command::Export(export) => export.is_to_stdout(),
        _ => false,
    };
    if is_stdout_content {
        output = output.beside_content();
    }
    let output = Arc::new(output);
    let session = Session::new(global, Arc::clone(&output));
    let clocks = (SystemTime::now(), Instant::now());
    let mut has_run = false;
    let mut run = || {
        has_run = true;
        run_verb(&session, &arguments.command)
    };
    let code = match &profile {
        Some(profile) => {
            let repository = session.global.repo.as_ref().map(ToString::to_string);
            let surroundings = Surroundings {
                profile: &profile.name,
                verb,
                repository: repository.as_deref(),
            };
            profile.hooks.around(&surroundings, &output, run)
        }
        None => run(),
    };
    if let Some(path) = metrics_file {
        let summary = output.summary_kept();
        let ended = Ended {
            verb,
            profile: profile.as_ref().map(|profile| profile.name.as_str()),
            code,
            has_run,
            began: clocks.0,
            took: clocks.1.elapsed(),
            summary: summary.as_ref(),
        };
        write_metrics(&output, &ended, &path);
    }
    code
}

fn run_verb(session: &Session, command: &Command) -> ExitCode {
    let outcome = commands::run(session, command);
    session.output.tell_server();
    match outcome {
        Ok(code) => code,
        Err(error) => {
            let failure = failure::explain(&error);
            if failure.code != ExitCode::OutputClosed {
                session.output.failure(&failure);
            }
            failure.code
        }
    }
}

fn write_metrics(output: &Output, ended: &Ended<'_>, path: &Path) {
    if let Err(error) = ended.write(path) {
        output.warning(&format!(
            "cannot write metrics to {}: {error}",
            names::escaped_path(path)
        ));
    }
}

/// Does the command line ask for JSON, as far as that can be told?
fn wants_json() -> bool {
    std::env::args_os()
        .take_while(|argument| argument != OsStr::new("--"))
        .any(|argument| argument == OsStr::new("--json"))
}

/// The command line is not one of this program, or asks for help.
fn refuse(error: &clap::Error, profile: Option<&Profile>) -> ExitCode {
    let is_help = matches!(
        error.kind(),
        ErrorKind::DisplayHelp | ErrorKind::DisplayVersion
    );
    if wants_json() && !is_help {
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
    if let Some(profile) = profile.filter(|profile| !profile.added.is_empty() && !is_help) {
        let _ = writeln!(
            io::stderr(),
            "The profile '{}' of {} added: {}",
            profile.name,
            names::escaped_path(&profile.file),
            names::escaped_text(&profile.added.join(" "))
        );
    }
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
