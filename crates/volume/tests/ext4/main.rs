//! Real file systems on volumes: ext4 on a loop device on a mounted volume.
//!
//! What is looked at is always a dump of the disk, read from the volume after everything was unmounted, or
//! after a crash: caches of the kernel hide what a device forgets.
//!
//! Mounting takes root, `/dev/fuse`, loop devices, and the programs of ext4. Without them these tests say so and
//! pass. `sqlite3` and `fio` are used where they are.

#![cfg(target_os = "linux")]
#![allow(clippy::unwrap_used)] // A test says no by panicking.

#[path = "../common/mod.rs"]
mod common;
mod crash;
mod kinds;
mod programs;
mod published;
mod stack;
mod workload;

use std::sync::{Mutex, MutexGuard, PoisonError};

/// A program that one test starts has for a moment all files open that other tests have, and then nothing
/// can be unmounted. So there is one at a time.
static ONE: Mutex<()> = Mutex::new(());

/// The right to mount; `None` where that is not possible.
fn begin() -> Option<MutexGuard<'static, ()>> {
    let one = ONE.lock().unwrap_or_else(PoisonError::into_inner);
    if let Err(missing) = programs::all_there() {
        println!("{missing}: skipped");
        return None;
    }
    Some(one)
}
