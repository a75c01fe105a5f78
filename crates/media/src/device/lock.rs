//! One owner at a time: the lock on a ring's file or device, and who holds it when it is refused.

use rustix::fs::{FlockOperation, Stat};
use rustix::io::Errno;
use std::fmt;
use std::fs::File;

/// A process that holds what we want.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Holder {
    /// Its process id.
    pub pid: u32,
    /// Its name, as `ps` shows it.
    pub name: String,
}

impl fmt::Display for Holder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} (pid {})", self.name, self.pid)
    }
}

/// Takes the lock for as long as `file` is open; false when another has it.
pub(super) fn take(file: &File) -> Result<bool, Errno> {
    loop {
        match rustix::fs::flock(file, FlockOperation::NonBlockingLockExclusive) {
            Ok(()) => return Ok(true),
            Err(Errno::WOULDBLOCK) => return Ok(false),
            Err(Errno::INTR) => {}
            Err(other) => return Err(other),
        }
    }
}

/// Who holds a lock on the file of `stat`. `None` when it is gone by now, or out of our sight (another container).
pub(super) fn holder(stat: &Stat) -> Option<Holder> {
    let locks = std::fs::read_to_string("/proc/locks").ok()?;
    let pid = find(&locks, rustix::fs::major(stat.st_dev), rustix::fs::minor(stat.st_dev), stat.st_ino)?;
    let name = std::fs::read_to_string(format!("/proc/{pid}/comm"));
    let name = name.map_or_else(|_| "a process".to_owned(), |name| name.trim_end().to_owned());
    Some(Holder { pid, name })
}

/// Finds a process in the text of `/proc/locks`, whose lines read
/// `1: FLOCK  ADVISORY  WRITE 1234 fe:00:5678 0 EOF` (device in hexadecimal, then the inode).
fn find(locks: &str, major: u32, minor: u32, inode: u64) -> Option<u32> {
    let flocks: Vec<(u32, u32, u32)> = locks
        .lines()
        .filter_map(|line| {
            let fields: Vec<&str> = line.split_whitespace().collect();
            let [_, "FLOCK", _, _, pid, place, ..] = fields[..] else { return None };
            let mut place = place.split(':');
            let major = u32::from_str_radix(place.next()?, 16).ok()?;
            let minor = u32::from_str_radix(place.next()?, 16).ok()?;
            (place.next()?.parse::<u64>().ok()? == inode).then_some(())?;
            Some((pid.parse().ok().filter(|pid| *pid != 0)?, major, minor))
        })
        .collect();
    let exact = flocks.iter().find(|(_, a, b)| (*a, *b) == (major, minor));
    // btrfs and overlay show another device number here than to `stat`: then the inode alone must do.
    let only = || (flocks.len() == 1).then(|| &flocks[0]);
    exact.or_else(only).map(|(pid, ..)| *pid)
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
    fn the_holder_is_found_by_device_and_inode() {
        assert_eq!(find(LOCKS, 0xfe, 0, 1234), Some(701));
        assert_eq!(find(LOCKS, 0, 0x1b, 1234), Some(703));
        assert_eq!(find(LOCKS, 9, 9, 1234), None, "two candidates");
        assert_eq!(find(LOCKS, 9, 9, 77), Some(704), "the only one with that inode");
        assert_eq!(find(LOCKS, 0xfe, 0, 9), None, "a process that we cannot see");
    }
}
