//! Fuzzes `recipes::page`.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| onefold_fuzz::engine_targets::recipes::page(bytes));
