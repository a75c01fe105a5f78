//! Load on the machine of a recorder: busy cores, a full memory group, a full log partition. Each ends when dropped.

use crate::cleanup::{Cleanup, CleanupGuard, register};
use crate::control_group::ControlGroup;
use crate::program::Program;
use crate::work_folder::WorkFolder;
use crate::{BenchError, tools};
use rustix::fs::{Mode, OFlags};
use std::fs::File;
use std::io::{ErrorKind, Write as _};
use std::path::{Path, PathBuf};
use std::process::Stdio;

/// Threads a core that only compute.
const HOGS: usize = 2;

/// Programs that compute and nothing else, at the priority of everybody.
pub fn hogs(folder: &Path) -> Result<Vec<Program>, BenchError> {
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
    noted: CleanupGuard,
}

impl FullDisk {
    /// Mounts one; only root can.
    pub fn mount(place: &Path) -> Result<Self, BenchError> {
        let folder = place.join("full");
        std::fs::create_dir_all(&folder).map_err(BenchError::file(&folder, "make it"))?;
        let path = folder.to_string_lossy();
        tools::output("mount", &["-t", "tmpfs", "-o", "size=64k", "holdfast-bench", &path])
            .map_err(|error| BenchError::skipped(format!("no file system can be mounted: {error}")))?;
        let full = Self { noted: register(Cleanup::Mount(folder.clone())), folder };
        let filler = full.folder.join("filler");
        let mut file = File::create(&filler).map_err(BenchError::file(&filler, "make it"))?;
        loop {
            match file.write(&[0; 4096]) {
                Ok(_) => {}
                Err(error) if error.kind() == ErrorKind::StorageFull => return Ok(full),
                Err(error) => return Err(BenchError::file(&filler, "fill it")(error)),
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
pub fn clogged(place: &Path) -> Result<(PathBuf, File), BenchError> {
    let path = place.join("clogged");
    let _ = std::fs::remove_file(&path);
    let made = rustix::fs::mkfifoat(rustix::fs::CWD, &path, Mode::from_raw_mode(0o600));
    made.map_err(BenchError::file(&path, "make it"))?;
    let flags = OFlags::RDWR | OFlags::NONBLOCK | OFlags::CLOEXEC;
    let pipe = rustix::fs::open(&path, flags, Mode::empty()).map_err(BenchError::file(&path, "open it"))?;
    let mut pipe = File::from(pipe);
    while pipe.write(b"x").is_ok() {}
    Ok((path, pipe))
}

/// Something that takes all memory that it gets in a group, and again when it was killed for that. Where the recorder may
/// not ask to be killed last, this asks to be killed first.
pub fn fill(group: &ControlGroup, place: &Path, recorder: u32) -> Result<Program, BenchError> {
    let rank = std::fs::read_to_string(format!("/proc/{recorder}/oom_score_adj")).unwrap_or_default();
    let yields = if rank.trim().starts_with('-') { "" } else { "echo 900 >/proc/self/oom_score_adj" };
    let script = format!(
        "{}\n{yields}\nwhile :; do head -c 64G /dev/zero | tail -c 32G >/dev/null; done",
        group.enter()
    );
    Program::start(Path::new("/bin/sh"), &["-c", &script], Stdio::null(), &place.join("filler.said"))
}

/// How often somebody in a group was killed for want of memory, where the kernel tells.
pub fn killed(group: &ControlGroup) -> Option<u64> {
    let text = ["memory.events", "memory.oom_control"].iter().find_map(|file| group.read(file))?;
    text.lines().find_map(|line| line.strip_prefix("oom_kill ")?.trim().parse().ok())
}

/// For tests: a folder of a bench.
pub fn folder() -> Result<WorkFolder, BenchError> {
    WorkFolder::with_room(1 << 20)
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
            Err(BenchError::Skipped { reason }) => println!("skipped: {reason}"),
            Err(error) => panic!("{error}"),
        }
    }
}
