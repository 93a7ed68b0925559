//! What a process costs: wall time, processor time, peak of resident memory, by GNU time.

use std::fs::{self, File};
use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result, bail};

/// What one process cost.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Usage {
    /// From start to end.
    pub seconds: f64,
    /// Of all its threads, user and system.
    pub processor_seconds: f64,
    /// Peak of resident memory.
    pub resident_kib: u64,
}

/// Is GNU time there? Others can't say how much memory a process took.
///
/// # Errors
/// When not.
pub fn check_gnu_time() -> Result<()> {
    let output = Command::new("time").arg("--version").output();
    let is_gnu = output.is_ok_and(|output| {
        let all = [output.stdout, output.stderr].concat();
        String::from_utf8_lossy(&all).contains("GNU")
    });
    if !is_gnu {
        bail!("GNU time is needed (package `time`)");
    }
    Ok(())
}

/// Runs `command` and measures it. What it prints goes to `log`.
///
/// # Errors
/// When it fails; the end of the log is told.
pub fn timed(command: &mut Command, log: &Path) -> Result<Usage> {
    let figures = log.with_extension("time");
    run(&mut measured(command, &figures), log)?;
    usage(&fs::read_to_string(&figures)?)
}

/// The same command, which writes what it took to a file, for [`usage`].
pub fn measured(command: &Command, figures: &Path) -> Command {
    let mut measured = Command::new("time");
    measured
        .args(["-q", "-f", "%e %U %S %M", "-o"])
        .arg(figures)
        .arg(command.get_program())
        .args(command.get_args());
    if let Some(directory) = command.get_current_dir() {
        measured.current_dir(directory);
    }
    for (name, value) in command.get_envs() {
        match value {
            Some(value) => measured.env(name, value),
            None => measured.env_remove(name),
        };
    }
    measured
}

/// Runs `command` to its end. What it prints goes to `log`.
///
/// # Errors
/// When it fails; the end of the log is told.
pub fn run(command: &mut Command, log: &Path) -> Result<()> {
    let output = File::create(log)?;
    let status = command
        .stdout(output.try_clone()?)
        .stderr(output)
        .status()
        .with_context(|| format!("cannot run {}", command.get_program().display()))?;
    if status.success() {
        return Ok(());
    }
    let told = fs::read(log)?;
    let told = String::from_utf8_lossy(&told);
    let lines: Vec<&str> = told.lines().collect();
    let end = lines[lines.len().saturating_sub(5)..].join("\n");
    bail!("{status}: {end}")
}

/// Reads what GNU time wrote in our format.
///
/// # Errors
/// When it is something else.
pub fn usage(line: &str) -> Result<Usage> {
    let words: Vec<&str> = line.split_whitespace().collect();
    let [seconds, user, system, resident_kib] = words[..] else {
        bail!("GNU time wrote {line:?}");
    };
    Ok(Usage {
        seconds: seconds.parse()?,
        processor_seconds: user.parse::<f64>()? + system.parse::<f64>()?,
        resident_kib: resident_kib.parse()?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_of_gnu_time_are_read() {
        let expected = Usage {
            seconds: 1.5,
            processor_seconds: 2.5,
            resident_kib: 12_345,
        };
        assert_eq!(usage("1.50 2.25 0.25 12345\n").unwrap(), expected);
        assert!(usage("Command exited\n").is_err());
    }
}
