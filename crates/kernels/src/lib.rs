#![deny(unsafe_op_in_unsafe_fn)]
//! The few hot loops of onefold: for each, a scalar specification and the fastest form of it.
//!
//! This is the only crate of the workspace that may hold intrinsics and `unsafe`. Rules of the house:
//!
//! - a hot loop is a module; its `scalar` submodule is the specification, short enough to be seen
//!   to be right, and stays public so that tests and benches can force it;
//! - every faster form gives bit-identical results on every input, and is tested to;
//! - a kernel with intrinsics takes its level ([`isa::Isa`]) as an argument, and falls back to scalar
//!   where the machine does not have it: safe functions stay safe whatever they are given;
//! - nothing here allocates, does I/O or reads a setting.

pub mod adler;
pub mod crc32;
pub mod extremum;
pub mod features;
pub mod fold;
pub mod gear;
pub mod gear_marks;
pub mod isa;
mod lanes;
mod linear;
pub mod marks;
pub mod rabin;
pub mod sequence;
pub mod shield;
pub mod window_maximum;
pub mod zeros;
