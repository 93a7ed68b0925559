//! Four nodes of MinIO on this machine, for tests of what a store does when one of them dies.
//!
//! Nothing is built here: the program takes minutes to build (`go install github.com/minio/minio@…`), so that tests of it run when
//! asked for, with `minio` in the path or in `$MINIO`.

use std::env;
use std::fs;
use std::net::{IpAddr, TcpListener, UdpSocket};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

const NODES: usize = 4;

/// How long the nodes may take to find each other.
const START_TIMEOUT: Duration = Duration::from_secs(120);

/// Running nodes; they end, and their directories go, when this is dropped.
#[derive(Debug)]
pub struct MinioCluster {
    nodes: Vec<Child>,
    host: IpAddr,
    ports: Vec<u16>,
    root: PathBuf,
}

impl MinioCluster {
    /// The id of the only key.
    pub const ACCESS_KEY: &'static str = "onefold-test";
    /// Its secret.
    pub const SECRET_KEY: &'static str = "onefold-test-secret";
    /// A bucket that is there.
    pub const BUCKET: &'static str = "bucket";

    /// Starts the nodes, and makes the bucket.
    ///
    /// # Panics
    /// When there is no `minio` or no `curl`, or the nodes do not find each other.
    #[must_use]
    pub fn start() -> Self {
        let program = env::var_os("MINIO").unwrap_or_else(|| "minio".into());
        let root = env::temp_dir().join(format!("onefold-minio-{}", std::process::id()));
        let _ = fs::remove_dir_all(&root);
        let host = own_address();
        let listeners: Vec<TcpListener> = (0..NODES)
            .map(|_| TcpListener::bind((host, 0)).expect("a port is free"))
            .collect();
        let port = |listener: &TcpListener| listener.local_addr().expect("it has one").port();
        let ports: Vec<u16> = listeners.iter().map(port).collect();
        drop(listeners);
        let directory = |node: usize| root.join(format!("drive-{node}"));
        let endpoints: Vec<String> = (0..NODES)
            .map(|node| {
                fs::create_dir_all(directory(node)).expect("a directory for the drive");
                format!("http://{host}:{}{}", ports[node], directory(node).display())
            })
            .collect();
        let start = |port: &u16| {
            Command::new(&program)
                .args(["server", "--quiet", "--address", &format!("{host}:{port}")])
                .args(&endpoints)
                .env("MINIO_ROOT_USER", Self::ACCESS_KEY)
                .env("MINIO_ROOT_PASSWORD", Self::SECRET_KEY)
                // Drives that share the system's disk are fine for a test.
                .env("MINIO_CI_CD", "1")
                .env("MINIO_BROWSER", "off")
                .stdin(Stdio::null())
                .stdout(Stdio::null())
                .stderr(Stdio::null())
                .spawn()
                .expect("minio is in the path, or in $MINIO")
        };
        let cluster = Self {
            nodes: ports.iter().map(start).collect(),
            host,
            ports,
            root,
        };
        let begin = Instant::now();
        while !cluster.makes_bucket() {
            assert!(
                begin.elapsed() < START_TIMEOUT,
                "the nodes do not find each other"
            );
            thread::sleep(Duration::from_millis(500));
        }
        cluster
    }

    /// The URL of a node.
    #[must_use]
    pub fn url(&self, node: usize) -> String {
        format!("http://{}:{}", self.host, self.ports[node])
    }

    /// Ends a node at once, as a power failure would.
    ///
    /// # Panics
    /// When it can't be ended.
    pub fn kill(&mut self, node: usize) {
        self.nodes[node].kill().expect("it runs");
        self.nodes[node].wait().expect("it has ended");
    }

    fn makes_bucket(&self) -> bool {
        let credentials = format!("{}:{}", Self::ACCESS_KEY, Self::SECRET_KEY);
        let made = Command::new("curl")
            .args(["--silent", "--fail", "--max-time", "10", "--request", "PUT"])
            .args([
                "--aws-sigv4",
                "aws:amz:us-east-1:s3",
                "--user",
                &credentials,
            ])
            .args(["--header", "x-amz-content-sha256: UNSIGNED-PAYLOAD"])
            .arg(format!("{}/{}", self.url(0), Self::BUCKET))
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .status();
        made.expect("curl is there").success()
    }
}

/// An address of this machine other than that of its loopback, which MinIO does not take in a container.
fn own_address() -> IpAddr {
    let socket = UdpSocket::bind("0.0.0.0:0").expect("a port is free");
    // Nothing is sent: the system only says from where it would be.
    let routed = socket
        .connect("192.0.2.1:9")
        .and_then(|()| socket.local_addr());
    routed.expect("the machine has an address").ip()
}

impl Drop for MinioCluster {
    fn drop(&mut self) {
        for node in &mut self.nodes {
            let _ = node.kill();
            let _ = node.wait();
        }
        let _ = fs::remove_dir_all(&self.root);
    }
}
