//! Control groups of the kernel, of either version: programs that get only so much memory, and a disk that is slower than the
//! machine's.

use crate::BenchError;
use crate::cleanup::{Cleanup, CleanupGuard, folder_prefix, register};
use rustix::fs::{FileType, major, minor, stat};
use std::path::{Path, PathBuf};

const ROOT: &str = "/sys/fs/cgroup";

/// What a group limits: the controller and its file, of version 2 and of version 1.
struct ResourceLimit {
    new: (&'static str, &'static str),
    old: (&'static str, &'static str),
}

const MEMORY: ResourceLimit =
    ResourceLimit { new: ("memory", "memory.max"), old: ("memory", "memory.limit_in_bytes") };

/// A group, gone when dropped.
#[derive(Debug)]
pub struct ControlGroup {
    folder: PathBuf,
    is_new: bool,
    undo: Cleanup,
    #[allow(dead_code, reason = "for a signal")]
    noted: CleanupGuard,
}

impl ControlGroup {
    /// One in which there is so much memory; skipped where that is not to be had.
    pub fn with_memory(bytes: u64) -> Result<Self, BenchError> {
        let group = Self::make(&MEMORY, Cleanup::ControlGroup)?;
        group.set(&MEMORY, &bytes.to_string())?;
        Ok(group)
    }

    fn make(limit: &ResourceLimit, undo: impl FnOnce(PathBuf) -> Cleanup) -> Result<Self, BenchError> {
        let root = Path::new(ROOT);
        let listed = std::fs::read_to_string(root.join("cgroup.subtree_control")).unwrap_or_default();
        let is_new = listed.split_whitespace().any(|one| one == limit.new.0);
        let parent = if is_new { root.to_owned() } else { root.join(limit.old.0) };
        if !is_new && !parent.join("cgroup.procs").is_file() {
            return Err(BenchError::skipped(format!("no control groups for {} here", limit.new.0)));
        }
        let folder = parent.join(format!("{}{}", folder_prefix(), limit.new.0));
        let made = std::fs::create_dir(&folder);
        made.map_err(|cause| BenchError::skipped(format!("no control group can be made ({cause})")))?;
        let undo = undo(folder.clone());
        Ok(Self { noted: register(undo.clone()), folder, is_new, undo })
    }

    fn set(&self, limit: &ResourceLimit, value: &str) -> Result<(), BenchError> {
        let path = self.folder.join(if self.is_new { limit.new.1 } else { limit.old.1 });
        std::fs::write(&path, value)
            .map_err(|cause| BenchError::skipped(format!("{} cannot be set ({cause})", path.display())))
    }

    /// A shell's words: what comes after them is in the group.
    pub fn enter(&self) -> String {
        format!("echo $$ >'{}/cgroup.procs' || exit 1", self.folder.display())
    }

    /// What a file of the group says.
    pub fn read(&self, file: &str) -> Option<String> {
        std::fs::read_to_string(self.folder.join(file)).ok()
    }
}

impl Drop for ControlGroup {
    fn drop(&mut self) {
        self.undo.carry_out();
    }
}

/// Which way data goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DiskDirection {
    /// To the disk.
    Write,
    /// From it.
    Read,
}

/// As long as it is there this process, and what it starts, gets only so much of a disk, where the page cache is passed by.
#[derive(Debug)]
pub struct SlowedDisk(#[allow(dead_code, reason = "dropped at the end")] ControlGroup);

impl SlowedDisk {
    /// To so many bytes a second of the disk that a file is on, or of the device at that path; skipped where that is not to be had.
    pub fn to(rate: u64, way: DiskDirection, path: &Path) -> Result<Self, BenchError> {
        let disk = disk_of(path)?;
        let (new, old) = match way {
            DiskDirection::Write => ("wbps", "blkio.throttle.write_bps_device"),
            DiskDirection::Read => ("rbps", "blkio.throttle.read_bps_device"),
        };
        let limit = ResourceLimit { new: ("io", "io.max"), old: ("blkio", old) };
        let group = ControlGroup::make(&limit, |folder| Cleanup::Entered { home: home_of(&folder), folder })?;
        let named = if group.is_new { format!("{new}=") } else { String::new() };
        group.set(&limit, &format!("{disk} {named}{rate}"))?;
        let all = group.folder.join("cgroup.procs");
        let entered = std::fs::write(&all, std::process::id().to_string());
        entered
            .map_err(|cause| BenchError::skipped(format!("the control group lets nobody in ({cause})")))?;
        Ok(Self(group))
    }
}

/// Measures with a disk as it is, then with one that is slowed; where that is not to be had it says so.
pub fn as_it_is_and_slowed(
    rate: u64,
    way: DiskDirection,
    path: &Path,
    mut measure: impl FnMut(bool) -> Result<(), BenchError>,
) -> Result<(), BenchError> {
    measure(false)?;
    match SlowedDisk::to(rate, way, path) {
        Ok(_slowed) => measure(true),
        Err(why @ BenchError::Skipped { .. }) => {
            println!("{why}");
            Ok(())
        }
        Err(error) => Err(error),
    }
}

/// The group, beside the one at `folder`, in which this process is now.
fn home_of(folder: &Path) -> PathBuf {
    let parent = folder.parent().unwrap_or(folder);
    let controller = parent.file_name().unwrap_or_default().to_string_lossy();
    let text = std::fs::read_to_string("/proc/self/cgroup").unwrap_or_default();
    let path = path_among(&text, if parent == Path::new(ROOT) { "" } else { &controller });
    parent.join(path.unwrap_or_default().trim_start_matches('/'))
}

/// The path for a controller in what the kernel says of a process, as `4:blkio:/a`; without a name that of version 2.
fn path_among<'a>(text: &'a str, controller: &str) -> Option<&'a str> {
    text.lines().find_map(|line| {
        let (controllers, path) = line.split_once(':')?.1.split_once(':')?;
        controllers.split(',').any(|one| one == controller).then_some(path)
    })
}

/// The number, as the kernel writes it, of the whole disk under a file, or under the device at that path.
fn disk_of(path: &Path) -> Result<String, BenchError> {
    let found = stat(path).map_err(BenchError::file(path, "look at it"))?;
    let is_device = FileType::from_raw_mode(found.st_mode) == FileType::BlockDevice;
    let device = if is_device { found.st_rdev } else { found.st_dev };
    let shown = format!("/sys/dev/block/{}:{}", major(device), minor(device));
    let shown = std::fs::canonicalize(&shown)
        .map_err(|_| BenchError::skipped(format!("{} is on no disk that can be slowed", path.display())))?;
    // A partition's folder is in that of its disk.
    let whole = if shown.join("partition").exists() { shown.parent().unwrap_or(&shown) } else { &shown };
    let text = std::fs::read_to_string(whole.join("dev")).map_err(BenchError::file(whole, "look at it"))?;
    Ok(text.trim().to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::work_folder::WorkFolder;

    #[test]
    fn the_group_of_a_process_is_found_for_either_version() {
        let text = "9:name=systemd:/s\n5:cpu,cpuacct:/c\n4:blkio:/a/b\n0::/user.slice\n";
        assert_eq!(path_among(text, "blkio"), Some("/a/b"));
        assert_eq!(path_among(text, "cpuacct"), Some("/c"));
        assert_eq!(path_among(text, ""), Some("/user.slice"));
        assert_eq!(path_among(text, "memory"), None);
    }

    #[test]
    fn who_is_slowed_is_where_it_was_afterwards() {
        let place = WorkFolder::with_room(1 << 20).unwrap();
        let text = || std::fs::read_to_string("/proc/self/cgroup").unwrap();
        let before = text();
        match SlowedDisk::to(1 << 30, DiskDirection::Write, place.path()) {
            Ok(slowed) => {
                assert_ne!(text(), before);
                let folder = slowed.0.folder.clone();
                drop(slowed);
                assert!(!folder.exists());
            }
            Err(BenchError::Skipped { reason }) => println!("skipped: {reason}"),
            Err(error) => panic!("{error}"),
        }
        assert_eq!(text(), before);
    }
}
