//! Programs that data sets are made with.
//!
//! Enters: a command. Leaves: its output, or an error that says which program it was, what for,
//! how to get it if it is not there, and otherwise what it printed last.

use std::ffi::OsStr;
use std::path::PathBuf;
use std::process::{Command, Stdio};

use anyhow::{Context, Result, bail};

/// A program, what for, and how to get it.
#[derive(Debug, Clone, Copy)]
pub struct Program {
    /// Name in `PATH`.
    pub name: &'static str,
    /// Ends the sentence "it is needed …".
    pub purpose: &'static str,
    /// A command, or an address.
    pub install: &'static str,
}

impl Program {
    /// Its path.
    ///
    /// # Errors
    /// When it is not in `PATH`.
    pub fn find(&self) -> Result<PathBuf> {
        let path = std::env::var_os("PATH").unwrap_or_default();
        // Programs for administrators are not in everybody's PATH.
        let system = ["/usr/sbin", "/sbin"].map(PathBuf::from);
        let places = std::env::split_paths(&path).chain(if path.is_empty() {
            Vec::new()
        } else {
            system.to_vec()
        });
        for place in places {
            let candidate = place.join(self.name);
            if !place.as_os_str().is_empty() && candidate.is_file() {
                return Ok(candidate);
            }
        }
        bail!(
            "the program {} is missing; it is needed {}: {}",
            self.name,
            self.purpose,
            self.install
        )
    }

    /// A command that runs it, with English messages, no input, and plain times.
    ///
    /// # Errors
    /// When it is not there.
    pub fn command(&self) -> Result<Command> {
        let mut command = Command::new(self.find()?);
        command.env("LC_ALL", "C").env("TZ", "UTC");
        command.stdin(Stdio::null());
        Ok(command)
    }

    /// The first line that it prints when asked for its version.
    ///
    /// # Errors
    /// When it is not there or fails.
    pub fn version(&self, argument: &str) -> Result<String> {
        let mut command = self.command()?;
        let output = command.arg(argument).output()?;
        let text = if output.stdout.is_empty() {
            output.stderr
        } else {
            output.stdout
        };
        let text = String::from_utf8_lossy(&text);
        Ok(text.lines().next().unwrap_or_default().trim().to_owned())
    }
}

/// Runs a command to its end and gives its standard output.
///
/// # Errors
/// When it can't be started or fails; the error has the end of what it printed.
pub fn output(command: &mut Command) -> Result<String> {
    let name = PathBuf::from(command.get_program());
    let name = name.file_name().unwrap_or(OsStr::new("")).to_string_lossy();
    let name = name.into_owned();
    let output = command
        .output()
        .with_context(|| format!("cannot run {name}"))?;
    if !output.status.success() {
        let mut text = String::from_utf8_lossy(&output.stderr).into_owned();
        if text.trim().is_empty() {
            text = String::from_utf8_lossy(&output.stdout).into_owned();
        }
        bail!("{name} failed ({}): {}", output.status, last_lines(&text));
    }
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}

fn last_lines(text: &str) -> String {
    let lines: Vec<_> = text.trim().lines().collect();
    lines[lines.len().saturating_sub(8)..].join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    const SHELL: Program = Program {
        name: "sh",
        purpose: "for tests",
        install: "apt-get install dash",
    };

    #[test]
    fn output_or_the_end_of_what_was_printed() {
        let shell = |script: &str| output(SHELL.command().unwrap().args(["-c", script]));
        assert_eq!(shell("echo a; echo b >&2").unwrap(), "a\n");
        let error = shell("seq 1 20 >&2; exit 3").unwrap_err().to_string();
        assert!(
            error.contains("sh failed (exit status: 3): 13\n"),
            "{error}"
        );
        assert!(error.ends_with("20"), "{error}");
    }

    #[test]
    fn what_is_missing_is_told_with_its_purpose() {
        let program = Program {
            name: "no-such-program-anywhere",
            ..SHELL
        };
        let error = program.find().unwrap_err().to_string();
        let expected = "the program no-such-program-anywhere is missing; it is needed for tests: \
                        apt-get install dash";
        assert_eq!(error, expected);
    }
}
