#![forbid(unsafe_code)]
//! chunking
