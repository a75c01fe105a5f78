//! libFuzzer's way into the target of the same name.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| holdfast_fuzz::dataset::run(data));
