//! A place for one test: a temporary directory with a repository and files to back up, and
//! ways to run the program there.
//!
//! Most tests use an unencrypted repository: opening an encrypted one costs some tenths of a
//! second by design.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::Arc;
use std::time::Duration;

use assert_cmd::cargo::cargo_bin;
use engine::object::LocalStore;
use repository::snapshot::Snapshot;
use repository::{Repository, RunSettings};
use serde_json::Value;
use tempfile::TempDir;

/// More than a tick of the clock that stamps files, by a margin for busy machines.
const FILES_AGE: Duration = Duration::from_millis(60);

/// A temporary directory, gone at the end of the test.
pub struct Sandbox {
    directory: TempDir,
}

impl Sandbox {
    /// An empty place.
    pub fn new() -> Self {
        Self {
            directory: TempDir::new().unwrap(),
        }
    }

    /// A place with an unencrypted repository and a small tree.
    pub fn with_repository() -> Self {
        let sandbox = Self::new();
        sandbox.ok(&["init", "--no-encryption", "-q"]);
        sandbox.write("tree/a.txt", b"first\n");
        sandbox.write("tree/sub/b.txt", b"second\n");
        sandbox.write("tree/sub/deep/c.bin", &noise(200_000, 1));
        sandbox
    }

    /// A path in it.
    pub fn path(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    /// The same as text.
    pub fn text(&self, name: &str) -> String {
        self.path(name).to_str().unwrap().to_owned()
    }

    /// Writes a file, and the directories above it.
    pub fn write(&self, name: &str, bytes: &[u8]) {
        let path = self.path(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, bytes).unwrap();
    }

    /// Waits until files written before are old enough to be taken for unchanged later on: a
    /// backup does not trust times that a change during its reading might leave as they are.
    pub fn let_files_age(&self) {
        std::thread::sleep(FILES_AGE);
    }

    /// The program with these arguments, in this place and on its repository.
    pub fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(cargo_bin!("onefold"));
        command
            .args(arguments)
            .current_dir(self.directory.path())
            .env_remove("ONEFOLD_PASSWORD")
            .env_remove("ONEFOLD_NEW_PASSWORD")
            .env_remove("ONEFOLD_TO_PASSWORD")
            .env_remove("ONEFOLD_LIKE_PASSWORD")
            .env("ONEFOLD_REPO", self.path("repository"))
            .env("TZ", "UTC")
            .stdin(std::process::Stdio::null());
        command
    }

    /// Runs the program.
    pub fn run(&self, arguments: &[&str]) -> Run {
        Run::new(&mut self.command(arguments))
    }

    /// Runs the program, which must do all it is asked for. Returns its standard output.
    pub fn ok(&self, arguments: &[&str]) -> String {
        self.run(arguments).expect(0).stdout
    }

    /// Runs the program with `--json` and returns the lines.
    pub fn events(&self, arguments: &[&str]) -> Vec<Value> {
        let mut arguments = arguments.to_vec();
        arguments.insert(1, "--json");
        self.run(&arguments).expect(0).events()
    }

    /// Puts a snapshot into the (unencrypted) repository that was made at that time, in seconds
    /// since 1970, of host `here` and `/home`, empty but for what `change` does to it. Returns its id.
    pub fn put_snapshot(&self, seconds: i64, change: impl FnOnce(&mut Snapshot)) -> String {
        let store = LocalStore::open(&self.path("repository")).unwrap();
        let repository = Repository::open(Arc::new(store), None, RunSettings::default()).unwrap();
        let mut snapshot = Snapshot {
            host: "here".to_owned(),
            paths: vec![b"/home".to_vec()],
            ..Snapshot::default()
        };
        snapshot.time.seconds = seconds;
        change(&mut snapshot);
        let engine = repository.engine();
        snapshot
            .write(engine.store().as_ref(), engine.vault())
            .unwrap();
        snapshot.id.to_string()
    }

    /// Backs up `tree` and returns the id of the snapshot.
    pub fn backup_tree(&self) -> String {
        let events = self.events(&["backup", "tree"]);
        let summary = events.last().unwrap();
        summary["snapshot"].as_str().unwrap().to_owned()
    }
}

/// What the program did.
#[derive(Debug)]
pub struct Run {
    pub code: Option<i32>,
    pub stdout: String,
    pub stdout_bytes: Vec<u8>,
    pub stderr: String,
}

impl Run {
    /// Runs a command to its end.
    pub fn new(command: &mut Command) -> Self {
        Self::of(command.output().unwrap())
    }

    /// What a process left.
    pub fn of(output: Output) -> Self {
        Self {
            code: output.status.code(),
            stdout: String::from_utf8_lossy(&output.stdout).into_owned(),
            stdout_bytes: output.stdout,
            stderr: String::from_utf8_lossy(&output.stderr).into_owned(),
        }
    }

    /// Makes sure of the exit code.
    #[track_caller]
    pub fn expect(self, code: i32) -> Self {
        assert_eq!(self.code, Some(code), "{self:#?}");
        assert!(!self.stderr.contains("panicked"), "{self:#?}");
        self
    }

    /// Makes sure that the standard error output says something.
    #[track_caller]
    pub fn says(self, text: &str) -> Self {
        assert!(self.stderr.contains(text), "no '{text}' in {self:#?}");
        self
    }

    /// The lines of the standard output, each a JSON object.
    #[track_caller]
    pub fn events(&self) -> Vec<Value> {
        let parse = |line| serde_json::from_str(line).unwrap();
        let events: Vec<Value> = self.stdout.lines().map(parse).collect();
        assert!(events.iter().all(|event| event["event"].is_string()));
        events
    }
}

/// Bytes that nothing can compress, the same for the same seed.
pub fn noise(length: usize, seed: u64) -> Vec<u8> {
    let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    let mut next = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        (state >> 32) as u8
    };
    (0..length).map(|_| next()).collect()
}

/// All files below a directory with their contents, by their paths relative to it.
pub fn files_below(directory: &Path) -> Vec<(PathBuf, Vec<u8>)> {
    let mut found = Vec::new();
    let mut waiting = vec![directory.to_owned()];
    while let Some(next) = waiting.pop() {
        for entry in fs::read_dir(&next).unwrap() {
            let entry = entry.unwrap();
            if entry.file_type().unwrap().is_dir() {
                waiting.push(entry.path());
            } else if entry.file_type().unwrap().is_file() {
                let name = entry.path().strip_prefix(directory).unwrap().to_owned();
                found.push((name, fs::read(entry.path()).unwrap()));
            }
        }
    }
    found.sort();
    found
}

/// Is this process root, whom permissions do not stop?
pub fn is_root() -> bool {
    rustix::process::getuid().is_root()
}
