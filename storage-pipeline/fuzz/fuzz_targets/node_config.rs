//! The target: an input is the configuration of a node, flags first.
#![no_main]

libfuzzer_sys::fuzz_target!(|input: &[u8]| {
    let _ = storage_pipeline_fuzz::node_config::run(input);
});
