//! Who is compared: a tool, or ours with some options.
//!
//! Enters: a list such as `kopia,onefold,onefold:--compression=1:--memory=64MiB,onefold-plain`:
//! entries with commas between them, options behind colons. A part that begins with a digit
//! belongs to the option before it (`onefold:--chunk-sizes=4K,16K,64K`). Leaves: contestants, each
//! a row of the report. Options that shape a repository go to `init`, the others to every
//! command.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail};

use super::tools::Tool;

/// Ours without encryption, and so without deriving a key from a password.
const PLAIN: &str = "onefold-plain";

const NO_ENCRYPTION: &str = "--no-encryption";

/// Options of `onefold init` alone.
const INIT_OPTIONS: [&str; 11] = [
    NO_ENCRYPTION,
    "--algorithm",
    "--chunk-sizes",
    "--normalization",
    "--chunker-parameter",
    "--acceleration",
    "--segment-size",
    "--structure",
    "--container-size",
    "--group-size",
    "--allow-unkeyed-chunker",
];

/// A tool, the program that stands for it, and what it is told beside.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Contestant {
    /// Which tool.
    pub tool: Tool,
    /// As it was asked for; distinct in a comparison.
    pub label: String,
    /// Goes with every command.
    pub options: Vec<String>,
    /// Goes with the command that makes a repository.
    pub init_options: Vec<String>,
    /// What is run.
    pub program: OsString,
}

impl Contestant {
    /// A tool as it is.
    pub fn new(tool: Tool) -> Self {
        Self {
            tool,
            label: tool.name().to_owned(),
            options: Vec::new(),
            init_options: Vec::new(),
            program: tool.name().into(),
        }
    }

    /// One entry of the list.
    fn parse(entry: &str) -> Result<Self> {
        let mut words = entry.split(':');
        let name = words.next().unwrap_or_default();
        let mut contestant = if name == PLAIN {
            let mut plain = Self::new(Tool::Onefold);
            plain.init_options.push(NO_ENCRYPTION.to_owned());
            plain
        } else {
            Self::new(Tool::named(name)?)
        };
        entry.clone_into(&mut contestant.label);
        for option in words {
            if contestant.tool.is_peer() {
                bail!("{entry}: only onefold takes options");
            }
            if !option.starts_with("--") {
                bail!("{entry}: options are like --compression=1");
            }
            let option_name = option.split('=').next().unwrap_or_default();
            let of_init = INIT_OPTIONS.contains(&option_name);
            let options = if of_init {
                &mut contestant.init_options
            } else {
                &mut contestant.options
            };
            options.push(option.to_owned());
        }
        Ok(contestant)
    }

    /// Those of a list.
    ///
    /// # Errors
    /// When a tool is unknown, an option can't be one, or an entry stands twice.
    pub fn list(text: &str) -> Result<Vec<Self>> {
        let mut entries: Vec<String> = Vec::new();
        for part in text.split(',') {
            match entries.last_mut() {
                Some(entry) if part.starts_with(|c: char| c.is_ascii_digit()) => {
                    *entry = format!("{entry},{part}");
                }
                _ => entries.push(part.to_owned()),
            }
        }
        let mut contestants: Vec<Self> = Vec::new();
        for entry in entries {
            if contestants.iter().any(|other| other.label == entry) {
                bail!("{entry} stands twice in the list of tools");
            }
            contestants.push(Self::parse(&entry)?);
        }
        Ok(contestants)
    }

    /// Finds the program: that of the tool's variable, the one among those `installed`, ours
    /// freshly built, or the one in PATH; and makes sure that it runs.
    ///
    /// # Errors
    /// When it does not build, or is not there.
    pub fn find(&mut self, installed: Option<&Path>) -> Result<()> {
        let variable = self.tool.name().to_ascii_uppercase();
        let among_installed = installed.map(|directory| directory.join("bin"));
        self.program = if let Some(program) = std::env::var_os(variable) {
            program
        } else if self.tool == Tool::Onefold {
            build_onefold()?.into()
        } else {
            among_installed
                .map(|directory| directory.join(self.tool.name()))
                .filter(|program| program.exists())
                .map_or_else(|| self.tool.name().into(), Into::into)
        };
        self.version()?;
        Ok(())
    }

    /// Is there a password?
    pub fn is_encrypted(&self) -> bool {
        self.init_options
            .iter()
            .all(|option| option != NO_ENCRYPTION)
    }

    /// The version it says it is.
    ///
    /// # Errors
    /// When it can't be run.
    pub fn version(&self) -> Result<String> {
        self.tool.version_of(&self.program)
    }
}

/// Builds onefold for release; leaves the program.
///
/// # Errors
/// When it does not build.
pub fn build_onefold() -> Result<PathBuf> {
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let arguments = ["build", "--release", "--quiet", "--package", "onefold"];
    let status = Command::new(cargo).args(arguments).status()?;
    if !status.success() {
        bail!("onefold does not build");
    }
    // Beside the directory that this program lies in.
    let xtask = std::env::current_exe()?;
    let target = xtask
        .ancestors()
        .nth(2)
        .context("xtask lies in no target directory")?;
    Ok(target.join("release").join(Tool::Onefold.name()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_have_options_behind_colons() {
        let text = "kopia,onefold,onefold:--compression=1:--group-size=4M,\
                    onefold:--chunk-sizes=4K,16K,64K,onefold-plain:--threads=1";
        let list = Contestant::list(text).unwrap();
        let labels: Vec<&str> = list.iter().map(|one| one.label.as_str()).collect();
        assert_eq!(labels[..2], ["kopia", "onefold"]);
        assert_eq!(labels[3], "onefold:--chunk-sizes=4K,16K,64K");
        assert_eq!(list[0], Contestant::new(Tool::Kopia));
        assert_eq!(list[2].options, ["--compression=1"]);
        assert_eq!(list[2].init_options, ["--group-size=4M"]);
        assert_eq!(list[3].init_options, ["--chunk-sizes=4K,16K,64K"]);
        assert_eq!(list[4].tool, Tool::Onefold);
        assert_eq!(list[4].options, ["--threads=1"]);
        assert_eq!(list[4].init_options, ["--no-encryption"]);
        assert!(list[2].is_encrypted() && !list[4].is_encrypted());
    }

    #[test]
    fn wrong_lists_say_what_is_wrong() {
        for (text, words) in [
            ("tar", "no such tool: tar"),
            ("", "no such tool"),
            ("restic:--compression=max", "only onefold takes options"),
            ("onefold:fast", "options are like"),
            ("borg,borg", "stands twice"),
        ] {
            let error = Contestant::list(text).unwrap_err().to_string();
            assert!(error.contains(words), "{text}: {error}");
        }
    }
}
