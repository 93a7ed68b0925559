//! `--stages`: what the stages did, for people; for programs it is always there.

use serde_json::Value;

use crate::sandbox::Sandbox;

const STORING: [&str; 9] = [
    "walk",
    "read",
    "chunk",
    "fingerprint",
    "index",
    "delta",
    "compress",
    "pack",
    "put",
];
const READING: [&str; 5] = ["fetch", "unseal", "decompress", "verify", "write"];

fn rows(text: &str) -> Vec<&str> {
    let first_words = text.lines().filter_map(|line| line.split(' ').next());
    let header = first_words.skip_while(|word| *word != "stage");
    header.skip(1).collect()
}

#[test]
fn a_table_has_every_stage_and_names_the_bottleneck() {
    let sandbox = Sandbox::with_repository();
    let backup = sandbox.run(&["backup", "tree", "--stages"]).expect(0);
    let table = rows(&backup.stderr);
    assert_eq!(table, [&STORING[..], &["Bottleneck:"]].concat());
    let restore = ["restore", "latest", "out", "--stages"];
    let table = sandbox.run(&restore).expect(0).stderr;
    assert_eq!(
        rows(&table),
        [&["plan"], &READING[..], &["Bottleneck:"]].concat()
    );
    let check = ["check", "--read-data", "--stages"];
    let table = sandbox.run(&check).expect(0).stderr;
    for stage in &READING[..4] {
        assert!(rows(&table).contains(stage), "{table}");
    }
    // Asked for, or not there.
    let plain = sandbox.run(&["backup", "tree", "--force"]).expect(0);
    assert!(!plain.stderr.contains("Bottleneck"), "{}", plain.stderr);
}

fn stages(events: &[Value]) -> &Value {
    let place = events.iter().position(|event| event["event"] == "stages");
    let place = place.unwrap_or_else(|| panic!("no stages in {events:?}"));
    assert_eq!(place + 2, events.len(), "just before the summary");
    &events[place]
}

#[test]
fn programs_see_them_without_asking() {
    let sandbox = Sandbox::with_repository();
    let events = sandbox.events(&["backup", "tree"]);
    let event = stages(&events);
    let list = event["stages"].as_array().unwrap();
    let names: Vec<&str> = list
        .iter()
        .map(|stage| stage["stage"].as_str().unwrap())
        .collect();
    assert_eq!(names, STORING);
    assert!(names.contains(&event["bottleneck"].as_str().unwrap()));
    // The files have 200,013 bytes: all are read, cut, fingerprinted and, being new, compressed.
    for stage in &list[1..4] {
        assert_eq!(stage["bytes"], 200_013, "{stage}");
    }
    assert_eq!(list[6]["bytes"], 200_013);
    for stage in list {
        // Nothing there resembles anything else.
        let is_busy = stage["seconds_busy"].as_f64().unwrap() > 0.0;
        assert!(is_busy == (stage["stage"] != "delta"), "{stage}");
        assert_eq!(stage["queued_bytes"], 0, "{stage}");
    }
    sandbox.let_files_age();
    sandbox.events(&["backup", "tree", "--force"]);
    let unchanged = sandbox.events(&["backup", "tree"]);
    assert_eq!(stages(&unchanged)["stages"][1]["bytes"], 0);
}

#[test]
fn any_threads_memory_and_compression_do() {
    let sandbox = Sandbox::with_repository();
    for line in [
        &["--threads", "1", "--read-concurrency", "1"][..],
        &["--threads", "7", "--memory", "32MiB"],
        &["--compression", "auto", "--memory", "64MiB"],
        &["--compression", "19"],
        &["--compression", "none"],
    ] {
        let mut backup = vec!["backup", "tree", "--force"];
        backup.extend(line);
        sandbox.ok(&backup);
    }
    sandbox.ok(&["check", "--read-data", "--threads", "3"]);
    sandbox
        .run(&["backup", "tree", "--compression", "best"])
        .expect(2);
}
