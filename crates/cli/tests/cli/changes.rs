//! `tag`, `protect`, `unprotect`.

use std::process::Stdio;
use std::sync::atomic::{AtomicBool, Ordering};

use serde_json::Value;

use crate::sandbox::{Run, Sandbox};

/// The one snapshot that there is.
fn only(sandbox: &Sandbox) -> Value {
    let events = sandbox.events(&["snapshots"]);
    assert_eq!(events.len(), 2, "{events:?}");
    events[0].clone()
}

#[test]
fn tags_are_added_removed_and_set() {
    let sandbox = Sandbox::with_repository();
    let first = sandbox.backup_tree();
    let tags = |line: &[&str]| {
        let events = sandbox.events(line);
        let summary = events.last().unwrap();
        assert_eq!(summary["event"], "summary");
        (only(&sandbox)["tags"].clone(), summary["changed"].clone())
    };
    let add = ["tag", "add", &first, "--tag", "a", "--tag", "b"];
    assert_eq!(tags(&add), (["a", "b"][..].into(), 1.into()));
    // The id that it had still names it.
    assert_eq!(tags(&add), (["a", "b"][..].into(), 0.into()));
    let remove = ["tag", "remove", &first[..10], "--tag", "a", "--tag", "x"];
    assert_eq!(tags(&remove), (["b"][..].into(), 1.into()));
    let set = ["tag", "set", "latest", "--tag", "c"];
    assert_eq!(tags(&set), (["c"][..].into(), 1.into()));
    assert_eq!(only(&sandbox)["original"], first);
    sandbox.ok(&["ls", &first]);
    let said = sandbox.ok(&["tag", "set", "latest", "latest", "--none"]);
    assert!(said.contains("no tags"), "{said}");
    assert!(said.contains("Changed 1 snapshot."), "{said}");
    assert_eq!(only(&sandbox)["tags"], Value::Array(Vec::new()));

    // Backups go on from it as if nothing had happened.
    let summary = sandbox.events(&["backup", "tree"]).pop().unwrap();
    assert_eq!(summary["files_new"], 0);
    sandbox.ok(&["check", "--read-data"]);
}

/// Whoever lists snapshots while one is being changed finds it, once.
#[test]
fn a_snapshot_is_there_while_it_is_changed() {
    let sandbox = Sandbox::with_repository();
    let first = sandbox.backup_tree();
    let is_done = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            for _ in 0..15 {
                sandbox.ok(&["protect", &first]);
                sandbox.ok(&["unprotect", &first]);
            }
            is_done.store(true, Ordering::SeqCst);
        });
        while !is_done.load(Ordering::SeqCst) {
            assert_eq!(only(&sandbox)["original"], first);
            sandbox.ok(&["ls", &first]);
        }
    });
}

/// Several clients change one snapshot: each change is there, or its client has said otherwise.
#[test]
fn changes_at_the_same_time_are_kept_or_refused() {
    let sandbox = Sandbox::with_repository();
    let first = sandbox.backup_tree();
    let tags: Vec<String> = (0..8).map(|number| format!("tag{number}")).collect();
    let add = |tag: &String| {
        let mut command = sandbox.command(&["tag", "add", &first, "--tag", tag]);
        command.stdout(Stdio::piped()).stderr(Stdio::piped());
        command.spawn().unwrap()
    };
    let children: Vec<_> = tags.iter().map(add).collect();
    let codes = children
        .into_iter()
        .map(|child| Run::of(child.wait_with_output().unwrap()).code);
    let codes: Vec<_> = codes.collect();
    let events = sandbox.events(&["snapshots"]);
    let has = |tag: &str| {
        let mut all = events.iter().filter_map(|event| event["tags"].as_array());
        all.any(|tags| tags.iter().any(|other| other == tag))
    };
    for (tag, code) in tags.iter().zip(codes) {
        assert!(has(tag) || code == Some(1), "{tag}: {code:?} {events:?}");
    }
    assert!(events.len() > 1);
}

#[test]
fn tags_need_snapshots_and_words() {
    let sandbox = Sandbox::with_repository();
    sandbox.backup_tree();
    for line in [
        &["tag"][..],
        &["tag", "add", "latest"],
        &["tag", "add", "--tag", "a"],
        &["tag", "set", "latest"],
        &["tag", "set", "latest", "--none", "--tag", "a"],
        &["tag", "add", "yesterday", "--tag", "a"],
        &["protect"],
    ] {
        sandbox.run(line).expect(2);
    }
    let run = sandbox.run(&["tag", "add", "ffff", "latest", "--tag", "a"]);
    run.expect(1).says("no snapshot ffff");
    assert_eq!(only(&sandbox)["tags"], Value::Array(Vec::new()));
}

#[test]
fn protection_is_shown_and_taken_away() {
    let sandbox = Sandbox::with_repository();
    let first = sandbox.backup_tree();
    let said = sandbox.ok(&["protect", "latest"]);
    assert!(said.contains("protected"), "{said}");
    assert_eq!(only(&sandbox)["is_protected"], true);
    let table = sandbox.ok(&["snapshots"]);
    assert!(table.contains(" *"), "{table}");
    let said = sandbox.ok(&["protect", &first]);
    assert!(said.contains("1 was like that before"), "{said}");
    sandbox.ok(&["unprotect", &first]);
    assert_eq!(only(&sandbox)["is_protected"], false);
    // A host that has none is no reason to take another's.
    sandbox
        .run(&["protect", "latest", "--host", "nowhere"])
        .expect(1);
}
