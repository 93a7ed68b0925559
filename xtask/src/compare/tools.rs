//! The tools that are compared, and how each is told to do the same.
//!
//! Every tool compresses with zstd, encrypts, and keeps its repository in a local directory.
//! Whatever else it keeps (caches, configuration, logs) goes to a directory of its own.

use std::ffi::{OsStr, OsString};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail};
use serde_json::Value;

use super::measure;

const PASSWORD: &str = "bench-password";

/// A tool for backups.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Tool {
    /// <https://restic.net>
    Restic,
    /// <https://kopia.io>
    Kopia,
    /// This one.
    Onefold,
}

/// Where a tool's repository, its own files and the tree lie during one run.
#[derive(Debug)]
pub struct Place {
    root: PathBuf,
}

impl Place {
    /// An empty place below `scratch`.
    ///
    /// # Errors
    /// When the directories can't be made.
    pub fn make(scratch: &Path, tool: Tool) -> Result<Self> {
        let root = scratch.join(tool.name());
        let place = Self { root };
        for directory in [place.state(), place.target()] {
            fs::create_dir_all(directory)?;
        }
        Ok(place)
    }

    /// The directory that is backed up.
    pub fn tree(&self) -> PathBuf {
        self.root.join("tree")
    }

    /// The repository.
    pub fn repository(&self) -> PathBuf {
        self.root.join("repository")
    }

    /// The home directory and all else that the tool keeps.
    pub fn state(&self) -> PathBuf {
        self.root.join("state")
    }

    /// Where the tree is restored to.
    pub fn target(&self) -> PathBuf {
        self.root.join("target")
    }

    /// What the tool printed last.
    pub fn log(&self) -> PathBuf {
        self.root.join("output.log")
    }

    /// Removes everything.
    ///
    /// # Errors
    /// When that fails.
    pub fn remove(self) -> Result<()> {
        fs::remove_dir_all(&self.root)
            .with_context(|| format!("cannot remove {}", self.root.display()))
    }
}

impl Tool {
    /// All of them.
    pub const ALL: [Tool; 3] = [Tool::Restic, Tool::Kopia, Tool::Onefold];

    /// Its name, and that of its program.
    pub fn name(self) -> &'static str {
        match self {
            Tool::Restic => "restic",
            Tool::Kopia => "kopia",
            Tool::Onefold => "onefold",
        }
    }

    /// The tool of that name.
    ///
    /// # Errors
    /// When there is none.
    pub fn named(name: &str) -> Result<Self> {
        let found = Self::ALL.into_iter().find(|tool| tool.name() == name);
        found.with_context(|| format!("no such tool: {name}"))
    }

    /// Its program: that of the variable, or the one in PATH; ours is the one that
    /// [`Tool::build`] made.
    fn program(self) -> OsString {
        let variable = self.name().to_ascii_uppercase();
        if let Some(program) = std::env::var_os(variable) {
            return program;
        }
        match self {
            Tool::Restic | Tool::Kopia => self.name().into(),
            Tool::Onefold => built_program().map_or_else(|_| self.name().into(), Into::into),
        }
    }

    /// Makes sure that the program is there: ours is built, unless its variable names one.
    ///
    /// # Errors
    /// When it does not build, or is not there.
    pub fn build(self) -> Result<()> {
        if self == Tool::Onefold && std::env::var_os("ONEFOLD").is_none() {
            let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
            let arguments = ["build", "--release", "--quiet", "--package", "onefold"];
            let status = Command::new(cargo).args(arguments).status()?;
            if !status.success() {
                bail!("onefold does not build");
            }
        }
        self.version()?;
        Ok(())
    }

    /// The version it says it is.
    ///
    /// # Errors
    /// When it can't be run.
    pub fn version(self) -> Result<String> {
        let argument = if self == Tool::Restic {
            "version"
        } else {
            "--version"
        };
        let output = Command::new(self.program()).arg(argument).output()?;
        let text = String::from_utf8_lossy(&output.stdout);
        let mut words = text
            .split_whitespace()
            .map(|word| word.trim_start_matches('v'));
        let version = words.find(|word| word.starts_with(|c: char| c.is_ascii_digit()));
        version.map(str::to_owned).context("it tells no version")
    }

    /// A command of the tool on the repository in `place`.
    fn command<Argument: AsRef<OsStr>>(
        self,
        place: &Place,
        arguments: impl IntoIterator<Item = Argument>,
    ) -> Command {
        let state = place.state();
        let cache = state.join("cache");
        let mut command = Command::new(self.program());
        command
            .env("HOME", &state)
            .env("XDG_CACHE_HOME", &cache)
            .env("XDG_CONFIG_HOME", state.join("config"))
            .env("TZ", "UTC");
        match self {
            Tool::Restic => command
                .env("RESTIC_REPOSITORY", place.repository())
                .env("RESTIC_PASSWORD", PASSWORD)
                .env("RESTIC_CACHE_DIR", &cache),
            Tool::Kopia => command
                .env("KOPIA_PASSWORD", PASSWORD)
                .env("KOPIA_CONFIG_PATH", state.join("repository.config"))
                .env("KOPIA_CACHE_DIRECTORY", &cache)
                .env("KOPIA_LOG_DIR", state.join("log"))
                .env("KOPIA_CHECK_FOR_UPDATES", "false"),
            Tool::Onefold => command
                .env("ONEFOLD_REPO", place.repository())
                .env("ONEFOLD_PASSWORD", PASSWORD),
        };
        command.args(arguments);
        command
    }

    /// Makes an empty repository.
    ///
    /// # Errors
    /// When the tool fails.
    pub fn set_up(self, place: &Place) -> Result<()> {
        let log = place.log();
        if self != Tool::Kopia {
            return measure::run(&mut self.command(place, ["init"]), &log);
        }
        let mut create = self.command(place, ["repository", "create", "filesystem", "--path"]);
        create.arg(place.repository());
        create
            .arg("--cache-directory")
            .arg(place.state().join("cache"));
        measure::run(&mut create, &log)?;
        let policy = "policy set --global --keep-latest 1000 --compression zstd";
        measure::run(&mut self.command(place, policy.split(' ')), &log)
    }

    /// Backs up the tree.
    pub fn backup(self, place: &Place) -> Command {
        let verb: &[&str] = match self {
            Tool::Kopia => &["snapshot", "create"],
            Tool::Restic | Tool::Onefold => &["backup"],
        };
        let mut command = self.command(place, verb);
        command.arg(place.tree());
        command
    }

    /// Restores the latest snapshot to `target`.
    ///
    /// # Errors
    /// When the tool does not tell its latest snapshot.
    pub fn restore(self, place: &Place, target: &Path) -> Result<Command> {
        let mut command = match self {
            Tool::Restic => self.command(place, ["restore", "latest", "--target"]),
            Tool::Kopia => {
                let id = self.latest_of_kopia(place)?;
                self.command(place, ["snapshot", "restore", &id])
            }
            Tool::Onefold => self.command(place, ["restore", "latest"]),
        };
        command.arg(target);
        Ok(command)
    }

    fn latest_of_kopia(self, place: &Place) -> Result<String> {
        let mut command = self.command(place, ["snapshot", "list", "--json"]);
        let output = command.arg(place.tree()).output()?;
        let list: Value = serde_json::from_slice(&output.stdout)?;
        let last = list.as_array().and_then(|list| list.last());
        let Some(id) = last.and_then(|last| last["id"].as_str()) else {
            bail!("kopia lists no snapshot");
        };
        Ok(id.to_owned())
    }

    /// Where in `target` the tree is: tools restore whole paths, or the contents alone.
    pub fn restored_tree(self, place: &Place, target: &Path) -> PathBuf {
        let tree = place.tree();
        let below = tree.strip_prefix("/").unwrap_or(&tree);
        match target.join(below) {
            whole_path if whole_path.is_dir() => whole_path,
            _ => target.to_owned(),
        }
    }

    /// Reads and checks everything stored.
    pub fn check(self, place: &Place) -> Command {
        let verb: &[&str] = match self {
            Tool::Kopia => &["snapshot", "verify", "--verify-files-percent=100"],
            Tool::Restic | Tool::Onefold => &["check", "--read-data"],
        };
        self.command(place, verb)
    }
}

/// Where cargo puts the program when it builds it for release: beside the directory that this
/// program lies in.
fn built_program() -> Result<PathBuf> {
    let xtask = std::env::current_exe()?;
    let target = xtask
        .ancestors()
        .nth(2)
        .context("xtask lies in no target directory")?;
    Ok(target.join("release").join(Tool::Onefold.name()))
}
