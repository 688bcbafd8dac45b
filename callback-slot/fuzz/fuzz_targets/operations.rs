//! The target: every input is a program of operations, and the model says what each of them has to do.
#![no_main]

libfuzzer_sys::fuzz_target!(|program: &[u8]| callback_slot_fuzz::run(program));
