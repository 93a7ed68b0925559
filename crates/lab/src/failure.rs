//! How a run of the lab fails: what a person or a script is told, and the exit code.
//!
//! The codes are those of `onefold` (docs/guide/exit-codes.md): 0 done, 1 failed, 2 wrong usage,
//! 3 done but for files that could not be read, 130 interrupted, 141 nobody reads the output.

use std::fmt;
use std::io::{self, ErrorKind};
use std::process::ExitCode;

use serde::Serialize;

/// All that was asked for failed.
pub const FAILED: u8 = 1;
/// The command line asks for something impossible.
pub const USAGE: u8 = 2;
/// Measured, but for files that could not be read.
pub const PARTIAL: u8 = 3;
/// Somebody asked for a stop.
pub const INTERRUPTED: u8 = 130;
/// Nobody reads the output any more.
const OUTPUT_CLOSED: u8 = 141;

/// Why a run failed, as it is told.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Failure {
    /// What the operating system gets.
    pub code: u8,
    /// What happened, and where; empty where that was said already.
    pub message: String,
    /// What to do about it.
    pub hint: Option<String>,
}

impl Failure {
    /// A failure of that code.
    pub fn new(code: u8, message: impl Into<String>) -> Self {
        Self {
            code,
            message: message.into(),
            hint: None,
        }
    }

    /// The command line asks for something impossible.
    pub fn usage(message: impl Into<String>) -> Self {
        Self::new(USAGE, message)
    }

    /// The same with what to do about it.
    pub fn with_hint(self, hint: impl Into<String>) -> Self {
        Self {
            hint: Some(hint.into()),
            ..self
        }
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for Failure {}

/// The failure as a line of JSON (docs/guide/lab-json.md).
#[derive(Serialize)]
struct ErrorEvent<'a> {
    event: &'static str,
    code: u8,
    message: &'a str,
    hint: Option<&'a str>,
}

/// Tells how a verb ended, as JSON on the standard output where that is wanted.
pub fn tell(outcome: anyhow::Result<()>, wants_json: bool) -> ExitCode {
    let Err(error) = outcome else {
        return ExitCode::SUCCESS;
    };
    let failure = explain(&error);
    if failure.code == OUTPUT_CLOSED || failure.message.is_empty() {
        return failure.code.into();
    }
    if wants_json {
        let event = ErrorEvent {
            event: "error",
            code: failure.code,
            message: &failure.message,
            hint: failure.hint.as_deref(),
        };
        if let Ok(line) = serde_json::to_string(&event) {
            println!("{line}");
        }
    } else {
        eprintln!("Error: {}", failure.message);
        if let Some(hint) = &failure.hint {
            eprintln!("Hint: {hint}");
        }
    }
    failure.code.into()
}

/// What is told of an error of any kind.
fn explain(error: &anyhow::Error) -> Failure {
    if let Some(failure) = error.downcast_ref::<Failure>() {
        return failure.clone();
    }
    let is_closed = error.chain().any(|cause| {
        cause
            .downcast_ref::<io::Error>()
            .is_some_and(|error| error.kind() == ErrorKind::BrokenPipe)
    });
    let code = if is_closed { OUTPUT_CLOSED } else { FAILED };
    Failure::new(code, format!("{error:#}"))
}

#[cfg(test)]
mod tests {
    use super::{FAILED, Failure, OUTPUT_CLOSED, explain};
    use anyhow::Context as _;
    use std::io;

    #[test]
    fn codes_and_messages() {
        let usage = Failure::usage("no").with_hint("yes");
        assert_eq!(explain(&anyhow::Error::new(usage.clone())), usage);
        let other = Err::<(), _>(io::Error::other("gone")).context("reading x");
        let failure = explain(&other.unwrap_err());
        assert_eq!(failure, Failure::new(FAILED, "reading x: gone"));
        let closed = io::Error::from(io::ErrorKind::BrokenPipe);
        let closed = anyhow::Error::new(closed).context("printing");
        assert_eq!(explain(&closed).code, OUTPUT_CLOSED);
    }
}
