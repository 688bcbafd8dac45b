//! The target: the first byte of an input says what the rest is taken for.
#![no_main]

libfuzzer_sys::fuzz_target!(|input: &[u8]| storage_pipeline_fuzz::run(input));
