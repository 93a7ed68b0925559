//! Fuzzes `archives::archive`.
#![no_main]

libfuzzer_sys::fuzz_target!(
    |bytes: &[u8]| onefold_fuzz::repository_targets::archives::archive(bytes)
);
