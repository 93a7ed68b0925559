//! `forget`: what goes, what stays, and what is refused.

use std::fs;

use serde_json::Value;

use crate::sandbox::{Run, Sandbox};

const DAY: i64 = 86_400;
/// 2026-01-10 12:00 UTC, a Saturday.
const NOON: i64 = 1_768_046_400;

/// A repository without files.
fn empty() -> Sandbox {
    let sandbox = Sandbox::new();
    sandbox.ok(&["init", "--no-encryption", "-q"]);
    sandbox
}

/// A repository with a snapshot for each number of days before noon; their ids.
fn with_days(days: &[i64]) -> (Sandbox, Vec<String>) {
    let sandbox = empty();
    let put = |ago: &i64| sandbox.put_snapshot(NOON - ago * DAY, |_| ());
    let ids = days.iter().map(put).collect();
    (sandbox, ids)
}

/// The ids of the snapshots that are there, oldest first.
fn ids(sandbox: &Sandbox) -> Vec<String> {
    let events = sandbox.events(&["snapshots"]);
    let ids = events.iter().filter_map(|event| event["snapshot"].as_str());
    ids.map(str::to_owned).collect()
}

fn chosen(ids: &[String], numbers: &[usize]) -> Vec<String> {
    numbers.iter().map(|&number| ids[number].clone()).collect()
}

#[test]
fn a_policy_keeps_what_it_says_and_tells_why() {
    let (sandbox, all) = with_days(&[40, 39, 8, 2, 1, 0]);
    let line = ["forget", "--keep-daily", "2", "--keep-monthly", "3", "-n"];
    let said = sandbox.ok(&line);
    let first = said.lines().next().unwrap();
    assert_eq!(first, "host here, paths /home: keeps 4 of 6 snapshots");
    let line_of = |number: usize| {
        let id = &all[number][..8];
        let line = said.lines().find(|line| line.contains(id));
        line.unwrap_or_else(|| panic!("{id} in {said}")).to_owned()
    };
    assert!(line_of(0).starts_with("keep"), "{said}");
    assert!(line_of(0).contains("monthly 2025-12 (oldest)"), "{said}");
    assert!(line_of(1).contains("monthly 2025-12"), "{said}");
    assert!(line_of(5).contains("daily 2026-01-10"), "{said}");
    assert!(said.contains("Would forget"), "{said}");
    assert_eq!(ids(&sandbox), all, "a dry run removes nothing");

    let said = sandbox.ok(&["forget", "--keep-daily", "2"]);
    assert!(said.contains("Forgot 4 snapshots and keep 2."), "{said}");
    assert_eq!(ids(&sandbox), chosen(&all, &[4, 5]));
    assert_eq!(sandbox.ok(&["forget", "--keep-daily", "2", "-q"]), "");
    sandbox.ok(&["check", "--read-data"]);
}

#[test]
fn days_are_those_of_the_time_zone() {
    let sandbox = empty();
    // 23:30 and 00:30 in UTC: one day in New York, two days in London.
    let first = sandbox.put_snapshot(NOON + DAY / 2 - 1800, |_| ());
    let second = sandbox.put_snapshot(NOON + DAY / 2 + 1800, |_| ());
    let kept = |zone: &str| {
        let line = [
            "forget",
            "--json",
            "--keep-daily",
            "1",
            "--keep-tag",
            "x",
            "-n",
        ];
        let mut command = sandbox.command(&line);
        command.env("TZ", zone);
        let events = Run::new(&mut command).expect(0).events();
        let decisions = events.iter().filter(|event| event["event"] == "decision");
        decisions
            .map(|event| event["reasons"][0]["detail"].clone())
            .collect::<Vec<_>>()
    };
    assert_eq!(kept("UTC0"), [Value::Null, "2026-01-11".into()]);
    assert_eq!(kept("EST5"), [Value::Null, "2026-01-10".into()]);
    let line = ["forget", "--keep-daily", "2", "--keep-last", "1"];
    let mut command = sandbox.command(&line);
    command.env("TZ", "UTC0");
    Run::new(&mut command).expect(0);
    assert_eq!(ids(&sandbox), [first, second]);
}

#[test]
fn groups_and_filters_say_what_a_policy_is_for() {
    let (sandbox, here) = with_days(&[3, 2, 1]);
    let put = |ago: i64| sandbox.put_snapshot(NOON - ago * DAY, |s| s.host = "there".to_owned());
    let there = [put(3), put(2)];
    sandbox.ok(&["forget", "--keep-last", "1", "--host", "there"]);
    assert_eq!(ids(&sandbox).len(), 4);
    assert!(!ids(&sandbox).contains(&there[0]));
    let line = ["forget", "--keep-last", "2", "--group-by", "none", "-n"];
    let summary = sandbox.events(&line).pop().unwrap();
    assert_eq!(
        (&summary["groups"], &summary["kept"]),
        (&1.into(), &2.into())
    );
    let table = sandbox.ok(&line);
    assert!(table.contains("HOST") && table.contains("PATHS"), "{table}");
    sandbox.ok(&["forget", "--keep-last", "1"]);
    assert_eq!(ids(&sandbox).len(), 2);
    assert!(ids(&sandbox).contains(&here[2]));
    let said = sandbox.ok(&["forget", "--keep-last", "1", "--host", "nowhere"]);
    assert!(said.contains("No snapshot fits"), "{said}");
}

#[test]
fn what_can_not_be_meant_is_refused() {
    let (sandbox, all) = with_days(&[2, 1, 0]);
    for line in [
        &["forget"][..],
        &["forget", "--dry-run"],
        &["forget", "--host", "here"],
        &["forget", "--unsafe-allow-remove-all"],
        &["forget", "--keep-last", "0"],
        &["forget", "--keep-last", "-1"],
        &["forget", "--keep-within", "5"],
        &["forget", "--keep-last", "1", "--group-by", "day"],
        &["forget", &all[0], "--keep-last", "1"],
        &["forget", &all[0], "--host", "here"],
    ] {
        sandbox.run(line).expect(2);
    }
    sandbox.run(&["forget"]).expect(2).says("--keep-daily");
    // A typing error in a tag must not cost everything.
    let run = sandbox.run(&["forget", "--keep-tag", "kepe"]).expect(1);
    run.says("no whole snapshot would be left of host here, paths /home")
        .says("--unsafe-allow-remove-all");
    sandbox.run(&["forget", &all[0], "ffffff"]).expect(1);
    assert_eq!(ids(&sandbox), all);
    let line = ["forget", "--host", "here", "--unsafe-allow-remove-all"];
    sandbox.ok(&line);
    assert_eq!(ids(&sandbox), Vec::<String>::new());
}

#[test]
fn snapshots_are_forgotten_by_name() {
    let (sandbox, all) = with_days(&[3, 2, 1, 0]);
    let said = sandbox.ok(&["forget", &all[0][..12], &all[2], &all[2], "-n"]);
    assert!(said.contains("Would forget 2 snapshots."), "{said}");
    sandbox.ok(&["forget", &all[0][..12], &all[2]]);
    assert_eq!(ids(&sandbox), chosen(&all, &[1, 3]));
    sandbox.run(&["forget", &all[0]]).expect(1);
    // By an id that it had before it was changed.
    sandbox.ok(&["tag", "add", &all[1], "--tag", "x"]);
    sandbox.ok(&["forget", &all[1]]);
    assert_eq!(ids(&sandbox), chosen(&all, &[3]));
}

#[test]
fn the_protected_stay() {
    let (sandbox, all) = with_days(&[3, 2, 1]);
    sandbox.ok(&["protect", &all[0]]);
    for extra in [&["-n"][..], &[]] {
        let line = [&["forget", &all[0], &all[1]][..], extra].concat();
        sandbox.run(&line).expect(1).says("onefold unprotect");
    }
    assert_eq!(ids(&sandbox).len(), 3, "nothing of it was done");
    let said = sandbox.ok(&["forget", "--keep-last", "1"]);
    assert!(said.contains("protected"), "{said}");
    assert_eq!(ids(&sandbox).len(), 2);
    sandbox.ok(&["forget", "--path", "/home", "--unsafe-allow-remove-all"]);
    assert_eq!(ids(&sandbox).len(), 1);
    sandbox.ok(&["unprotect", &all[0]]);
    sandbox.ok(&["forget", &all[0]]);
    assert_eq!(ids(&sandbox).len(), 0);
}

#[test]
fn the_interrupted_and_the_future_stay_for_now() {
    let (sandbox, all) = with_days(&[3, 2]);
    let interrupted = sandbox.put_snapshot(NOON, |snapshot| snapshot.is_interrupted = true);
    let future = sandbox.put_snapshot(NOON + 200 * 365 * DAY, |s| s.host = "there".to_owned());
    let said = sandbox.ok(&["forget", "--keep-last", "1"]);
    assert!(said.contains("the next backup goes on from it"), "{said}");
    assert!(said.contains("dated in the future"), "{said}");
    let kept = [&all[1], &interrupted, &future];
    assert_eq!(ids(&sandbox), kept.map(String::clone));
    sandbox.put_snapshot(NOON + 60, |_| ());
    sandbox.ok(&["forget", "--keep-last", "1"]);
    assert!(!ids(&sandbox).contains(&interrupted));
}

#[test]
fn what_can_not_be_read_is_named_and_stays() {
    let (sandbox, all) = with_days(&[2, 1, 0]);
    let path = sandbox.path("repository/snapshots").join(&all[1]);
    let mut bytes = fs::read(&path).unwrap();
    bytes[20] ^= 1;
    fs::write(&path, bytes).unwrap();
    let run = sandbox.run(&["forget", "--keep-last", "1"]).expect(13);
    let run = run.says(&all[1][..8]);
    assert!(
        run.stdout.contains("Forgot 1 snapshot and keep 1."),
        "{run:?}"
    );
    sandbox
        .run(&["forget", &all[1]])
        .expect(13)
        .says("can't be read");
    assert!(path.exists());
    let line = ["forget", "--path", "/home", "--unsafe-allow-remove-all"];
    sandbox.run(&line).expect(13);
    assert!(path.exists());
}
