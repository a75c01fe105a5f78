//! Placement of threads, available memory, and locked memory. Where the system refuses, the run warns and goes on
//! without.

use holdfast_base::ByteSize;
use holdfast_ingest::packet::af_packet::Options;
use holdfast_ingest::{CONNECTIONS_MEMORY, DEFAULT_AREA, SourceOptions, SourceSpec};
use rustix::mm::{MlockAllFlags, mlockall};
use rustix::process::{Resource, getrlimit};
use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};

/// Which thread stays on which core.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Cores {
    /// The capture thread.
    pub capture: Option<usize>,
    /// The disk's.
    pub lane: Option<usize>,
    /// The sources', in turn.
    pub sources: Vec<usize>,
}

impl Cores {
    /// Distributes a list: capture, disk, sources. A core that we may not use is told and left out.
    pub(super) fn choose(list: &[usize], warnings: &mut Vec<String>) -> Self {
        let allowed = sched_getaffinity(None).unwrap_or_else(|_| CpuSet::new());
        let may = |core: &usize| *core < CpuSet::MAX_CPU && allowed.is_set(*core);
        for core in list.iter().filter(|core| !may(core)) {
            warnings.push(format!(
                "--cpu: core {core} does not exist or is not available, so its thread runs on any core; available: {} (a wider taskset or cpuset allows more)",
                ranges(&allowed)
            ));
        }
        Self {
            capture: list.first().copied().filter(may),
            lane: list.get(1).copied().filter(may),
            sources: list.iter().skip(2).copied().filter(may).collect(),
        }
    }

    /// The core of a source.
    pub fn of_source(&self, at: usize) -> Option<usize> {
        self.sources.get(at % self.sources.len().max(1)).copied()
    }

    /// Keeps the calling thread on `core`.
    pub fn stay(core: Option<usize>) {
        if let Some(core) = core {
            let mut set = CpuSet::new();
            set.set(core);
            // That it is allowed was found out at the start.
            let _ = sched_setaffinity(None, &set);
        }
    }
}

/// Cores as `--cpu` takes them: `0-3,6`.
fn ranges(set: &CpuSet) -> String {
    let mut all: Vec<(usize, usize)> = Vec::new();
    for core in (0..CpuSet::MAX_CPU).filter(|core| set.is_set(*core)) {
        match all.last_mut() {
            Some((_, last)) if *last + 1 == core => *last = core,
            _ => all.push((core, core)),
        }
    }
    let text = |(first, last): &(usize, usize)| {
        if first == last { first.to_string() } else { format!("{first}-{last}") }
    };
    all.iter().map(text).collect::<Vec<_>>().join(",")
}

/// Keeps all memory of the process where it is; a warning where the limit forbids it.
pub fn lock_memory() -> Option<String> {
    let limit = getrlimit(Resource::Memlock).current;
    // With a finite limit, locking what comes later could make a later mapping fail.
    let flags = match limit {
        Some(_) if !rustix::process::geteuid().is_root() => MlockAllFlags::CURRENT,
        _ => MlockAllFlags::CURRENT | MlockAllFlags::FUTURE,
    };
    let cause = mlockall(flags).err()?;
    let limit = limit.map_or_else(|| "none".to_owned(), |bytes| ByteSize(bytes).to_string());
    Some(format!(
        "cannot lock memory: {cause} (limit: {limit}); capture may stall under memory pressure; raise the memory-lock limit (ulimit -l, or LimitMEMLOCK= of systemd)"
    ))
}

/// Memory that could be had now; nothing where the system does not tell.
pub(super) fn available() -> ByteSize {
    let read = |path: &str| std::fs::read_to_string(path).unwrap_or_default();
    let info = read("/proc/meminfo");
    let free = info.lines().find_map(|line| line.strip_prefix("MemAvailable:")?.split_whitespace().next());
    let free = free.and_then(|kib| kib.parse::<u64>().ok()).unwrap_or(0) << 10;
    let within = group_limit(&read("/proc/self/cgroup"), |path| std::fs::read_to_string(path).ok());
    ByteSize(within.map_or(free, |limit| limit.min(free)))
}

/// What the groups of this process, of either version, and those above them let it have. A container may see its own
/// group as the root.
fn group_limit(groups: &str, read: impl Fn(&str) -> Option<String>) -> Option<u64> {
    let mut least: Option<u64> = None;
    for line in groups.lines() {
        let mut parts = line.splitn(3, ':').skip(1);
        let (Some(kinds), Some(path)) = (parts.next(), parts.next()) else { continue };
        let (root, file) = match kinds {
            "" => ("/sys/fs/cgroup", "memory.max"),
            kinds if kinds.split(',').any(|kind| kind == "memory") => {
                ("/sys/fs/cgroup/memory", "memory.limit_in_bytes")
            }
            _ => continue,
        };
        let mut group = path.trim_end_matches('/');
        loop {
            let limit = read(&format!("{root}{group}/{file}")).and_then(|text| text.trim().parse().ok());
            least = least.into_iter().chain(limit).min();
            let Some((above, _)) = group.rsplit_once('/') else { break };
            group = above;
        }
    }
    least
}

/// Memory that a source of this kind takes beside its batches, and beside what depends on its input.
pub(super) fn of_source(spec: &SourceSpec, options: &SourceOptions) -> u64 {
    let counter = if options.counter.is_some() { 128 << 10 } else { 0 };
    let own = match spec {
        SourceSpec::Iface(name) => {
            let ring = Options::new(name);
            (ring.block_bytes * ring.blocks * options.rings.unwrap_or(1)) as u64 + (1 << 20)
        }
        SourceSpec::Udp { .. } => 4 << 20,
        SourceSpec::Replay(_) => 2 << 20,
        SourceSpec::Tcp(_) => (1 << 20) + CONNECTIONS_MEMORY,
        SourceSpec::Shm(_) => options.area.unwrap_or(DEFAULT_AREA).0 + (128 << 10),
        SourceSpec::Stdin | SourceSpec::File(_) => 128 << 10,
    };
    own + counter
}

#[cfg(test)]
mod tests {
    use super::*;

    // Promise 1: what is locked and then killed for its size captures nothing.
    #[test]
    fn the_least_limit_of_all_groups_above_counts() {
        let files = [
            ("/sys/fs/cgroup/memory.max", "max\n"),
            ("/sys/fs/cgroup/a/memory.max", "5000\n"),
            ("/sys/fs/cgroup/a/b/memory.max", "max\n"),
            ("/sys/fs/cgroup/memory/memory.limit_in_bytes", "9223372036854771712\n"),
            ("/sys/fs/cgroup/memory/c/memory.limit_in_bytes", "4000\n"),
        ];
        let read =
            |path: &str| files.iter().find(|(known, _)| *known == path).map(|(_, text)| (*text).to_owned());
        assert_eq!(group_limit("0::/a/b\n", read), Some(5000));
        assert_eq!(group_limit("4:cpu,memory:/c\n0::/\n", read), Some(4000));
        // Of a container that does not see its own path.
        assert_eq!(group_limit("4:memory:/unknown/x\n0::/\n", read), Some(9_223_372_036_854_771_712));
        assert_eq!(group_limit("0::/\n1:cpu:/c\nnonsense", read), None);
    }
}
