#![forbid(unsafe_code)]
//! engine
