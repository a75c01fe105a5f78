//! Watchdog of tests: a test that does not end is inspected and killed, and fails.

use rustix::process::{Pid, Signal, kill_process};
use std::fmt::Write as _;
use std::process::Child;
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::time::Duration;

/// No recorder of these tests has this much to do: a purge of many small slots takes four minutes on a machine with ten
/// times the work that it can do.
const LONGEST: Duration = Duration::from_mins(8);

/// An eye on a process, as long as this is there.
pub(crate) struct Watch {
    _over: Sender<()>,
}

impl Watch {
    pub(crate) fn over(child: &Child) -> Self {
        let (sender, over) = channel();
        let pid = Pid::from_child(child);
        std::thread::spawn(move || {
            if over.recv_timeout(LONGEST) == Err(RecvTimeoutError::Timeout) {
                eprintln!("{pid:?} has not ended in {LONGEST:?}, and is killed. {}", look(pid));
                let _ = kill_process(pid, Signal::KILL);
            }
        });
        Self { _over: sender }
    }
}

/// What its threads do.
fn look(pid: Pid) -> String {
    let folder = format!("/proc/{}/task", pid.as_raw_nonzero());
    let mut said = String::from("Its threads:");
    for task in std::fs::read_dir(folder).into_iter().flatten().flatten() {
        let read = |name: &str| std::fs::read_to_string(task.path().join(name)).unwrap_or_default();
        let status = read("status");
        let state = status.lines().find(|line| line.starts_with("State:")).unwrap_or_default();
        let _ = write!(said, "\n{} {state} {}\n{}", read("comm").trim_end(), read("wchan"), read("stack"));
    }
    said
}
