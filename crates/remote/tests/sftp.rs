//! The store behind a real SSH server, with keys made for the test.
//!
//! The program `ssh` reads its configuration from the home of whoever runs it. So that a test neither reads nor changes that, a
//! second process runs the test proper, with an `ssh` in its path that has a configuration of its own.
#![allow(missing_docs, clippy::unwrap_used)]
#![cfg(feature = "sftp")]

use std::cell::Cell;
use std::env;
use std::ffi::OsStr;
use std::fs;
use std::net::{TcpListener, TcpStream};
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use remote::{Location, RemoteSettings, RemoteStore};
use tempfile::TempDir;
use testkit::conformance;

/// Where the second process finds the server.
const ADDRESS_VARIABLE: &str = "ONEFOLD_TEST_SFTP";

fn program(names: &[&str]) -> Option<PathBuf> {
    let found = names.iter().map(PathBuf::from).find(|path| path.exists());
    if found.is_none() {
        eprintln!("\n*** SKIPPED: no {} to test with ***\n", names[0]);
    }
    found
}

struct Server {
    process: Child,
    directory: TempDir,
    port: u16,
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

fn key(path: &Path) {
    let made = Command::new("ssh-keygen")
        .args(["-q", "-t", "ed25519", "-N", "", "-f"])
        .arg(path)
        .status();
    assert!(made.unwrap().success());
}

impl Server {
    fn start() -> Option<Self> {
        let sshd = program(&["/usr/sbin/sshd"])?;
        program(&["/usr/bin/ssh-keygen"])?;
        // Where it drops privileges, if it has any.
        let _ = fs::create_dir_all("/run/sshd");
        let directory = TempDir::new().unwrap();
        let place = directory.path();
        key(&place.join("host"));
        key(&place.join("user"));
        fs::copy(place.join("user.pub"), place.join("authorized")).unwrap();
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        drop(listener);
        let configuration = format!(
            "Port {port}\nListenAddress 127.0.0.1\nHostKey {0}/host\nAuthorizedKeysFile {0}/authorized\n\
             StrictModes no\nUsePAM no\nPidFile none\nPermitRootLogin yes\nPasswordAuthentication no\n\
             MaxStartups 100\nMaxSessions 100\nSubsystem sftp internal-sftp\n",
            place.display()
        );
        fs::write(place.join("sshd_config"), configuration).unwrap();
        let process = Command::new(sshd)
            .arg("-D")
            .arg("-f")
            .arg(place.join("sshd_config"))
            .stdin(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let server = Self {
            process,
            directory,
            port,
        };
        let begin = Instant::now();
        while TcpStream::connect(("127.0.0.1", port)).is_err() {
            assert!(
                begin.elapsed() < Duration::from_secs(30),
                "sshd does not listen"
            );
            thread::sleep(Duration::from_millis(20));
        }
        Some(server)
    }

    /// A directory with an `ssh` that knows the keys, to be first in the path.
    fn client(&self) -> PathBuf {
        let place = self.directory.path();
        let programs = place.join("programs");
        fs::create_dir(&programs).unwrap();
        let known = place.join("known_hosts");
        let host = fs::read_to_string(place.join("host.pub")).unwrap();
        fs::write(&known, format!("[127.0.0.1]:{} {host}", self.port)).unwrap();
        let configuration = format!(
            "IdentityFile {0}/user\nIdentitiesOnly yes\nUserKnownHostsFile {1}\n",
            place.display(),
            known.display()
        );
        fs::write(place.join("ssh_config"), configuration).unwrap();
        let script = format!(
            "#!/bin/sh\nexec /usr/bin/ssh -F {}/ssh_config \"$@\"\n",
            place.display()
        );
        let ssh = programs.join("ssh");
        fs::write(&ssh, script).unwrap();
        fs::set_permissions(&ssh, fs::Permissions::from_mode(0o755)).unwrap();
        programs
    }
}

#[test]
fn a_store_behind_ssh_keeps_every_rule() {
    let Some(server) = Server::start() else {
        return;
    };
    let user = Command::new("id").arg("-un").output().unwrap();
    let user = String::from_utf8(user.stdout).unwrap();
    let store = server.directory.path().join("store");
    let address = format!(
        "sftp://{}@127.0.0.1:{}{}",
        user.trim(),
        server.port,
        store.display()
    );
    let path = env::var_os("PATH").unwrap_or_default();
    let mut path: Vec<PathBuf> = env::split_paths(&path).collect();
    path.insert(0, server.client());
    let outcome = Command::new(env::current_exe().unwrap())
        .args([
            "--exact",
            "in_a_process_of_its_own",
            "--ignored",
            "--nocapture",
        ])
        .env("PATH", env::join_paths(path).unwrap())
        .env(ADDRESS_VARIABLE, address)
        .status();
    assert!(outcome.unwrap().success());
    assert!(store.join("1").is_dir(), "the second process worked there");
}

#[test]
#[ignore = "run by a_store_behind_ssh_keeps_every_rule"]
fn in_a_process_of_its_own() {
    let Ok(address) = env::var(ADDRESS_VARIABLE) else {
        return;
    };
    let number = Cell::new(0);
    conformance::object_store(&|| {
        number.set(number.get() + 1);
        let address = format!("{address}/{}", number.get());
        let Location::Remote(address) = Location::parse(OsStr::new(&address)).unwrap() else {
            panic!("no address");
        };
        Box::new(RemoteStore::open(&address, RemoteSettings::default()).unwrap())
    });
}
