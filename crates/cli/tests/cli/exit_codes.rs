//! Every exit code of docs/guide/exit-codes.md, brought about once.

use std::fs;
use std::io::Read;
use std::process::Stdio;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};

use crate::sandbox::{Run, Sandbox, is_root, noise};

#[test]
fn done_is_0() {
    Sandbox::with_repository()
        .run(&["backup", "tree"])
        .expect(0);
}

#[test]
fn failed_is_1() {
    let sandbox = Sandbox::with_repository();
    sandbox
        .run(&["backup", "nowhere"])
        .expect(1)
        .says("nowhere");
    sandbox.run(&["ls", "latest"]).expect(1).says("Hint:");
    sandbox.backup_tree();
    sandbox
        .run(&["ls", "latest", "/not/there"])
        .expect(1)
        .says("/not/there");
    sandbox
        .run(&["dump", "latest", "/not/there"])
        .expect(1)
        .says("/not/there");
    sandbox
        .run(&["restore", "ffff", "out"])
        .expect(1)
        .says("ffff");
}

#[test]
fn wrong_usage_is_2() {
    let sandbox = Sandbox::with_repository();
    let runs: [&[&str]; 8] = [
        &[],
        &["frobnicate"],
        &["backup"],
        &["backup", "-", "tree"],
        &["backup", "tree", "--compression", "99"],
        &["ls", "yesterday"],
        &["init", "--chunk-sizes", "1,2"],
        &[
            "snapshots",
            "--password-file",
            "a",
            "--password-command",
            "b",
        ],
    ];
    for arguments in runs {
        sandbox.run(arguments).expect(2);
    }
    let mut command = sandbox.command(&["snapshots"]);
    command.env_remove("ONEFOLD_REPO");
    Run::new(&mut command).expect(2).says("ONEFOLD_REPO");
}

#[test]
fn impossible_parameters_are_2() {
    let sandbox = Sandbox::new();
    for arguments in [
        &["--chunk-sizes", "8K,4K,64K"][..],
        &["--container-size", "1K"],
        &["--normalization", "99"],
        &["--chunker-parameter", "window_bytes=64"],
        &[
            "--algorithm",
            "rabin",
            "--chunker-parameter",
            "window_bytes=50",
        ],
    ] {
        let mut line = vec!["init", "--no-encryption"];
        line.extend(arguments);
        let said = sandbox.run(&line).expect(2).stderr;
        assert!(
            !said.contains("WILL NOT BE"),
            "refused before it begins: {said}"
        );
        assert!(!sandbox.path("repository").exists(), "nothing is left");
    }
}

#[test]
fn partly_saved_is_3() {
    let sandbox = Sandbox::with_repository();
    // Of two paths, one is missing: whoever runs the tests as root can read everything else.
    let run = sandbox.run(&["backup", "tree", "nowhere"]).expect(3);
    run.says("nowhere");
    let snapshot = sandbox.events(&["snapshots"])[0].clone();
    assert_eq!(snapshot["is_partial"], true);
    assert_eq!(snapshot["errors"], 1);
    let table = sandbox.run(&["snapshots"]).expect(0).says("partial").stdout;
    assert!(table.contains(" !"), "{table}");
    if !is_root() {
        use std::os::unix::fs::PermissionsExt;
        let closed = fs::Permissions::from_mode(0o000);
        fs::set_permissions(sandbox.path("tree/a.txt"), closed).unwrap();
        sandbox
            .run(&["backup", "tree", "--force"])
            .expect(3)
            .says("a.txt");
    }
}

#[test]
fn partly_restored_is_3() {
    let sandbox = Sandbox::with_repository();
    sandbox.backup_tree();
    sandbox.write("out/a.txt", b"in the way\n");
    let tree = format!("latest:{}", sandbox.text("tree"));
    sandbox
        .run(&["restore", &tree, "out"])
        .expect(3)
        .says("a.txt");
    assert_eq!(
        fs::read(sandbox.path("out/a.txt")).unwrap(),
        b"in the way\n"
    );
    assert_eq!(
        fs::read(sandbox.path("out/sub/b.txt")).unwrap(),
        b"second\n"
    );
}

#[test]
fn no_repository_is_10() {
    let sandbox = Sandbox::new();
    sandbox.write("tree/a.txt", b"first\n");
    let verbs: [&[&str]; 5] = [
        &["snapshots"],
        &["check"],
        &["restore", "latest", "out"],
        &["backup", "tree", "--no-create"],
        &["backup", "tree", "--dry-run"],
    ];
    for arguments in verbs {
        sandbox.run(arguments).expect(10).says("repository");
    }
    assert!(!sandbox.path("repository").exists());
}

#[test]
fn a_directory_of_other_things_is_10_and_stays_as_it_is() {
    let sandbox = Sandbox::new();
    sandbox.write("tree/a.txt", b"first\n");
    sandbox.write("repository/thesis.tex", b"...");
    let mut command = sandbox.command(&["backup", "tree"]);
    command.env("ONEFOLD_PASSWORD", "secret");
    Run::new(&mut command).expect(10).says("thesis.tex");
    sandbox.run(&["snapshots"]).expect(10).says("thesis.tex");
    sandbox
        .run(&["init", "--no-encryption"])
        .expect(1)
        .says("thesis.tex");
    assert_eq!(fs::read_dir(sandbox.path("repository")).unwrap().count(), 1);
}

#[test]
fn a_second_init_is_11() {
    let sandbox = Sandbox::with_repository();
    sandbox
        .run(&["init", "--no-encryption"])
        .expect(11)
        .says("already");
}

#[test]
fn wrong_or_missing_passwords_are_12() {
    let sandbox = Sandbox::new();
    let with = |password: &str, arguments: &[&str]| {
        let mut command = sandbox.command(arguments);
        Run::new(command.env("ONEFOLD_PASSWORD", password))
    };
    with("secret", &["init"])
        .expect(0)
        .says("Keep the password");
    with("wrong", &["snapshots"])
        .expect(12)
        .says("wrong password");
    with("", &["snapshots"]).expect(12).says("empty");
    with("secret", &["snapshots"]).expect(0);
    sandbox
        .run(&["snapshots"])
        .expect(12)
        .says("ONEFOLD_PASSWORD");
}

#[test]
fn damage_is_13() {
    let sandbox = Sandbox::with_repository();
    let id = sandbox.backup_tree();
    let container = largest_file(&sandbox, "repository/containers");
    let mut bytes = fs::read(&container).unwrap();
    let middle = bytes.len() / 2;
    bytes[middle] ^= 1;
    fs::write(&container, &bytes).unwrap();
    let run = sandbox.run(&["check", "--read-data"]).expect(13);
    let name = container.file_name().unwrap().to_str().unwrap();
    assert!(run.stderr.contains(name), "{run:#?}");
    let path = sandbox.text("tree/sub/deep/c.bin");
    sandbox
        .run(&["dump", "latest", &path])
        .expect(13)
        .says("Hint:");

    fs::write(sandbox.path("repository/snapshots").join(&id), b"").unwrap();
    sandbox.run(&["snapshots"]).expect(13).says(&id[..8]);
    sandbox.run(&["ls", &id]).expect(13).says(&id);

    let config = sandbox.path("repository/config");
    let bytes = fs::read(&config).unwrap();
    fs::write(&config, &bytes[..bytes.len() - 1]).unwrap();
    sandbox.run(&["snapshots"]).expect(13).says("config");
    fs::remove_file(&config).unwrap();
    sandbox.run(&["snapshots"]).expect(13).says("config");
    sandbox
        .run(&["init", "--no-encryption"])
        .expect(13)
        .says("config");
    let mut command = sandbox.command(&["backup", "tree"]);
    Run::new(command.env("ONEFOLD_PASSWORD", "x")).expect(13);
}

fn largest_file(sandbox: &Sandbox, directory: &str) -> std::path::PathBuf {
    let files = crate::sandbox::files_below(&sandbox.path(directory));
    let largest = files
        .into_iter()
        .max_by_key(|(_, bytes)| bytes.len())
        .unwrap();
    sandbox.path(directory).join(largest.0)
}

#[test]
fn interruptions_are_130() {
    let sandbox = Sandbox::with_repository();
    for signal in [Signal::INT, Signal::TERM] {
        // A stream that never ends: the program waits for it.
        let mut command = sandbox.command(&["backup", "-"]);
        command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        let mut child = command.spawn().unwrap();
        let stdin = child.stdin.take();
        wait_until_caught(child.id());
        kill_process(Pid::from_child(&child), signal).unwrap();
        let run = Run::of(child.wait_with_output().unwrap());
        drop(stdin);
        run.expect(130).says("interrupted");
    }
    assert_eq!(sandbox.events(&["snapshots"]).len(), 1, "the summary alone");
}

/// Waits until the process catches SIGINT and SIGTERM.
fn wait_until_caught(process: u32) {
    let deadline = Instant::now() + Duration::from_secs(20);
    while Instant::now() < deadline {
        let status = fs::read_to_string(format!("/proc/{process}/status")).unwrap();
        let caught = status.lines().find_map(|line| line.strip_prefix("SigCgt:"));
        let caught = u64::from_str_radix(caught.unwrap().trim(), 16).unwrap();
        let wanted = (1 << (2 - 1)) | (1 << (15 - 1));
        if caught & wanted == wanted {
            return;
        }
        std::thread::sleep(Duration::from_millis(5));
    }
    panic!("the process does not catch signals");
}

#[test]
fn output_that_nobody_reads_is_141_and_no_panic() {
    let sandbox = Sandbox::with_repository();
    // More than a pipe and a buffer hold.
    sandbox.write("tree/large", &noise(3 << 20, 9));
    sandbox.backup_tree();
    let path = sandbox.text("tree/large");
    let mut command = sandbox.command(&["dump", "latest", &path]);
    command.stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().unwrap();
    let mut output = child.stdout.take().unwrap();
    output.read_exact(&mut [0; 10]).unwrap();
    drop(output);
    let run = Run::of(child.wait_with_output().unwrap()).expect(141);
    assert_eq!(run.stderr, "");

    let verbs: [&[&str]; 6] = [
        &["completions", "bash"],
        &["man"],
        &["ls", "latest"],
        &["snapshots"],
        &["stats"],
        &["check"],
    ];
    for arguments in verbs {
        let (reader, writer) = std::io::pipe().unwrap();
        drop(reader);
        let mut command = sandbox.command(arguments);
        let child = command.stdout(writer).stderr(Stdio::piped()).spawn();
        let run = Run::of(child.unwrap().wait_with_output().unwrap()).expect(141);
        assert_eq!(run.stderr, "", "{arguments:?}");
    }
}

#[test]
fn the_page_lists_every_code() {
    let page = include_str!("../../../../docs/guide/exit-codes.md");
    for code in [0, 1, 2, 3, 10, 11, 12, 13, 130, 141] {
        assert!(page.contains(&format!("| {code} |")), "{code}");
    }
}
