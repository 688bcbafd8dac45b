//! A disk that takes no more. Files of a real process are not allowed to grow, which needs no disk of its own.

use std::{
    os::unix::process::ExitStatusExt,
    path::Path,
    process::{Command, Output},
};

use storage_pipeline::{Outcome, Storage};

use crate::support::{config, in_every_mode};

/// Bytes of a raw value, so that a file is full soon.
const VALUE_BYTES: usize = 2000;

/// Runs the victim of the crash tests until it fails, with files of at most so many KiB, or kills it after a time.
fn write(dir: &Path, mode: &str, round: u32, most_kib: u32) -> Output {
    let script = format!("trap '' XFSZ; ulimit -f {}; exec timeout -s KILL 120 \"$@\"", 2 * most_kib);
    let victim = env!("CARGO_BIN_EXE_crash-writer");
    let mut command = Command::new("sh");
    command.args(["-c", &script, "sh", victim, dir.to_str().unwrap(), mode, &round.to_string()]);
    command.arg(format!("value-bytes={VALUE_BYTES}"));
    command.output().unwrap()
}

#[test]
fn a_disk_that_is_full_stops_the_store_with_an_error_and_loses_nothing_acknowledged() {
    in_every_mode(|mode, dir| {
        let storage = Storage::open(config(mode, dir)).unwrap();
        assert!(storage.raw_put(b"kept", b"v").is_applied());
        drop(storage);
        // Too small to open, to open again, and to write much.
        for (round, most_kib) in [8, 64, 600].into_iter().enumerate() {
            let round = u32::try_from(round).unwrap();
            let Output { status, stdout, stderr } = write(dir, &mode.to_string(), round, most_kib);
            let words = String::from_utf8_lossy(&stderr);
            assert_eq!(status.signal(), None, "{most_kib} KiB: {words}");
            let storage = Storage::open(config(mode, dir)).unwrap();
            assert_eq!(storage.raw_get(b"kept"), Outcome::Applied(Some(b"v".to_vec())));
            let lines = String::from_utf8_lossy(&stdout);
            for n in lines.lines().filter_map(|line| line.strip_suffix(';')) {
                let value = format!("{:.<VALUE_BYTES$}", format!("{round}-{n}"));
                let found = storage.raw_get(format!("raw-{round}-{n}").as_bytes());
                assert!(found == Outcome::Applied(Some(value.into_bytes())), "{most_kib} KiB: {n} is lost");
            }
        }
    });
}
