//! Mapping of the kernel's error numbers to the few kinds of failure that matter.

use crate::Fault;
use rustix::io::Errno;

/// The kind of failure behind an error number.
pub(crate) fn of(cause: Errno) -> Fault {
    match cause {
        Errno::IO
        | Errno::TIMEDOUT
        | Errno::ILSEQ
        | Errno::REMOTEIO
        | Errno::NODATA
        | Errno::BADMSG
        | Errno::UCLEAN => Fault::Io,
        Errno::NODEV | Errno::NXIO | Errno::NOMEDIUM | Errno::STALE | Errno::SHUTDOWN | Errno::NOLINK => {
            Fault::Gone
        }
        Errno::NOSPC | Errno::DQUOT | Errno::FBIG => Fault::NoSpace,
        Errno::INVAL => Fault::Misplaced,
        other => Fault::Os(other.raw_os_error()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_become_kinds() {
        assert_eq!(of(Errno::IO), Fault::Io);
        assert_eq!(of(Errno::NODEV), Fault::Gone);
        assert_eq!(of(Errno::DQUOT), Fault::NoSpace);
        assert_eq!(of(Errno::PERM), Fault::Os(1));
        assert_eq!(of(Errno::PERM).to_string(), "Operation not permitted (os error 1)");
    }
}
