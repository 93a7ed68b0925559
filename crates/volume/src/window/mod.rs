//! Windows: what clients wrote since the last one was closed (Ni, §5.2.1).
//!
//! [`buffer`] collects changes in memory, [`parts`] is their stored form.

pub mod buffer;
pub mod parts;
