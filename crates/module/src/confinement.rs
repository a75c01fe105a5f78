//! Rights that the process gives up: privileges, resources and, where the kernel can filter them, system calls.
//!
//! The engine already keeps a module from everything but its memory; this is the second wall, for faults of the
//! engine. Loading a module needs more rights than running it, so that confinement has two stages.

use holdfast_module_wire::Limits;
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use seccompiler::{BpfProgram, SeccompAction, SeccompFilter};
use std::collections::BTreeMap;

/// Private memory for compilation and the answers, above the module's own memory.
const OWN_BYTES: u64 = 2 << 30;

/// System calls that running a module and answering the scan need.
const CALLS: &[libc::c_long] = &[
    // Requests, answers and blocks.
    libc::SYS_read,
    libc::SYS_write,
    libc::SYS_recvfrom,
    libc::SYS_sendto,
    libc::SYS_setsockopt,
    libc::SYS_pread64,
    libc::SYS_ppoll,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_poll,
    libc::SYS_close,
    // Memory of the module and of the process.
    libc::SYS_brk,
    libc::SYS_mmap,
    libc::SYS_munmap,
    libc::SYS_mremap,
    libc::SYS_mprotect,
    libc::SYS_madvise,
    // Threads, traps and time.
    libc::SYS_futex,
    libc::SYS_rt_sigreturn,
    libc::SYS_rt_sigaction,
    libc::SYS_rt_sigprocmask,
    libc::SYS_sigaltstack,
    libc::SYS_clock_gettime,
    libc::SYS_clock_nanosleep,
    libc::SYS_nanosleep,
    libc::SYS_restart_syscall,
    libc::SYS_sched_yield,
    libc::SYS_getrandom,
    // An orderly end, or an abort.
    libc::SYS_getpid,
    libc::SYS_gettid,
    libc::SYS_tgkill,
    libc::SYS_exit,
    libc::SYS_exit_group,
];

/// Gives up privileges and bounds the memory, before the module's file is read.
pub(crate) fn before_loading(limits: &Limits) -> std::io::Result<()> {
    rustix::thread::set_no_new_privs(true)?;
    lower(Resource::Core, 0)?;
    lower(Resource::Data, limits.memory.saturating_add(OWN_BYTES))
}

/// Gives up files and all system calls that a loaded module does not need; returns whether the kernel filters them.
pub(crate) fn before_running() -> std::io::Result<bool> {
    lower(Resource::Fsize, 0)?;
    // As many as standard streams: these are open, so that no file can be opened.
    lower(Resource::Nofile, 3)?;
    Ok(filter().is_some_and(|filter| seccompiler::apply_filter_all_threads(&filter).is_ok()))
}

/// Lowers both limits of a resource to at most `most`.
fn lower(resource: Resource, most: u64) -> std::io::Result<()> {
    let now = getrlimit(resource);
    let least = |limit: Option<u64>| Some(limit.map_or(most, |limit| limit.min(most)));
    Ok(setrlimit(resource, Rlimit { current: least(now.current), maximum: least(now.maximum) })?)
}

/// Filter that refuses every other system call with EPERM.
fn filter() -> Option<BpfProgram> {
    let rules: BTreeMap<i64, Vec<_>> = CALLS.iter().map(|call| (*call, Vec::new())).collect();
    let refuse = SeccompAction::Errno(rustix::io::Errno::PERM.raw_os_error().cast_unsigned());
    let target = std::env::consts::ARCH.try_into().ok()?;
    SeccompFilter::new(rules, refuse, SeccompAction::Allow, target).ok()?.try_into().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_filter_exists_for_this_machine() {
        assert!(filter().is_some_and(|program| program.len() > CALLS.len()));
    }
}
