//! `onefold prune`: what goes, what it says, and that others go on.

use std::process::Stdio;

use crate::sandbox::{Sandbox, noise};

/// Three snapshots of 2 MB, half of each its own.
fn place() -> (Sandbox, Vec<String>) {
    let sandbox = Sandbox::new();
    sandbox.ok(&[
        "init",
        "--no-encryption",
        "-q",
        "--container-size",
        "256KiB",
    ]);
    let snapshots = (0..3).map(|version| {
        sandbox.write("tree/own.bin", &noise(1 << 20, 10 + version));
        sandbox.write("tree/shared.bin", &noise(1 << 20, 1));
        sandbox.backup_tree()
    });
    let snapshots = snapshots.collect();
    (sandbox, snapshots)
}

fn stored(sandbox: &Sandbox) -> u64 {
    let stats = sandbox.events(&["stats"]);
    stats.last().unwrap()["data_containers_bytes"]
        .as_u64()
        .unwrap()
}

#[test]
fn what_was_forgotten_goes() {
    let (sandbox, snapshots) = place();
    let before = stored(&sandbox);
    let nothing = sandbox.events(&["prune"]).pop().unwrap();
    assert_eq!(nothing["bytes_deleted"], 0);
    sandbox.ok(&["forget", &snapshots[0]]);
    let dry = sandbox.events(&["prune", "--dry-run"]).pop().unwrap();
    assert_eq!(
        (&dry["is_dry_run"], &dry["bytes_deleted"]),
        (&true.into(), &0.into())
    );
    assert!(dry["bytes_unneeded"].as_u64().unwrap() > 900_000);
    assert_eq!(stored(&sandbox), before);
    let done = sandbox
        .events(&["prune", "--max-unused", "0"])
        .pop()
        .unwrap();
    assert!(done["bytes_deleted"].as_u64().unwrap() > 900_000);
    assert_eq!(done["snapshots"], 2);
    assert!(stored(&sandbox) < before - 800_000);
    sandbox.ok(&["check", "--read-data"]);
    for version in [1, 2] {
        let from = format!("{}:{}", snapshots[version], sandbox.text("tree"));
        let out = sandbox.text(&format!("out{version}"));
        sandbox.ok(&["restore", &from, &out]);
        let own = std::fs::read(sandbox.path(&format!("out{version}/tree/own.bin")))
            .or_else(|_| std::fs::read(sandbox.path(&format!("out{version}/own.bin"))));
        assert!(own.unwrap() == noise(1 << 20, 10 + version as u64));
    }
    let text = sandbox.ok(&["prune"]);
    assert!(text.contains("Deleted:  0 B"), "{text}");
}

#[test]
fn a_backup_at_work_is_waited_for() {
    let (sandbox, snapshots) = place();
    // A backup of a stream that has not ended.
    let mut backup = sandbox
        .command(&["backup", "-", "--stdin-name", "slow"])
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let runs = sandbox.path("repository/runs");
    while !std::fs::read_dir(&runs).is_ok_and(|mut entries| entries.next().is_some()) {
        std::thread::sleep(std::time::Duration::from_millis(5));
    }
    sandbox.ok(&["forget", &snapshots[0]]);
    let waits = sandbox
        .events(&["prune", "--max-unused", "0"])
        .pop()
        .unwrap();
    assert_eq!(waits["bytes_deleted"], 0);
    assert_eq!(waits["waiting_for"].as_array().unwrap().len(), 1);
    assert!(waits["containers_waiting"].as_u64().unwrap() > 0);
    drop(backup.stdin.take());
    assert!(backup.wait().unwrap().success());
    let done = sandbox
        .events(&["prune", "--max-unused", "0"])
        .pop()
        .unwrap();
    assert!(done["bytes_deleted"].as_u64().unwrap() > 900_000);
    sandbox.ok(&["check", "--read-data"]);
}

#[test]
fn who_was_killed_is_not_waited_for() {
    let (sandbox, snapshots) = place();
    let mut backup = sandbox
        .command(&["backup", "-", "--stdin-name", "killed"])
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let runs = sandbox.path("repository/runs");
    while !std::fs::read_dir(&runs).is_ok_and(|mut entries| entries.next().is_some()) {
        std::thread::sleep(std::time::Duration::from_millis(5));
    }
    backup.kill().unwrap();
    backup.wait().unwrap();
    sandbox.ok(&["forget", &snapshots[0]]);
    // Its process was on this machine.
    let text = sandbox.ok(&["prune", "--max-unused", "0"]);
    assert!(text.contains("Taken for dead: a backup"), "{text}");
    assert!(!text.contains("Waiting:"), "{text}");
    sandbox.backup_tree();
    sandbox.ok(&["check"]);
    sandbox.run(&["prune", "--max-unused", "200"]).expect(2);
    sandbox.run(&["prune", "--dead-after", "0"]).expect(2);
}
