//! CPU time of the pipeline's groups of threads, by the names of the threads, and context switches of all, from the
//! operating system.

use std::{collections::BTreeMap, fs};

/// The groups that the tables name, in the order of a write.
pub const GROUPS: [&str; 4] = ["scheduler", "worker", "raftstore", "apply"];

/// Nanoseconds on a CPU per group, for the threads alive at one moment.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CpuTimes(BTreeMap<&'static str, u64>);

impl CpuTimes {
    /// Reads them now. `None` where the operating system does not tell.
    #[must_use]
    pub fn now() -> Option<Self> {
        let mut times = Self::default();
        for task in fs::read_dir("/proc/self/task").ok()?.flatten() {
            // A thread may end between the listing and the reading; it is of no group that lives through a round.
            let Ok(name) = fs::read_to_string(task.path().join("comm")) else { continue };
            let Some(group) = GROUPS.into_iter().find(|group| name.starts_with(group)) else { continue };
            let Ok(schedstat) = fs::read_to_string(task.path().join("schedstat")) else { continue };
            let on_cpu = schedstat.split_whitespace().next().and_then(|n| n.parse::<u64>().ok())?;
            *times.0.entry(group).or_default() += on_cpu;
        }
        Some(times)
    }

    /// Microseconds that each group spent since an earlier reading.
    #[must_use]
    pub fn micros_since(&self, earlier: &Self) -> BTreeMap<&'static str, f64> {
        let at = |times: &Self, group| times.0.get(group).copied().unwrap_or(0);
        let spent = |group| at(self, group).saturating_sub(at(earlier, group)) as f64 / 1000.0;
        GROUPS.into_iter().map(|group| (group, spent(group))).collect()
    }
}

/// How often the threads of this process that are alive have been switched away from, of their own will or not. Zero
/// where the operating system does not tell.
#[must_use]
pub fn context_switches() -> u64 {
    let Ok(tasks) = fs::read_dir("/proc/self/task") else { return 0 };
    let status = tasks.flatten().filter_map(|task| fs::read_to_string(task.path().join("status")).ok());
    let of_task = |status: String| -> u64 {
        let lines = status.lines().filter_map(|line| line.split_once("ctxt_switches:"));
        lines.filter_map(|(_, count)| count.trim().parse::<u64>().ok()).sum()
    };
    status.map(of_task).sum()
}
