#![forbid(unsafe_code)]
//! kernels
