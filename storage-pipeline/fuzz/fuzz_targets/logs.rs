//! The target: an input says how a log is damaged.
#![no_main]

libfuzzer_sys::fuzz_target!(|input: &[u8]| {
    let _ = storage_pipeline_fuzz::logs::run(input);
});
