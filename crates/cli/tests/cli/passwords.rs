//! Where passwords come from. Each opening costs some tenths of a second: few of them here.

use std::fs;

use crate::sandbox::{Run, Sandbox};

#[test]
fn every_source_opens_the_same_repository() {
    let sandbox = Sandbox::new();
    sandbox.write("password", b"open sesame\n");
    sandbox.write("tree/a.txt", b"first\n");
    let line = ["backup", "tree", "--password-file", "password"];
    let run = sandbox
        .run(&line)
        .expect(0)
        .says("Created the encrypted repository");
    assert!(run.stderr.contains("Keep the password"), "{run:#?}");

    let by_command = "printf 'open sesame\\n'";
    let run = sandbox
        .run(&["snapshots", "--password-command", by_command])
        .expect(0);
    assert!(run.stdout.contains("tree"), "{run:#?}");

    let mut by_variable = sandbox.command(&["check"]);
    by_variable.env("ONEFOLD_PASSWORD", "open sesame");
    Run::new(&mut by_variable).expect(0);

    // The command line beats the environment.
    let mut both = sandbox.command(&["snapshots", "--password-file", "password"]);
    both.env("ONEFOLD_PASSWORD", "wrong");
    Run::new(&mut both).expect(0);

    for (_, bytes) in crate::sandbox::files_below(&sandbox.path("repository")) {
        let holds = |needle: &[u8]| bytes.windows(needle.len()).any(|window| window == needle);
        assert!(!holds(b"open sesame") && !holds(b"a.txt"));
    }
}

#[test]
fn passwords_that_can_not_be_had_create_nothing() {
    let sandbox = Sandbox::new();
    sandbox.write("empty", b"\n");
    sandbox.run(&["init"]).expect(12).says("ONEFOLD_PASSWORD");
    sandbox
        .run(&["init", "--password-file", "empty"])
        .expect(12)
        .says("empty");
    sandbox
        .run(&["init", "--password-file", "missing"])
        .expect(1)
        .says("missing");
    let run = sandbox
        .run(&["init", "--password-command", "echo secret; exit 7"])
        .expect(1);
    assert!(run.stderr.contains("exit status: 7"), "{run:#?}");
    assert!(!run.stderr.contains("secret\n"), "{run:#?}");
    assert!(!sandbox.path("repository").exists());
}

#[test]
fn a_repository_without_encryption_is_announced_loudly() {
    let sandbox = Sandbox::new();
    let run = sandbox.run(&["init", "--no-encryption", "-q"]).expect(0);
    run.says("NOT BE ENCRYPTED");
    // A password for it means that somebody has put it in the place of an encrypted one.
    let mut command = sandbox.command(&["snapshots"]);
    command.env("ONEFOLD_PASSWORD", "secret");
    Run::new(&mut command).expect(12).says("not encrypted");
    let mut command = sandbox.command(&["init", "--no-encryption"]);
    command.env("ONEFOLD_PASSWORD", "secret");
    command.env("ONEFOLD_REPO", sandbox.path("another"));
    Run::new(&mut command).expect(2);
    assert!(!sandbox.path("another").exists());
}

#[test]
fn commands_do_not_get_the_password() {
    let sandbox = Sandbox::new();
    let script = "echo \"${ONEFOLD_PASSWORD-unset}\"";
    let line = [
        "backup",
        "--stdin-name",
        "env",
        "--from-command",
        "--",
        "sh",
        "-c",
        script,
    ];
    let mut command = sandbox.command(&line);
    command.env("ONEFOLD_PASSWORD", "secret");
    Run::new(&mut command).expect(0);
    let mut command = sandbox.command(&["dump", "latest", "env"]);
    command.env("ONEFOLD_PASSWORD", "secret");
    assert_eq!(Run::new(&mut command).expect(0).stdout, "unset\n");
    assert!(fs::metadata(sandbox.path("repository/config")).is_ok());
}
