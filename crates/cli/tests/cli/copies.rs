//! `copy`, and `init --cut-like`.

use std::fs;

use serde_json::Value;

use crate::sandbox::{Run, Sandbox, files_below};

/// Runs on the other repository of the place.
fn other(sandbox: &Sandbox, line: &[&str]) -> Run {
    Run::new(
        sandbox
            .command(line)
            .env("ONEFOLD_REPO", sandbox.path("other")),
    )
}

fn snapshots(run: Run) -> Vec<Value> {
    let mut events = run.expect(0).events();
    events.retain(|event| event["event"] == "snapshot");
    events
}

#[test]
fn snapshots_are_copied_once() {
    let sandbox = Sandbox::with_repository();
    let first = sandbox.backup_tree();
    sandbox.write("tree/new.txt", b"new");
    sandbox.ok(&["backup", "tree", "--tag", "later", "--host", "laptop"]);
    let repository = sandbox.text("repository");
    other(
        &sandbox,
        &["init", "--no-encryption", "-q", "--cut-like", &repository],
    )
    .expect(0);
    let run = sandbox.run(&["copy", &first, "--to", "other"]).expect(0);
    assert!(run.stdout.starts_with("Copied 1 snapshot in"), "{run:?}");
    assert!(!run.stderr.contains("cut again"), "{run:?}");
    // All the rest, and then nothing.
    let events = sandbox.events(&["copy", "--to", "other"]);
    let copied: Vec<&Value> = events
        .iter()
        .filter(|event| event["event"] == "copied")
        .collect();
    assert_eq!(copied.len(), 2);
    assert_eq!(
        (&copied[0]["is_new"], &copied[1]["is_new"]),
        (&Value::from(false), &Value::from(true))
    );
    assert_eq!(events.last().unwrap()["bytes_new"], 3);
    let text = sandbox.ok(&[
        "copy", "--host", "laptop", "--tag", "later", "--to", "other",
    ]);
    assert!(text.contains("1 was there already"), "{text}");
    // They say the same.
    let originals = snapshots(sandbox.run(&["snapshots", "--json"]));
    let copies = snapshots(other(&sandbox, &["snapshots", "--json"]));
    assert_eq!((originals.len(), copies.len()), (2, 2));
    for (original, copy) in originals.iter().zip(&copies) {
        for field in [
            "time",
            "host",
            "user",
            "paths",
            "tags",
            "files",
            "bytes",
            "error_list",
        ] {
            assert_eq!(original[field], copy[field], "{field}");
        }
        assert_eq!(copy["copy_of"]["snapshot"], original["snapshot"]);
    }
    assert_eq!(copies[1]["parent"], Value::Null, "of another host");
    let tree = sandbox.text("tree");
    other(&sandbox, &["restore", &format!("latest:{tree}"), "back"]).expect(0);
    assert!(files_below(&sandbox.path("back")) == files_below(&sandbox.path("tree")));
    other(&sandbox, &["check", "--read-data"]).expect(0);
}

#[test]
fn both_passwords_are_needed() {
    let sandbox = Sandbox::new();
    sandbox.write("tree/a.txt", b"first\n");
    sandbox.write("one", b"password of one\n");
    sandbox.write("two", b"password of two\n");
    sandbox.ok(&["init", "-q", "--password-file", "one"]);
    sandbox.ok(&["backup", "-q", "tree", "--password-file", "one"]);
    other(&sandbox, &["init", "-q", "--password-file", "two"]).expect(0);
    let line = ["copy", "--password-file", "one", "--to", "other"];
    sandbox.run(&line).expect(12);
    sandbox
        .run(&[&line[..], &["--to-password-file", "one"]].concat())
        .expect(12);
    let run = sandbox
        .run(&[&line[..], &["--to-password-file", "two"]].concat())
        .expect(0);
    assert!(run.stderr.contains("cut again"), "{run:?}");
    let mut command = sandbox.command(&line);
    let run = Run::new(command.env("ONEFOLD_TO_PASSWORD", "password of two")).expect(0);
    assert!(run.stdout.contains("1 was there already"), "{run:?}");
    sandbox.ok(&[&line[..], &["--to-password-command", "cat two"]].concat());
}

#[test]
fn failures_are_told() {
    let sandbox = Sandbox::with_repository();
    let id = sandbox.backup_tree();
    sandbox.run(&["copy"]).expect(2);
    sandbox.run(&["copy", "--to", "nowhere"]).expect(10);
    sandbox
        .run(&["copy", "--to", "repository"])
        .expect(2)
        .says("the same repository");
    other(&sandbox, &["init", "--no-encryption", "-q"]).expect(0);
    sandbox.run(&["copy", "ffff", "--to", "other"]).expect(1);
    // A snapshot that is damaged is named, and not there.
    let containers = sandbox.path("repository/containers");
    for (name, _) in files_below(&containers) {
        fs::remove_file(containers.join(name)).unwrap();
    }
    sandbox
        .run(&["copy", "--to", "other"])
        .expect(13)
        .says(&format!("snapshots/{id}: not copied"));
    assert_eq!(
        snapshots(other(&sandbox, &["snapshots", "--json"])).len(),
        0
    );
}
