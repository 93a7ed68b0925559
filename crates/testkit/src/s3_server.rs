//! A real S3 server on this machine, for tests: versitygw on a temporary directory.
//!
//! The program is taken from `$VERSITYGW`, the path, or the `tools` beside what cargo builds; where Go is at hand,
//! it is built there once, at a pinned version. Where none of that helps, [`VersityGateway::start`] returns
//! nothing, loudly, and the test is skipped.

use std::env;
use std::fs::{self, File};
use std::io;
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

/// What is built where the program is not there.
const MODULE: &str = "github.com/versity/versitygw/cmd/versitygw@v1.8.0";

/// How long a server may take to listen.
const START_TIMEOUT: Duration = Duration::from_secs(30);

/// A running server; it ends, and its directory goes, when this is dropped.
#[derive(Debug)]
pub struct VersityGateway {
    process: Child,
    address: SocketAddr,
    root: PathBuf,
}

impl VersityGateway {
    /// The id of the only key.
    pub const ACCESS_KEY: &'static str = "onefold-test";
    /// Its secret.
    pub const SECRET_KEY: &'static str = "onefold-test-secret";
    /// A bucket that is there.
    pub const BUCKET: &'static str = "bucket";

    /// Starts a server with an empty bucket; nothing where the program can't be had.
    ///
    /// # Panics
    /// When the program is there but does not run.
    #[must_use]
    pub fn start() -> Option<Self> {
        let program = program()?;
        for _ in 0..5 {
            let root = new_directory();
            fs::create_dir(root.join(Self::BUCKET)).expect("a directory for the bucket");
            let address = free_address();
            let mut process = Command::new(program)
                .args(["--access", Self::ACCESS_KEY, "--secret", Self::SECRET_KEY])
                .args(["--quiet", "--keep-alive", "--port", &address.to_string()])
                .arg("posix")
                .arg(&root)
                .stdin(Stdio::null())
                .stdout(Stdio::null())
                .stderr(Stdio::null())
                .spawn()
                .expect("versitygw starts");
            if listens(address, &mut process) {
                return Some(Self {
                    process,
                    address,
                    root,
                });
            }
            // Somebody else took the port.
            let _ = process.kill();
            let _ = process.wait();
            let _ = fs::remove_dir_all(&root);
        }
        panic!("versitygw does not listen");
    }

    /// Where it listens.
    #[must_use]
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Its URL.
    #[must_use]
    pub fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// The directory in which the bucket's objects are files.
    #[must_use]
    pub fn bucket_directory(&self) -> PathBuf {
        self.root.join(Self::BUCKET)
    }
}

impl Drop for VersityGateway {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
        let _ = fs::remove_dir_all(&self.root);
    }
}

/// An address of this machine where nobody listens.
fn free_address() -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port is free");
    listener.local_addr().expect("it has an address")
}

fn listens(address: SocketAddr, process: &mut Child) -> bool {
    let begin = Instant::now();
    while begin.elapsed() < START_TIMEOUT {
        if matches!(process.try_wait(), Ok(Some(_))) {
            return false;
        }
        if TcpStream::connect(address).is_ok() {
            return true;
        }
        thread::sleep(Duration::from_millis(20));
    }
    false
}

/// A directory of its own: on a file system with extended attributes, which the server keeps its notes in.
fn new_directory() -> PathBuf {
    static COUNT: AtomicU64 = AtomicU64::new(0);
    let number = COUNT.fetch_add(1, Ordering::Relaxed);
    let name = format!("onefold-s3-{}-{number}", std::process::id());
    let path = env::temp_dir().join(name);
    let _ = fs::remove_dir_all(&path);
    fs::create_dir_all(&path).expect("a temporary directory");
    path
}

/// The program; looked for once.
fn program() -> Option<&'static Path> {
    static PROGRAM: OnceLock<Option<PathBuf>> = OnceLock::new();
    let found = PROGRAM.get_or_init(|| {
        let found = find_or_build();
        if found.is_none() {
            eprintln!(
                "\n*** SKIPPED: no S3 server to test with. Put `versitygw` into the path, or install Go \
                 (`go install {MODULE}`) ***\n"
            );
        }
        found
    });
    found.as_deref()
}

fn find_or_build() -> Option<PathBuf> {
    if let Some(path) = env::var_os("VERSITYGW") {
        return Some(PathBuf::from(path));
    }
    if let Some(path) = in_path("versitygw") {
        return Some(path);
    }
    let tools = tools_directory()?;
    let program = tools.join("versitygw");
    if program.exists() {
        return Some(program);
    }
    let go = in_path("go").or_else(|| {
        let usual = PathBuf::from("/usr/local/go/bin/go");
        usual.exists().then_some(usual)
    })?;
    fs::create_dir_all(&tools).ok()?;
    // One process builds, the others wait for it.
    let lock = File::create(tools.join("lock")).ok()?;
    lock.lock().ok()?;
    if !program.exists() {
        build(&go, &tools).ok()?;
    }
    program.exists().then_some(program)
}

fn build(go: &Path, tools: &Path) -> io::Result<()> {
    eprintln!("building {MODULE} (a minute or two, once)");
    let mut command = Command::new(go);
    command.args(["install", MODULE]).env("GOBIN", tools);
    command.env("CGO_ENABLED", "0").stdin(Stdio::null());
    command.status().map(|_| ())
}

fn in_path(name: &str) -> Option<PathBuf> {
    let path = env::var_os("PATH")?;
    env::split_paths(&path)
        .map(|directory| directory.join(name))
        .find(|program| program.is_file())
}

/// `tools/bin` in the directory that cargo builds in: `…/debug/deps/test-1234` is this program.
fn tools_directory() -> Option<PathBuf> {
    let program = env::current_exe().ok()?;
    Some(program.ancestors().nth(3)?.join("tools").join("bin"))
}
