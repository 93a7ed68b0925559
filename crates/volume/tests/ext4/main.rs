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

/// Whether there is all that is needed; says what is missing.
fn can_run() -> bool {
    let there = programs::all_there();
    if let Err(missing) = &there {
        println!("{missing}: skipped");
    }
    there.is_ok()
}
