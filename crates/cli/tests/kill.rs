//! Backups that are killed (`SIGKILL`) at random moments.
//!
//! A tree that grows from round to round to some 60 MB is backed up by the real program into
//! a real directory. Each time the process is killed after a while that a seed decides. Then
//! `check --read-data` is clean and every snapshot there is restores as it was, whether the
//! process still said that it saved it or not. At last a backup that nobody kills succeeds,
//! and stores less than one from scratch. Nothing is said about how long anything takes.
//!
//! `ONEFOLD_KILL_SEED=N` replays the moments of one run, as far as the machine is as fast.
#![allow(clippy::unwrap_used, reason = "a test says no by panicking")]

mod support;

use std::collections::BTreeMap;
use std::fs;
use std::io::Write;
use std::path::PathBuf;
use std::process::{Command, Output, Stdio};
use std::time::{Duration, Instant};

use serde_json::Value;
use support::{Picture, Random, picture};
use tempfile::TempDir;

const ROUNDS: u64 = 8;

/// Files at first, and their mean length.
const FILES: u64 = 320;
const FILE_BYTES_MEAN: u64 = 120_000;

/// New files of a round.
const FILES_PER_ROUND: u64 = 24;

/// A place with a tree and repositories.
struct Place {
    directory: TempDir,
    random: Random,
}

impl Place {
    fn new(seed: u64) -> Self {
        let directory = tempfile::tempdir_in("/dev/shm").or_else(|_| tempfile::tempdir());
        let mut place = Self {
            directory: directory.unwrap(),
            random: Random(seed),
        };
        for number in 0..FILES {
            place.new_file(&format!("{:02}/{number}", number % 20));
        }
        place
    }

    fn tree(&self) -> PathBuf {
        self.directory.path().join("tree")
    }

    fn new_file(&mut self, name: &str) {
        let path = self.tree().join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        let bytes = self.random.below(2 * FILE_BYTES_MEAN);
        fs::write(path, self.random.noise(bytes)).unwrap();
    }

    /// New files, changed files, a file less.
    fn advance(&mut self, round: u64) {
        for number in 0..FILES_PER_ROUND {
            self.new_file(&format!("round-{round}/{number}"));
        }
        for number in 0..5 {
            let number = (round * 31 + number * 57) % FILES;
            let path = self.tree().join(format!("{:02}/{number}", number % 20));
            let mut file = fs::OpenOptions::new()
                .append(true)
                .create(true)
                .open(path)
                .unwrap();
            file.write_all(&self.random.noise(5000)).unwrap();
        }
        let _ = fs::remove_file(self.tree().join(format!("{:02}/{round}", round % 20)));
    }

    fn command(&self, repository: &str, arguments: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_onefold"));
        command
            .args(arguments)
            .current_dir(self.directory.path())
            .env("ONEFOLD_REPO", self.directory.path().join(repository))
            .env_remove("ONEFOLD_PASSWORD")
            .stdin(Stdio::null());
        command
    }

    /// Runs the program, which must succeed.
    fn ok(&self, repository: &str, arguments: &[&str]) -> Output {
        let output = self.command(repository, arguments).output().unwrap();
        assert!(
            output.status.success(),
            "{arguments:?}: {}\n{}{}",
            output.status,
            String::from_utf8_lossy(&output.stdout),
            String::from_utf8_lossy(&output.stderr)
        );
        output
    }

    /// The events that it prints with `--json`.
    fn events(&self, repository: &str, arguments: &[&str]) -> Vec<Value> {
        let output = self.ok(repository, arguments);
        let lines = output.stdout.split(|&byte| byte == b'\n');
        let lines = lines.filter(|line| !line.is_empty());
        lines
            .map(|line| serde_json::from_slice(line).unwrap())
            .collect()
    }

    /// Backs up the whole tree undisturbed; returns the summary.
    fn back_up(&self, repository: &str) -> Value {
        let mut events = self.events(repository, &["backup", "--json", "tree"]);
        events.pop().unwrap()
    }

    /// Backs up and kills the process after `delay`. Did it end before?
    fn back_up_and_kill(&self, repository: &str, delay: Duration) -> bool {
        let mut command = self.command(repository, &["backup", "-q", "tree"]);
        let mut child = command.stdout(Stdio::null()).spawn().unwrap();
        std::thread::sleep(delay);
        child.kill().unwrap();
        let status = child.wait().unwrap();
        let ended = status.code().is_some();
        assert!(!ended || status.success(), "{status}");
        ended
    }

    /// The snapshots there are, oldest first: id and path.
    fn snapshots(&self, repository: &str) -> Vec<(String, String)> {
        let events = self.events(repository, &["snapshots", "--json"]);
        let snapshots = events.iter().filter(|event| event["event"] == "snapshot");
        let text = |value: &Value| value.as_str().unwrap().to_owned();
        snapshots
            .map(|event| (text(&event["snapshot"]), text(&event["paths"][0])))
            .collect()
    }

    fn check_restore(&self, repository: &str, (id, path): &(String, String), expected: &Picture) {
        let target = self.directory.path().join("target");
        let what = format!("{id}:{path}");
        self.ok(
            repository,
            &["restore", "-q", &what, target.to_str().unwrap()],
        );
        let actual = picture(&target);
        fs::remove_dir_all(&target).unwrap();
        let same = |path: &PathBuf| actual.get(path) == expected.get(path);
        let names = actual.keys().chain(expected.keys());
        let differing: Vec<_> = names.filter(|path| !same(path)).collect();
        assert!(
            differing.is_empty(),
            "snapshot {id} differs in {differing:?}"
        );
    }
}

#[test]
fn a_killed_backup_loses_nothing_and_is_made_use_of() {
    let seed = std::env::var("ONEFOLD_KILL_SEED").ok();
    let seed = seed.map_or(1, |text| text.parse().unwrap());
    let mut place = Place::new(seed);
    for repository in ["first", "killed", "scratch"] {
        place.ok(repository, &["init", "--no-encryption", "-q"]);
    }
    // How long a backup takes here and now.
    let started = Instant::now();
    place.back_up("first");
    let whole_ms = started.elapsed().as_millis() as u64;

    // A snapshot that was reported before anybody was killed.
    place.ok("killed", &["backup", "-q", "tree/00"]);
    let mut pictures = BTreeMap::new();
    let first = place.snapshots("killed").remove(0);
    pictures.insert(first.0, picture(&place.tree().join("00")));
    let mut killed = 0;
    for round in 0..ROUNDS {
        place.advance(round);
        let delay = Duration::from_millis(place.random.below(whole_ms * 3 / 4 + 1));
        let ended = place.back_up_and_kill("killed", delay);
        killed += u64::from(!ended);
        let at = format!("seed {seed}, round {round}, killed after {delay:?}");
        eprintln!("{at}: {}", if ended { "it had ended" } else { "killed" });
        place.ok("killed", &["check", "--read-data"]);
        let snapshots = place.snapshots("killed");
        let known = |id: &String| snapshots.iter().any(|snapshot| snapshot.0 == *id);
        assert!(pictures.keys().all(known), "{at}: a snapshot is gone");
        let new: Vec<_> = snapshots
            .iter()
            .filter(|(id, _)| !pictures.contains_key(id))
            .collect();
        assert!(
            new.len() <= 1 && (!ended || new.len() == 1),
            "{at}: {new:?}"
        );
        for snapshot in new {
            pictures.insert(snapshot.0.clone(), picture(&place.tree()));
        }
        // The oldest and the newest; all of them at the end.
        for snapshot in [snapshots.first(), snapshots.last()].into_iter().flatten() {
            place.check_restore("killed", snapshot, &pictures[&snapshot.0]);
        }
    }
    assert!(killed > 0, "no backup was killed: the test proves nothing");

    let last = place.back_up("killed");
    pictures.insert(
        last["snapshot"].as_str().unwrap().to_owned(),
        picture(&place.tree()),
    );
    let scratch = place.back_up("scratch");
    let stored = |summary: &Value| summary["bytes_stored"].as_u64().unwrap();
    assert!(stored(&last) < stored(&scratch), "{last} against {scratch}");
    for snapshot in place.snapshots("killed") {
        place.check_restore("killed", &snapshot, &pictures[&snapshot.0]);
    }
    place.ok("killed", &["check", "--read-data"]);
}
