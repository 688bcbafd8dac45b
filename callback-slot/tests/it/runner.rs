//! A runner that does nothing but call the tests, for Miri: it interprets the usual one too, which costs more than the races
//! do, once for each of many seeds. `miri.sh` asks for it by `--cfg callback_slot_plain_runner`.
//!
//! Arguments: `NAME` runs the tests whose names contain it, `--skip NAME` all others; none runs all.

extern crate test;

use test::{StaticTestFn, TestDescAndFn};

/// A test that fails panics, and its name is the last line before.
pub(crate) fn run(tests: &[&TestDescAndFn]) {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let is_wanted = |name: &str| match &arguments[..] {
        [] => true,
        [wanted] => name.contains(wanted.as_str()),
        [skip, unwanted] if skip == "--skip" => !name.contains(unwanted.as_str()),
        _ => panic!("usage: [NAME | --skip NAME]"),
    };
    let mut passed = 0;
    for test in tests {
        let name = test.desc.name.as_slice();
        let StaticTestFn(call) = test.testfn else { panic!("{name} is no plain test") };
        if is_wanted(name) {
            println!("test {name}");
            call().expect(name);
            passed += 1;
        }
    }
    println!("test result: ok. {passed} passed");
}
