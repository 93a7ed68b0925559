//! Fuzzes `keys_and_config::epoch`.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    onefold_fuzz::repository_targets::keys_and_config::epoch(bytes)
});
