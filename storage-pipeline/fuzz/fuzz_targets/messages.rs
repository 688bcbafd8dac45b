//! The target: an input says what others send to one replica.
#![no_main]

libfuzzer_sys::fuzz_target!(|input: &[u8]| {
    let _ = storage_pipeline_fuzz::messages::run(input);
});
