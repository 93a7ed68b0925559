//! `export` and `import`.

use std::fs::{self, File};
use std::process::{Command, Stdio};

use crate::sandbox::{Run, Sandbox, files_below};

/// Is GNU tar, or another one, there?
fn has_tar() -> bool {
    let is_there = Command::new("tar").arg("--version").output().is_ok();
    if !is_there {
        eprintln!("skipped: there is no tar");
    }
    is_there
}

#[test]
fn a_tar_goes_out_and_comes_in() {
    let sandbox = Sandbox::with_repository();
    sandbox.backup_tree();
    let tree = sandbox.text("tree");
    let path = format!("latest:{tree}");
    let text = sandbox.ok(&["export", &path, "-o", "out.tar"]);
    assert!(text.starts_with("Exported 3 files"), "{text}");
    assert!(!sandbox.path("out.tar.partial").exists());
    // The standard output has the same bytes.
    let run = sandbox.run(&["export", &path]).expect(0);
    assert!(run.stdout_bytes == fs::read(sandbox.path("out.tar")).unwrap());
    if has_tar() {
        fs::create_dir(sandbox.path("extracted")).unwrap();
        let tar = Command::new("tar")
            .args(["-xf", "../out.tar"])
            .current_dir(sandbox.path("extracted"))
            .status();
        assert!(tar.unwrap().success());
        assert!(files_below(&sandbox.path("extracted")) == files_below(&sandbox.path("tree")));
    }
    let line = [
        "import",
        "out.tar",
        "--path",
        &tree,
        "--host",
        "elsewhere",
        "--time",
        "2019-06-30 12:00",
        "--tag",
        "old",
    ];
    let text = sandbox.ok(&line);
    assert!(
        text.contains("3 files") && text.contains("0 B new"),
        "{text}"
    );
    let events = sandbox.events(&["snapshots", "--host", "elsewhere", "--tag", "old"]);
    assert_eq!(events[0]["time"], "2019-06-30T12:00:00Z");
    assert_eq!(events[0]["paths"][0], tree.as_str());
    sandbox.ok(&[
        "restore",
        &format!("{}:{tree}", events[0]["snapshot"].as_str().unwrap()),
        "back",
    ]);
    assert!(files_below(&sandbox.path("back")) == files_below(&sandbox.path("tree")));
    // And from a pipe, without storing.
    let mut command = sandbox.command(&["import", "-n"]);
    let input = Stdio::from(File::open(sandbox.path("out.tar")).unwrap());
    let run = Run::new(command.stdin(input)).expect(0);
    assert!(run.stdout.starts_with("Would import"), "{run:?}");
}

#[test]
fn failures_are_told() {
    let sandbox = Sandbox::with_repository();
    sandbox.backup_tree();
    sandbox
        .run(&["export", "latest:/nowhere"])
        .expect(1)
        .says("is not in snapshot");
    sandbox
        .run(&["export", "latest", "-o", "no/such/directory.tar"])
        .expect(1)
        .says("cannot write");
    sandbox.ok(&["export", "latest", "-o", "out.tar", "-q"]);
    let bytes = fs::read(sandbox.path("out.tar")).unwrap();
    sandbox.write("cut.tar", &bytes[..bytes.len() / 2]);
    sandbox
        .run(&["import", "cut.tar"])
        .expect(1)
        .says("cut off");
    sandbox.write("wrong.tar", &bytes[100..]);
    sandbox
        .run(&["import", "wrong.tar"])
        .expect(1)
        .says("checksum");
    sandbox.write("packed.tar.gz", b"\x1f\x8b\x08 and more");
    sandbox
        .run(&["import", "packed.tar.gz"])
        .expect(1)
        .says("gzip -dc FILE | onefold import -");
    sandbox
        .run(&["import", "nothing.tar"])
        .expect(1)
        .says("cannot read nothing.tar");
    sandbox
        .run(&["import", "out.tar", "--time", "yesterday"])
        .expect(2)
        .says("no time");
    assert_eq!(
        sandbox.events(&["snapshots"]).last().unwrap()["snapshots"],
        1
    );
    // What it had is replaced by a whole archive alone.
    sandbox.write("old.tar", b"what was there");
    let container = files_below(&sandbox.path("repository/containers"));
    for (name, _) in container {
        fs::remove_file(sandbox.path("repository/containers").join(name)).unwrap();
    }
    sandbox
        .run(&["export", "latest", "-o", "old.tar"])
        .expect(13);
    assert_eq!(
        fs::read(sandbox.path("old.tar")).unwrap(),
        b"what was there"
    );
    assert!(!sandbox.path("old.tar.partial").exists());
}
