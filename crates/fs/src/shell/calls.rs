//! System calls that a shell handles: which argument of each is a path or a descriptor, and the filter that picks them.

use super::FIRST;
use seccompiler::{
    BpfProgram, SeccompAction, SeccompCmpArgLen, SeccompCmpOp, SeccompCondition, SeccompFilter, SeccompRule,
};
use std::collections::BTreeMap;

/// Value by which the generated filter marks the calls that wait for an answer.
const MARK: u16 = 0x4846;

/// Arguments that name an entry: the number of that with the folder, if there is one, and of that with the path.
#[derive(Clone, Copy, Debug)]
pub(super) struct Named(pub(super) Option<usize>, pub(super) usize);

/// System call by what it does. Numbers are those of arguments.
#[derive(Clone, Copy, Debug)]
pub(super) enum Kind {
    /// Acts on the entry of a path.
    Path(Named, Act),
    /// Acts on the entries of two paths.
    Pair(Named, Named, PairAct),
    /// Acts on an open file. It is picked for descriptors of the tree only.
    File(usize, FileAct),
    /// Makes an open folder the current one.
    EnterFile,
    /// Tells the current folder.
    Current,
    /// Is not there, so that programs take the older way.
    Missing,
    /// Shares blocks of a file, which would miss bytes that are not there yet.
    Clone,
}

/// Action on the entry of a path.
#[derive(Clone, Copy, Debug)]
pub(super) enum Act {
    Open {
        flags: usize,
    },
    Create,
    OpenHow {
        how: usize,
    },
    Stat {
        to: usize,
    },
    Statx,
    Access {
        mode: usize,
    },
    ReadLink,
    Enter,
    MakeFolder,
    RemoveFolder,
    Unlink,
    UnlinkAt {
        flags: usize,
    },
    SetSize {
        size: usize,
    },
    /// Changes of modes, owners and times, which a site does not keep.
    Forgotten,
    GetAttribute,
    SetAttribute,
    ListAttributes,
    RemoveAttribute,
    Space {
        to: usize,
    },
    Refuse,
}

/// Action on two paths.
#[derive(Clone, Copy, Debug)]
pub(super) enum PairAct {
    Rename { flags: Option<usize> },
    Link,
}

/// Action on an open file.
#[derive(Clone, Copy, Debug)]
pub(super) enum FileAct {
    Read,
    ReadAt,
    ReadVector,
    ReadVectorAt,
    List,
    Seek,
    Stat {
        to: usize,
    },
    Map,
    Duplicate,
    DuplicateTo,
    Control,
    Close,
    Sync,
    /// Copies within the kernel, which would miss bytes that are not there yet.
    CopyInKernel,
    GetAttribute,
    SetAttribute,
    ListAttributes,
    RemoveAttribute,
}

use Act as A;
use FileAct as F;
use Kind::{Current, EnterFile, File, Missing, Pair, Path};

const fn at(folder: usize, path: usize) -> Named {
    Named(Some(folder), path)
}

#[cfg(target_arch = "x86_64")]
const fn plain(path: usize) -> Named {
    Named(None, path)
}

const ONLY: Named = Named(None, 0);

/// Number of `fchmodat2`, the same on all machines; `libc` does not have it for each.
const SYS_FCHMODAT2: libc::c_long = 452;

/// Calls of all machines.
const CALLS: &[(libc::c_long, Kind)] = &[
    (libc::SYS_openat, Path(at(0, 1), A::Open { flags: 2 })),
    (libc::SYS_openat2, Path(at(0, 1), A::OpenHow { how: 2 })),
    (libc::SYS_newfstatat, Path(at(0, 1), A::Stat { to: 2 })),
    (libc::SYS_statx, Path(at(0, 1), A::Statx)),
    (libc::SYS_faccessat, Path(at(0, 1), A::Access { mode: 2 })),
    (libc::SYS_faccessat2, Path(at(0, 1), A::Access { mode: 2 })),
    (libc::SYS_readlinkat, Path(at(0, 1), A::ReadLink)),
    (libc::SYS_chdir, Path(ONLY, A::Enter)),
    (libc::SYS_mkdirat, Path(at(0, 1), A::MakeFolder)),
    (libc::SYS_mknodat, Path(at(0, 1), A::Refuse)),
    (libc::SYS_symlinkat, Path(at(1, 2), A::Refuse)),
    (libc::SYS_unlinkat, Path(at(0, 1), A::UnlinkAt { flags: 2 })),
    (libc::SYS_truncate, Path(ONLY, A::SetSize { size: 1 })),
    (libc::SYS_fchmodat, Path(at(0, 1), A::Forgotten)),
    (SYS_FCHMODAT2, Path(at(0, 1), A::Forgotten)),
    (libc::SYS_fchownat, Path(at(0, 1), A::Forgotten)),
    (libc::SYS_utimensat, Path(at(0, 1), A::Forgotten)),
    (libc::SYS_getxattr, Path(ONLY, A::GetAttribute)),
    (libc::SYS_lgetxattr, Path(ONLY, A::GetAttribute)),
    (libc::SYS_setxattr, Path(ONLY, A::SetAttribute)),
    (libc::SYS_lsetxattr, Path(ONLY, A::SetAttribute)),
    (libc::SYS_listxattr, Path(ONLY, A::ListAttributes)),
    (libc::SYS_llistxattr, Path(ONLY, A::ListAttributes)),
    (libc::SYS_removexattr, Path(ONLY, A::RemoveAttribute)),
    (libc::SYS_lremovexattr, Path(ONLY, A::RemoveAttribute)),
    (libc::SYS_statfs, Path(ONLY, A::Space { to: 1 })),
    (libc::SYS_execve, Path(ONLY, A::Refuse)),
    (libc::SYS_execveat, Path(at(0, 1), A::Refuse)),
    (libc::SYS_renameat2, Pair(at(0, 1), at(2, 3), PairAct::Rename { flags: Some(4) })),
    (libc::SYS_renameat, Pair(at(0, 1), at(2, 3), PairAct::Rename { flags: None })),
    (libc::SYS_linkat, Pair(at(0, 1), at(2, 3), PairAct::Link)),
    (libc::SYS_fchdir, EnterFile),
    (libc::SYS_getcwd, Current),
    (libc::SYS_io_uring_setup, Missing),
    (libc::SYS_close_range, Missing),
    (libc::SYS_io_setup, Missing),
    (libc::SYS_ioctl, Kind::Clone),
    (libc::SYS_read, File(0, F::Read)),
    (libc::SYS_pread64, File(0, F::ReadAt)),
    (libc::SYS_readv, File(0, F::ReadVector)),
    (libc::SYS_preadv, File(0, F::ReadVectorAt)),
    (libc::SYS_preadv2, File(0, F::ReadVectorAt)),
    (libc::SYS_getdents64, File(0, F::List)),
    (libc::SYS_lseek, File(0, F::Seek)),
    (libc::SYS_fstat, File(0, F::Stat { to: 1 })),
    (libc::SYS_mmap, File(4, F::Map)),
    (libc::SYS_dup, File(0, F::Duplicate)),
    (libc::SYS_dup3, File(0, F::DuplicateTo)),
    (libc::SYS_fcntl, File(0, F::Control)),
    (libc::SYS_close, File(0, F::Close)),
    (libc::SYS_fsync, File(0, F::Sync)),
    (libc::SYS_fdatasync, File(0, F::Sync)),
    (libc::SYS_sendfile, File(1, F::CopyInKernel)),
    (libc::SYS_copy_file_range, File(0, F::CopyInKernel)),
    (libc::SYS_splice, File(0, F::CopyInKernel)),
    (libc::SYS_fgetxattr, File(0, F::GetAttribute)),
    (libc::SYS_fsetxattr, File(0, F::SetAttribute)),
    (libc::SYS_flistxattr, File(0, F::ListAttributes)),
    (libc::SYS_fremovexattr, File(0, F::RemoveAttribute)),
];

/// Calls of older programs, which newer machines lack.
#[cfg(target_arch = "x86_64")]
const OLDER: &[(libc::c_long, Kind)] = &[
    (libc::SYS_open, Path(ONLY, A::Open { flags: 1 })),
    (libc::SYS_creat, Path(ONLY, A::Create)),
    (libc::SYS_stat, Path(ONLY, A::Stat { to: 1 })),
    (libc::SYS_lstat, Path(ONLY, A::Stat { to: 1 })),
    (libc::SYS_access, Path(ONLY, A::Access { mode: 1 })),
    (libc::SYS_readlink, Path(ONLY, A::ReadLink)),
    (libc::SYS_mkdir, Path(ONLY, A::MakeFolder)),
    (libc::SYS_rmdir, Path(ONLY, A::RemoveFolder)),
    (libc::SYS_mknod, Path(ONLY, A::Refuse)),
    (libc::SYS_symlink, Path(plain(1), A::Refuse)),
    (libc::SYS_unlink, Path(ONLY, A::Unlink)),
    (libc::SYS_chmod, Path(ONLY, A::Forgotten)),
    (libc::SYS_chown, Path(ONLY, A::Forgotten)),
    (libc::SYS_lchown, Path(ONLY, A::Forgotten)),
    (libc::SYS_utime, Path(ONLY, A::Forgotten)),
    (libc::SYS_utimes, Path(ONLY, A::Forgotten)),
    (libc::SYS_futimesat, Path(at(0, 1), A::Forgotten)),
    (libc::SYS_rename, Pair(ONLY, plain(1), PairAct::Rename { flags: None })),
    (libc::SYS_link, Pair(ONLY, plain(1), PairAct::Link)),
    (libc::SYS_dup2, File(0, F::DuplicateTo)),
];

#[cfg(not(target_arch = "x86_64"))]
const OLDER: &[(libc::c_long, Kind)] = &[];

/// All calls that a shell handles.
pub(super) fn calls() -> BTreeMap<i64, Kind> {
    CALLS.iter().chain(OLDER).copied().collect()
}

/// Filter that makes these calls wait for an answer.
pub(super) fn filter() -> Option<BpfProgram> {
    let rules: Option<BTreeMap<i64, Vec<SeccompRule>>> =
        calls().into_iter().map(|(number, kind)| Some((number, rules(kind)?))).collect();
    let mark = SeccompAction::Trace(MARK.into());
    let target = std::env::consts::ARCH.try_into().ok()?;
    let filter = SeccompFilter::new(rules?, SeccompAction::Allow, mark.clone(), target).ok()?;
    let mut program: BpfProgram = filter.try_into().ok()?;
    // The crate knows no notifications: its marked returns become these.
    let mark = u32::from(mark);
    for instruction in program.iter_mut().filter(|instruction| instruction.k == mark) {
        instruction.k = libc::SECCOMP_RET_USER_NOTIF;
    }
    Some(program)
}

/// Rules of a call: none for a call that is always picked.
fn rules(kind: Kind) -> Option<Vec<SeccompRule>> {
    let argument = match kind {
        Kind::File(argument, _) => argument,
        // The request is the second argument.
        Kind::Clone => 1,
        _ => return Some(Vec::new()),
    };
    let condition = |operation, bound| {
        SeccompCondition::new(argument as u8, SeccompCmpArgLen::Dword, operation, bound).ok()
    };
    if matches!(kind, Kind::Clone) {
        let rule = |request: u64| SeccompRule::new(vec![condition(SeccompCmpOp::Eq, request)?]).ok();
        return [libc::FICLONE, libc::FICLONERANGE].into_iter().map(rule).collect();
    }
    let own = condition(SeccompCmpOp::Ge, u64::from(FIRST))?;
    // Negative numbers are no descriptors.
    let positive = condition(SeccompCmpOp::Le, i32::MAX as u64)?;
    Some(vec![SeccompRule::new(vec![own, positive]).ok()?])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_filter_marks_calls_for_answers() {
        let program = filter().unwrap();
        assert!(program.iter().any(|instruction| instruction.k == libc::SECCOMP_RET_USER_NOTIF));
        assert!(
            program.iter().all(|instruction| instruction.k != u32::from(SeccompAction::Trace(MARK.into())))
        );
    }
}
