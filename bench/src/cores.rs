//! CPU affinity of a thread and of the programs that it starts.

use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};

/// Cores by what they are for: the generator has the last one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cores {
    /// Any.
    All,
    /// The generator's.
    Last,
    /// All but the generator's; any where there is only one.
    NotLast,
}

impl Cores {
    /// Keeps the calling thread, and what it starts from now on, on these cores.
    pub fn stay(self) {
        let all = std::fs::read_to_string("/sys/devices/system/cpu/online").unwrap_or_default();
        let last =
            all.trim().rsplit(['-', ',']).next().and_then(|last| last.parse::<usize>().ok()).unwrap_or(0);
        let mut set = CpuSet::new();
        for core in 0..=last.min(CpuSet::MAX_CPU - 1) {
            if self == Self::All || last == 0 || (core == last) == (self == Self::Last) {
                set.set(core);
            }
        }
        let _ = sched_setaffinity(None, &set);
    }

    /// Does something on these cores, and goes back to where it was.
    pub fn run<T>(self, act: impl FnOnce() -> T) -> T {
        let before = sched_getaffinity(None);
        self.stay();
        let done = act();
        if let Ok(before) = before {
            let _ = sched_setaffinity(None, &before);
        }
        done
    }
}
