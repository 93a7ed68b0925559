//! `repair index`: damage and loss are found by `check`, and made good with one command.

use std::fs;

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
