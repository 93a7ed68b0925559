//! Instructions, branches and cycles for a byte (Table 6): this program is run under a counter.
//!
//! An approach cuts a sample N times, then 2 N times (`onefold-lab chunk-passes`, a hidden verb).
//! The difference of the two counts is that of N passes alone: loading, reading and making tables
//! cancel out.
//!
//! Counters: `perf stat`, where the machine lets its counters be read; otherwise valgrind's
//! callgrind, which executes every instruction by hand. That knows no cycles, and its branches are
//! conditional and indirect ones, without jumps, calls and returns that always go one way.

use std::path::PathBuf;
use std::process::Command;

use super::approaches::Approach;
use crate::failure::Failure;
use crate::interrupt;

/// What counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Counter {
    /// The counters of the processor.
    Perf,
    /// An interpreter of its instructions.
    Valgrind,
}

/// For a byte.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Counts {
    /// Instructions executed.
    pub instructions: f64,
    /// Branches executed.
    pub branches: f64,
    /// Cycles of the processor, where they can be read.
    pub cycles: Option<f64>,
}

/// What the approaches cut.
#[derive(Debug, Clone)]
pub struct Sample {
    /// Files; none stands for random numbers.
    pub paths: Vec<PathBuf>,
    /// So many bytes of them.
    pub bytes: u64,
    /// Passes of the shorter run.
    pub passes: u64,
}

/// Counts of one run.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Raw {
    instructions: f64,
    branches: f64,
    cycles: Option<f64>,
}

impl Counter {
    /// A counter that works here, or why there is none.
    pub fn find() -> Result<Self, String> {
        let perf = Command::new("perf")
            .args(["stat", "-x,", "-e", EVENTS, "true"])
            .output();
        if let Ok(output) = perf
            && parse_perf(&String::from_utf8_lossy(&output.stderr)).is_some()
        {
            return Ok(Self::Perf);
        }
        let valgrind = Command::new("valgrind").arg("--version").output();
        if valgrind.is_ok_and(|output| output.status.success()) {
            return Ok(Self::Valgrind);
        }
        Err("neither can `perf stat` read counters of this machine, nor is valgrind here".into())
    }

    /// How it counts, for people.
    pub fn method(self) -> &'static str {
        match self {
            Self::Perf => "counted by the processor (perf stat)",
            Self::Valgrind => {
                "counted by valgrind: cycles can't be read here, and branches are conditional and indirect ones only"
            }
        }
    }

    /// Counts an approach.
    ///
    /// # Errors
    /// When the counter fails, or somebody asked for a stop.
    pub fn count(self, approach: &Approach, sample: &Sample) -> anyhow::Result<Counts> {
        let (once, twice) = self.run_both(approach, sample)?;
        let bytes = (sample.passes * sample.bytes).max(1) as f64;
        let of_a_byte = |once: f64, twice: f64| (twice - once).max(0.0) / bytes;
        Ok(Counts {
            instructions: of_a_byte(once.instructions, twice.instructions),
            branches: of_a_byte(once.branches, twice.branches),
            cycles: once
                .cycles
                .zip(twice.cycles)
                .map(|(once, twice)| of_a_byte(once, twice)),
        })
    }

    /// The runs of N and 2 N passes. Those that are interpreted do not disturb each other.
    fn run_both(self, approach: &Approach, sample: &Sample) -> anyhow::Result<(Raw, Raw)> {
        let run = |times: u64| self.run(approach, sample, times * sample.passes);
        if self == Self::Perf {
            return Ok((run(1)?, run(2)?));
        }
        let (once, twice) = std::thread::scope(|scope| {
            let once = scope.spawn(|| run(1));
            let twice = run(2);
            (once.join(), twice)
        });
        let once = once.map_err(|_| anyhow::anyhow!("counting {} panicked", approach.name))?;
        Ok((once?, twice?))
    }

    fn run(self, approach: &Approach, sample: &Sample, passes: u64) -> anyhow::Result<Raw> {
        interrupt::check()?;
        let mut command = match self {
            Self::Perf => {
                let mut command = Command::new("perf");
                command.args(["stat", "-x,", "-e", EVENTS]);
                command
            }
            Self::Valgrind => {
                let mut command = Command::new("valgrind");
                command.args([
                    "--tool=callgrind",
                    "--branch-sim=yes",
                    "--callgrind-out-file=/dev/null",
                ]);
                command
            }
        };
        command
            .arg(std::env::current_exe()?)
            .args(["chunk-passes", "--algorithm", &approach.entry])
            .args(["--passes", &passes.to_string()])
            .args(["--size", &sample.bytes.to_string()])
            .args(&sample.paths);
        let output = command.output()?;
        let text = String::from_utf8_lossy(&output.stderr);
        interrupt::check()?;
        let raw = match self {
            Self::Perf => parse_perf(&text),
            Self::Valgrind => parse_callgrind(&text),
        };
        raw.filter(|_| output.status.success()).ok_or_else(|| {
            let last = text.lines().last().unwrap_or_default();
            let message = format!("counting {} failed: {last}", approach.name);
            Failure::new(crate::failure::FAILED, message)
                .with_hint("leave table6 out of --experiments")
                .into()
        })
    }
}

/// What perf is asked for, of this program only.
const EVENTS: &str = "instructions:u,branches:u,cycles:u";

/// `value,unit,event,…`, a line for each event; a value that is no number can't be read here.
fn parse_perf(text: &str) -> Option<Raw> {
    let value = |event: &str| -> Option<f64> {
        text.lines().find_map(|line| {
            let mut fields = line.split(',');
            let (value, _, name) = (fields.next()?, fields.next()?, fields.next()?);
            name.starts_with(event).then(|| value.parse().ok())?
        })
    };
    Some(Raw {
        instructions: value("instructions")?,
        branches: value("branches")?,
        cycles: value("cycles"),
    })
}

/// `Events : Ir Bc Bcm Bi Bim` and `Collected : 1 2 3 4 5`.
fn parse_callgrind(text: &str) -> Option<Raw> {
    let fields = |name: &str| -> Option<Vec<&str>> {
        text.lines().find_map(|line| {
            let (before, after) = line.split_once(':')?;
            let is_it = before.trim_end().ends_with(name);
            is_it.then(|| after.split_whitespace().collect())
        })
    };
    let (events, counts) = (fields("Events")?, fields("Collected")?);
    let value = |event: &str| -> Option<f64> {
        let column = events.iter().position(|name| *name == event)?;
        counts.get(column)?.parse().ok()
    };
    Some(Raw {
        instructions: value("Ir")?,
        branches: value("Bc")? + value("Bi")?,
        cycles: None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_counters_print_is_understood() {
        let text = "1000,,instructions:u,1,100.00,,\n200,,branches:u,1,100,,\n500,,cycles:u,1,,\n";
        let expected = Raw {
            instructions: 1000.0,
            branches: 200.0,
            cycles: Some(500.0),
        };
        assert_eq!(parse_perf(text), Some(expected));
        let text = text.replace("500,", "<not supported>,");
        assert_eq!(parse_perf(&text).unwrap().cycles, None);
        let text = "<not supported>,,instructions:u,0,100.00,,\n";
        assert_eq!(parse_perf(text), None);
        let text = "==7== Events    : Ir Bc Bcm Bi Bim\n==7== Collected : 90 20 3 4 1\n";
        let expected = Raw {
            instructions: 90.0,
            branches: 24.0,
            cycles: None,
        };
        assert_eq!(parse_callgrind(text), Some(expected));
        assert_eq!(parse_callgrind("==7== command not found"), None);
    }
}
