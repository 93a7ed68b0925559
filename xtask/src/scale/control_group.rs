//! Runs programs where they can't have more memory than they should: in a control group of Linux,
//! of version 1 or 2, which counts what they read from files as well.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail};

/// Where groups that limit memory are made, and what their limit is called.
const PLACES: [(&str, &str, &str); 2] = [
    (
        "/sys/fs/cgroup/memory",
        "memory.limit_in_bytes",
        "memory.max_usage_in_bytes",
    ),
    ("/sys/fs/cgroup", "memory.max", "memory.peak"),
];

/// A group; removed at the end.
#[derive(Debug)]
pub struct ControlGroup {
    directory: PathBuf,
    peak: &'static str,
}

impl ControlGroup {
    /// A group of at most so many bytes.
    ///
    /// # Errors
    /// When the system has none, or we may not make one.
    pub fn new(limit_bytes: u64) -> Result<Self> {
        for (place, limit, peak) in PLACES {
            let is_there = Path::new(place).join("cgroup.procs").exists();
            let directory = Path::new(place).join(format!("onefold-{}", std::process::id()));
            if !is_there || fs::create_dir(&directory).is_err() {
                continue;
            }
            let group = Self { directory, peak };
            let limit = group.directory.join(limit);
            fs::write(&limit, limit_bytes.to_string())
                .with_context(|| format!("cannot set {}", limit.display()))?;
            return Ok(group);
        }
        bail!("no control group that limits memory can be made here (it takes root)")
    }

    /// The same command, in the group.
    pub fn wrap(&self, command: &Command) -> Command {
        let mut wrapped = Command::new("sh");
        let enter = "echo $$ > \"$1\" && shift && exec \"$@\"";
        wrapped
            .args(["-c", enter, "sh"])
            .arg(self.directory.join("cgroup.procs"))
            .arg(command.get_program())
            .args(command.get_args());
        for (name, value) in command.get_envs() {
            if let Some(value) = value {
                wrapped.env(name, value);
            }
        }
        wrapped
    }

    /// The most that the group had, files that were read included; nothing where the system does not say.
    pub fn peak_bytes(&self) -> Option<u64> {
        let text = fs::read_to_string(self.directory.join(self.peak)).ok()?;
        text.trim().parse().ok()
    }
}

impl Drop for ControlGroup {
    fn drop(&mut self) {
        // It stays when something still runs in it; then somebody will want to see it.
        let _ = fs::remove_dir(&self.directory);
    }
}
