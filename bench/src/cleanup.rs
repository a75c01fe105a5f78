//! Clean-up of everything that a bench makes outside of itself. Its owner takes a thing down when the bench ends by
//! itself; on SIGINT or SIGTERM this module does, newest first. After SIGKILL the next run takes down the things that
//! carry the number of a process that is gone. Only huge pages for `fio` stay in that last case.

use crate::tools;
use rustix::process::{Pid, Signal, kill_process, test_kill_process};
use signal_hook::consts::{SIGINT, SIGTERM};
use signal_hook::iterator::Signals;
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};

/// What folders of benches are called, before the number of the process.
const FOLDER: &str = "holdfast-bench-";

/// One thing to take down.
#[derive(Clone, Debug)]
pub enum Cleanup {
    /// A folder with all that is in it.
    Folder(PathBuf),
    /// A loop device.
    LoopDevice(PathBuf),
    /// What is mounted: an emulated drive, or a file system on it.
    Mount(PathBuf),
    /// A name space, with the link that ends in it.
    Space(String),
    /// A program that runs.
    Program(u32),
    /// A control group, with the processes in it.
    ControlGroup(PathBuf),
    /// A control group that this process and what it starts are in, and the one that they came from.
    Entered {
        /// The group.
        folder: PathBuf,
        /// The one before.
        home: PathBuf,
    },
    /// A file of the kernel's, and what it said before.
    Setting(&'static str, String),
}

impl Cleanup {
    pub(crate) fn carry_out(&self) {
        match self {
            Self::Folder(path) => {
                let _ = std::fs::remove_dir_all(path);
            }
            Self::LoopDevice(device) => {
                let _ = tools::output("losetup", &["--detach", &device.to_string_lossy()]);
            }
            Self::Mount(folder) => crate::emulated::unmount(folder),
            Self::Space(name) => {
                let _ = tools::output("ip", &["netns", "del", name]);
            }
            Self::Program(pid) => {
                if let Some(pid) = pid_of(*pid) {
                    let _ = kill_process(pid, Signal::KILL);
                }
            }
            Self::ControlGroup(folder) => end_group(folder),
            Self::Entered { folder, home } => leave_group(folder, home),
            Self::Setting(path, before) => {
                let _ = std::fs::write(path, before);
            }
        }
    }
}

fn pid_of(number: u32) -> Option<Pid> {
    i32::try_from(number).ok().and_then(Pid::from_raw)
}

/// Ends all that is in a control group, then the group: the last are gone a moment after they were killed.
fn end_group(folder: &Path) {
    for _ in 0..200 {
        let all = std::fs::read_to_string(folder.join("cgroup.procs")).unwrap_or_default();
        for pid in all.lines().filter_map(|pid| pid.parse().ok()).filter_map(Pid::from_raw) {
            let _ = kill_process(pid, Signal::KILL);
        }
        if std::fs::remove_dir(folder).is_ok() || !folder.exists() {
            return;
        }
        std::thread::sleep(std::time::Duration::from_millis(10));
    }
}

/// Brings all that is in a control group to another one, and takes the group down.
fn leave_group(folder: &Path, home: &Path) {
    for _ in 0..200 {
        let all = std::fs::read_to_string(folder.join("cgroup.procs")).unwrap_or_default();
        for pid in all.lines() {
            let _ = std::fs::write(home.join("cgroup.procs"), pid);
        }
        if std::fs::remove_dir(folder).is_ok() || !folder.exists() {
            return;
        }
        std::thread::sleep(std::time::Duration::from_millis(10));
    }
}

static ALL: Mutex<Vec<(u64, Cleanup)>> = Mutex::new(Vec::new());

fn all() -> std::sync::MutexGuard<'static, Vec<(u64, Cleanup)>> {
    ALL.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
}

/// As long as it is there, a signal takes the thing down.
#[derive(Debug)]
pub struct CleanupGuard(u64);

/// Notes what is there now.
pub fn register(undo: Cleanup) -> CleanupGuard {
    static NEXT: AtomicU64 = AtomicU64::new(0);
    let id = NEXT.fetch_add(1, Ordering::Relaxed);
    all().push((id, undo));
    CleanupGuard(id)
}

impl Drop for CleanupGuard {
    fn drop(&mut self) {
        all().retain(|(id, _)| *id != self.0);
    }
}

/// What a folder of this process is called at the beginning.
pub fn folder_prefix() -> String {
    format!("{FOLDER}{}-", std::process::id())
}

/// From here on SIGINT and SIGTERM take down what is noted, and end the process as a shell expects it.
pub fn handle_signals() -> std::io::Result<()> {
    let mut signals = Signals::new([SIGINT, SIGTERM])?;
    std::thread::Builder::new().name("undo".to_owned()).spawn(move || {
        let Some(signal) = signals.forever().next() else { return };
        // Held to the end: whoever takes something down meanwhile waits here.
        for (_, undo) in all().iter().rev() {
            undo.carry_out();
        }
        std::process::exit(128 + signal);
    })?;
    Ok(())
}

/// Prepares this process for benches: takes down what killed runs have left, and handles signals from here on.
pub fn prepare() {
    sweep();
    if let Err(cause) = handle_signals() {
        eprintln!("cannot handle signals ({cause}): after an interruption the next run cleans up");
    }
}

/// Takes down what runs that were killed have left.
pub fn sweep() {
    let gone =
        |number: Option<u32>| number.and_then(pid_of).is_some_and(|pid| test_kill_process(pid).is_err());
    let owner =
        |path: &Path| path.components().find_map(|part| owner_of_folder(&part.as_os_str().to_string_lossy()));
    let mounts = std::fs::read_to_string("/proc/mounts").unwrap_or_default();
    // File systems before the devices that they are on, those before the drives.
    for line in mounts.lines().rev().filter(|line| !line.starts_with("holdfast-drive ")) {
        if let Some(folder) = line.split(' ').nth(1)
            && gone(owner(Path::new(folder)))
        {
            Cleanup::Mount(folder.into()).carry_out();
        }
    }
    let list = tools::output("losetup", &["--list", "--noheadings", "--raw", "--output", "NAME,BACK-FILE"]);
    for line in list.unwrap_or_default().lines() {
        if let Some((device, file)) = line.split_once(' ')
            && gone(owner(Path::new(file)))
        {
            Cleanup::LoopDevice(device.into()).carry_out();
        }
    }
    for line in mounts.lines() {
        if let Some(folder) = line.strip_prefix("holdfast-drive ").and_then(|line| line.split(' ').next())
            && gone(owner(Path::new(folder)))
        {
            Cleanup::Mount(folder.into()).carry_out();
        }
    }
    for parent in [crate::work_folder::parent(), crate::work_folder::MEMORY.into()] {
        for entry in std::fs::read_dir(parent).into_iter().flatten().flatten() {
            if gone(owner_of_folder(&entry.file_name().to_string_lossy())) {
                Cleanup::Folder(entry.path()).carry_out();
            }
        }
    }
    for groups in ["/sys/fs/cgroup", "/sys/fs/cgroup/memory", "/sys/fs/cgroup/blkio"] {
        for entry in std::fs::read_dir(groups).into_iter().flatten().flatten() {
            if gone(owner_of_folder(&entry.file_name().to_string_lossy())) {
                Cleanup::ControlGroup(entry.path()).carry_out();
            }
        }
    }
    for entry in std::fs::read_dir("/run/netns").into_iter().flatten().flatten() {
        let name = entry.file_name().to_string_lossy().into_owned();
        if gone(owner_of_space(&name)) {
            Cleanup::Space(name).carry_out();
        }
    }
}

/// The process that made a folder of this name.
fn owner_of_folder(name: &str) -> Option<u32> {
    name.strip_prefix(FOLDER)?.split('-').next()?.parse().ok()
}

/// The process that made a name space of this name: see [`crate::link::VirtualLink`].
fn owner_of_space(name: &str) -> Option<u32> {
    let (pid, count) = name.strip_prefix("hf")?.rsplit_once('b')?;
    count.parse::<u32>().ok()?;
    // `b` is a hexadecimal digit, too: a name that has several is told by its last.
    u32::from_str_radix(pid, 16).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_tell_who_made_them() {
        assert_eq!(owner_of_folder(&(folder_prefix() + "aBc")), Some(std::process::id()));
        assert_eq!(owner_of_folder("holdfast-bench-aBc"), None);
        assert_eq!(owner_of_space("hf1f2b3"), Some(0x1f2));
        assert_eq!(owner_of_space("hfbabb12"), Some(0xbab));
        for foreign in ["hf1x2", "other", "hf", "hfb", "hf12b"] {
            assert_eq!(owner_of_space(foreign), None, "{foreign}");
        }
    }
}
