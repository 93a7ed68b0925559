//! Fuzzes `values::field_list`.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| onefold_fuzz::engine_targets::values::field_list(bytes));
