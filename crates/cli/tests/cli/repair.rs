//! `repair index`: damage and loss are found by `check`, and made good with one command.

use std::fs;

use std::path::PathBuf;

use crate::sandbox::{Sandbox, files_below, noise};

fn index_files(sandbox: &Sandbox) -> Vec<std::path::PathBuf> {
    let directory = sandbox.path("repository/index");
    let files = files_below(&directory);
    files
        .into_iter()
        .map(|(name, _)| directory.join(name))
        .collect()
}

#[test]
fn a_damaged_or_lost_index_is_repaired() {
    for is_lost in [false, true] {
        let sandbox = Sandbox::with_repository();
        sandbox.write("tree/large", &noise(3, 3_000_000));
        sandbox.backup_tree();
        let files = index_files(&sandbox);
        assert_eq!(files.len(), 1);
        if is_lost {
            fs::remove_file(&files[0]).unwrap();
        } else {
            let mut bytes = fs::read(&files[0]).unwrap();
            bytes[1000] ^= 1;
            fs::write(&files[0], bytes).unwrap();
        }
        // What is lost shows in what snapshots use; what is damaged when it is read.
        sandbox
            .run(&["check", "--read-data"])
            .expect(13)
            .says("onefold repair index");
        let planned = sandbox.run(&["repair", "index", "--dry-run"]).expect(0);
        assert!(planned.stdout.contains("Would take"), "{}", planned.stdout);
        let summary = sandbox.events(&["repair", "index"]).pop().unwrap();
        assert_eq!(summary["command"], "repair_index");
        assert_eq!(summary["runs_replaced"], u64::from(!is_lost));
        assert_eq!(summary["containers_indexed"], summary["containers"]);
        sandbox.run(&["check", "--read-data"]).expect(0);
        let again = sandbox.run(&["repair", "index"]).expect(0);
        assert!(again.stdout.contains("nothing to do"), "{}", again.stdout);
        let saved = sandbox
            .events(&["backup", "tree", "--force"])
            .pop()
            .unwrap();
        assert_eq!(saved["chunks_new"], 0);
    }
}

#[test]
fn a_check_reads_the_part_that_was_asked_for() {
    let sandbox = Sandbox::with_repository();
    sandbox.write("tree/large", &noise(9_000_000, 3));
    sandbox.backup_tree();
    let summary = |line: &[&str]| sandbox.events(line).pop().unwrap();
    let parts = ["1/3", "2/3", "3/3"].map(|part| summary(&["check", "--read-data-sample", part]));
    let all = summary(&["check", "--read-data-sample", "100%"]);
    let sum = |field: &str| {
        parts
            .iter()
            .map(|part| part[field].as_u64().unwrap())
            .sum::<u64>()
    };
    assert!(all["bytes_verified"].as_u64().unwrap() > 9_000_000);
    assert_eq!(all["bytes_verified"], sum("bytes_verified"));
    assert_eq!(all["groups_verified"], sum("groups_verified"));
    assert_eq!(
        (&parts[1]["sample"], &parts[1]["seed"]),
        (&"2/3".into(), &0.into())
    );
    assert_eq!(parts[1]["is_data_read"], false);
    // What is said leads to the same again.
    let some = summary(&["check", "--read-data-sample", "2MiB"]);
    let seed = some["seed"].to_string();
    let again = summary(&["check", "--read-data-sample", "2MiB", "--seed", &seed]);
    assert_eq!(some["bytes_verified"], again["bytes_verified"]);
    let text = sandbox
        .run(&["check", "--read-data-sample", "50%", "--seed", "7"])
        .expect(0);
    assert!(
        text.stdout.contains("about 50%, --seed 7"),
        "{}",
        text.stdout
    );
    for wrong in [
        &["--read-data-sample", "8/7"][..],
        &["--seed", "1"],
        &["--read-data", "--read-data-sample", "5%"],
    ] {
        sandbox.run(&[&["check"], wrong].concat()).expect(2);
    }
}

/// The containers of a repository, the largest first.
fn container_files(sandbox: &Sandbox) -> Vec<PathBuf> {
    let directory = sandbox.path("repository/containers");
    let mut files = files_below(&directory);
    files.sort_by_key(|(_, bytes)| std::cmp::Reverse(bytes.len()));
    files
        .into_iter()
        .map(|(name, _)| directory.join(name))
        .collect()
}

/// A repository of one snapshot with a byte of file data wrong, the id of the snapshot, and the container.
fn damaged() -> (Sandbox, String, PathBuf) {
    let sandbox = Sandbox::with_repository();
    sandbox.write("tree/large", &noise(3 << 20, 3));
    let snapshot = sandbox.backup_tree();
    let container = container_files(&sandbox).remove(0);
    let mut bytes = fs::read(&container).unwrap();
    bytes[(1 << 20) + (300 << 10)] ^= 1; // In the second group: of no other file.
    fs::write(&container, bytes).unwrap();
    (sandbox, snapshot, container)
}

#[test]
fn damage_is_repaired_as_the_guide_says() {
    let (sandbox, snapshot, container) = damaged();
    sandbox.run(&["check"]).expect(0);
    sandbox.run(&["check", "--read-data"]).expect(13);
    let dry = sandbox.run(&["repair", "containers", "-n"]).expect(13);
    assert!(dry.stdout.contains("Would move"), "{}", dry.stdout);
    assert!(dry.stderr.contains("tree/large"), "{}", dry.stderr);
    sandbox.run(&["repair", "containers"]).expect(13);
    // Somebody needs what is lost: nothing is deleted.
    sandbox
        .run(&["prune"])
        .expect(13)
        .says("onefold repair snapshots --forget");
    assert!(container.exists());
    sandbox.ok(&["backup", "--force", "tree"]);
    let done = sandbox.events(&["repair", "snapshots", "--forget"]);
    let summary = done.last().unwrap();
    assert_eq!(
        (&summary["repaired"], &summary["files_lost"]),
        (&1.into(), &0.into())
    );
    assert!(summary["files_relinked"].as_u64().unwrap() > 0);
    sandbox.ok(&["prune"]);
    assert!(!container.exists());
    sandbox.ok(&["check", "--read-data"]);
    // The old id leads to the snapshot that took its place, and all of it is there.
    let from = format!("{snapshot}:{}", sandbox.text("tree"));
    let out = sandbox.text("out");
    sandbox.ok(&["restore", &from, &out]);
    let large = files_below(&sandbox.path("out"));
    assert!(large.iter().any(|(_, bytes)| *bytes == noise(3 << 20, 3)));
}

#[test]
fn what_is_lost_is_named_and_listed() {
    let (sandbox, snapshot, _) = damaged();
    let dry = sandbox
        .run(&["repair", "snapshots", "--dry-run"])
        .expect(13);
    assert!(
        dry.stdout.contains("is damaged: 1 file lost"),
        "{}",
        dry.stdout
    );
    assert_eq!(sandbox.events(&["snapshots"]).len(), 2);
    let line = [
        "repair",
        "snapshots",
        "--keep-parts",
        &snapshot[..8],
        "--json",
    ];
    let events = sandbox.run(&line).expect(13).events();
    let repaired = events
        .iter()
        .find(|event| event["event"] == "repaired")
        .unwrap();
    assert_eq!(
        (&repaired["outcome"], &repaired["files_kept_in_part"]),
        (&"repaired".into(), &1.into())
    );
    let problem = events
        .iter()
        .find(|event| event["event"] == "problem")
        .unwrap();
    assert!(problem["path"].as_str().unwrap().ends_with("/tree/large"));
    let listed = sandbox.events(&["snapshots"]);
    let new = listed
        .iter()
        .find(|event| event["snapshot"] == repaired["new"])
        .unwrap();
    assert_eq!(
        (&new["repaired"], &new["errors"]),
        (&snapshot.clone().into(), &1.into())
    );
    let list = sandbox.ok(&["ls", "latest", &sandbox.text("tree")]);
    assert!(list.contains("large.damaged"), "{list}");
    let again = sandbox
        .run(&["repair", "snapshots", "--keep-parts"])
        .expect(13);
    assert!(
        again.stdout.contains("has had what is left already"),
        "{}",
        again.stdout
    );
    sandbox.run(&["repair", "snapshots", "ffff"]).expect(1);
}

#[test]
fn a_deleted_snapshot_is_recovered() {
    let sandbox = Sandbox::with_repository();
    let snapshot = sandbox.backup_tree();
    let nothing = sandbox.ok(&["recover"]);
    assert!(nothing.contains("nothing to recover"), "{nothing}");
    sandbox.ok(&["forget", &snapshot]);
    let dry = sandbox.ok(&["recover", "-n"]);
    assert!(
        dry.contains("Would recover 1 directory with 3 files"),
        "{dry}"
    );
    let done = sandbox.events(&["recover"]).pop().unwrap();
    assert_eq!(
        (&done["files"], &done["directories"]),
        (&3.into(), &1.into())
    );
    let new = done["snapshot"].as_str().unwrap();
    let from = format!("{new}:{}", sandbox.text("tree"));
    let out = sandbox.text("out");
    sandbox.ok(&["restore", &from, &out]);
    assert_eq!(
        files_below(&sandbox.path("out")),
        files_below(&sandbox.path("tree"))
    );
    sandbox.ok(&["check", "--read-data"]);
}

#[test]
fn a_damaged_remap_is_made_again() {
    let sandbox = Sandbox::new();
    sandbox.ok(&[
        "init",
        "--no-encryption",
        "-q",
        "--container-size",
        "256KiB",
    ]);
    let mut last = String::new();
    for version in 0..3 {
        sandbox.write("tree/own.bin", &noise(1 << 19, 10 + version));
        sandbox.write("tree/shared.bin", &noise(1 << 19, 1));
        let snapshot = sandbox.backup_tree();
        if version == 0 {
            last = snapshot;
        }
    }
    sandbox.ok(&["forget", &last]);
    sandbox.ok(&["prune", "--max-unused", "0"]);
    let directory = sandbox.path("repository/remaps");
    let files = files_below(&directory);
    assert!(!files.is_empty());
    for (name, mut bytes) in files {
        bytes[15] ^= 1;
        fs::write(directory.join(name), bytes).unwrap();
    }
    sandbox
        .run(&["check"])
        .expect(13)
        .says("onefold repair remaps");
    let dry = sandbox.ok(&["repair", "remaps", "--dry-run"]);
    assert!(dry.contains("Would make"), "{dry}");
    sandbox.ok(&["repair", "remaps"]);
    sandbox.ok(&["check", "--read-data"]);
    let again = sandbox.ok(&["repair", "remaps"]);
    assert!(again.contains("Nothing to do"), "{again}");
}
