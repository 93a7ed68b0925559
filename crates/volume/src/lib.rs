#![forbid(unsafe_code)]
//! A deduplicating block device: the block volume of onefold.
//!
//! A [`Volume`] is a disk of 4 KiB blocks on a file or a raw device ([`backing`]). What is written is collected in
//! windows, stored in a log of zones, and found through a mapping. Which duplicates are stored once
//! ([`Policy`]) and how the mapping is made durable ([`Persistence`]) are chosen on their own: WOJ and ThinDedup
//! (Ni, ch. 4 and 5) are two of the choices.
//!
//! Rooms: [`device`] (what clients see of a disk), [`backing`] (where blocks lie), [`window`], [`tables`],
//! [`zones`], [`pool`] (the fingerprint pool of WOJ), [`index`] (of fingerprints), [`generations`] (pinned states),
//! [`journal`] (which blocks are a file system's journal), [`trace`] (block traces for experiments), [`control`] (what other
//! processes ask for while one has the volume). Fronts: [`nbd`] (network block device) and `fuse` (a file, on Linux).

pub mod address;
pub mod backing;
mod check;
mod clock;
pub mod control;
mod core;
pub mod device;
mod error;
pub mod fingerprint;
#[cfg(target_os = "linux")]
pub mod fuse;
pub mod generations;
pub mod index;
pub mod journal;
pub mod nbd;
pub mod page;
mod pinned;
pub mod pool;
pub mod records;
mod settings;
pub mod stat;
pub mod superblock;
pub mod tables;
pub mod trace;
mod volume;
pub mod window;
pub mod zones;

pub use check::CheckReport;
pub use clock::Clock;
pub use core::{Compaction, Recovery};
pub use device::{BlockDevice, DeviceError, Extent, ExtentKind, Geometry, RamDisk};
pub use error::VolumeError;
pub use generations::{Generation, GenerationId, OwnerId};
pub use pinned::PinnedDisk;
pub use settings::{OpenOptions, Persistence, Policy, VolumeSettings};
pub use stat::{Counters, Usage};
pub use volume::Volume;
