//! Programs that tests of file systems start.

use std::fs::OpenOptions;
use std::path::Path;
use std::process::{Command, Output, Stdio};
use std::time::Duration;

/// The bit of the right to mount among a process's capabilities.
const CAP_SYS_ADMIN: u64 = 1 << 21;

/// Whether all that is needed is there; if not, what is missing.
pub fn all_there() -> Result<(), String> {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let capabilities = status.lines().find_map(|line| line.strip_prefix("CapEff:"));
    let capabilities = capabilities.and_then(|hex| u64::from_str_radix(hex.trim(), 16).ok());
    if capabilities.is_none_or(|bits| bits & CAP_SYS_ADMIN == 0) {
        return Err("the right to mount is missing".to_owned());
    }
    let fuse = OpenOptions::new().read(true).write(true).open("/dev/fuse");
    fuse.map_err(|error| format!("/dev/fuse: {error}"))?;
    let needed = ["losetup", "mke2fs", "e2fsck", "mount", "umount"];
    if let Some(program) = needed.into_iter().find(|program| !is_there(program)) {
        return Err(format!("{program} is missing"));
    }
    let free = Command::new("losetup").arg("--find").output();
    if !free.is_ok_and(|output| output.status.success()) {
        return Err("there is no loop device".to_owned());
    }
    Ok(())
}

/// Whether a program can be started.
pub fn is_there(program: &str) -> bool {
    let nothing = Stdio::null;
    Command::new(program)
        .arg("-V")
        .stdin(nothing())
        .stdout(nothing())
        .stderr(nothing())
        .status()
        .is_ok()
}

fn told(program: &str, arguments: &[&str], output: &Output) -> String {
    let said = String::from_utf8_lossy(&output.stdout);
    let complained = String::from_utf8_lossy(&output.stderr);
    format!("{program} {arguments:?}: {said}{complained}")
}

fn start(program: &str, arguments: &[&str]) -> Output {
    let output = Command::new(program).args(arguments).output();
    output.unwrap_or_else(|error| panic!("{program}: {error}"))
}

/// Runs a program; what it said, an error if it failed.
pub fn try_run(program: &str, arguments: &[&str]) -> Result<String, String> {
    let output = start(program, arguments);
    if !output.status.success() {
        return Err(told(program, arguments, &output));
    }
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}

/// Runs a program, which must succeed; what it said.
pub fn run(program: &str, arguments: &[&str]) -> String {
    try_run(program, arguments).unwrap_or_else(|error| panic!("{error}"))
}

/// Tries until it works: a program that another test starts has for a moment all files open that this one has,
/// and then nothing can be unmounted.
pub fn patiently<E: std::fmt::Display>(mut work: impl FnMut() -> Result<(), E>) {
    for _ in 0..100 {
        if work().is_ok() {
            return;
        }
        std::thread::sleep(Duration::from_millis(50));
    }
    work().unwrap_or_else(|error| panic!("{error}"));
}

/// That `e2fsck` finds nothing in an image, with its journal beside it or inside. An error is what it says.
pub fn check_clean(image: &Path, journal: Option<&Path>) -> Result<(), String> {
    let mut arguments = vec!["-f", "-n"];
    if let Some(journal) = journal {
        arguments.extend(["-j", journal.to_str().unwrap()]);
    }
    arguments.push(image.to_str().unwrap());
    try_run("e2fsck", &arguments).map(drop)
}

/// That `e2fsck` only has to finish what the journal says: it replays it, and mends what a crash may leave.
pub fn replay(image: &Path) -> Result<(), String> {
    let arguments = ["-f", "-p", image.to_str().unwrap()];
    let output = start("e2fsck", &arguments);
    match output.status.code() {
        Some(0 | 1) => Ok(()),
        _ => Err(told("e2fsck", &arguments, &output)),
    }
}
