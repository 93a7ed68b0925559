//! The NBD server: what it says to well-behaved clients, to hostile ones, and to real programs.

#![allow(clippy::unwrap_used)] // A test says no by panicking.

mod client;
mod disk;
mod handshake;
mod hostile;
mod lifetime;
mod model;
mod programs;
mod transmission;

use std::path::PathBuf;
use std::sync::Arc;

use disk::TestDisk;
use tempfile::TempDir;
use volume::nbd::{Endpoint, Export, Limits, Server, Settings};

/// Bytes of the disks of these tests.
const DISK_BYTES: usize = 4 << 20;

/// A server on a socket of its own, with a disk called `disk` and one called `other`.
struct Served {
    server: Server,
    disk: Arc<TestDisk>,
    directory: TempDir,
}

impl Served {
    fn new() -> Self {
        Self::with(TestDisk::new(DISK_BYTES, 512), Limits::default())
    }

    fn with(disk: TestDisk, limits: Limits) -> Self {
        let directory = tempfile::tempdir().expect("a directory");
        let disk = Arc::new(disk);
        let settings = Settings {
            limits,
            ..Settings::new(vec![Endpoint::Unix(directory.path().join("socket"))])
        };
        let exports = vec![
            export("disk", disk.clone()),
            export("other", Arc::new(TestDisk::new(8192, 4096))),
        ];
        let server = Server::start(exports, &settings).expect("it starts");
        Self {
            server,
            disk,
            directory,
        }
    }

    fn socket(&self) -> PathBuf {
        self.directory.path().join("socket")
    }
}

fn export(name: &str, device: Arc<dyn volume::BlockDevice>) -> Export {
    Export {
        name: name.to_string(),
        description: format!("the {name} of a test"),
        device,
    }
}

/// Waits for what other threads are about to do; a minute is for ever.
fn eventually(what: &str, mut is_so: impl FnMut() -> bool) {
    for _ in 0..6000 {
        if is_so() {
            return;
        }
        std::thread::sleep(std::time::Duration::from_millis(10));
    }
    panic!("{what}: never");
}
