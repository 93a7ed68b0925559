//! A command whose output is backed up.
//!
//! Its standard output is read; its standard input and error output are those of this program.
//! Whether it succeeded is known when it has ended, which is asked for after the last
//! byte and before the snapshot is written. Whatever happens, it does not outlive the backup.

use std::ffi::OsString;
use std::process::{Child, Command, Stdio};

use anyhow::Context as _;

use crate::interrupt::InterruptibleReader;
use crate::names;
use crate::password::{NEW_PASSWORD_VARIABLE, PASSWORD_VARIABLE};

/// A command that runs.
#[derive(Debug)]
pub struct SourceCommand {
    child: Child,
    name: String,
    is_reaped: bool,
}

impl SourceCommand {
    /// Starts a command, given by its name and arguments. It does not get the password.
    pub fn start(command: &[OsString]) -> anyhow::Result<Self> {
        let (program, arguments) = command.split_first().context("there is no command")?;
        let name = names::escaped_path(program.as_ref());
        let child = Command::new(program)
            .args(arguments)
            .env_remove(PASSWORD_VARIABLE)
            .env_remove(NEW_PASSWORD_VARIABLE)
            .stdout(Stdio::piped())
            .spawn()
            .with_context(|| format!("cannot run the command '{name}'"))?;
        Ok(Self {
            child,
            name,
            is_reaped: false,
        })
    }

    /// What it writes. Can be taken once.
    pub fn take_output(&mut self) -> InterruptibleReader {
        let output = self
            .child
            .stdout
            .take()
            .expect("the output is piped, and taken once");
        InterruptibleReader::new(output.into())
    }

    /// Waits until it has ended; an error when it failed.
    pub fn finish(&mut self) -> Result<(), String> {
        let status = self
            .child
            .wait()
            .map_err(|error| format!("cannot wait for the command '{}': {error}", self.name))?;
        self.is_reaped = true;
        if status.success() {
            Ok(())
        } else {
            Err(format!("the command '{}' failed ({status})", self.name))
        }
    }

    /// Ends it if it still runs.
    pub fn end(&mut self) {
        if !self.is_reaped {
            // It may have ended by itself meanwhile.
            let _ = self.child.kill();
            let _ = self.child.wait();
            self.is_reaped = true;
        }
    }
}

impl Drop for SourceCommand {
    fn drop(&mut self) {
        self.end();
    }
}
