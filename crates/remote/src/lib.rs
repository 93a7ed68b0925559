#![forbid(unsafe_code)]
//! onefold's stores on other machines.
//!
//! [`Location`] reads where a repository lies; [`RemoteStore`] keeps objects on a server (S3, SFTP, WebDAV;
//! Google Cloud Storage and Azure where they are built in) behind the engine's trait, by the library
//! `opendal`. This crate exists for the sake of that library's dependencies: nothing else in onefold
//! speaks to a network.

mod cache;
mod claims;
mod creation;
mod error;
mod gate;
mod listing;
mod location;
mod meter;
mod operators;
mod parts;
mod store;
mod throttle;
mod transport;
mod writing;

use std::sync::{Mutex, MutexGuard, PoisonError};

pub use cache::{CacheCounts, CachingStore};
pub use error::{RemoteError, RemoteErrorKind};
pub use location::{Address, Location, LocationError, SCHEMES};
pub use meter::RemoteCounts;
pub use operators::{Environment, RemoteSettings};
pub use store::RemoteStore;

/// Locks what no panic can leave half-changed.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
