//! Fuzzes `deltas::prefix`.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| onefold_fuzz::engine_targets::deltas::prefix(bytes));
