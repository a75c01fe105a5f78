//! Placement and priority of the I/O threads. What the system forbids is reported, and done without.
#![allow(unsafe_code)]

use crate::privilege::drop_privileges;
use rustix::thread::{CpuSet, sched_setaffinity};

/// How the I/O thread of a lane is to run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LaneOptions {
    /// The core it stays on.
    pub cpu: Option<usize>,
    /// Whether it goes before all ordinary threads (`SCHED_FIFO`).
    pub realtime: bool,
    /// Whether it gives up its privileges once it runs so.
    pub drops_privileges: bool,
}

/// Above ordinary threads, below what the kernel itself runs at 50 (interrupt threads).
const PRIORITY: libc::c_int = 40;

/// Applies `options` to the calling thread; returns a warning for each that could not be met.
pub(crate) fn apply(options: LaneOptions, name: &str) -> Vec<String> {
    let mut warnings = Vec::new();
    if let Some(cpu) = options.cpu
        && let Err(cause) = pin(cpu)
    {
        warnings.push(format!("{name}: its I/O thread cannot be kept on core {cpu} ({cause}): give a core that exists and is allowed"));
    }
    if options.realtime
        && let Err(cause) = go_first()
    {
        warnings.push(format!("{name}: its I/O thread gets no real-time priority ({cause}): run with CAP_SYS_NICE or a higher real-time limit (ulimit -r, or LimitRTPRIO= of systemd)"));
    }
    warnings
}

/// Gives up the calling thread's privileges, if `options` say so, once it and those that it starts run as they are to;
/// returns a warning where that is forbidden.
pub(crate) fn settle(options: LaneOptions, name: &str) -> Option<String> {
    let cause = options.drops_privileges.then(drop_privileges)?.err()?;
    Some(format!(
        "{name}: its I/O thread cannot give up its privileges ({cause}): it keeps those that it was started with"
    ))
}

fn pin(cpu: usize) -> std::io::Result<()> {
    if cpu >= CpuSet::MAX_CPU {
        return Err(std::io::ErrorKind::InvalidInput.into());
    }
    let mut set = CpuSet::new();
    set.set(cpu);
    Ok(sched_setaffinity(None, &set)?)
}

fn go_first() -> std::io::Result<()> {
    run_first(PRIORITY)
}

/// Lets the calling thread go before all ordinary ones (`SCHED_FIFO`) at a priority from 1 to 99; threads that it starts
/// are ordinary again.
pub fn run_first(priority: i32) -> std::io::Result<()> {
    let wanted = libc::sched_param { sched_priority: priority };
    // SAFETY: the call reads one plain structure; 0 means the calling thread.
    match unsafe {
        libc::sched_setscheduler(0, libc::SCHED_FIFO | libc::SCHED_RESET_ON_FORK, &raw const wanted)
    } {
        0 => Ok(()),
        _ => Err(std::io::Error::last_os_error()),
    }
}
