//! What processes have used of the machine, as Linux counts it for each of their threads. Unlike a rate, it hardly depends on
//! who else is busy.

use std::{fs, io, path::Path};

use benches::round::Failure;

/// Time on a processor, and how often a thread left one.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Usage {
    /// Microseconds on a processor, in the program and in the kernel.
    pub(crate) cpu_us: f64,
    /// Times that a thread left its processor, by itself or not.
    pub(crate) switches: f64,
}

impl Usage {
    /// What was used since then, for each of so many operations.
    pub(crate) fn since(self, before: Self, operations: f64) -> Self {
        let each = |now: f64, before: f64| (now - before) / operations.max(1.0);
        Self { cpu_us: each(self.cpu_us, before.cpu_us), switches: each(self.switches, before.switches) }
    }
}

/// What these processes have used up to now. Threads that have ended do not count any more.
pub(crate) fn of(processes: impl Iterator<Item = u32>) -> Result<Usage, Failure> {
    let mut usage = Usage::default();
    for process in processes {
        for thread in fs::read_dir(format!("/proc/{process}/task"))? {
            match of_thread(&thread?.path()) {
                Ok((cpu_us, switches)) => {
                    usage.cpu_us += cpu_us;
                    usage.switches += switches;
                }
                // It has ended meanwhile.
                Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                Err(error) => return Err(error.into()),
            }
        }
    }
    Ok(usage)
}

fn of_thread(dir: &Path) -> io::Result<(f64, f64)> {
    let (times, status) =
        (fs::read_to_string(dir.join("schedstat"))?, fs::read_to_string(dir.join("status"))?);
    let nanoseconds = times.split_whitespace().next().and_then(number).unwrap_or(0.0);
    let switches = status.lines().filter_map(|line| line.split_once("ctxt_switches:"));
    Ok((nanoseconds / 1e3, switches.filter_map(|(_, count)| number(count.trim())).sum()))
}

fn number(text: &str) -> Option<f64> {
    text.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::{Duration, Instant};

    #[test]
    fn a_process_that_works_and_sleeps_is_seen_to() {
        let own = || of(std::iter::once(std::process::id())).unwrap();
        let before = own();
        let until = Instant::now() + Duration::from_millis(50);
        while Instant::now() < until {
            std::hint::spin_loop();
        }
        (0..20).for_each(|_| std::thread::sleep(Duration::from_micros(100)));
        let used = own().since(before, 10.0);
        assert!(used.cpu_us > 100.0 && used.switches >= 1.0, "{used:?}");
    }
}
