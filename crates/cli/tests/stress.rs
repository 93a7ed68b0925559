//! Clients that work in one repository at once, and are killed (`SIGKILL`) at random.
//!
//! Eight of them, each with a tree and a host of its own, back up, forget, prune, restore and check as a seed has them do,
//! in processes of the real program. Contents of files are drawn from one small lot, so that clients find each other's
//! chunks, and take them for their own while others condemn them. What holds: a snapshot that was reported as saved, and
//! that its owner did not forget, comes back as it was, at any time; no command fails but a prune beside another; no check
//! finds anything. Nothing is said about how long anything takes.
//!
//! `ONEFOLD_STRESS_SEED=N` (default: another one each time, printed) says what each client does, not in which order
//! all of them do; `ONEFOLD_STRESS_SECONDS=N` (15) for how long, `ONEFOLD_STRESS_CLIENTS=N` (8) how many,
//! `ONEFOLD_STRESS_PROGRAM=PATH` by which program, `ONEFOLD_STRESS_REPO=PLACE` where, if not in memory: a directory, or a server. Half an hour:
//! `ONEFOLD_STRESS_SECONDS=1800 cargo test --release -p onefold --test stress -- --nocapture`.
#![allow(clippy::unwrap_used, reason = "a test says no by panicking")]

mod support;

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::sync::Mutex;
use std::time::{Duration, Instant};

use serde_json::Value;
use support::{Picture, Random, picture};

/// Different contents that files may have, in all trees together.
const CONTENTS: u64 = 40;

/// Every so many commands one is killed.
const KILLED_EVERY: u64 = 7;

/// How long a command lives at most that is to be killed.
const LIFE_MS_MAX: u64 = 150;

fn setting(name: &str, default: u64) -> u64 {
    std::env::var(name).map_or(default, |text| text.parse().unwrap())
}

/// What clients share.
struct Place {
    directory: tempfile::TempDir,
    repository: String,
    program: String,
    end: Instant,
    /// How often what came of it.
    counts: Mutex<BTreeMap<String, u64>>,
}

impl Place {
    fn new(seconds: u64) -> Self {
        let directory = tempfile::tempdir_in("/dev/shm").or_else(|_| tempfile::tempdir());
        let directory = directory.unwrap();
        let beside = directory.path().join("repository").display().to_string();
        Self {
            repository: std::env::var("ONEFOLD_STRESS_REPO").unwrap_or(beside),
            directory,
            program: std::env::var("ONEFOLD_STRESS_PROGRAM")
                .unwrap_or_else(|_| env!("CARGO_BIN_EXE_onefold").to_owned()),
            end: Instant::now() + Duration::from_secs(seconds),
            counts: Mutex::default(),
        }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(&self.program);
        command
            .args(["--repo", &self.repository])
            .args(arguments)
            .current_dir(self.directory.path())
            .env_remove("ONEFOLD_REPO")
            .env_remove("ONEFOLD_PASSWORD")
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        command
    }

    /// Runs the program, which must succeed.
    fn ok(&self, arguments: &[&str]) -> Output {
        let output = self.command(arguments).output().unwrap();
        assert!(output.status.success(), "{arguments:?}: {}", told(&output));
        output
    }

    /// The events that it prints.
    fn events(&self, arguments: &[&str]) -> Vec<Value> {
        events(&self.ok(arguments))
    }

    fn note(&self, what: &str) {
        *self
            .counts
            .lock()
            .unwrap()
            .entry(what.to_owned())
            .or_default() += 1;
    }

    /// Restores a snapshot, and says what is not as it was.
    fn restored(&self, id: &str, tree: &Path, target: &str) -> Picture {
        let target = self.path(target);
        let _ = fs::remove_dir_all(&target);
        let what = format!("{id}:{}", tree.display());
        self.ok(&["restore", "-q", &what, target.to_str().unwrap()]);
        picture(&target)
    }
}

fn told(output: &Output) -> String {
    format!(
        "{}\n{}{}",
        output.status,
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr)
    )
}

fn events(output: &Output) -> Vec<Value> {
    let lines = output.stdout.split(|&byte| byte == b'\n');
    let lines = lines.filter(|line| !line.is_empty());
    lines
        .map(|line| serde_json::from_slice(line).unwrap())
        .collect()
}

/// One of those who work in the repository.
struct Client<'a> {
    place: &'a Place,
    name: String,
    tree: PathBuf,
    random: Random,
    /// What must come back, by id.
    saved: BTreeMap<String, Picture>,
}

impl<'a> Client<'a> {
    fn new(place: &'a Place, seed: u64, number: u64) -> Self {
        let name = format!("client-{number}");
        let tree = place.path(&format!("tree-{number}"));
        fs::create_dir_all(tree.join("below")).unwrap();
        Self {
            place,
            name,
            tree,
            random: Random(seed.wrapping_mul(1000).wrapping_add(number)),
            saved: BTreeMap::new(),
        }
    }

    fn work(&mut self) {
        while Instant::now() < self.place.end {
            match self.random.below(20) {
                0..9 => self.back_up(),
                9..12 => self.forget(),
                12..15 => self.prune(),
                15..18 => self.restore(),
                18 => self.list(),
                _ => drop(self.run("check", &["check", "-q"])),
            }
        }
    }

    /// Runs the program to its end, or kills it on the way: then nothing comes back.
    fn run(&mut self, what: &str, arguments: &[&str]) -> Option<Output> {
        let is_killed = self.random.below(KILLED_EVERY) == 0;
        let life = Duration::from_millis(self.random.below(LIFE_MS_MAX));
        let mut child = self.place.command(arguments).spawn().unwrap();
        if is_killed {
            std::thread::sleep(life);
            child.kill().unwrap();
        }
        let output = child.wait_with_output().unwrap();
        if output.status.success() {
            self.place.note(what);
            return Some(output);
        }
        if is_killed && output.status.code().is_none() {
            self.place.note(&format!("{what}, killed"));
            return None;
        }
        let is_beside_another = String::from_utf8_lossy(&output.stderr).contains("another prune");
        if what == "prune" && is_beside_another {
            self.place.note("prune, beside another");
            return None;
        }
        panic!("{}: {arguments:?}: {}", self.name, told(&output));
    }

    fn change(&mut self) {
        for _ in 0..1 + self.random.below(6) {
            let name = format!("file-{}", self.random.below(6));
            let name = match self.random.below(2) {
                0 => self.tree.join(name),
                _ => self.tree.join("below").join(name),
            };
            let content = self.random.below(CONTENTS);
            let bytes = [3000, 60_000, 300_000][self.random.below(3) as usize];
            let mut noise = Random(content).noise(bytes);
            // Something of its own in the middle, so that there is something similar elsewhere.
            if self.random.below(3) == 0 {
                let own = self.random.bits().to_le_bytes();
                let middle = noise.len() / 2;
                noise[middle..middle + 8].copy_from_slice(&own);
            }
            fs::write(name, noise).unwrap();
        }
    }

    fn back_up(&mut self) {
        self.change();
        let tree = self.tree.display().to_string();
        let name = self.name.clone();
        let arguments = ["backup", "--json", &tree, "--host", &name];
        let Some(output) = self.run("backup", &arguments) else {
            return;
        };
        let summary = events(&output).pop().unwrap();
        let id = summary["snapshot"].as_str().unwrap().to_owned();
        self.saved.insert(id, picture(&self.tree));
    }

    /// One of its own; whether that of a killed `forget` is still there nobody says.
    fn forget(&mut self) {
        if self.saved.len() < 3 {
            return;
        }
        let pick = self.random.below(self.saved.len() as u64) as usize;
        let id = self.saved.keys().nth(pick).unwrap().clone();
        self.run("forget", &["forget", "-q", &id]);
        self.saved.remove(&id);
    }

    fn prune(&mut self) {
        let unused = ["0", "5", "50"][self.random.below(3) as usize];
        let repack = ["1MiB", "1TiB"][self.random.below(2) as usize];
        let limits = ["--max-unused", unused, "--max-repack", repack];
        self.run("prune", &[&["prune", "-q"][..], &limits].concat());
    }

    fn restore(&mut self) {
        if self.saved.is_empty() {
            return;
        }
        let pick = self.random.below(self.saved.len() as u64) as usize;
        let (id, expected) = self.saved.iter().nth(pick).unwrap();
        let target = format!("target-{}", self.name);
        let found = self.place.restored(id, &self.tree, &target);
        assert!(found == *expected, "{}: snapshot {id} differs", self.name);
        self.place.note("restore");
    }

    fn list(&mut self) {
        let Some(output) = self.run("snapshots", &["snapshots", "--json"]) else {
            return;
        };
        let listed = events(&output);
        let is_there = |id: &str| listed.iter().any(|event| event["snapshot"] == id);
        for id in self.saved.keys() {
            assert!(is_there(id), "{}: snapshot {id} is gone", self.name);
        }
    }
}

#[test]
fn clients_at_once_lose_nothing() {
    let any = std::process::id().into();
    let seed = setting("ONEFOLD_STRESS_SEED", any);
    let seconds = setting("ONEFOLD_STRESS_SECONDS", 15);
    eprintln!("ONEFOLD_STRESS_SEED={seed}");
    let place = Place::new(seconds);
    let small = [
        "init",
        "--no-encryption",
        "-q",
        "--container-size",
        "256KiB",
    ];
    place.ok(&small);
    let clients: Vec<Client<'_>> = std::thread::scope(|scope| {
        let work = |number| {
            let mut client = Client::new(&place, seed, number);
            scope.spawn(move || {
                client.work();
                client
            })
        };
        let numbers = 0..setting("ONEFOLD_STRESS_CLIENTS", 8);
        let threads: Vec<_> = numbers.map(work).collect();
        let join = |thread: std::thread::ScopedJoinHandle<'_, _>| thread.join();
        let ended: Vec<_> = threads.into_iter().map(join).collect();
        let fine = |ended: std::thread::Result<_>| ended.unwrap_or_else(|_| panic!("seed {seed}"));
        ended.into_iter().map(fine).collect()
    });
    eprintln!("{:?}", place.counts.lock().unwrap());

    place.ok(&["check", "-q", "--read-data"]);
    for client in &clients {
        for (id, expected) in &client.saved {
            let found = place.restored(id, &client.tree, "target");
            assert!(found == *expected, "seed {seed}: snapshot {id} differs");
        }
    }
    // Those, too, whose backup was killed before it could say that it was saved.
    for event in place.events(&["snapshots", "--json"]) {
        if event["event"] == "snapshot" && !event["is_doubtful"].as_bool().unwrap_or(false) {
            let id = event["snapshot"].as_str().unwrap();
            let tree = event["paths"][0].as_str().unwrap();
            place.restored(id, Path::new(tree), "target");
        }
    }
    // Nobody is at work any more: what was condemned goes, and what is left is needed.
    place.ok(&["prune", "-q", "--max-unused", "0"]);
    let last = place
        .events(&["prune", "--json", "--max-unused", "0"])
        .pop()
        .unwrap();
    assert_eq!(
        (&last["containers_waiting"], &last["bytes_unneeded"]),
        (&0.into(), &0.into())
    );
    place.ok(&["check", "-q", "--read-data"]);
}
