//! The tools that are compared, and how each is told to do the same.
//!
//! Every tool compresses with zstd, encrypts (but for `onefold-plain`), and keeps its repository
//! in a local directory. Whatever else it keeps (caches, configuration, logs) goes to a directory
//! of its own, and what the caller's environment tells it is taken away.

use std::ffi::OsStr;
use std::process::Command;

use anyhow::{Context, Result, bail};
use serde_json::Value;

use super::contestant::Contestant;
use super::measure;
use super::place::Place;

const PASSWORD: &str = "bench-password";

/// A tool for backups.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Tool {
    /// <https://restic.net>
    Restic,
    /// <https://rustic.cli.rs>
    Rustic,
    /// <https://kopia.io>
    Kopia,
    /// <https://www.borgbackup.org>
    Borg,
    /// This one.
    Onefold,
}

impl Tool {
    /// All of them.
    pub const ALL: [Tool; 5] = [
        Tool::Restic,
        Tool::Rustic,
        Tool::Kopia,
        Tool::Borg,
        Tool::Onefold,
    ];

    /// Its name, and that of its program.
    pub fn name(self) -> &'static str {
        match self {
            Tool::Restic => "restic",
            Tool::Rustic => "rustic",
            Tool::Kopia => "kopia",
            Tool::Borg => "borg",
            Tool::Onefold => "onefold",
        }
    }

    /// Is it another one than ours?
    pub fn is_peer(self) -> bool {
        self != Tool::Onefold
    }

    /// The tool of that name.
    ///
    /// # Errors
    /// When there is none.
    pub fn named(name: &str) -> Result<Self> {
        let found = Self::ALL.into_iter().find(|tool| tool.name() == name);
        found.with_context(|| format!("no such tool: {name}"))
    }

    /// The version that a program of this tool says it is.
    ///
    /// # Errors
    /// When it can't be run.
    pub fn version_of(self, program: &OsStr) -> Result<String> {
        let argument = if self == Tool::Restic {
            "version"
        } else {
            "--version"
        };
        let output = Command::new(program)
            .arg(argument)
            .output()
            .with_context(|| format!("cannot run {}", program.display()))?;
        let text = String::from_utf8_lossy(&output.stdout);
        version_in(&text).context("it tells no version")
    }
}

/// The first word that begins like a number.
fn version_in(text: &str) -> Option<String> {
    let mut words = text
        .split_whitespace()
        .map(|word| word.trim_start_matches('v'));
    let version = words.find(|word| word.starts_with(|c: char| c.is_ascii_digit()))?;
    Some(version.to_owned())
}

impl Contestant {
    /// A command of the tool on the repository in `place`.
    fn command<Argument: AsRef<OsStr>>(
        &self,
        place: &Place,
        arguments: impl IntoIterator<Item = Argument>,
    ) -> Command {
        let state = place.state();
        let cache = state.join("cache");
        let mut command = Command::new(&self.program);
        for (name, _) in std::env::vars_os() {
            if is_of_a_tool(&name) {
                command.env_remove(name);
            }
        }
        command
            .env("HOME", &state)
            .env("XDG_CACHE_HOME", &cache)
            .env("XDG_CONFIG_HOME", state.join("config"))
            .env("TZ", "UTC");
        match self.tool {
            Tool::Restic => command
                .env("RESTIC_REPOSITORY", place.repository())
                .env("RESTIC_PASSWORD", PASSWORD)
                .env("RESTIC_CACHE_DIR", &cache),
            Tool::Rustic => command
                .env("RUSTIC_REPOSITORY", place.repository())
                .env("RUSTIC_PASSWORD", PASSWORD)
                .env("RUSTIC_CACHE_DIR", &cache),
            Tool::Kopia => command
                .env("KOPIA_PASSWORD", PASSWORD)
                .env("KOPIA_CONFIG_PATH", state.join("repository.config"))
                .env("KOPIA_CACHE_DIRECTORY", &cache)
                .env("KOPIA_LOG_DIR", state.join("log"))
                .env("KOPIA_CHECK_FOR_UPDATES", "false"),
            Tool::Borg => command
                .env("BORG_REPO", place.repository())
                .env("BORG_PASSPHRASE", PASSWORD)
                .env("BORG_BASE_DIR", &state)
                .env("BORG_CACHE_DIR", cache.join("borg")),
            Tool::Onefold => command.env("ONEFOLD_REPO", place.repository()),
        };
        if self.tool == Tool::Onefold && self.is_encrypted() {
            command.env("ONEFOLD_PASSWORD", PASSWORD);
        }
        command.args(&self.options).args(arguments);
        command
    }

    /// Makes an empty repository.
    ///
    /// # Errors
    /// When the tool fails.
    pub fn set_up(&self, place: &Place) -> Result<()> {
        let log = place.log();
        let mut create = match self.tool {
            Tool::Restic | Tool::Rustic | Tool::Onefold => self.command(place, ["init"]),
            // Of its modes the faster one where processors have instructions for SHA-256.
            Tool::Borg => self.command(place, ["init", "--encryption", "repokey"]),
            Tool::Kopia => {
                let verb = ["repository", "create", "filesystem", "--path"];
                let mut create = self.command(place, verb);
                create
                    .arg(place.repository())
                    .arg("--cache-directory")
                    .arg(place.state().join("cache"));
                create
            }
        };
        create.args(&self.init_options);
        measure::run(&mut create, &log)?;
        if self.tool == Tool::Kopia {
            // It keeps ten snapshots of a path unless told otherwise.
            let policy = "policy set --global --keep-latest 1000 --compression zstd";
            measure::run(&mut self.command(place, policy.split(' ')), &log)?;
        }
        Ok(())
    }

    /// Backs up the tree.
    pub fn backup(&self, place: &Place) -> Command {
        let verb: &[&str] = match self.tool {
            Tool::Kopia => &["snapshot", "create"],
            Tool::Borg => &["create", "--compression", "zstd,3", "::{uuid4}"],
            Tool::Restic | Tool::Rustic | Tool::Onefold => &["backup"],
        };
        let mut command = self.command(place, verb);
        command.arg(place.tree());
        command
    }

    /// Restores the latest snapshot to the place's target.
    ///
    /// # Errors
    /// When the tool does not tell its latest snapshot.
    pub fn restore(&self, place: &Place) -> Result<Command> {
        let target = place.target();
        let mut command = match self.tool {
            Tool::Restic => self.command(place, ["restore", "latest", "--target"]),
            Tool::Rustic | Tool::Onefold => self.command(place, ["restore", "latest"]),
            Tool::Kopia => {
                let id = self.latest_of_kopia(place)?;
                self.command(place, ["snapshot", "restore", &id])
            }
            Tool::Borg => {
                // It restores to where it is run.
                let archive = format!("::{}", self.latest_of_borg(place)?);
                let mut command = self.command(place, ["extract", &archive]);
                command.current_dir(target);
                return Ok(command);
            }
        };
        command.arg(target);
        Ok(command)
    }

    fn latest_of_kopia(&self, place: &Place) -> Result<String> {
        let mut command = self.command(place, ["snapshot", "list", "--json"]);
        let output = command.arg(place.tree()).output()?;
        let list: Value = serde_json::from_slice(&output.stdout)?;
        let last = list.as_array().and_then(|list| list.last());
        let Some(id) = last.and_then(|last| last["id"].as_str()) else {
            bail!("kopia lists no snapshot");
        };
        Ok(id.to_owned())
    }

    fn latest_of_borg(&self, place: &Place) -> Result<String> {
        let mut command = self.command(place, ["list", "--short", "--last", "1"]);
        let output = command.output()?;
        let name = String::from_utf8_lossy(&output.stdout).trim().to_owned();
        if name.is_empty() {
            bail!("borg lists no archive");
        }
        Ok(name)
    }

    /// How many snapshots the repository holds.
    ///
    /// # Errors
    /// When the tool's answer can't be read.
    pub fn snapshots(&self, place: &Place) -> Result<usize> {
        let verb: &[&str] = match self.tool {
            Tool::Kopia => &["snapshot", "list", "--json"],
            Tool::Borg => &["list", "--json"],
            Tool::Restic | Tool::Rustic | Tool::Onefold => &["snapshots", "--json"],
        };
        let output = self.command(place, verb).output()?;
        let text = String::from_utf8_lossy(&output.stdout);
        snapshots_in(self.tool, &text).with_context(|| format!("of snapshots it says {text}"))
    }

    /// Reads and checks everything stored.
    pub fn check(&self, place: &Place) -> Command {
        let verb: &[&str] = match self.tool {
            Tool::Kopia => &["snapshot", "verify", "--verify-files-percent=100"],
            Tool::Borg => &["check", "--verify-data"],
            Tool::Restic | Tool::Rustic | Tool::Onefold => &["check", "--read-data"],
        };
        self.command(place, verb)
    }
}

/// Does a variable of the environment tell one of the tools what to do?
fn is_of_a_tool(name: &OsStr) -> bool {
    let name = name.to_string_lossy();
    Tool::ALL.into_iter().any(|tool| {
        let prefix = tool.name().to_ascii_uppercase();
        name.strip_prefix(&prefix)
            .is_some_and(|rest| rest.starts_with('_'))
    })
}

/// Counts the snapshots of a listing in JSON.
fn snapshots_in(tool: Tool, text: &str) -> Option<usize> {
    let text = text.trim();
    if tool == Tool::Onefold {
        // One object a line.
        let lines = text.lines().map(serde_json::from_str::<Value>);
        let listed = lines
            .filter_map(Result::ok)
            .filter(|line| line["event"] == "snapshot");
        return Some(listed.count());
    }
    let value: Value = serde_json::from_str(text).ok()?;
    let list = if tool == Tool::Borg {
        &value["archives"]
    } else {
        &value
    };
    // Those of rustic stand in groups.
    let counts = list.as_array()?.iter().map(|one| {
        let group = one["snapshots"].as_array();
        group.map_or(1, Vec::len)
    });
    Some(counts.sum())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_found() {
        for (text, version) in [
            ("restic 0.19.1 compiled with go1.26", "0.19.1"),
            ("0.22.3 build: - from: ", "0.22.3"),
            ("borg 1.4.5", "1.4.5"),
            ("rustic v0.11.4-1-gabc", "0.11.4-1-gabc"),
        ] {
            assert_eq!(version_in(text).as_deref(), Some(version));
        }
        assert_eq!(version_in("nothing"), None);
    }

    #[test]
    fn snapshots_are_counted() {
        for (tool, text, count) in [
            (Tool::Restic, r#"[{"id":"a"},{"id":"b"}]"#, Some(2)),
            (Tool::Kopia, "[]", Some(0)),
            (
                Tool::Rustic,
                r#"[{"group_key":{},"snapshots":[{},{},{}]}]"#,
                Some(3),
            ),
            (Tool::Borg, r#"{"archives":[{"name":"a"}]}"#, Some(1)),
            (
                Tool::Onefold,
                "{\"event\":\"snapshot\"}\n{\"event\":\"summary\"}\n",
                Some(1),
            ),
            (Tool::Kopia, "error", None),
        ] {
            assert_eq!(snapshots_in(tool, text), count, "{text}");
        }
    }

    #[test]
    fn settings_of_tools_are_told_from_others() {
        for name in ["BORG_REPO", "RESTIC_COMPRESSION", "ONEFOLD_PASSWORD"] {
            assert!(is_of_a_tool(OsStr::new(name)), "{name}");
        }
        for name in ["BORG", "HOME", "RESTICTION"] {
            assert!(!is_of_a_tool(OsStr::new(name)), "{name}");
        }
    }
}
