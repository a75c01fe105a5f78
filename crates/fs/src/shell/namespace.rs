//! Shell by FUSE in name spaces of its own (`user_namespaces`(7), `mount_namespaces`(7)): the program alone sees the mount.

use super::sys::{self, Unshare};
use rustix::fd::OwnedFd;
use rustix::fs::{CWD, Mode, OFlags, mkdirat, open, symlinkat};
use rustix::io::{Errno, fcntl_dupfd_cloexec, write};
use rustix::mount::{
    MountFlags, MountPropagationFlags, UnmountFlags, mount, mount_bind_recursive, mount_change,
    mount_remount, unmount,
};
use rustix::process::{chdir, getegid, geteuid, pivot_root};
use std::ffi::CString;
use std::io;
use std::os::fd::AsRawFd as _;
use std::os::unix::ffi::OsStrExt as _;
use std::path::Path;

/// Number of the FUSE descriptor, which the options of the mount name.
const NUMBER: i32 = 900;

/// Entry of the root, to be shown in a root that has the folder of the tree too.
#[derive(Debug)]
enum RootEntry {
    Folder(CString, CString),
    File(CString, CString),
    Link(CString, CString),
}

/// Steps that bring a new process into name spaces with the tree. All texts are made before, as the process may not allocate.
#[derive(Debug)]
pub(super) struct Namespace {
    is_root: bool,
    users: CString,
    groups: CString,
    options: CString,
    folder: CString,
    /// Folder for a new root with its entries, if the folder of the tree does not exist.
    root: Option<(CString, Vec<RootEntry>)>,
    current: CString,
}

fn text(path: &Path) -> io::Result<CString> {
    Ok(CString::new(path.as_os_str().as_bytes())?)
}

impl Namespace {
    /// Prepares the steps. `staging` is an empty folder.
    pub(super) fn new(folder: &Path, staging: &Path, current: &Path) -> io::Result<Self> {
        let (user, group) = (geteuid().as_raw(), getegid().as_raw());
        let options = format!(
            "fd={NUMBER},rootmode=40000,user_id={user},group_id={group},default_permissions,max_read=1048576"
        );
        let inside = staging.join(folder.strip_prefix("/").unwrap_or(folder));
        let root = if folder.is_dir() { None } else { Some((text(staging)?, entries(staging)?)) };
        Ok(Self {
            is_root: geteuid().is_root(),
            users: CString::new(format!("{user} {user} 1"))?,
            groups: CString::new(format!("{group} {group} 1"))?,
            options: CString::new(options)?,
            folder: text(if root.is_some() { &inside } else { folder })?,
            root,
            current: text(current)?,
        })
    }

    /// Enters the name spaces and mounts the tree. Returns the descriptor through which the kernel asks for it.
    pub(super) fn enter(&self) -> io::Result<OwnedFd> {
        // Root with all privileges needs no name space of users.
        if !self.is_root || sys::unshare(Unshare::Mounts).is_err() {
            sys::unshare(Unshare::UsersAndMounts)?;
            put("/proc/self/setgroups", b"deny")?;
            put("/proc/self/uid_map", self.users.as_bytes())?;
            put("/proc/self/gid_map", self.groups.as_bytes())?;
        }
        mount_change(c"/", MountPropagationFlags::REC | MountPropagationFlags::PRIVATE)?;
        let device = open(c"/dev/fuse", OFlags::RDWR | OFlags::CLOEXEC, Mode::empty())?;
        let device = fcntl_dupfd_cloexec(&device, NUMBER)?;
        if device.as_raw_fd() != NUMBER {
            return Err(Errno::BUSY.into());
        }
        if let Some((root, entries)) = &self.root {
            mount(c"holdfast", root, c"tmpfs", MountFlags::NOSUID | MountFlags::NODEV, c"mode=755")?;
            entries.iter().try_for_each(RootEntry::make)?;
            mkdirat(CWD, &self.folder, Mode::from_raw_mode(0o755))?;
        }
        let flags = MountFlags::NOSUID | MountFlags::NODEV | MountFlags::NOATIME;
        mount(c"holdfast", &self.folder, c"fuse", flags, self.options.as_c_str())?;
        if let Some((root, _)) = &self.root {
            chdir(root)?;
            // The old root lies over the new one, and is detached.
            pivot_root(c".", c".")?;
            unmount(c".", UnmountFlags::DETACH)?;
            let flags = MountFlags::BIND | MountFlags::RDONLY | MountFlags::NOSUID | MountFlags::NODEV;
            mount_remount(c"/", flags, c"")?;
            chdir(&self.current)?;
        }
        Ok(device)
    }
}

impl RootEntry {
    fn make(&self) -> io::Result<()> {
        match self {
            Self::Folder(from, to) => {
                mkdirat(CWD, to, Mode::from_raw_mode(0o755))?;
                mount_bind_recursive(from, to)?;
            }
            Self::File(from, to) => {
                drop(open(to, OFlags::CREATE | OFlags::WRONLY, Mode::from_raw_mode(0o644))?);
                mount_bind_recursive(from, to)?;
            }
            Self::Link(target, to) => symlinkat(target, CWD, to)?,
        }
        Ok(())
    }
}

/// Entries of the root of this machine.
fn entries(staging: &Path) -> io::Result<Vec<RootEntry>> {
    let mut all = Vec::new();
    for entry in std::fs::read_dir("/")? {
        let entry = entry?;
        let (from, to) = (text(&entry.path())?, text(&staging.join(entry.file_name()))?);
        let kind = entry.file_type()?;
        all.push(if kind.is_symlink() {
            RootEntry::Link(text(&std::fs::read_link(entry.path())?)?, to)
        } else if kind.is_dir() {
            RootEntry::Folder(from, to)
        } else {
            RootEntry::File(from, to)
        });
    }
    Ok(all)
}

fn put(path: &str, bytes: &[u8]) -> io::Result<()> {
    let file = open(path, OFlags::WRONLY | OFlags::CLOEXEC, Mode::empty())?;
    write(&file, bytes)?;
    Ok(())
}
