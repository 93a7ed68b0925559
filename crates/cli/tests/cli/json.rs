//! `--json`: every line is an object, and has the fields that docs/guide/json.md names.

use serde_json::Value;

use crate::sandbox::{Run, Sandbox};

const PAGE: &str = include_str!("../../../../docs/guide/json.md");

/// The fields that the page names under a heading: the first column of its table.
fn documented(heading: &str) -> Vec<String> {
    let start = PAGE
        .find(&format!("\n### {heading}\n"))
        .unwrap_or_else(|| panic!("no heading {heading}"));
    let section = &PAGE[start + 1..];
    let end = section[4..]
        .find("\n#")
        .map_or(section.len(), |end| end + 4);
    let rows = section[..end]
        .lines()
        .filter_map(|line| line.strip_prefix("| `"));
    let fields = rows.map(|row| row.split('`').next().unwrap().to_owned());
    fields.collect()
}

/// Makes sure that an event has exactly the documented fields.
#[track_caller]
pub fn assert_documented(event: &Value, heading: &str) {
    let mut expected = documented(heading);
    let mut found: Vec<String> = event.as_object().unwrap().keys().cloned().collect();
    found.retain(|field| field != "event" && field != "command");
    // Fields that are there only when they say something; the page marks them with "if".
    for optional in ["path_hex", "paths_hex", "target", "device"] {
        if !found.iter().any(|field| field == optional) {
            expected.retain(|field| field != optional);
        }
    }
    expected.sort();
    found.sort();
    assert_eq!(found, expected, "{heading}: {event}");
}

fn of_kind<'a>(events: &'a [Value], kind: &str) -> &'a Value {
    let found = events.iter().find(|event| event["event"] == kind);
    found.unwrap_or_else(|| panic!("no {kind} in {events:?}"))
}

#[test]
fn every_verb_ends_with_a_documented_summary() {
    let sandbox = Sandbox::new();
    sandbox.write("tree/a.txt", b"first\n");
    let line = ["init", "--json", "--no-encryption"];
    let events = sandbox.run(&line).expect(0).events();
    assert_documented(of_kind(&events, "created"), "created");
    assert_documented(of_kind(&events, "warning"), "warning");
    let tree = format!("latest:{}", sandbox.text("tree"));
    let verbs: [&[&str]; 10] = [
        &["backup", "tree"],
        &["snapshots"],
        &["ls", "latest"],
        &["restore", &tree, "out"],
        &["export", "latest", "--output", "out.tar"],
        &["import", "out.tar", "--dry-run"],
        &["diff", "latest", "latest"],
        &["stats"],
        &["check"],
        &["prune"],
    ];
    for arguments in verbs {
        let events = sandbox.events(arguments);
        if let Some(stages) = events.iter().find(|event| event["event"] == "stages") {
            assert_documented(stages, "stages");
            assert_documented(&stages["stages"][0], "a stage");
        }
        let summary = events.last().unwrap();
        assert_eq!(summary["event"], "summary");
        assert_eq!(summary["command"], arguments[0]);
        assert_documented(summary, &format!("summary of {}", arguments[0]));
    }
}

#[test]
fn lists_are_documented() {
    let sandbox = Sandbox::with_repository();
    let first = sandbox.backup_tree();
    sandbox.write("tree/new", b"new");
    sandbox.backup_tree();
    assert_documented(
        of_kind(&sandbox.events(&["snapshots"]), "snapshot"),
        "snapshot",
    );
    assert_documented(
        of_kind(&sandbox.events(&["ls", "latest"]), "entry"),
        "entry",
    );
    let events = sandbox.events(&["forget", "--keep-last", "1", "-n"]);
    assert_documented(of_kind(&events, "decision"), "decision");
    assert_documented(&events[1]["reasons"][0], "a reason");
    assert_documented(of_kind(&events, "summary"), "summary of forget");
    let events = sandbox.events(&["protect", "latest"]);
    assert_documented(of_kind(&events, "changed"), "changed");
    assert_documented(of_kind(&events, "summary"), "summary of tag and protect");
    let events = sandbox.events(&["diff", &first, "latest"]);
    assert_documented(of_kind(&events, "difference"), "difference");
}

#[test]
fn repairs_are_documented() {
    let sandbox = Sandbox::with_repository();
    sandbox.backup_tree();
    let verbs = ["snapshots", "containers", "remaps", "index"];
    for verb in verbs {
        let events = sandbox.events(&["repair", verb]);
        let summary = of_kind(&events, "summary");
        assert_eq!(summary["command"], format!("repair_{verb}"));
        assert_documented(summary, &format!("summary of repair_{verb}"));
        if verb == "snapshots" {
            assert_documented(of_kind(&events, "repaired"), "repaired");
        }
    }
    let events = sandbox.events(&["recover"]);
    assert_documented(of_kind(&events, "summary"), "summary of recover");
}

#[test]
fn copies_are_documented() {
    let sandbox = Sandbox::with_repository();
    sandbox.backup_tree();
    let mut init = sandbox.command(&["init", "--no-encryption", "-q"]);
    Run::new(init.env("ONEFOLD_REPO", sandbox.path("other"))).expect(0);
    let events = sandbox.events(&["copy", "--to", "other"]);
    assert_documented(of_kind(&events, "copied"), "copied");
    assert_documented(of_kind(&events, "summary"), "summary of copy");
}

#[test]
fn migrations_are_documented() {
    let sandbox = Sandbox::with_repository();
    let events = sandbox.events(&["migrate"]);
    assert_documented(of_kind(&events, "migration"), "migration");
    assert_documented(of_kind(&events, "summary"), "summary of migrate");
}

#[test]
fn keys_are_documented() {
    let sandbox = Sandbox::new();
    let verbs: [(&[&str], &str); 5] = [
        (&["rotate"], "summary of key_rotate"),
        (&["add"], "summary of key_add and key_remove"),
        (&["list"], "summary of key_list"),
        (&["passwd"], "summary of key_passwd"),
        (&["remove"], "summary of key_add and key_remove"),
    ];
    let run = |line: &[&str]| {
        let mut command = sandbox.command(line);
        command.env("ONEFOLD_PASSWORD", "one");
        command.env("ONEFOLD_NEW_PASSWORD", "one");
        Run::new(&mut command).expect(0).events()
    };
    run(&["init", "--json"]);
    let mut added = String::new();
    for (verb, heading) in verbs {
        let mut line = [&["key", "--json"], verb].concat();
        if verb == ["remove"] {
            line.extend([&added, "--force"]);
        }
        let events = run(&line);
        let summary = events.last().unwrap();
        assert_documented(summary, heading);
        if let Some(key) = summary["key"].as_str() {
            key.clone_into(&mut added);
        }
        if verb == ["list"] {
            assert_documented(of_kind(&events, "key"), "key");
            assert_documented(of_kind(&events, "epoch"), "epoch");
        }
    }
}

#[test]
fn a_backup_counts_what_it_did() {
    let sandbox = Sandbox::with_repository();
    sandbox.write(
        "tree/copy",
        &std::fs::read(sandbox.path("tree/sub/deep/c.bin")).unwrap(),
    );
    let events = sandbox.events(&["backup", "tree"]);
    let summary = events.last().unwrap();
    assert_eq!(summary["files"], 4);
    assert_eq!(summary["bytes"], 400_013);
    assert_eq!(summary["bytes_read"], 400_013);
    assert_eq!(summary["bytes_new"], 200_013);
    assert_eq!(summary["bytes_unique"], 200_013);
    assert!(summary["bytes_stored"].as_u64().unwrap() > 200_000);
    assert!((summary["dedup_ratio"].as_f64().unwrap() - 2.0).abs() < 0.01);
    assert!(summary["seconds"].as_f64().unwrap() > 0.0);
}

#[test]
fn problems_and_errors_are_events() {
    let sandbox = Sandbox::with_repository();
    let run = sandbox
        .run(&["backup", "--json", "tree", "nowhere"])
        .expect(3);
    let events = run.events();
    let problem = of_kind(&events, "problem");
    assert_documented(problem, "problem");
    assert_eq!(problem["is_error"], true);
    assert_eq!(of_kind(&events, "summary")["errors"], 1);

    let run = sandbox.run(&["--json", "ls", "ffff"]).expect(1);
    let events = run.events();
    assert_eq!(run.stderr, "");
    let error = events.last().unwrap();
    assert_documented(error, "error");
    assert_eq!(error["code"], 1);
    assert!(error["hint"].is_string());

    let run = sandbox.run(&["--json", "ls"]).expect(2);
    assert_eq!(of_kind(&run.events(), "error")["code"], 2);
}

#[test]
fn long_work_sends_progress() {
    let sandbox = Sandbox::with_repository();
    let line = ["backup", "--json", "--from-command", "--", "sleep", "1.5"];
    let events = sandbox.run(&line).expect(0).events();
    assert_documented(of_kind(&events, "progress"), "progress");
}

#[test]
fn dump_keeps_its_output_clean() {
    let sandbox = Sandbox::with_repository();
    sandbox.backup_tree();
    let path = sandbox.text("tree/a.txt");
    let run = sandbox.run(&["dump", "--json", "latest", &path]).expect(0);
    assert_eq!(run.stdout, "first\n");
    let events = Run {
        stdout: run.stderr.clone(),
        ..run
    }
    .events();
    assert_documented(of_kind(&events, "summary"), "summary of dump");
}
