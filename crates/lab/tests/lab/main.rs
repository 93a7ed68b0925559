//! The lab from outside: real command lines on small files.
#![forbid(unsafe_code)]
#![allow(missing_docs, clippy::unwrap_used)]

mod chunk;
mod documented;
mod keys;
mod paper;
mod paper_in_memory;
mod paper_macs;
mod paper_odess;
mod paper_thindedup;
mod paper_woj;
mod sandbox;
mod similar;
