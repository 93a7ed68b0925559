//! `key`: several passwords. Each opening costs some tenths of a second: few of them here.

use serde_json::Value;

use crate::sandbox::{Run, Sandbox};

/// A place with an encrypted repository; passwords are in the files `one`, `two`, `three`.
fn encrypted() -> Sandbox {
    let sandbox = Sandbox::new();
    for name in ["one", "two", "three"] {
        sandbox.write(name, format!("password {name}\n").as_bytes());
    }
    sandbox.ok(&["init", "-q", "--password-file", "one"]);
    sandbox
}

/// The program with the password in that file.
fn run(sandbox: &Sandbox, password: &str, arguments: &[&str]) -> Run {
    let mut line = arguments.to_vec();
    line.extend(["--password-file", password]);
    sandbox.run(&line)
}

/// The keys as that password shows them.
fn keys(sandbox: &Sandbox, password: &str) -> Vec<Value> {
    let events = run(sandbox, password, &["key", "list", "--json"]).expect(0);
    let mut events = events.events();
    events.retain(|event| event["event"] != "epoch");
    let summary = events.pop().unwrap();
    assert_eq!(summary["keys"], events.len());
    events
}

#[test]
fn passwords_are_added_listed_and_removed() {
    let sandbox = encrypted();
    let add = ["key", "add", "--name", "safe", "--new-password-file", "two"];
    run(&sandbox, "one", &add).expect(0);
    let [first, second] = &keys(&sandbox, "two")[..] else {
        panic!("two keys");
    };
    assert_eq!(
        (&first["name"], &second["name"]),
        (&"".into(), &"safe".into())
    );
    assert_eq!(first["host"], second["host"]);
    assert!(first["created"].is_string());
    let is_current = |key: &Value| key["is_current"] == true;
    assert!(!is_current(first) && is_current(second));
    assert_eq!(second["argon2_memory_bytes"], 64 << 20);
    let id = |key: &Value| key["key"].as_str().unwrap()[..8].to_owned();
    let table = run(&sandbox, "two", &["key", "list"]).expect(0).stdout;
    let line = table.lines().find(|line| line.starts_with('*')).unwrap();
    assert!(
        line.contains(&id(second)) && line.ends_with("safe"),
        "{table}"
    );

    let remove = ["key", "remove", &id(second)];
    run(&sandbox, "two", &remove).expect(1).says("--force");
    run(&sandbox, "two", &["key", "remove", &id(first)]).expect(0);
    run(&sandbox, "one", &["snapshots"]).expect(12);
    let last = ["key", "remove", &id(second), "--force"];
    run(&sandbox, "two", &last)
        .expect(1)
        .says("add another password first");
    run(&sandbox, "two", &["snapshots"]).expect(0);
}

#[test]
fn a_password_is_changed() {
    let sandbox = encrypted();
    let passwd = [
        "key",
        "passwd",
        "--name",
        "mine",
        "--new-password-file",
        "two",
    ];
    run(&sandbox, "one", &passwd).expect(0);
    run(&sandbox, "one", &["snapshots"]).expect(12);
    // The name goes on; the new password comes from the environment.
    let mut command = sandbox.command(&["key", "passwd", "--json", "--password-file", "two"]);
    command.env("ONEFOLD_NEW_PASSWORD", "password three");
    Run::new(&mut command).expect(0);
    let keys = keys(&sandbox, "three");
    assert_eq!(keys.len(), 1);
    assert_eq!(keys[0]["name"], "mine");
}

#[test]
fn passwords_that_can_not_be_had_change_nothing() {
    let sandbox = encrypted();
    sandbox.write("empty", b"\n");
    run(&sandbox, "one", &["key", "add"])
        .expect(12)
        .says("--new-password-file");
    let empty = ["key", "add", "--new-password-file", "empty"];
    run(&sandbox, "one", &empty).expect(12);
    run(&sandbox, "two", &["key", "list"]).expect(12);
    run(&sandbox, "one", &["key", "remove", "ffff0000"]).expect(1);
    for line in [
        &["key"][..],
        &["key", "remove"],
        &["key", "remove", "latest"],
        &[
            "key",
            "add",
            "--new-password-file",
            "a",
            "--new-password-command",
            "b",
        ],
    ] {
        sandbox.run(line).expect(2);
    }
    assert_eq!(keys(&sandbox, "one").len(), 1);
}

#[test]
fn where_nothing_is_encrypted_there_are_no_passwords() {
    let sandbox = Sandbox::with_repository();
    let add = ["key", "add", "--new-password-command", "echo secret"];
    sandbox.run(&add).expect(1).says("not encrypted");
    let events = sandbox.run(&["key", "list", "--json"]).expect(0).events();
    assert_eq!(events[0]["has_password"], false);
}

/// Removing a key and rotating shuts its holder out, who has kept the key itself.
#[test]
fn a_removed_key_is_shut_out_by_a_rotation() {
    let sandbox = encrypted();
    sandbox.write("tree/file", b"first");
    let add = ["key", "add", "--new-password-file", "two"];
    run(&sandbox, "one", &add).expect(0);
    run(&sandbox, "one", &["backup", "tree"]).expect(0);
    let list = keys(&sandbox, "two");
    let current = list.iter().find(|key| key["is_current"] == true).unwrap();
    let removed = current["key"].as_str().unwrap().to_owned();
    let slot = format!("repository/keys/{removed}");
    let kept = std::fs::read(sandbox.path(&slot)).unwrap();
    run(&sandbox, "one", &["key", "remove", &removed]).expect(0);
    let rotated = run(&sandbox, "one", &["key", "rotate"]).expect(0).stdout;
    assert!(rotated.contains("a new secret"), "{rotated}");
    sandbox.write("tree/file", b"second");
    run(&sandbox, "one", &["backup", "tree"]).expect(0);
    let table = run(&sandbox, "one", &["key", "list"]).expect(0).stdout;
    assert!(table.contains("(2 epochs)"), "{table}");

    std::fs::write(sandbox.path(&slot), kept).unwrap();
    let two = run(&sandbox, "two", &["snapshots"]).expect(13);
    two.says("without the key");
    run(&sandbox, "two", &["backup", "tree"])
        .expect(1)
        .says("onefold key add");
    run(&sandbox, "two", &["key", "rotate"]).expect(1);
    let list = run(&sandbox, "one", &["key", "list"]).expect(0).stdout;
    assert!(
        list.contains(&removed[..8]) && list.contains("do not open it"),
        "{list}"
    );
    run(&sandbox, "one", &["check", "--read-data"]).expect(0);
}

#[test]
fn what_is_not_encrypted_is_not_rotated() {
    let sandbox = Sandbox::with_repository();
    sandbox
        .run(&["key", "rotate"])
        .expect(1)
        .says("not encrypted");
}
