//! Counts instructions with callgrind: a program runs itself twice under it, with few and with many operations, and the
//! difference is what the operations cost. What starting and ending cost is in both.

use std::{
    fs, io,
    path::Path,
    process::{Command, Stdio},
};

use super::cases::Case;
use crate::round::Failure;

/// The option behind which this program expects the name of a case and the number of times, when it runs itself.
pub const ONCE: &str = "--once";

/// Instructions that one operation takes, on all threads together. `scratch` is a directory for callgrind's file.
///
/// # Errors
/// valgrind is not installed or fails, or the case does.
pub fn per_operation(case: &Case, scratch: &Path) -> Result<f64, Failure> {
    let [few, many] = case.times;
    let short = whole_run(case, few, scratch)?;
    let long = whole_run(case, many, scratch)?;
    let difference = long.checked_sub(short).ok_or("more operations took fewer instructions")?;
    Ok(difference as f64 / (many - few) as f64)
}

fn whole_run(case: &Case, times: u64, scratch: &Path) -> Result<u64, Failure> {
    let file = scratch.join("callgrind");
    let output = Command::new("valgrind")
        .args(["--tool=callgrind", "--fair-sched=yes"])
        .arg(format!("--callgrind-out-file={}", file.display()))
        .arg(std::env::current_exe()?)
        .args([ONCE, &case.name, &times.to_string()])
        .stdin(Stdio::null())
        .output()
        .map_err(|error| match error.kind() {
            io::ErrorKind::NotFound => Failure::from("valgrind is not installed: apt-get install valgrind"),
            _ => error.into(),
        })?;
    if !output.status.success() {
        return Err(format!("{}: {}", case.name, String::from_utf8_lossy(&output.stderr)).into());
    }
    total(&fs::read_to_string(&file)?)
        .ok_or_else(|| format!("{}: callgrind wrote no summary", case.name).into())
}

/// The number of instructions in a file of callgrind's: that of each of its parts, one a thread that ended, added up.
fn total(file: &str) -> Option<u64> {
    let counts = file.lines().filter_map(|line| line.strip_prefix("summary:"));
    let counts: Vec<u64> = counts.map(|count| count.trim().parse()).collect::<Result<_, _>>().ok()?;
    (!counts.is_empty()).then(|| counts.iter().sum())
}

#[cfg(test)]
mod tests {
    use super::total;

    #[test]
    fn the_summaries_of_all_parts_are_added_and_a_file_without_one_is_no_count() {
        assert_eq!(total("version: 1\nsummary: 1200\nfn=main\n"), Some(1200));
        assert_eq!(total("summary: 1\nsummary: 20\n"), Some(21));
        assert_eq!(total("version: 1\n"), None);
        assert_eq!(total("summary: many\n"), None);
    }
}
