//! Fuzzes `index_runs::parts`.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| onefold_fuzz::engine_targets::index_runs::parts(bytes));
