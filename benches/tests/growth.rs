//! The measurement of growth from end to end, over its smaller stores.

use std::process::Command;

#[test]
fn every_size_is_filled_and_measured_and_compared_with_the_smallest() {
    let dir = tempfile::tempdir().unwrap();
    let mut command = Command::new(env!("CARGO_BIN_EXE_growth"));
    command.args(["--secs", "0.05", "--rounds", "1", "--clients", "2", "--most-keys", "100000", "--dir"]);
    let output = command.arg(dir.path()).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let page = String::from_utf8(output.stdout).unwrap();
    for part in
        ["## More keys", "## More bytes of a value", "## More regions", "| reads | 2 |", ", 64 regions |"]
    {
        assert!(page.contains(part), "{part}: {page}");
    }
    // Two sizes with both operations, and four of each of the others, each compared with its first.
    assert_eq!(page.lines().filter(|line| line.contains(" keys of ")).count(), 2 * 2 + 4 + 4);
    assert_eq!(page.matches("| 1.00 [1.00 1.00] = | 1.00 [1.00 1.00] = |").count(), 4);
    assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 0, "the stores are removed");
}
