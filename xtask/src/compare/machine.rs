//! Where and of what commit figures were measured, and how busy the machine was.

use std::fs;
use std::process::Command;

use serde_json::{Value, json};

/// What a figure is worth little without.
#[derive(Debug)]
pub struct Machine {
    cores: usize,
    /// Model of the processor.
    processor: String,
    /// Of the working tree; `+` when there are changes in it.
    commit: String,
    /// Processes that wanted to run, mean of a minute, at the start and at the end.
    loads: Vec<f64>,
}

impl Machine {
    /// As it is now.
    pub fn here() -> Self {
        let cpuinfo = fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
        Self {
            cores: std::thread::available_parallelism().map_or(1, usize::from),
            processor: processor(&cpuinfo),
            commit: commit(),
            loads: load().into_iter().collect(),
        }
    }

    /// Takes note of how busy the machine is now.
    pub fn note_load(&mut self) {
        self.loads.extend(load());
    }

    /// For people.
    pub fn text(&self) -> String {
        let loads: Vec<_> = self.loads.iter().map(|load| format!("{load:.1}")).collect();
        format!(
            "{} cores, {}; load {}; commit {}",
            self.cores,
            self.processor,
            loads.join(" to "),
            self.commit
        )
    }

    /// For programs.
    pub fn json(&self) -> Value {
        json!({
            "cores": self.cores,
            "processor": self.processor,
            "commit": self.commit,
            "loads": self.loads,
        })
    }
}

fn load() -> Option<f64> {
    let text = fs::read_to_string("/proc/loadavg").ok()?;
    text.split_whitespace().next()?.parse().ok()
}

fn processor(cpuinfo: &str) -> String {
    let mut lines = cpuinfo.lines().filter_map(|line| line.split_once(':'));
    lines
        .find(|(name, _)| name.trim() == "model name")
        .map_or_else(
            || "processor unknown".to_owned(),
            |(_, model)| model.trim().to_owned(),
        )
}

fn commit() -> String {
    let git = |arguments: &[&str]| {
        let output = Command::new("git").args(arguments).output().ok()?;
        let text = String::from_utf8_lossy(&output.stdout).trim().to_owned();
        output.status.success().then_some(text)
    };
    let Some(commit) = git(&["rev-parse", "--short", "HEAD"]) else {
        return "unknown".to_owned();
    };
    let changes = git(&["status", "--porcelain", "--untracked-files=no"]);
    let mark = if changes.is_none_or(|changes| changes.is_empty()) {
        ""
    } else {
        "+"
    };
    format!("{commit}{mark}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn processors_are_named() {
        let text = "processor\t: 0\nmodel name\t: Some CPU @ 2 GHz\nflags\t: a b\n";
        assert_eq!(processor(text), "Some CPU @ 2 GHz");
        assert_eq!(processor("flags : a"), "processor unknown");
    }
}
