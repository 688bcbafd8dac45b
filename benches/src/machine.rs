//! What figures were measured on: the machine as the operating system describes it, and the versions that matter.

use std::{fs, process::Command};

use serde::{Deserialize, Serialize};

/// A machine, a build, and what else it was doing.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Machine {
    /// Name of the processor.
    pub processor: String,
    /// Processors that the measuring process may use.
    pub cores: usize,
    /// Kernel and distribution.
    pub system: String,
    /// Crates and compiler.
    pub versions: Vec<String>,
    /// Commit of the sources, with a mark where they were changed since.
    pub commit: String,
    /// Load averages of the last 1, 5 and 15 minutes, before the first round.
    pub load: String,
}

/// The crates that a write goes through.
const CRATES: [&str; 6] = ["raft", "rocksdb", "librocksdb-sys", "crossbeam-utils", "parking_lot", "prost"];

impl Machine {
    /// This one, now.
    #[must_use]
    pub fn here() -> Self {
        let field = |text: &str, name: &str| {
            let line = text.lines().find_map(|line| line.strip_prefix(name));
            line.map(|rest| rest.trim_matches(|c: char| ":=\t \"".contains(c)).to_owned())
        };
        let read = |path| fs::read_to_string(path).unwrap_or_default();
        let unknown = || "unknown".to_owned();
        let distribution = field(&read("/etc/os-release"), "PRETTY_NAME").unwrap_or_else(unknown);
        let kernel = read("/proc/sys/kernel/osrelease").trim().to_owned();
        Self {
            processor: field(&read("/proc/cpuinfo"), "model name").unwrap_or_else(unknown),
            cores: std::thread::available_parallelism().map_or(0, usize::from),
            system: format!("{distribution}, Linux {kernel}"),
            versions: versions(),
            commit: output("git", &["describe", "--always", "--dirty", "--abbrev=12"])
                .unwrap_or_else(unknown),
            load: load(),
        }
    }
}

/// Load averages, as the operating system prints them.
#[must_use]
pub fn load() -> String {
    let text = fs::read_to_string("/proc/loadavg").unwrap_or_default();
    text.split_whitespace().take(3).collect::<Vec<_>>().join(" ")
}

fn versions() -> Vec<String> {
    let lock = include_str!("../../Cargo.lock");
    let of = |name: &str| {
        let rest = lock.split_once(&format!("\nname = \"{name}\"\nversion = \""))?.1;
        Some(format!("{name} {}", rest.split('"').next()?))
    };
    CRATES.iter().filter_map(|name| of(name)).chain(output("rustc", &["--version"])).collect()
}

fn output(command: &str, arguments: &[&str]) -> Option<String> {
    let output = Command::new(command).args(arguments).output().ok()?;
    let text = String::from_utf8(output.stdout).ok()?.trim().to_owned();
    (output.status.success() && !text.is_empty()).then_some(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_crates_that_a_write_goes_through_are_found_with_their_versions() {
        let versions = versions();
        for name in CRATES {
            assert!(versions.iter().any(|version| version.starts_with(&format!("{name} "))), "{name}");
        }
        assert!(Machine::here().cores > 0);
    }
}
