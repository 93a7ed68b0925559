#![forbid(unsafe_code)]
//! A deduplicating block device.
//!
//! Rooms: [`device`] (what clients see of a disk).

pub mod device;

pub use device::{BlockDevice, DeviceError, Extent, ExtentKind, Geometry, RamDisk};
