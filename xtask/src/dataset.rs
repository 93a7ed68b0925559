//! `dataset source-tree`: 16 successive releases of a large C source tree, OpenSSL 3.0.0 to
//! 3.5.2, as `v01` … `v16`: about 58,000 files, 660 MB.
//!
//! The sources come through `cargo vendor` from the crate `openssl-src`, which carries the
//! whole upstream tree: whoever can build onefold can fetch them. Nothing is built. Running it
//! again fills in what is missing and verifies everything.
//!
//! All entries of a version get one time, 90 days after the version before, as in an unpacked
//! release (files of crates all carry the same made-up time, which a tool that goes by size and
//! time would read as "unchanged"), and plain permissions, whatever the umask.

use std::fs::{self, File, FileTimes, Permissions};
use std::io::{self, Write};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, SystemTime};

use anyhow::{Context, Result, bail};

/// Releases of `openssl-src`; behind the plus the upstream version.
const RELEASES: [&str; 16] = [
    "300.0.2+3.0.0",
    "300.0.5+3.0.2",
    "300.0.9+3.0.5",
    "300.0.12+3.0.8",
    "300.1.0+3.1.0",
    "300.1.3+3.1.2",
    "300.1.6+3.1.4",
    "300.2.0+3.2.0",
    "300.2.2+3.2.1",
    "300.3.0+3.3.0",
    "300.3.1+3.3.1",
    "300.3.2+3.3.2",
    "300.4.0+3.4.0",
    "300.4.2+3.4.1",
    "300.5.0+3.5.0",
    "300.5.2+3.5.2",
];

/// Digest of all names and contents, as [`Digest`] makes it.
const EXPECTED: &str = "5b36b5a6372f9e4e338014de11600055db461c329cc31092df8302f3eaab39cf";

/// 2021-01-01 in seconds since 1970.
const FIRST_SECONDS: u64 = 1_609_459_200;

/// From one version to the next.
const STEP_SECONDS: u64 = 90 * 86_400;

/// How often a download is tried.
const TRIES: u32 = 3;

/// Lays the versions below `target`, which is made if it is not there.
///
/// # Errors
/// When a release can't be fetched, or what lies there is not what was expected.
pub fn source_tree(target: &Path) -> Result<()> {
    fs::create_dir_all(target).with_context(|| format!("cannot make {}", target.display()))?;
    let target = target.canonicalize()?;
    let fetching = target.join(".fetch");
    for (number, release) in (1..).zip(RELEASES) {
        let name = format!("v{number:02}");
        if target.join(&name).exists() {
            continue;
        }
        remove(&fetching)?;
        let sources = fetch(&fetching, release).with_context(|| format!("fetching {release}"))?;
        let seconds = FIRST_SECONDS + number * STEP_SECONDS;
        let time = SystemTime::UNIX_EPOCH + Duration::from_secs(seconds);
        settle(
            &sources,
            FileTimes::new().set_modified(time).set_accessed(time),
        )?;
        fs::rename(&sources, target.join(&name))?;
        eprintln!("{name}: openssl-src {release}");
    }
    remove(&fetching)?;
    let digest = Digest::of(&target)?;
    println!(
        "files {}\nbytes {}\ndigest {}",
        digest.files, digest.bytes, digest.digest
    );
    if digest.digest != EXPECTED {
        bail!("the digest should be {EXPECTED}: remove the version that differs");
    }
    Ok(())
}

fn remove(directory: &Path) -> io::Result<()> {
    match fs::remove_dir_all(directory) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}

/// Vendors one release; returns where its upstream tree lies.
fn fetch(directory: &Path, release: &str) -> Result<PathBuf> {
    let version = release.split('+').next().unwrap_or(release);
    fs::create_dir_all(directory.join("src"))?;
    File::create(directory.join("src/lib.rs"))?;
    let mut manifest = File::create(directory.join("Cargo.toml"))?;
    write!(
        manifest,
        "[package]\nname = \"fetch\"\nversion = \"0.0.0\"\nedition = \"2021\"\n\n\
         [workspace]\n\n[dependencies]\nopenssl-src = \"={version}\"\n"
    )?;
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    for attempt in 1..=TRIES {
        let output = Command::new(&cargo)
            .args(["vendor", "--quiet", "vendor"])
            .current_dir(directory)
            .output()?;
        if output.status.success() {
            return Ok(directory.join("vendor/openssl-src/openssl"));
        }
        if attempt == TRIES {
            bail!(
                "cargo vendor: {}",
                String::from_utf8_lossy(&output.stderr).trim()
            );
        }
        std::thread::sleep(Duration::from_secs(3));
    }
    unreachable!("the last try returns")
}

/// Gives all entries plain permissions and the time of the version, innermost first.
fn settle(path: &Path, times: FileTimes) -> Result<()> {
    let metadata = fs::symlink_metadata(path)?;
    if metadata.is_symlink() {
        bail!("{} is a symlink, which no crate can hold", path.display());
    }
    let is_program = metadata.permissions().mode() & 0o100 != 0;
    if metadata.is_dir() {
        for entry in fs::read_dir(path)? {
            settle(&entry?.path(), times)?;
        }
    }
    let mode = if is_program { 0o755 } else { 0o644 };
    fs::set_permissions(path, Permissions::from_mode(mode))?;
    File::open(path)?.set_times(times)?;
    Ok(())
}

/// What all versions hold: files, bytes, and one BLAKE3 over (path, NUL, length as u64, content)
/// of all files in byte order of their paths.
struct Digest {
    files: u64,
    bytes: u64,
    digest: String,
}

impl Digest {
    fn of(target: &Path) -> Result<Self> {
        let mut paths = Vec::new();
        for number in 1..=RELEASES.len() {
            files_below(&target.join(format!("v{number:02}")), &mut paths)?;
        }
        paths.sort();
        let mut hasher = blake3::Hasher::new();
        let mut bytes = 0;
        for path in &paths {
            let content = fs::read(path)?;
            let name = path.strip_prefix(target)?;
            hasher.update(name.as_os_str().as_encoded_bytes());
            hasher.update(&[0]);
            hasher.update(&(content.len() as u64).to_le_bytes());
            hasher.update(&content);
            bytes += content.len() as u64;
        }
        Ok(Self {
            files: paths.len() as u64,
            bytes,
            digest: hasher.finalize().to_string(),
        })
    }
}

fn files_below(directory: &Path, files: &mut Vec<PathBuf>) -> Result<()> {
    let reading = || format!("cannot read {}", directory.display());
    for entry in fs::read_dir(directory).with_context(reading)? {
        let entry = entry?;
        if entry.file_type()?.is_dir() {
            files_below(&entry.path(), files)?;
        } else {
            files.push(entry.path());
        }
    }
    Ok(())
}
