//! A control group whose memory is limited, for this process and as long as it needs it: what the
//! process takes and the pages of its files together (Linux, versions 1 and 2; wants the rights to
//! make one, mostly root's).
//!
//! Enters: a limit. Leaves: the process in a group of its own; dropping it brings the process back
//! to where it was and removes the group.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, bail};

/// The files of one version.
#[derive(Debug, Clone, Copy)]
struct Files {
    limit: &'static str,
    peak: &'static str,
    /// How often the limit was met.
    limited: &'static str,
}

const VERSION_1: Files = Files {
    limit: "memory.limit_in_bytes",
    peak: "memory.max_usage_in_bytes",
    limited: "memory.failcnt",
};

const VERSION_2: Files = Files {
    limit: "memory.max",
    peak: "memory.peak",
    limited: "memory.events",
};

/// The group that this process is in.
#[derive(Debug)]
pub struct ControlGroup {
    path: PathBuf,
    /// Where the process came from.
    home: PathBuf,
    files: Files,
}

impl ControlGroup {
    /// Makes a group with that limit and moves this process into it.
    ///
    /// # Errors
    /// When the system has no such groups or does not let us.
    pub fn enter(limit_bytes: u64) -> anyhow::Result<Self> {
        let own = fs::read_to_string("/proc/self/cgroup").context("cannot find the own group")?;
        let version_1 = Path::new("/sys/fs/cgroup/memory");
        let (mount, files) = if version_1.join(VERSION_1.limit).exists() || version_1.is_dir() {
            (version_1, VERSION_1)
        } else {
            (Path::new("/sys/fs/cgroup"), VERSION_2)
        };
        let Some(home) = own_group(&own, files.limit == VERSION_1.limit) else {
            bail!("no control group of this process limits memory");
        };
        let home = mount.join(home.trim_start_matches('/'));
        // Within a container the path is that of the host: then the group's root is home.
        let home = if home.is_dir() {
            home
        } else {
            mount.to_owned()
        };
        let parent = if files.limit == VERSION_1.limit {
            home.clone()
        } else {
            // A group with processes has no children with limits: ours stands beside it.
            home.parent()
                .filter(|parent| parent.starts_with(mount))
                .unwrap_or(mount)
                .to_owned()
        };
        let path = parent.join(format!("onefold-lab-{}", std::process::id()));
        fs::create_dir(&path)
            .with_context(|| format!("cannot make the group {}", path.display()))?;
        let group = Self { path, home, files };
        group.write(group.files.limit, &limit_bytes.to_string())?;
        group.write("cgroup.procs", &std::process::id().to_string())?;
        Ok(group)
    }

    /// Most memory that was in use, page cache included, if the system says so.
    pub fn peak_bytes(&self) -> Option<u64> {
        let peak = fs::read_to_string(self.path.join(self.files.peak)).ok()?;
        peak.trim().parse().ok()
    }

    /// How often the limit was met, so that pages had to be given back.
    pub fn limited(&self) -> Option<u64> {
        let text = fs::read_to_string(self.path.join(self.files.limited)).ok()?;
        count_of(&text)
    }

    fn write(&self, file: &str, value: &str) -> anyhow::Result<()> {
        let path = self.path.join(file);
        fs::write(&path, value).with_context(|| format!("cannot write {}", path.display()))
    }
}

impl Drop for ControlGroup {
    fn drop(&mut self) {
        // What fails here leaves an empty group, which does no harm.
        let home = self.home.join("cgroup.procs");
        let _ = fs::write(home, std::process::id().to_string());
        let _ = fs::remove_dir(&self.path);
    }
}

/// The path of the group that limits the memory of a process, from /proc/…/cgroup.
fn own_group(own: &str, is_version_1: bool) -> Option<&str> {
    own.lines().find_map(|line| {
        let mut fields = line.splitn(3, ':').skip(1);
        let (controllers, path) = (fields.next()?, fields.next()?);
        let is_it = if is_version_1 {
            controllers.split(',').any(|name| name == "memory")
        } else {
            controllers.is_empty()
        };
        is_it.then_some(path)
    })
}

/// A number alone, or the one behind `max` in a list.
fn count_of(text: &str) -> Option<u64> {
    let listed = text.lines().find_map(|line| line.strip_prefix("max "));
    listed.unwrap_or(text).trim().parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn groups_of_both_versions_are_found() {
        let both = "5:memory,cpu:/jobs/7\n2:freezer:/\n0::/user.slice\n";
        assert_eq!(own_group(both, true), Some("/jobs/7"));
        assert_eq!(own_group(both, false), Some("/user.slice"));
        assert_eq!(own_group("2:freezer:/\n", true), None);
        assert_eq!(count_of("17\n"), Some(17));
        assert_eq!(count_of("low 0\nhigh 0\nmax 12\noom 0\n"), Some(12));
    }
}
