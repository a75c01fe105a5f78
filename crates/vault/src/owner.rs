//! Owner of an upload: the process that makes it. Uploads whose process has ended are removed by the next one that writes.

use std::fs;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// Age at which an upload from another machine is taken as abandoned.
pub(crate) const ABANDONED_AFTER: Duration = Duration::from_hours(72);

/// Process and number of an upload, in the form `MACHINE-PID-START-NUMBER`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Owner {
    /// Boot of a kernel and its name space of processes, as hexadecimal digits.
    machine: String,
    pid: u32,
    /// Time at which the process started, in clock ticks since boot.
    start: u64,
    number: u64,
}

impl Owner {
    /// Owner of a new upload of this process.
    pub(crate) fn new() -> Self {
        static NUMBER: AtomicU64 = AtomicU64::new(0);
        let pid = std::process::id();
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        Self { machine: machine(), pid, start: start_of(pid).unwrap_or_default(), number }
    }

    /// Parses the name that `to_string` gives.
    pub(crate) fn parse(name: &str) -> Option<Self> {
        let mut parts = name.split('-');
        let machine = parts.next()?.to_owned();
        let (pid, start) = (parts.next()?.parse().ok()?, parts.next()?.parse().ok()?);
        let number = parts.next()?.parse().ok()?;
        parts.next().is_none().then_some(Self { machine, pid, start, number })
    }

    /// True if the upload will not go on: its process has ended, or, from another machine, its age says so.
    pub(crate) fn is_gone(&self, age: Duration) -> bool {
        if self.machine == machine() { start_of(self.pid) != Some(self.start) } else { age > ABANDONED_AFTER }
    }
}

impl std::fmt::Display for Owner {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}-{}-{}-{}", self.machine, self.pid, self.start, self.number)
    }
}

fn machine() -> String {
    let boot = fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap_or_default();
    let space = fs::read_link("/proc/self/ns/pid").unwrap_or_default();
    let hash = blake3::hash(format!("{} {}", boot.trim(), space.display()).as_bytes());
    hash.to_hex()[..16].to_owned()
}

/// Start of a process (proc(5), field 22 of `stat`).
fn start_of(pid: u32) -> Option<u64> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    stat.rsplit_once(')')?.1.split_whitespace().nth(19)?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_owner_is_known_by_its_name() {
        let own = Owner::new();
        let read = Owner::parse(&own.to_string()).unwrap();
        assert_eq!(read, own);
        assert!(!read.is_gone(Duration::from_hours(10_000)));
        let ended = Owner { start: own.start + 1, ..own.clone() };
        assert!(ended.is_gone(Duration::ZERO));
        let elsewhere = Owner { machine: "elsewhere".to_owned(), ..own };
        assert!(!elsewhere.is_gone(Duration::from_hours(1)));
        assert!(elsewhere.is_gone(ABANDONED_AFTER * 2));
        assert_eq!(Owner::parse("x-1-2"), None);
    }
}
