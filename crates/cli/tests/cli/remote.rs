//! Repositories on a real S3 server.

use std::fs;
use std::process::{Command, Stdio};
use std::time::Duration;

use testkit::minio_cluster::MinioCluster;
use testkit::s3_server::VersityGateway;

use crate::json::assert_documented;
use crate::sandbox::{Run, Sandbox, files_below, noise};

/// A place with a server.
struct Remote {
    sandbox: Sandbox,
    server: VersityGateway,
}

impl Remote {
    /// Nothing where there is no server to be had.
    fn new() -> Option<Self> {
        let server = VersityGateway::start()?;
        let sandbox = Sandbox::new();
        sandbox.write("tree/a.txt", b"first\n");
        sandbox.write("tree/sub/b.txt", b"second\n");
        sandbox.write("tree/sub/deep/c.bin", &noise(9_000_000, 1));
        Some(Self { sandbox, server })
    }

    fn address(&self) -> String {
        let bucket = VersityGateway::BUCKET;
        format!("s3:{}/{bucket}/hosts/laptop", self.server.url())
    }

    fn command(&self, arguments: &[&str]) -> Command {
        let mut command = self.sandbox.command(arguments);
        command
            .env("ONEFOLD_REPO", self.address())
            .env("AWS_ACCESS_KEY_ID", VersityGateway::ACCESS_KEY)
            .env("AWS_SECRET_ACCESS_KEY", VersityGateway::SECRET_KEY)
            .env("XDG_CACHE_HOME", self.sandbox.path("cache"))
            .env_remove("AWS_REGION")
            .env_remove("AWS_ENDPOINT_URL");
        command
    }

    fn run(&self, arguments: &[&str]) -> Run {
        Run::new(&mut self.command(arguments))
    }

    fn ok(&self, arguments: &[&str]) -> String {
        self.run(arguments).expect(0).stdout
    }
}

#[test]
fn a_repository_lives_on_a_server() {
    let Some(remote) = Remote::new() else {
        return;
    };
    remote.run(&["snapshots"]).expect(10).says("no repository");
    let shown = remote.run(&["init", "--no-encryption"]).expect(0);
    assert!(shown.says(&remote.address()).code == Some(0));
    remote.run(&["init", "--no-encryption"]).expect(11);
    remote.ok(&["backup", "tree"]);
    remote
        .sandbox
        .write("tree/sub/new.bin", &noise(3_000_000, 2));
    remote.ok(&["backup", "tree"]);
    remote.ok(&["check", "--read-data"]);
    let from = format!("latest:{}", remote.sandbox.text("tree"));
    remote.ok(&["restore", &from, "out"]);
    let tree = files_below(&remote.sandbox.path("tree"));
    assert!(files_below(&remote.sandbox.path("out")) == tree);
    fs::remove_file(remote.sandbox.path("tree/sub/deep/c.bin")).unwrap();
    remote.ok(&["backup", "tree"]);
    let stored = || {
        files_below(&remote.server.bucket_directory())
            .iter()
            .map(|(_, bytes)| bytes.len())
            .sum::<usize>()
    };
    let before = stored();
    remote.ok(&["forget", "--keep-last", "1"]);
    remote.ok(&["prune"]);
    assert!(stored() + 8_000_000 < before, "{} of {before}", stored());
    remote.ok(&["check", "--read-data"]);
    let again = remote.ok(&["snapshots"]);
    assert!(again.contains("tree"), "{again}");
}

#[test]
fn what_was_asked_of_the_server_is_told() {
    let Some(remote) = Remote::new() else {
        return;
    };
    remote.ok(&["init", "--no-encryption"]);
    let server = |arguments: &[&str]| {
        let events = remote.run(arguments).expect(0).events();
        let at = events.iter().position(|event| event["event"] == "server");
        assert_eq!(at, Some(events.len() - 2), "before the summary");
        events[events.len() - 2].clone()
    };
    remote.sandbox.let_files_age();
    let first = server(&["backup", "--json", "tree"]);
    assert_documented(&first, "server");
    assert!(first["put_bytes"].as_u64().unwrap() > 9_000_000);
    // Nothing has changed, and what the run has to know is here.
    let second = server(&["backup", "--json", "tree"]);
    assert!(second["requests"].as_u64().unwrap() <= 24, "{second}");
    assert!(second["cache_hits"].as_u64().unwrap() > 0, "{second}");
    assert!(second["read_bytes"].as_u64().unwrap() < 8192, "{second}");
    // Without copies it has to be fetched.
    let third = server(&["backup", "--json", "--no-cache", "tree"]);
    assert_eq!(third["cache_hits"], 0);
    assert!(
        third["reads"].as_u64() > second["reads"].as_u64(),
        "{third}"
    );
    // A damaged copy is no damage of the repository.
    for (path, mut bytes) in files_below(&remote.sandbox.path("cache")) {
        if let Some(byte) = bytes.last_mut() {
            *byte ^= 1;
        }
        fs::write(remote.sandbox.path("cache").join(path), bytes).unwrap();
    }
    remote.ok(&["backup", "tree"]);
    remote.run(&["snapshots", "-v"]).expect(0).says("Server: ");
}

#[test]
fn an_encrypted_repository_is_made_by_the_first_backup() {
    let Some(remote) = Remote::new() else {
        return;
    };
    let with_password = |arguments: &[&str]| {
        let mut command = remote.command(arguments);
        command.env("ONEFOLD_PASSWORD", "correct horse");
        Run::new(&mut command)
    };
    with_password(&["backup", "tree"])
        .expect(0)
        .says("creating one");
    with_password(&["check"]).expect(0);
    remote.run(&["check"]).expect(12);
}

#[test]
fn what_is_wrong_with_a_server_is_told() {
    let Some(remote) = Remote::new() else {
        return;
    };
    remote.ok(&["init", "--no-encryption"]);
    let mut wrong = remote.command(&["snapshots"]);
    wrong.env("AWS_SECRET_ACCESS_KEY", "no such secret");
    let run = Run::new(&mut wrong).expect(1).says("AWS_ACCESS_KEY_ID");
    assert!(!run.stderr.contains("no such secret"), "{run:?}");
    let mut elsewhere = remote.command(&["init", "--no-encryption"]);
    elsewhere.env(
        "ONEFOLD_REPO",
        format!("s3:{}/nowhere/x", remote.server.url()),
    );
    Run::new(&mut elsewhere).expect(1).says("bucket");
    let mut nobody = remote.command(&["snapshots"]);
    nobody.env("ONEFOLD_REPO", "s3:http://127.0.0.1:1/bucket/x");
    Run::new(&mut nobody)
        .expect(1)
        .says("127.0.0.1:1")
        .says("network");
    for (address, says) in [
        ("s3:", "bucket"),
        ("sftp:host", "colon"),
        ("webdav:x", "http"),
    ] {
        let mut odd = remote.command(&["snapshots"]);
        odd.env("ONEFOLD_REPO", address);
        Run::new(&mut odd).expect(2).says(says);
    }
    let mut secret = remote.command(&["snapshots"]);
    secret.env("ONEFOLD_REPO", "s3:https://me:hidden@host/bucket");
    let run = Run::new(&mut secret)
        .expect(2)
        .says("AWS_SECRET_ACCESS_KEY");
    assert!(
        !run.stderr.contains(":hidden@") || run.stderr.contains("--repo"),
        "{run:?}"
    );
}

#[test]
fn restoring_a_file_reads_little_else() {
    let Some(remote) = Remote::new() else {
        return;
    };
    const LARGE_BYTES: usize = 20 << 20;
    for number in 0..200 {
        let name = format!("tree/many/{number}");
        remote
            .sandbox
            .write(&name, &noise(20_000 + number, number as u64));
    }
    remote.sandbox.write("tree/large", &noise(LARGE_BYTES, 9));
    remote.ok(&["init", "--no-encryption"]);
    remote.ok(&["backup", "tree"]);
    let restore = |name: &str, out: &str| {
        let from = format!("latest:{}", remote.sandbox.text(name));
        let run = remote.run(&["restore", "--json", &from, out]).expect(0);
        let restored = fs::read(remote.sandbox.path(out)).or_else(|_| {
            let name = name.rsplit('/').next().unwrap();
            fs::read(remote.sandbox.path(out).join(name))
        });
        assert!(restored.unwrap() == fs::read(remote.sandbox.path(name)).unwrap());
        let events = run.events();
        let server = events
            .iter()
            .find(|event| event["event"] == "server")
            .unwrap();
        let number = |field: &str| server[field].as_u64().unwrap();
        (number("requests"), number("read_bytes"))
    };
    let group_bytes = 1 << 20;
    let (requests, bytes) = restore("tree/many/77", "small");
    assert!(requests <= 8, "{requests} requests");
    assert!(bytes <= group_bytes + (64 << 10), "{bytes} bytes");
    let (_, bytes) = restore("tree/large", "large");
    assert!(bytes < LARGE_BYTES as u64 * 3 / 2, "{bytes} bytes");
    // From another machine, which has no copies yet.
    fs::remove_dir_all(remote.sandbox.path("cache")).unwrap();
    let (requests, bytes) = restore("tree/many/78", "elsewhere");
    assert!(requests <= 14, "{requests} requests");
    assert!(bytes <= 2 * group_bytes, "{bytes} bytes");
}

#[test]
fn other_things_are_left_alone() {
    let Some(remote) = Remote::new() else {
        return;
    };
    let place = remote.server.bucket_directory().join("hosts/laptop");
    fs::create_dir_all(&place).unwrap();
    fs::write(place.join("letter.txt"), b"dear").unwrap();
    remote
        .run(&["init", "--no-encryption"])
        .expect(1)
        .says("letter.txt");
    assert_eq!(files_below(&place).len(), 1);
}

/// `MINIO=/path/to/minio cargo test -p onefold --test cli -- --ignored a_node_may_die`
#[test]
#[ignore = "needs MinIO, which takes minutes to build"]
fn a_node_may_die_in_the_middle_of_a_backup() {
    let mut cluster = MinioCluster::start();
    let sandbox = Sandbox::new();
    let address = format!("s3:{}/{}/laptop", cluster.url(0), MinioCluster::BUCKET);
    let command = |arguments: &[&str]| {
        let mut command = sandbox.command(arguments);
        command
            .env("ONEFOLD_REPO", &address)
            .env("AWS_ACCESS_KEY_ID", MinioCluster::ACCESS_KEY)
            .env("AWS_SECRET_ACCESS_KEY", MinioCluster::SECRET_KEY)
            .env("XDG_CACHE_HOME", sandbox.path("cache"));
        command
    };
    for number in 0..12u64 {
        sandbox.write(&format!("tree/{number}"), &noise(5_000_000, number));
    }
    Run::new(&mut command(&["init", "--no-encryption"])).expect(0);
    let mut backup = command(&["backup", "--limit-upload", "10MiB", "tree"])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    std::thread::sleep(Duration::from_secs(2));
    assert!(backup.try_wait().unwrap().is_none(), "it is at work");
    cluster.kill(2);
    Run::of(backup.wait_with_output().unwrap()).expect(0);
    Run::new(&mut command(&["check", "--read-data", "--no-cache"])).expect(0);
    let from = format!("latest:{}", sandbox.text("tree"));
    Run::new(&mut command(&["restore", &from, "out"])).expect(0);
    assert!(files_below(&sandbox.path("out")) == files_below(&sandbox.path("tree")));
}
