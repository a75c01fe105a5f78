//! Exclusive lock on a ring's file or device, and the holder that is named when it is refused.

use rustix::fs::{FlockOperation, Mode, OFlags, Stat};
use rustix::io::Errno;
use std::ffi::OsStr;
use std::fmt;
use std::fs::File;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::time::Duration;

/// A process that holds what we want.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Holder {
    /// Its process id.
    pub pid: u32,
    /// The name of its program.
    pub name: String,
}

impl fmt::Display for Holder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} (pid {})", self.name, self.pid)
    }
}

/// Asks for the lock once; false when another has it.
fn take(file: &File) -> Result<bool, Errno> {
    loop {
        match rustix::fs::flock(file, FlockOperation::NonBlockingLockExclusive) {
            Ok(()) => return Ok(true),
            Err(Errno::WOULDBLOCK) => return Ok(false),
            Err(Errno::INTR) => {}
            Err(other) => return Err(other),
        }
    }
}

/// How often, and after what pause, a lock is asked for again that is held by somebody who only looks: `udev` does
/// so for some milliseconds whenever a device was written to and closed.
const TRIES: u32 = 200;
const PAUSE: Duration = Duration::from_millis(10);

/// Takes the lock for as long as `file` is open. The error names who else owns it, where the system tells.
pub(super) fn claim(file: &File) -> Result<Result<(), Option<Holder>>, Errno> {
    let stat = rustix::fs::fstat(file)?;
    for _ in 0..TRIES {
        if take(file)? {
            return Ok(Ok(()));
        }
        match holder(&stat) {
            Some((holder, LockKind::Exclusive)) => return Ok(Err(Some(holder))),
            Some((_, LockKind::Shared)) | None => std::thread::sleep(PAUSE),
        }
    }
    Ok(Err(holder(&stat).map(|(holder, _)| holder)))
}

/// Whether somebody owns the file or device at `path`, and who, where the system tells: a look, which an owner that comes
/// just now survives.
pub fn owner(path: &Path) -> std::io::Result<Option<Option<Holder>>> {
    let flags = OFlags::RDONLY | OFlags::CLOEXEC | OFlags::NOCTTY | OFlags::NONBLOCK;
    let file = rustix::fs::open(path, flags, Mode::empty())?;
    match rustix::fs::flock(&file, FlockOperation::NonBlockingLockShared) {
        Ok(()) => Ok(None),
        Err(Errno::WOULDBLOCK) => {
            let stat = rustix::fs::fstat(&file)?;
            Ok(Some(holder(&stat).map(|(holder, _)| holder)))
        }
        Err(cause) => Err(cause.into()),
    }
}

/// How a lock is held.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum LockKind {
    /// As an owner does.
    Exclusive,
    /// As one who only looks.
    Shared,
}

/// Who holds a lock on the file of `stat`. `None` when it is gone by now, or out of our sight (another container).
pub(super) fn holder(stat: &Stat) -> Option<(Holder, LockKind)> {
    let locks = std::fs::read_to_string("/proc/locks").ok()?;
    let (major, minor) = (rustix::fs::major(stat.st_dev), rustix::fs::minor(stat.st_dev));
    let (pid, kind) = find(&locks, major, minor, stat.st_ino)?;
    Some((Holder { pid, name: program(pid).unwrap_or_else(|| "a process".to_owned()) }, kind))
}

/// The name of a process's program: from its file where we may see that, from its command line otherwise; what `ps`
/// shows is cut after 15 bytes, and comes last.
fn program(pid: u32) -> Option<String> {
    let file = |path: &Path| Some(path.file_name()?.to_string_lossy().into_owned());
    let exe = || std::fs::read_link(format!("/proc/{pid}/exe")).ok().and_then(|path| file(&path));
    let first = || {
        let line = std::fs::read(format!("/proc/{pid}/cmdline")).ok()?;
        file(Path::new(OsStr::from_bytes(line.split(|byte| *byte == 0).next()?)))
    };
    let comm = || Some(std::fs::read_to_string(format!("/proc/{pid}/comm")).ok()?.trim_end().to_owned());
    let name = exe().or_else(first).or_else(comm)?;
    // A program that was replaced while it runs.
    Some(name.strip_suffix(" (deleted)").unwrap_or(&name).to_owned())
}

/// Finds a process in the text of `/proc/locks`, whose lines read
/// `1: FLOCK  ADVISORY  WRITE 1234 fe:00:5678 0 EOF` (device in hexadecimal, then the inode).
fn find(locks: &str, major: u32, minor: u32, inode: u64) -> Option<(u32, LockKind)> {
    let flocks: Vec<(u32, LockKind, u32, u32)> = locks
        .lines()
        .filter_map(|line| {
            let fields: Vec<&str> = line.split_whitespace().collect();
            let [_, "FLOCK", _, kind, pid, place, ..] = fields[..] else { return None };
            let kind = if kind == "READ" { LockKind::Shared } else { LockKind::Exclusive };
            let mut place = place.split(':');
            let major = u32::from_str_radix(place.next()?, 16).ok()?;
            let minor = u32::from_str_radix(place.next()?, 16).ok()?;
            (place.next()?.parse::<u64>().ok()? == inode).then_some(())?;
            Some((pid.parse().ok().filter(|pid| *pid != 0)?, kind, major, minor))
        })
        .collect();
    let exact = flocks.iter().find(|(_, _, a, b)| (*a, *b) == (major, minor));
    // btrfs and overlay show another device number here than to `stat`: then the inode alone must do.
    let only = || (flocks.len() == 1).then(|| &flocks[0]);
    exact.or_else(only).map(|(pid, kind, ..)| (*pid, *kind))
}

#[cfg(test)]
mod tests {
    use super::*;

    const LOCKS: &str = "\
1: POSIX  ADVISORY  WRITE 700 00:1a:1234 0 EOF
2: FLOCK  ADVISORY  WRITE 0 fe:00:9 0 EOF
3: FLOCK  ADVISORY  WRITE 701 fe:00:1234 0 EOF
3: -> FLOCK  ADVISORY  WRITE 702 fe:00:1234 0 EOF
4: FLOCK  ADVISORY  READ 703 00:1b:1234 0 EOF
5: FLOCK  ADVISORY  WRITE 704 00:2c:77 0 EOF
garbage";

    #[test]
    fn a_look_tells_whether_there_is_an_owner_and_does_not_keep_one_out() {
        let file = tempfile::NamedTempFile::new().unwrap();
        assert_eq!(owner(file.path()).unwrap(), None);
        assert!(matches!(claim(file.as_file()), Ok(Ok(()))));
        assert!(owner(file.path()).unwrap().is_some());
        let known = owner(file.path()).unwrap().flatten();
        assert!(known.is_none_or(|holder| holder.pid == std::process::id()));
        assert!(owner(&file.path().join("none")).is_err());
    }

    #[test]
    fn the_holder_is_found_by_device_and_inode() {
        assert_eq!(find(LOCKS, 0xfe, 0, 1234), Some((701, LockKind::Exclusive)));
        assert_eq!(find(LOCKS, 0, 0x1b, 1234), Some((703, LockKind::Shared)));
        assert_eq!(find(LOCKS, 9, 9, 1234), None, "two candidates");
        assert_eq!(find(LOCKS, 9, 9, 77), Some((704, LockKind::Exclusive)), "the only one with that inode");
        assert_eq!(find(LOCKS, 0xfe, 0, 9), None, "a process that we cannot see");
    }
}
