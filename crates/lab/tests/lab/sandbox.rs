//! A place for one test: a temporary directory, and ways to run the lab there.

use std::fs;
use std::path::PathBuf;
use std::process::Command;

use assert_cmd::cargo::cargo_bin;
use serde_json::Value;
use tempfile::TempDir;

/// A temporary directory, gone at the end of the test.
pub struct Sandbox {
    directory: TempDir,
}

/// How a run ended.
pub struct Run {
    pub code: i32,
    pub stdout: String,
    pub stderr: String,
}

impl Sandbox {
    pub fn new() -> Self {
        Self {
            directory: TempDir::new().unwrap(),
        }
    }

    /// A place with a directory `tree` of files that share most of their bytes.
    pub fn with_tree() -> Self {
        let sandbox = Self::new();
        let first = noise(1, 200_000);
        let mut second = first.clone();
        second.splice(90_000..90_000, *b"some bytes in between");
        sandbox.write("tree/first", &first);
        sandbox.write("tree/sub/second", &second);
        sandbox.write("tree/sub/third", &noise(2, 60_000));
        sandbox.write("tree/sub/zeros", &vec![0; 150_000]);
        sandbox.write("tree/empty", b"");
        sandbox
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    pub fn write(&self, name: &str, bytes: &[u8]) {
        let path = self.path(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, bytes).unwrap();
    }

    /// Files and their bytes, in the order in which the lab takes them.
    pub fn tree(&self) -> Vec<Vec<u8>> {
        let names = ["first", "sub/second", "sub/third", "sub/zeros"];
        let read = |name| fs::read(self.path("tree").join(name)).unwrap();
        names.into_iter().map(read).collect()
    }

    /// The lab on a command line, ready to run here.
    pub fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(cargo_bin("onefold-lab"));
        command.args(arguments).current_dir(self.directory.path());
        command
    }

    pub fn run(&self, arguments: &[&str]) -> Run {
        let output = self.command(arguments).output().unwrap();
        Run {
            code: output.status.code().unwrap(),
            stdout: String::from_utf8(output.stdout).unwrap(),
            stderr: String::from_utf8(output.stderr).unwrap(),
        }
    }

    /// What a run that ends well prints.
    #[track_caller]
    pub fn ok(&self, arguments: &[&str]) -> String {
        self.run(arguments).expect(0).stdout
    }
}

impl Run {
    #[track_caller]
    pub fn expect(self, code: i32) -> Self {
        assert_eq!(self.code, code, "{}{}", self.stdout, self.stderr);
        self
    }

    /// The one object on the standard output.
    #[track_caller]
    pub fn json(&self) -> Value {
        assert_eq!(self.stdout.lines().count(), 1, "{}", self.stdout);
        serde_json::from_str(&self.stdout).unwrap()
    }
}

/// Bytes that no other seed has.
pub fn noise(seed: u64, length: usize) -> Vec<u8> {
    let mut bytes = vec![0; length];
    let mut hasher = blake3::Hasher::new();
    hasher.update(&seed.to_le_bytes());
    hasher.finalize_xof().fill(&mut bytes);
    bytes
}
