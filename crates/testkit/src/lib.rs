#![forbid(unsafe_code)]
//! What onefold's tests share: a disk that crashes, data from seeds, conformance suites.
//!
//! * [`crash_disk`]: a file system in memory that loses what was not synced;
//! * [`compaction`]: objects of several sections, as a later compaction will write them;
//! * [`conformance`]: what every implementation of a seam must do;
//! * [`deltas`]: containers of deltas, right ones and wrong ones;
//! * [`generate`]: bytes from seeds, and versions of them;
//! * [`minio_cluster`]: four nodes of MinIO on this machine;
//! * [`s3_server`]: a real S3 server on this machine;
//! * [`tar`]: tars, honest or lying;
//! * [`random`]: the numbers behind both.
//!
//! Never published. Code here may panic: that is how a test says no.

pub mod compaction;
pub mod conformance;
pub mod crash_disk;
pub mod deltas;
pub mod generate;
pub mod minio_cluster;
pub mod mutate;
pub mod random;
pub mod s3_server;
pub mod tar;

pub use crash_disk::{CrashDisk, CrashMode};
