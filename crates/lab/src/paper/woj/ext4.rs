//! A real ext4 on a volume: FUSE serves the volume as a file, a loop device makes a disk of it, ext4 in mode
//! data=journal is on that.
//!
//! It needs root, `/dev/fuse`, a free loop device and mkfs.ext4; [`missing`] says what is not there. Whatever was
//! set up is taken down when dropped, in reverse order.

use std::fs::OpenOptions;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, Result, bail};
use tempfile::TempDir;
use volume::BlockDevice;
use volume::fuse::{FuseError, Mount, Settings};

/// Tries to unmount what somebody still looks at.
const TRIES: u32 = 50;
const BETWEEN_TRIES: Duration = Duration::from_millis(100);

/// What is missing for it, in words.
pub fn missing() -> Option<String> {
    if !rustix::process::geteuid().is_root() {
        return Some("it must be run as root".to_owned());
    }
    let fuse = OpenOptions::new().read(true).write(true).open("/dev/fuse");
    if let Err(error) = fuse {
        return Some(format!("/dev/fuse can't be opened: {error}"));
    }
    for program in ["losetup", "mkfs.ext4", "mount", "umount"] {
        let mut command = Command::new(program);
        let command = command
            .arg("-V")
            .stdout(Stdio::null())
            .stderr(Stdio::null());
        if command.status().is_err() {
            return Some(format!("{program} can't be run"));
        }
    }
    match run("losetup", &["--find"]) {
        Ok(_) => None,
        Err(error) => Some(format!("there is no loop device: {error}")),
    }
}

/// Runs a program, which must succeed; what it said.
fn run(program: &str, arguments: &[&str]) -> Result<String> {
    let output = Command::new(program)
        .args(arguments)
        .output()
        .with_context(|| format!("running {program}"))?;
    if !output.status.success() {
        let complained = String::from_utf8_lossy(&output.stderr);
        bail!("{program} {}: {}", arguments.join(" "), complained.trim());
    }
    Ok(String::from_utf8_lossy(&output.stdout).trim().to_owned())
}

fn text(path: &Path) -> Result<&str> {
    path.to_str().context("a path that is not UTF-8")
}

/// A disk with ext4 on it.
pub struct Disk {
    // Taken down in this order.
    mounted: Option<PathBuf>,
    attached: Option<String>,
    served: Option<Mount>,
    directory: TempDir,
}

impl Disk {
    /// Serves a volume and makes a file system on it, with a journal of so many bytes.
    ///
    /// # Errors
    /// When something of it does not work.
    pub fn new(device: Arc<dyn BlockDevice>, journal_bytes: u64) -> Result<Self> {
        let directory = tempfile::tempdir().context("making a place to mount at")?;
        let [fuse, root] = ["volume", "root"].map(|name| directory.path().join(name));
        for path in [&fuse, &root] {
            std::fs::create_dir(path).context("making a place to mount at")?;
        }
        let served = Mount::start(device, &fuse, &Settings::default())?;
        let mut disk = Self {
            mounted: None,
            attached: None,
            served: Some(served),
            directory,
        };
        let file = fuse.join("disk");
        let name = run(
            "losetup",
            &[
                "--direct-io=on",
                "--sector-size",
                "4096",
                "--show",
                "--find",
                text(&file)?,
            ],
        )?;
        disk.attached = Some(name.clone());
        let journal = format!("size={}", journal_bytes >> 20);
        // Nothing is left for the kernel to do later.
        let whole = "lazy_itable_init=0,lazy_journal_init=0";
        run(
            "mkfs.ext4",
            &["-q", "-F", "-b", "4096", "-J", &journal, "-E", whole, &name],
        )?;
        Ok(disk)
    }

    /// Mounts it; where its files are.
    ///
    /// # Errors
    /// When the kernel does not want to.
    pub fn mount(&mut self) -> Result<PathBuf> {
        let root = self.directory.path().join("root");
        let name = self.attached.as_deref().context("no loop device")?;
        run(
            "mount",
            &["-t", "ext4", "-o", "data=journal", name, text(&root)?],
        )?;
        self.mounted = Some(root.clone());
        Ok(root)
    }

    /// Unmounts it: everything is in its place then, and the journal empty.
    ///
    /// # Errors
    /// When that does not work.
    pub fn unmount(&mut self) -> Result<()> {
        if let Some(root) = &self.mounted {
            run("umount", &[text(root)?])?;
            self.mounted = None;
        }
        Ok(())
    }

    /// Takes all of it down.
    ///
    /// # Errors
    /// When something of it does not go.
    pub fn close(mut self) -> Result<()> {
        self.unmount()?;
        if let Some(name) = self.attached.take() {
            run("losetup", &["--detach", &name])?;
        }
        self.serve_no_more()
    }

    fn serve_no_more(&mut self) -> Result<()> {
        let Some(mut served) = self.served.take() else {
            return Ok(());
        };
        // A loop device goes when its last user is gone, which may take a moment.
        for _ in 0..TRIES {
            match served.unmount() {
                Err(FuseError::Busy(_)) => std::thread::sleep(BETWEEN_TRIES),
                other => return other.context("ending the mount"),
            }
        }
        bail!("the volume is still in use");
    }
}

impl Drop for Disk {
    fn drop(&mut self) {
        if let Some(root) = self.mounted.take() {
            let flags = rustix::mount::UnmountFlags::DETACH;
            let _ = rustix::mount::unmount(&root, flags);
        }
        if let Some(name) = self.attached.take() {
            let _ = run("losetup", &["--detach", &name]);
        }
        let _ = self.serve_no_more();
    }
}
