//! What the figures were measured on: without it nanoseconds mean nothing.

use std::{fs, process::Command, thread};

use serde::Serialize;

/// The lock file, for the exact versions that were compiled in.
const LOCK: &str = include_str!("../Cargo.lock");

/// The crates whose versions the report names.
const NAMED: [&str; 13] = [
    "callback-slot",
    "crossbeam-utils",
    "callback_cell",
    "parking_lot",
    "atomic-take",
    "atomicbox",
    "arc-swap",
    "oneshot",
    "tokio",
    "catty",
    "futures-channel",
    "async-oneshot",
    "crossbeam-channel",
];

/// The machine, the compiler, the versions.
#[derive(Clone, Debug, Serialize)]
pub struct Machine {
    /// The processor, as it calls itself.
    pub processor: String,
    /// Cores that this process may use.
    pub cores: usize,
    /// The kernel's name and release.
    pub system: String,
    /// The compiler that is installed now, which is the one that `cargo run` has used.
    pub compiler: String,
    /// The load average at the start: other work on the same cores is noise.
    pub load: String,
    /// Names and versions of the crates compared.
    pub versions: Vec<String>,
}

impl Machine {
    /// Looks around.
    #[must_use]
    pub fn describe() -> Self {
        let cpuinfo = fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
        let processor = cpuinfo
            .lines()
            .find(|line| line.starts_with("model name"))
            .and_then(|line| line.split_once(':'))
            .map_or(std::env::consts::ARCH, |(_, name)| name.trim());
        Machine {
            processor: processor.to_owned(),
            cores: thread::available_parallelism().map_or(0, Into::into),
            system: first_line("uname", "-sr"),
            compiler: first_line("rustc", "--version"),
            load: load_average(),
            versions: NAMED.iter().filter_map(|name| version(name)).collect(),
        }
    }
}

/// The load average of now.
#[must_use]
pub fn load_average() -> String {
    let load = fs::read_to_string("/proc/loadavg").unwrap_or_default();
    load.split(' ').take(3).collect::<Vec<_>>().join(" ")
}

/// Name and version of a crate in the lock file.
fn version(name: &str) -> Option<String> {
    let mut lines = LOCK.lines().skip_while(|line| *line != format!("name = \"{name}\""));
    let version = lines.nth(1)?.strip_prefix("version = \"")?.strip_suffix('"')?;
    Some(format!("{name} {version}"))
}

fn first_line(program: &str, argument: &str) -> String {
    let output = Command::new(program).arg(argument).output();
    let text = output.map(|output| String::from_utf8_lossy(&output.stdout).into_owned()).unwrap_or_default();
    text.lines().next().unwrap_or("unknown").to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_named_crate_is_in_the_lock_file() {
        for name in NAMED {
            let found = version(name).unwrap_or_else(|| panic!("{name} is not in the lock file"));
            assert!(found.starts_with(name) && found.ends_with(|c: char| c.is_ascii_digit()), "{found}");
        }
    }
}
