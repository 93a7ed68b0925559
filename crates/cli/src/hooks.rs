//! Commands of a profile around a verb: mount a disk before, tell somebody after (docs/guide/automation.md).
//!
//! Those before run in their order, until one fails: then the verb does not run. Those after run in any case, all of
//! them, and are told how it ended. What they print goes to the standard error output, so that results stay whole.

use std::io;
use std::os::fd::AsFd;
use std::process::{Command, Stdio};

use crate::exit_code::ExitCode;
use crate::failure::Failure;
use crate::names;
use crate::output::Output;
use crate::password::SECRET_VARIABLES;

/// Commands for `sh -c`.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Hooks {
    /// Before the verb.
    pub before: Vec<String>,
    /// After it.
    pub after: Vec<String>,
}

/// What commands are told of a run, as variables.
#[derive(Debug)]
pub struct Surroundings<'a> {
    /// The profile.
    pub profile: &'a str,
    /// The verb.
    pub verb: &'a str,
    /// Where the repository is, if that is known.
    pub repository: Option<&'a str>,
}

impl Hooks {
    /// Runs `verb` between the commands.
    pub fn around(
        &self,
        surroundings: &Surroundings<'_>,
        output: &Output,
        verb: impl FnOnce() -> ExitCode,
    ) -> ExitCode {
        let before = self.before.iter().try_for_each(|command| {
            run(command, surroundings, None).map_err(|why| {
                let done = format!("'{command}', which was to run before, {why}");
                let failure = Failure::new(ExitCode::Hook, done);
                output.failure(&failure.with_hint("nothing else was done"));
            })
        });
        let mut code = match before {
            Ok(()) => verb(),
            Err(()) => ExitCode::Hook,
        };
        let ended = code;
        for command in &self.after {
            if let Err(why) = run(command, surroundings, Some(ended)) {
                output.warning(&format!("'{command}', which was to run after, {why}"));
                if code == ExitCode::Done {
                    code = ExitCode::Hook;
                }
            }
        }
        code
    }
}

fn run(
    command: &str,
    surroundings: &Surroundings<'_>,
    ended: Option<ExitCode>,
) -> Result<(), String> {
    let mut shell = Command::new("sh");
    shell
        .args(["-c", command])
        .env("ONEFOLD_PROFILE", surroundings.profile)
        .env("ONEFOLD_VERB", surroundings.verb)
        .stdin(Stdio::null());
    // A password is nobody's business but ours.
    for variable in SECRET_VARIABLES {
        shell.env_remove(variable);
    }
    if let Some(repository) = surroundings.repository {
        shell.env("ONEFOLD_REPO", repository);
    }
    if let Some(code) = ended {
        shell.env("ONEFOLD_EXIT_CODE", code.number().to_string());
    }
    let own_error = io::stderr().as_fd().try_clone_to_owned();
    shell.stdout(own_error.map_or_else(|_| Stdio::null(), Stdio::from));
    match shell.status() {
        Ok(status) if status.success() => Ok(()),
        Ok(status) => Err(names::escaped_text(&format!("failed: {status}"))),
        Err(error) => Err(format!("can't be run: {error}")),
    }
}
