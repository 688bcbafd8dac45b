//! The seeds as ordinary tests, for machines without libFuzzer and for Miri.

use std::fs;

#[test]
fn seeds_do_what_the_model_says() {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/seeds/operations");
    let mut seeds = 0;
    for seed in fs::read_dir(folder).unwrap() {
        let path = seed.unwrap().path();
        println!("{}", path.display());
        callback_slot_fuzz::run(&fs::read(path).unwrap());
        seeds += 1;
    }
    assert!(seeds >= 8, "{seeds} seeds");
}
