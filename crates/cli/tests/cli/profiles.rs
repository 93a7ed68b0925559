//! Profiles from outside: which settings count, the commands around a verb, the file for Prometheus.

use crate::sandbox::{Run, Sandbox};

const FILE: &str = r#"
[home]
repo = "REPO"
metrics-file = "metrics.prom"

[home.backup]
paths = ["tree"]
exclude = ["*.bin"]
tag = ["nightly"]
run-before = ["echo before $ONEFOLD_PROFILE $ONEFOLD_VERB", "mkdir -p mounted"]
run-after = "echo after $ONEFOLD_EXIT_CODE; echo $ONEFOLD_REPO > ended"

[home.forget]
keep-last = 1

[broken.backup]
paths = ["tree"]
run-before = "false"
run-after = "echo after $ONEFOLD_EXIT_CODE"

[mistyped]
exlude = ["x"]

[senseless]
memory = "none"
"#;

/// A place with that file, and a tree; nothing of the environment names a repository.
fn place() -> Sandbox {
    let sandbox = Sandbox::with_repository();
    let file = FILE.replace("REPO", &sandbox.text("repository"));
    sandbox.write("profiles.toml", file.as_bytes());
    sandbox
}

fn run(sandbox: &Sandbox, arguments: &[&str]) -> Run {
    let mut command = sandbox.command(arguments);
    command
        .env_remove("ONEFOLD_REPO")
        .env("ONEFOLD_CONFIG", sandbox.path("profiles.toml"));
    Run::new(&mut command)
}

#[test]
fn a_profile_says_what_is_to_be_done() {
    let sandbox = place();
    let done = run(&sandbox, &["-P", "home", "backup", "--json"]).expect(0);
    let summary = done.events().pop().unwrap();
    assert_eq!(summary["files"], 2, "without what the profile leaves out");
    // JSON stays JSON, whatever commands print.
    assert!(
        done.stderr.contains("before home backup\n"),
        "{}",
        done.stderr
    );
    assert!(done.stderr.contains("after 0\n"), "{}", done.stderr);
    let ended = std::fs::read_to_string(sandbox.path("ended")).unwrap();
    assert_eq!(ended.trim(), sandbox.text("repository"));
    let listed = run(&sandbox, &["--profile=home", "snapshots", "--json"]).expect(0);
    assert_eq!(listed.events()[0]["tags"][0], "nightly");
    assert!(
        listed.stderr.is_empty(),
        "commands of backup, and of nothing else"
    );
}

#[test]
fn who_says_something_else_is_heard() {
    let sandbox = place();
    let more = [
        "-P",
        "home",
        "backup",
        "--exclude",
        "a.txt",
        "tree/sub",
        "--json",
    ];
    let summary = run(&sandbox, &more).expect(0).events().pop().unwrap();
    assert_eq!(summary["files"], 2, "another list, another path");
    // A variable beats the profile, an option the variable.
    let mut by_variable = sandbox.command(&["-P", "home", "snapshots"]);
    by_variable
        .env("ONEFOLD_CONFIG", sandbox.path("profiles.toml"))
        .env("ONEFOLD_REPO", sandbox.path("nowhere"));
    Run::new(&mut by_variable).expect(10);
    let repository = sandbox.text("repository");
    by_variable.args(["--repo", &repository]);
    Run::new(&mut by_variable).expect(0);
    // A profile may be named by the environment, too.
    let mut by_environment = sandbox.command(&["forget", "--json"]);
    by_environment
        .env("ONEFOLD_CONFIG", sandbox.path("profiles.toml"))
        .env("ONEFOLD_PROFILE", "home");
    let forgotten = Run::new(&mut by_environment)
        .expect(0)
        .events()
        .pop()
        .unwrap();
    assert_eq!(forgotten["kept"], 1);
}

#[test]
fn what_is_wrong_with_a_profile_is_told() {
    let sandbox = place();
    let none = run(&sandbox, &["-P", "nobody", "snapshots"]).expect(2);
    assert!(
        none.stderr.contains("no profile 'nobody'"),
        "{}",
        none.stderr
    );
    assert!(
        none.stderr
            .contains("there are: broken, home, mistyped, senseless")
    );
    let mistyped = run(&sandbox, &["-P", "mistyped", "snapshots"]).expect(2);
    let told = "mistyped.exlude: there is no such setting";
    assert!(mistyped.stderr.contains(told), "{}", mistyped.stderr);
    let json = run(&sandbox, &["-P", "mistyped", "snapshots", "--json"]).expect(2);
    assert_eq!(json.events()[0]["code"], 2);
    let senseless = run(&sandbox, &["-P", "senseless", "snapshots"]).expect(2);
    assert!(
        senseless.stderr.contains("--memory"),
        "{}",
        senseless.stderr
    );
    assert!(
        senseless.stderr.contains("The profile 'senseless' of"),
        "{}",
        senseless.stderr
    );
    let nowhere = ["--config", "nowhere.toml", "-P", "home", "snapshots"];
    let nowhere = run(&sandbox, &nowhere).expect(1);
    assert!(
        nowhere.stderr.contains("cannot read nowhere.toml"),
        "{}",
        nowhere.stderr
    );
    let help = run(&sandbox, &["-P", "nobody", "backup", "--help"]).expect(0);
    assert!(help.stdout.contains("Usage:"));
}

#[test]
fn a_command_that_fails_before_ends_it() {
    let sandbox = place();
    let repository = sandbox.text("repository");
    let failed = [
        "--repo",
        &repository,
        "-P",
        "broken",
        "--metrics-file",
        "broken.prom",
        "backup",
    ];
    let failed = run(&sandbox, &failed).expect(4);
    assert!(
        failed
            .stderr
            .contains("'false', which was to run before, failed"),
        "{}",
        failed.stderr
    );
    assert!(failed.stderr.contains("after 4"), "{}", failed.stderr);
    let metrics = std::fs::read_to_string(sandbox.path("broken.prom")).unwrap();
    assert!(
        metrics.contains("exit_code{verb=\"backup\",profile=\"broken\"} 4"),
        "{metrics}"
    );
    assert!(!metrics.contains("success"), "nothing was done: {metrics}");
    let listed = run(&sandbox, &["-P", "home", "snapshots", "--json"]).expect(0);
    assert!(
        listed
            .events()
            .iter()
            .all(|event| event["event"] != "snapshot")
    );
}

#[test]
fn figures_are_left_for_prometheus() {
    let sandbox = place();
    run(&sandbox, &["-P", "home", "backup"]).expect(0);
    let read = || std::fs::read_to_string(sandbox.path("metrics.prom")).unwrap();
    let labels = r#"{verb="backup",profile="home"}"#;
    assert!(
        read().contains(&format!("onefold_last_run_exit_code{labels} 0\n")),
        "{}",
        read()
    );
    assert!(
        read().contains(&format!("onefold_last_success_files{labels} 2\n")),
        "{}",
        read()
    );
    std::fs::rename(sandbox.path("tree"), sandbox.path("away")).unwrap();
    let code = run(&sandbox, &["-P", "home", "backup"]).code.unwrap();
    assert_ne!(code, 0);
    assert!(
        read().contains(&format!("onefold_last_run_exit_code{labels} {code}\n")),
        "{}",
        read()
    );
    run(&sandbox, &["-P", "home", "snapshots"]).expect(0);
    assert!(
        read().contains(r#"exit_code{verb="snapshots",profile="home"} 0"#),
        "{}",
        read()
    );
    // What is no file of ours stays, and the backup is none the worse for it.
    sandbox.write("notes", b"mine\n");
    std::fs::rename(sandbox.path("away"), sandbox.path("tree")).unwrap();
    let beside = ["-P", "home", "--metrics-file", "notes", "backup"];
    let beside = run(&sandbox, &beside).expect(0);
    assert!(
        beside.stderr.contains("cannot write metrics to notes"),
        "{}",
        beside.stderr
    );
    assert_eq!(std::fs::read(sandbox.path("notes")).unwrap(), b"mine\n");
}

#[test]
fn the_guide_shows_a_profile_that_is_one() {
    let guide = include_str!("../../../../docs/guide/automation.md");
    let (_, rest) = guide.split_once("```toml\n").unwrap();
    let (file, _) = rest.split_once("```").unwrap();
    let sandbox = Sandbox::with_repository();
    sandbox.write("profiles.toml", file.as_bytes());
    let repository = sandbox.text("repository");
    for profile in ["home", "laptop"] {
        let line = [
            "--repo",
            &repository,
            "-P",
            profile,
            "--metrics-file",
            "m",
            "--password-command",
            "echo x",
        ];
        // The repository is not encrypted: a password is too much, all else is fine.
        let refused = run(&sandbox, &[&line[..], &["snapshots"]].concat()).expect(12);
        assert!(
            refused.stderr.contains("not encrypted"),
            "{}",
            refused.stderr
        );
    }
}
