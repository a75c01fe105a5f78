//! System limits of the process: open files, and protection from the out-of-memory killer. Where the system refuses,
//! the run goes on without.

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// When memory is short, others go first: a recorder's is large, bounded, and there from the start. Not the least there
/// is: one that alone does not fit must not hang for it.
const LAST_TO_GO: i32 = -900;

/// As many open files as may be had: a source may have a thousand connections, and clients come beside them.
pub(super) fn open_files() {
    let limit = getrlimit(Resource::Nofile);
    if limit.current != limit.maximum {
        let _ = setrlimit(Resource::Nofile, Rlimit { current: limit.maximum, ..limit });
    }
}

/// Asks that others are killed before us for want of memory; whoever asked for more is not overruled. A warning where
/// only root's right to do so is missing.
pub(super) fn outlive_others() -> Option<String> {
    let path = "/proc/self/oom_score_adj";
    let now: i32 = std::fs::read_to_string(path).ok()?.trim().parse().ok()?;
    if now <= LAST_TO_GO {
        return None;
    }
    let cause = std::fs::write(path, LAST_TO_GO.to_string()).err()?;
    Some(format!(
        "cannot protect this program from the out-of-memory killer: {cause}; run it as root with CAP_SYS_RESOURCE, or set OOMScoreAdjust={LAST_TO_GO} in its systemd unit"
    ))
}
