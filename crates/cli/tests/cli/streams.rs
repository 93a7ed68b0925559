//! `backup -` and `--from-command`.

use std::fs::File;
use std::process::Stdio;

use crate::sandbox::{Run, Sandbox, noise};

#[test]
fn the_standard_input_comes_back() {
    let sandbox = Sandbox::with_repository();
    let bytes = noise(700_000, 3);
    sandbox.write("stream", &bytes);
    let input = || Stdio::from(File::open(sandbox.path("stream")).unwrap());
    let lines: [(&[&str], &str); 3] = [
        (&["backup", "-"], "stdin"),
        (&["backup", "-", "--stdin-name", "photos.tar"], "photos.tar"),
        (&["backup", "--stdin-name", "bare"], "bare"),
    ];
    for (line, name) in lines {
        let mut command = sandbox.command(line);
        Run::new(command.stdin(input())).expect(0);
        let run = sandbox.run(&["dump", "latest", name]).expect(0);
        assert_eq!(run.stdout_bytes, bytes);
        assert_eq!(sandbox.ok(&["ls", "latest"]), format!("/{name}\n"));
    }
}

#[test]
fn an_empty_stream_is_a_file() {
    let sandbox = Sandbox::with_repository();
    sandbox.ok(&["backup", "-"]);
    assert_eq!(sandbox.ok(&["dump", "latest", "stdin"]), "");
    sandbox.ok(&["restore", "latest", "out"]);
    assert_eq!(std::fs::read(sandbox.path("out/stdin")).unwrap(), b"");
}

#[test]
fn a_commands_output_comes_back() {
    let sandbox = Sandbox::with_repository();
    let script = "for i in 1 2 3; do echo line $i; done";
    let line = [
        "backup",
        "--stdin-name",
        "out.txt",
        "--from-command",
        "--",
        "sh",
        "-c",
        script,
    ];
    let summary = sandbox.ok(&line);
    assert!(summary.contains("1 new"), "{summary}");
    assert_eq!(
        sandbox.ok(&["dump", "latest", "/out.txt"]),
        "line 1\nline 2\nline 3\n"
    );
}

#[test]
fn a_command_that_fails_makes_no_snapshot() {
    let sandbox = Sandbox::with_repository();
    let run = |script: &str| sandbox.run(&["backup", "--from-command", "--", "sh", "-c", script]);
    run("echo half; exit 3").expect(1).says("exit status: 3");
    run("echo half; kill -9 $$").expect(1).says("signal: 9");
    let line = ["backup", "--from-command", "--", "there-is-no-such-command"];
    sandbox
        .run(&line)
        .expect(1)
        .says("there-is-no-such-command");
    assert_eq!(sandbox.events(&["snapshots"]).len(), 1, "the summary alone");
}
