//! `onefold-lab dataset` as its users meet it: what is built, verified, mended, refused.
//!
//! What needs programs or the network is skipped with a line when they are not there.

#![allow(clippy::unwrap_used, reason = "a test says no by panicking")]

use std::fs;
use std::path::Path;

use assert_cmd::Command;
use serde_json::Value;
use tempfile::TempDir;

fn lab() -> Command {
    Command::new(assert_cmd::cargo::cargo_bin!("onefold-lab"))
}

/// Builds a data set; gives what `--json` prints.
fn build(name: &str, directory: &Path, options: &[&str]) -> Value {
    let mut command = lab();
    let private = directory.parent().unwrap();
    command.env("TMPDIR", private);
    command.args(["dataset", name]).arg(directory).arg("--json");
    let output = command.args(options).assert().success();
    serde_json::from_slice(&output.get_output().stdout).unwrap()
}

/// Builds a data set, which fails; gives what it says.
fn fails(name: &str, directory: &Path, options: &[&str]) -> String {
    let mut command = lab();
    command.args(["dataset", name]).arg(directory).args(options);
    let output = command.assert().code(1);
    String::from_utf8(output.get_output().stderr.clone()).unwrap()
}

fn text<'a>(value: &'a Value, name: &str) -> &'a str {
    value[name].as_str().unwrap_or_default()
}

/// Is the program in PATH? Otherwise says what is not tested.
fn has(program: &str, argument: &str) -> bool {
    let outcome = std::process::Command::new(program).arg(argument).output();
    if outcome.is_err() {
        println!("skipped: {program} is not there");
    }
    outcome.is_ok()
}

const SMALL: &[&str] = &["--size", "3M", "--versions", "3"];

#[test]
fn the_list_names_all() {
    let output = lab().args(["dataset", "--list"]).assert().success();
    let list = String::from_utf8(output.get_output().stdout.clone()).unwrap();
    let names = [
        "tar",
        "lnx",
        "lnx-tar",
        "gcc",
        "gdb",
        "rdb",
        "vma",
        "vmb",
        "layers",
        "web",
        "syn",
        "bench-cloud",
        "edits",
    ];
    for name in names {
        assert!(list.lines().any(|line| line == name), "{name} in {list}");
    }
    let output = lab()
        .args(["dataset", "--list", "--json"])
        .assert()
        .success();
    let list: Value = serde_json::from_slice(&output.get_output().stdout).unwrap();
    assert_eq!(list.as_array().unwrap().len(), names.len());
    for kind in list.as_array().unwrap() {
        assert!(kind["bytes_default"].as_u64().unwrap() > 1 << 20, "{kind}");
        assert!(!text(kind, "stands_for").is_empty());
    }
}

#[test]
fn bad_arguments_are_refused() {
    let parent = TempDir::new().unwrap();
    let directory = parent.path().join("set");
    let mut command = lab();
    let output = command.args(["dataset", "no-such"]).arg(&directory);
    let output = output.assert().code(2).get_output().clone();
    let said = String::from_utf8(output.stderr).unwrap();
    assert!(said.contains("there are tar, lnx"), "{said}");
    let said = fails("syn", &directory, &["--versions", "1"]);
    assert!(said.contains("at least two"), "{said}");
    assert!(!directory.exists());
    for wrong in [
        &["dataset"][..],
        &["dataset", "syn"],
        &["dataset", "syn", "x", "--size", "1Q"],
        &["dataset", "syn", "x", "--versions", "-1"],
        &["dataset", "--list", "syn"],
    ] {
        lab().current_dir(&parent).args(wrong).assert().code(2);
    }
}

#[test]
fn synthetic_sets_are_functions_of_their_seed() {
    for name in ["syn", "bench-cloud"] {
        let parent = TempDir::new().unwrap();
        let make = |directory: &str, seed: &str| {
            let options = [SMALL, &["--seed", seed]].concat();
            build(name, &parent.path().join(directory), &options)
        };
        let (one, same, other) = (make("one", "1"), make("same", "1"), make("other", "2"));
        assert_eq!(text(&one, "digest"), text(&same, "digest"));
        assert_ne!(text(&one, "digest"), text(&other, "digest"));
        assert_eq!(one["built"], 3);
        let bytes = one["bytes"].as_u64().unwrap();
        assert!((2 << 20..5 << 20).contains(&bytes), "{name}: {bytes}");
        let manifest = parent.path().join("one/dataset.json");
        let manifest: Value = serde_json::from_slice(&fs::read(manifest).unwrap()).unwrap();
        assert_eq!(manifest["versions"][2]["files"][0]["path"], "v03.tar");
        let tar = fs::read(parent.path().join("one/v01.tar")).unwrap();
        let hash = blake3::hash(&tar).to_string();
        assert_eq!(manifest["versions"][0]["files"][0]["blake3"], hash);
    }
}

#[test]
fn edits_are_those_that_were_asked_for() {
    let parent = TempDir::new().unwrap();
    let directory = parent.path().join("edits");
    let options = [SMALL, &["--edits", "20", "--edit-kind", "overwrite"]].concat();
    let built = build("edits", &directory, &options);
    assert_eq!(built["versions"][2]["label"], "20 edits, overwrite");
    assert_eq!(built["options"]["edits"], "20");
    let read = |name: &str| fs::read(directory.join(name)).unwrap();
    let (one, two) = (read("v01.bin"), read("v02.bin"));
    assert_eq!(one.len(), 1 << 20);
    let differ = one.iter().zip(&two).filter(|(a, b)| a != b).count();
    assert!((1900..=2000).contains(&differ), "{differ}");
    // A version in the middle is what it was.
    fs::remove_file(directory.join("v02.bin")).unwrap();
    let again = build("edits", &directory, &options);
    assert_eq!(again["built"], 1);
    assert_eq!(text(&again, "digest"), text(&built, "digest"));
    assert_eq!(read("v02.bin"), two);
    let said = fails("edits", &directory, SMALL);
    assert!(said.contains("edits 20, "), "{said}");
    let other = parent.path().join("other");
    for (name, options) in [
        ("edits", &["--edits", "9999"][..]),
        ("edits", &["--edit-range", "101"]),
        ("edits", &["--edit-kind", "move"]),
        ("syn", &["--edits", "9"]),
    ] {
        let mut command = lab();
        command.args(["dataset", name]).arg(&other).args(SMALL);
        command.args(options).assert().code(2);
    }
}

/// The same bits on every machine and with every later version of this program.
#[test]
fn synthetic_sets_never_change() {
    for (name, digest) in [
        (
            "syn",
            "191b23ec71ea7e1a7d36775bfbc104a69b8b1b429a65ace42f6324adc62439a7",
        ),
        (
            "bench-cloud",
            "f228d5af1004817e9e5b2ab55c7bbf35c21e6bce7ec52c79009dfd007cd45942",
        ),
        (
            "edits",
            "833641e0727a165d5dce79279f4cf692cbbc5456298836ae35b14a4ff9ad32fa",
        ),
    ] {
        let parent = TempDir::new().unwrap();
        let built = build(name, &parent.path().join("set"), SMALL);
        assert_eq!(text(&built, "digest"), digest, "{name}");
    }
}

#[test]
fn a_second_run_verifies_and_mends() {
    let parent = TempDir::new().unwrap();
    let directory = parent.path().join("set");
    let digest = text(&build("syn", &directory, SMALL), "digest").to_owned();
    let counts = |built: &Value| (built["built"].as_u64(), built["verified"].as_u64());
    let again = build("syn", &directory, SMALL);
    assert_eq!(counts(&again), (Some(0), Some(3)));

    let middle = directory.join("v02.tar");
    let whole = fs::read(&middle).unwrap();
    let mut flipped = whole.clone();
    flipped[1000] ^= 1;
    for damaged in [Some(&whole[..777]), Some(&flipped[..]), None] {
        match damaged {
            Some(bytes) => fs::write(&middle, bytes).unwrap(),
            None => fs::remove_file(&middle).unwrap(),
        }
        let again = build("syn", &directory, SMALL);
        assert_eq!(counts(&again), (Some(1), Some(2)));
        assert_eq!(text(&again, "digest"), digest);
        assert!(fs::read(&middle).unwrap() == whole);
    }
    // As if killed before the second version was listed, and while the third was built.
    let list = directory.join("dataset.json");
    let mut manifest: Value = serde_json::from_slice(&fs::read(&list).unwrap()).unwrap();
    manifest["versions"].as_array_mut().unwrap().truncate(1);
    manifest["digest"] = Value::Null;
    fs::write(&list, manifest.to_string()).unwrap();
    fs::remove_file(directory.join("v03.tar")).unwrap();
    fs::create_dir_all(directory.join(".building/tree")).unwrap();
    fs::write(directory.join(".building/tree/tar"), "half").unwrap();
    let again = build("syn", &directory, SMALL);
    assert_eq!(counts(&again), (Some(2), Some(1)));
    assert_eq!(text(&again, "digest"), digest);
    assert!(!directory.join(".building").exists());
}

#[test]
fn what_is_not_ours_is_left_alone() {
    let parent = TempDir::new().unwrap();
    let directory = parent.path().join("photos");
    fs::create_dir(&directory).unwrap();
    fs::write(directory.join("v01.tar"), "mine").unwrap();
    let said = fails("syn", &directory, SMALL);
    assert!(said.contains("name another directory"), "{said}");
    assert_eq!(fs::read_dir(&directory).unwrap().count(), 1);

    // Another data set, another seed, another size.
    let directory = parent.path().join("set");
    build("syn", &directory, SMALL);
    for (name, options) in [
        ("bench-cloud", SMALL),
        ("syn", &["--size", "3M", "--versions", "4"]),
        ("syn", &["--size", "3M", "--versions", "3", "--seed", "9"]),
    ] {
        let said = fails(name, &directory, options);
        assert!(
            said.contains("holds syn, 3145728 bytes, 3 versions, seed 1"),
            "{said}"
        );
    }
    fs::write(directory.join("dataset.json"), "{}").unwrap();
    let said = fails("syn", &directory, SMALL);
    assert!(said.contains("no list of a data set"), "{said}");
}

#[test]
fn a_missing_program_is_named_and_nothing_is_left() {
    let parent = TempDir::new().unwrap();
    for (name, program) in [
        ("rdb", "redis-server"),
        ("lnx", "cargo"),
        ("lnx-tar", "cargo"),
        ("gcc", "cargo"),
        ("gdb", "cargo"),
        ("tar", "cargo"),
        ("vma", "e2fsck"),
        ("vmb", "e2fsck"),
        ("layers", "apt-get"),
        ("web", "python3"),
    ] {
        let directory = parent.path().join(name);
        let mut command = lab();
        command
            .env("PATH", "")
            .args(["dataset", name])
            .arg(&directory);
        let output = command
            .args(["--size", "2M", "--versions", "2"])
            .assert()
            .code(1);
        let said = String::from_utf8(output.get_output().stderr.clone()).unwrap();
        let expected = format!("the program {program} is missing; it is needed to ");
        assert!(said.contains(&expected), "{name}: {said}");
        assert!(!directory.exists(), "{name}");
    }
}

/// Is a process there whose command line has this in it?
fn is_running(part: &Path) -> bool {
    let part = part.to_str().unwrap();
    let processes = fs::read_dir("/proc").unwrap();
    processes.flatten().any(|process| {
        let line = fs::read(process.path().join("cmdline")).unwrap_or_default();
        String::from_utf8_lossy(&line).contains(part)
    })
}

#[test]
fn dumps_come_from_a_real_server() {
    if !has("redis-server", "--version") {
        return;
    }
    let parent = TempDir::new().unwrap();
    let directory = parent.path().join("set");
    build("rdb", &directory, SMALL);
    assert!(!is_running(parent.path()));
    for name in ["v01.rdb", "v02.rdb", "v03.rdb"] {
        let dump = fs::read(directory.join(name)).unwrap();
        assert!(dump.starts_with(b"REDIS00"), "{name}");
        assert!((700_000..1_500_000).contains(&dump.len()), "{}", dump.len());
        assert!(dump.windows(5).any(|window| window == b"email"), "{name}");
    }
    // One that is missing means that all are made again.
    fs::remove_file(directory.join("v02.rdb")).unwrap();
    assert_eq!(build("rdb", &directory, SMALL)["built"], 3);
}

#[test]
fn a_server_ends_when_its_builder_is_killed() {
    if !has("redis-server", "--version") {
        return;
    }
    let parent = TempDir::new().unwrap();
    let (directory, sockets) = (parent.path().join("set"), parent.path().join("tmp"));
    fs::create_dir(&sockets).unwrap();
    let mut builder = std::process::Command::new(assert_cmd::cargo::cargo_bin!("onefold-lab"))
        .args(["dataset", "rdb", "--size", "2G"])
        .arg(&directory)
        .env("TMPDIR", &sockets)
        .stderr(std::process::Stdio::null())
        .spawn()
        .unwrap();
    let until = |what: &dyn Fn() -> bool| {
        (0..1000).any(|_| {
            std::thread::sleep(std::time::Duration::from_millis(10));
            what()
        })
    };
    let is_listening = || {
        let private = fs::read_dir(&sockets).unwrap().flatten().next();
        private.is_some_and(|private| private.path().join("socket").exists())
    };
    assert!(until(&is_listening));
    assert!(is_running(&sockets));
    builder.kill().unwrap();
    builder.wait().unwrap();
    assert!(until(&|| !is_running(&sockets)));
}

#[test]
fn images_of_packages_are_the_same_twice() {
    for (program, argument) in [
        ("apt-get", "--version"),
        ("mke2fs", "-V"),
        ("dpkg-deb", "--version"),
    ] {
        if !has(program, argument) {
            return;
        }
    }
    let parent = TempDir::new().unwrap();
    let fetch = std::process::Command::new("apt-get")
        .args([
            "-qq",
            "-o",
            "APT::Sandbox::User=root",
            "download",
            "hostname",
        ])
        .current_dir(parent.path())
        .output();
    if !fetch.is_ok_and(|output| output.status.success()) {
        println!("skipped: apt-get can't fetch packages");
        return;
    }
    for name in ["vma", "vmb"] {
        let digest = |directory: &str| {
            let options = ["--size", "3M", "--versions", "2"];
            let built = build(name, &parent.path().join(directory), &options);
            text(&built, "digest").to_owned()
        };
        assert_eq!(
            digest(&format!("{name}-1")),
            digest(&format!("{name}-2")),
            "{name}"
        );
    }
}
