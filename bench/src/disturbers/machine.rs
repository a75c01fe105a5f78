//! What else a machine does: it computes, its memory is full, its log partition is. Each is taken away when dropped.

use crate::place::Place;
use crate::program::Program;
use crate::undo::{Noted, Undo, note};
use crate::{Trouble, tool};
use rustix::fs::{Mode, OFlags};
use std::fs::File;
use std::io::{ErrorKind, Write as _};
use std::path::{Path, PathBuf};
use std::process::Stdio;

/// Threads a core that only compute.
const HOGS: usize = 2;

/// Programs that compute and nothing else, at the priority of everybody.
pub fn hogs(folder: &Path) -> Result<Vec<Program>, Trouble> {
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    let hog = |number| {
        let said = folder.join(format!("hog{number}.said"));
        Program::start(Path::new("/bin/sh"), &["-c", "while :; do :; done"], Stdio::null(), &said)
    };
    (0..cores * HOGS).map(hog).collect()
}

/// A file system without a byte of room.
#[derive(Debug)]
pub struct FullDisk {
    folder: PathBuf,
    #[allow(dead_code, reason = "for a signal")]
    noted: Noted,
}

impl FullDisk {
    /// Mounts one; only root can.
    pub fn mount(place: &Path) -> Result<Self, Trouble> {
        let folder = place.join("full");
        std::fs::create_dir_all(&folder).map_err(Trouble::file(&folder, "make it"))?;
        let path = folder.to_string_lossy();
        tool::output("mount", &["-t", "tmpfs", "-o", "size=64k", "holdfast-bench", &path])
            .map_err(|error| Trouble::skipped(format!("no file system can be mounted: {error}")))?;
        let full = Self { noted: note(Undo::Mount(folder.clone())), folder };
        let filler = full.folder.join("filler");
        let mut file = File::create(&filler).map_err(Trouble::file(&filler, "make it"))?;
        loop {
            match file.write(&[0; 4096]) {
                Ok(_) => {}
                Err(error) if error.kind() == ErrorKind::StorageFull => return Ok(full),
                Err(error) => return Err(Trouble::file(&filler, "fill it")(error)),
            }
        }
    }

    /// A file there, in which nothing finds room.
    pub fn log(&self) -> PathBuf {
        self.folder.join("log")
    }
}

impl Drop for FullDisk {
    fn drop(&mut self) {
        crate::emulated::unmount(&self.folder);
    }
}

/// A pipe that takes nothing any more, and that nobody reads; its path, and what keeps it so.
pub fn clogged(place: &Path) -> Result<(PathBuf, File), Trouble> {
    let path = place.join("clogged");
    let _ = std::fs::remove_file(&path);
    let made = rustix::fs::mkfifoat(rustix::fs::CWD, &path, Mode::from_raw_mode(0o600));
    made.map_err(Trouble::file(&path, "make it"))?;
    let flags = OFlags::RDWR | OFlags::NONBLOCK | OFlags::CLOEXEC;
    let pipe = rustix::fs::open(&path, flags, Mode::empty()).map_err(Trouble::file(&path, "open it"))?;
    let mut pipe = File::from(pipe);
    while pipe.write(b"x").is_ok() {}
    Ok((path, pipe))
}

/// A group of processes that has only so much memory.
#[derive(Debug)]
pub struct Group {
    folder: PathBuf,
    #[allow(dead_code, reason = "for a signal")]
    noted: Noted,
}

impl Group {
    /// Makes one with a limit, of either version; skipped where that is not to be had.
    pub fn of(bytes: u64) -> Result<Self, Trouble> {
        let root = Path::new("/sys/fs/cgroup");
        let listed = |file: &str| {
            let text = std::fs::read_to_string(root.join(file)).unwrap_or_default();
            text.split_whitespace().any(|one| one == "memory")
        };
        let (parent, limit) = if listed("cgroup.subtree_control") {
            (root.to_owned(), "memory.max")
        } else if root.join("memory/memory.limit_in_bytes").is_file() {
            (root.join("memory"), "memory.limit_in_bytes")
        } else {
            return Err(Trouble::skipped("no memory groups here"));
        };
        let folder = parent.join(format!("{}group", crate::undo::folder_prefix()));
        let made = std::fs::create_dir(&folder);
        made.map_err(|cause| Trouble::skipped(format!("no memory group can be made ({cause})")))?;
        let group = Self { noted: note(Undo::Group(folder.clone())), folder };
        let limit = group.folder.join(limit);
        std::fs::write(&limit, bytes.to_string())
            .map_err(|cause| Trouble::skipped(format!("{} cannot be set ({cause})", limit.display())))?;
        Ok(group)
    }

    /// A shell's words: what comes after them is in the group.
    pub fn enter(&self) -> String {
        format!("echo $$ >'{}/cgroup.procs' || exit 1", self.folder.display())
    }

    /// Something that takes all memory that it gets there, and again when it was killed for that. Where the recorder may
    /// not ask to be killed last, this asks to be killed first.
    pub fn fill(&self, place: &Path, recorder: u32) -> Result<Program, Trouble> {
        let rank = std::fs::read_to_string(format!("/proc/{recorder}/oom_score_adj")).unwrap_or_default();
        let yields = if rank.trim().starts_with('-') { "" } else { "echo 900 >/proc/self/oom_score_adj" };
        let script = format!(
            "{}\n{yields}\nwhile :; do head -c 64G /dev/zero | tail -c 32G >/dev/null; done",
            self.enter()
        );
        Program::start(Path::new("/bin/sh"), &["-c", &script], Stdio::null(), &place.join("filler.said"))
    }

    /// How often somebody in it was killed for want of memory, where the kernel tells.
    pub fn killed(&self) -> Option<u64> {
        let files = ["memory.events", "memory.oom_control"];
        let text = files.iter().find_map(|file| std::fs::read_to_string(self.folder.join(file)).ok())?;
        text.lines().find_map(|line| line.strip_prefix("oom_kill ")?.trim().parse().ok())
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        Undo::Group(self.folder.clone()).carry_out();
    }
}

/// For tests: a folder of a bench.
pub fn folder() -> Result<Place, Trouble> {
    Place::with_room(1 << 20)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_clogged_pipe_takes_nothing() {
        let place = folder().unwrap();
        let (path, _keeper) = clogged(place.path()).unwrap();
        let flags = OFlags::WRONLY | OFlags::NONBLOCK;
        let mut other = File::from(rustix::fs::open(&path, flags, Mode::empty()).unwrap());
        assert_eq!(other.write(b"x").unwrap_err().kind(), ErrorKind::WouldBlock);
    }

    #[test]
    fn nothing_fits_on_a_full_disk() {
        let place = folder().unwrap();
        match FullDisk::mount(place.path()) {
            Ok(full) => {
                let mut log = File::create(full.log()).unwrap();
                assert_eq!(log.write(b"x").unwrap_err().kind(), ErrorKind::StorageFull);
            }
            Err(Trouble::Skipped { why }) => println!("skipped: {why}"),
            Err(trouble) => panic!("{trouble}"),
        }
    }
}
