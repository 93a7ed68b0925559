//! `onefold volume`: the verbs, their exit codes, and a disk that goes through real clients.

use std::fs;
use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Stdio};

use crate::sandbox::{Run, Sandbox, noise};

/// A server, which gets SIGINT at the end.
pub struct Server(Child);

impl Server {
    /// Starts `volume serve` and waits until it says where.
    pub fn start(sandbox: &Sandbox, more: &[&str]) -> Self {
        let socket = sandbox.text("socket");
        let mut arguments = vec!["--json", "volume", "serve", "--socket", &socket];
        arguments.extend_from_slice(more);
        let mut child = sandbox
            .command(&arguments)
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut line = String::new();
        let out = child.stdout.as_mut().unwrap();
        BufReader::new(out).read_line(&mut line).unwrap();
        assert!(line.contains("\"serving\""), "{line}");
        Self(child)
    }

    pub fn end(mut self) {
        let id = rustix::process::Pid::from_child(&self.0);
        rustix::process::kill_process(id, rustix::process::Signal::INT).unwrap();
        assert!(self.0.wait().unwrap().success());
    }

    pub fn kill(mut self) {
        self.0.kill().unwrap();
        self.0.wait().unwrap();
    }
}

fn has(program: &str) -> bool {
    let found = Command::new(program).arg("--version").output().is_ok();
    if !found {
        println!("{program} is missing: this test is skipped");
    }
    found
}

#[test]
fn a_disk_goes_through_a_client_and_generations_keep_it() {
    let sandbox = Sandbox::new();
    let (disk, socket) = (sandbox.text("disk.1fv"), sandbox.text("socket"));
    sandbox.ok(&[
        "volume", "create", &disk, "--size", "64MiB", "--zone", "256KiB",
    ]);
    if !has("nbdcopy") {
        return;
    }
    let uri = format!("nbd+unix:///?socket={socket}");
    let mut image = noise(8 << 20, 1);
    image.extend_from_within(..4 << 20);
    image.resize(64 << 20, 0);
    sandbox.write("image", &image);
    let copy = |from: &str, to: &str| {
        let done = Command::new("nbdcopy").args([from, to]).output().unwrap();
        assert!(done.status.success(), "{done:?}");
    };
    let server = Server::start(&sandbox, &[&disk]);
    copy(&sandbox.text("image"), &uri);
    // While it is served, and afterwards.
    let served = sandbox.events(&["volume", "stat", &disk]);
    assert_eq!(served[0]["mapped_bytes"], 12 << 20);
    Run::new(&mut sandbox.command(&["volume", "grow", &disk, "--size", "128MiB"]))
        .expect(1)
        .says("in use");
    server.end();
    let stat = sandbox.events(&["volume", "stat", &disk]);
    assert_eq!(stat[0]["mapped_bytes"], 12 << 20);
    assert_eq!(stat[0]["stored_bytes"], 8 << 20);
    assert_eq!(stat[0]["dedup_ratio"], 1.5);
    assert_eq!(sandbox.ok(&["volume", "pin", &disk]).trim(), "1");
    let server = Server::start(&sandbox, &[&disk]);
    image[5 << 20..6 << 20].copy_from_slice(&noise(1 << 20, 2));
    sandbox.write("later", &image);
    copy(&sandbox.text("later"), &uri);
    server.end();
    let listed = sandbox.events(&["volume", "generations", &disk, "--changes"]);
    assert_eq!(
        (&listed[0]["number"], &listed[0]["event"]),
        (&1.into(), &"generation".into())
    );
    assert!(listed[0]["changed_bytes"].as_u64().unwrap() >= 1 << 20);
    let server = Server::start(&sandbox, &[&disk, "--generation", "1"]);
    copy(&uri, &sandbox.text("out"));
    server.end();
    assert!(fs::read(sandbox.path("out")).unwrap() == fs::read(sandbox.path("image")).unwrap());
    let server = Server::start(&sandbox, &[&disk, "--read-only"]);
    copy(&uri, &sandbox.text("out"));
    server.end();
    assert!(fs::read(sandbox.path("out")).unwrap() == fs::read(sandbox.path("later")).unwrap());
    sandbox.ok(&["volume", "unpin", &disk, "1"]);
    Run::new(&mut sandbox.command(&["volume", "unpin", &disk, "1"]))
        .expect(1)
        .says("no generation 1");
    sandbox.ok(&["volume", "compact", &disk]);
    sandbox.ok(&["volume", "grow", &disk, "--size", "128MiB"]);
    let check = sandbox.events(&["volume", "check", &disk, "--read-data"]);
    assert_eq!(check[0]["problems"], 0);
    assert_eq!(check[0]["mapped_blocks"], (12 << 20) / 4096);
}

#[test]
fn what_can_not_be_is_refused() {
    let sandbox = Sandbox::new();
    let disk = sandbox.text("disk.1fv");
    let run = |arguments: &[&str]| Run::new(&mut sandbox.command(arguments));
    run(&["volume", "stat", &disk]).expect(10).says("disk.1fv");
    sandbox.write("other", b"what somebody needs");
    run(&["volume", "create", &sandbox.text("other"), "--size", "1MiB"])
        .expect(11)
        .says("--force");
    assert_eq!(
        fs::read(sandbox.path("other")).unwrap(),
        b"what somebody needs"
    );
    run(&["volume", "check", &sandbox.text("other")]).expect(10);
    run(&["volume", "create", &disk, "--size", "1000"]).expect(2);
    run(&[
        "volume",
        "create",
        &disk,
        "--size",
        "1MiB",
        "--journal",
        "7-3",
    ])
    .expect(2)
    .says("7-3");
    assert!(!sandbox.path("disk.1fv").exists());
    sandbox.ok(&[
        "volume", "create", &disk, "--size", "1MiB", "--zone", "64KiB",
    ]);
    run(&["volume", "create", &disk, "--size", "1MiB"])
        .expect(11)
        .says("holds a volume");
    run(&["volume", "serve", &disk, "--listen", "0.0.0.0:0"])
        .expect(2)
        .says("--allow-remote");
    run(&["volume", "grow", &disk, "--size", "512KiB"])
        .expect(2)
        .says("shrink");
    sandbox.ok(&[
        "volume",
        "create",
        &disk,
        "--size",
        "1MiB",
        "--zone",
        "64KiB",
        "--persistence",
        "ram",
        "--force",
    ]);
    run(&["volume", "serve", &disk, "--listen", "127.0.0.1:0"])
        .expect(2)
        .says("--volatile");
}

#[test]
fn damage_is_found() {
    let sandbox = Sandbox::new();
    let (disk, socket) = (sandbox.text("disk.1fv"), sandbox.text("socket"));
    sandbox.ok(&[
        "volume", "create", &disk, "--size", "4MiB", "--zone", "64KiB",
    ]);
    if !has("nbdcopy") {
        return;
    }
    sandbox.write("image", &noise(4 << 20, 3));
    let server = Server::start(&sandbox, &[&disk]);
    let uri = format!("nbd+unix:///?socket={socket}");
    let done = Command::new("nbdcopy")
        .args([&sandbox.text("image"), &uri])
        .output()
        .unwrap();
    assert!(done.status.success(), "{done:?}");
    server.end();
    let whole = fs::read(&disk).unwrap();
    // A block of data: its bytes are in the image.
    let image = fs::read(sandbox.path("image")).unwrap();
    let at = whole
        .chunks(4096)
        .position(|block| block == &image[..4096])
        .unwrap();
    let mut bytes = whole.clone();
    bytes[at * 4096 + 77] ^= 1;
    fs::write(&disk, &bytes).unwrap();
    let run = |arguments: &[&str]| Run::new(&mut sandbox.command(arguments));
    run(&["volume", "check", &disk]).expect(0);
    run(&["volume", "check", &disk, "--read-data"])
        .expect(13)
        .says("not what was written");
    // Both superblocks.
    bytes[100] ^= 1;
    bytes[4096 + 100] ^= 1;
    fs::write(&disk, &bytes).unwrap();
    run(&["volume", "stat", &disk])
        .expect(13)
        .says("superblock");
    fs::write(&disk, &whole[..whole.len() - 8192]).unwrap();
    run(&["volume", "stat", &disk]).expect(13).says("bytes");
}
