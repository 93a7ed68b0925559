#![forbid(unsafe_code)]
//! repository
