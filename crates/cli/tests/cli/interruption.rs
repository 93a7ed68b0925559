//! Ctrl-C: what a backup that is asked to stop leaves, and says.

use std::fs;
use std::process::{Child, Stdio};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};

use crate::sandbox::{Run, Sandbox, noise};

fn interrupt(child: Child) -> Run {
    kill_process(Pid::from_child(&child), Signal::INT).unwrap();
    Run::of(child.wait_with_output().unwrap())
}

#[test]
fn an_interrupted_stream_is_stored_as_far_as_it_came() {
    let sandbox = Sandbox::with_repository();
    sandbox.write("data", &noise(3 << 20, 7));
    // A command that gives everything, says so, and does not end.
    let command = "cat data; echo > given; exec sleep 600";
    let line = [
        "backup",
        "--stdin-name",
        "stream",
        "--from-command",
        "--",
        "sh",
        "-c",
        command,
    ];
    let mut child = sandbox.command(&line);
    child.stdout(Stdio::piped()).stderr(Stdio::piped());
    let child = child.spawn().unwrap();
    let started = Instant::now();
    while !sandbox.path("given").exists() {
        assert!(started.elapsed() < Duration::from_secs(60), "never given");
        std::thread::sleep(Duration::from_millis(5));
    }
    let run = interrupt(child).expect(130);
    run.says("no snapshot was written; the next backup uses what this one stored");
    assert_eq!(sandbox.events(&["snapshots"]).len(), 1, "a summary alone");

    let whole = [
        "backup",
        "--stdin-name",
        "stream",
        "--from-command",
        "--",
        "cat",
        "data",
    ];
    let events = sandbox.events(&whole);
    // What was read and not cut when the signal came may have been a segment, and a chunk.
    let new = events.last().unwrap()["bytes_new"].as_u64().unwrap();
    assert!(new <= (1 << 20) + (64 << 10), "{new} bytes are new");
    assert_eq!(fs::read(sandbox.path("data")).unwrap().len(), 3 << 20);
    sandbox.ok(&["check", "--read-data"]);
}
