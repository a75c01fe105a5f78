//! FUSE mount: a thin layer that passes the requests of the kernel to the file system, and its answers back.
//!
//! Each request that asks the site runs as a task of its own. Writes go to the spool within the thread of the kernel's request.

use crate::error::FsError;
use crate::file_system::{Attributes, FileKind, FileSystem, OpenMode, is_kept};
use fuser::{
    BackgroundSession, BsdFileFlags, Config, Errno, FileAttr, FileHandle, FileType, Filesystem, FopenFlags,
    Generation, INodeNo, InitFlags, KernelConfig, LockOwner, MountOption, OpenAccMode, OpenFlags,
    RenameFlags, ReplyAttr, ReplyCreate, ReplyData, ReplyDirectory, ReplyDirectoryPlus, ReplyEmpty,
    ReplyEntry, ReplyOpen, ReplyStatfs, ReplyWrite, ReplyXattr, Request, Session, SessionACL, TimeOrNow,
    WriteFlags,
};
use rustix::fd::OwnedFd;
use rustix::mount::{UnmountFlags, unmount};
use std::ffi::OsStr;
use std::io;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;
use std::time::{Duration, SystemTime};
use tokio::runtime::Handle;

/// Most bytes of a request of the kernel.
const REQUEST: u32 = 1 << 20;

/// Requests that the kernel may have under way on behalf of its read-ahead.
const UNDER_WAY: u16 = 64;

/// Threads that take requests from the kernel.
const THREADS: usize = 4;

/// Block size that `df` shows.
const BLOCK: u32 = 4096;

/// Space that `df` shows, as a site tells none.
const SPACE_BLOCKS: u64 = 1 << 40;

/// Settings of a mount.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct MountOptions {
    /// True to let all users of the machine use the mount.
    pub allow_other: bool,
}

/// Mounted file system. It is unmounted when this is dropped.
#[derive(Debug)]
pub struct MountSession {
    session: BackgroundSession,
    folder: PathBuf,
}

impl MountSession {
    /// True once the file system was unmounted.
    pub fn is_over(&self) -> bool {
        self.session.guard.is_finished()
    }

    /// Unmounts. A folder that programs still use is detached: these get ENOTCONN from then on. Returns true in that case.
    pub fn unmount(self) -> io::Result<bool> {
        // `umount` and `fusermount3 -u` have done it.
        if self.is_over() {
            return self.session.join().map(|()| false);
        }
        match self.session.umount_and_join() {
            Ok(()) => Ok(false),
            Err(error) if error.kind() == io::ErrorKind::ResourceBusy => detach(&self.folder).map(|()| true),
            Err(error) => Err(error),
        }
    }
}

/// Removes a mount from the tree, even one that is used or whose process was killed.
pub fn detach(folder: &Path) -> io::Result<()> {
    if unmount(folder, UnmountFlags::DETACH).is_ok() {
        return Ok(());
    }
    // Ordinary users need the program that has the privilege.
    let status = Command::new("fusermount3").arg("-uz").arg(folder).status()?;
    if status.success() { Ok(()) } else { Err(io::Error::other("fusermount3 cannot unmount it")) }
}

/// Mounts a file system on a folder. `runtime` carries out the requests.
pub fn mount(
    fs: Arc<FileSystem>,
    folder: &Path,
    options: MountOptions,
    runtime: Handle,
) -> io::Result<MountSession> {
    let mut config = Config::default();
    config.mount_options = vec![
        MountOption::FSName("holdfast".to_owned()),
        MountOption::Subtype("holdfast".to_owned()),
        MountOption::DefaultPermissions,
        MountOption::NoSuid,
        MountOption::NoDev,
        MountOption::NoAtime,
        if fs.options().read_only { MountOption::RO } else { MountOption::RW },
    ];
    config.acl = if options.allow_other { SessionACL::All } else { SessionACL::Owner };
    config.n_threads = Some(THREADS);
    let session = Session::new(Shim::new(fs, runtime), folder, &config)?;
    Ok(MountSession { session: session.spawn()?, folder: folder.to_owned() })
}

/// Answers the kernel over the descriptor of a mount that was made already, until that is gone.
pub(crate) fn serve_mount(
    fs: Arc<FileSystem>,
    descriptor: OwnedFd,
    runtime: Handle,
) -> io::Result<BackgroundSession> {
    let mut config = Config::default();
    config.n_threads = Some(THREADS);
    Session::from_fd(Shim::new(fs, runtime), descriptor, SessionACL::All, config)?.spawn()
}

/// Answers of the file system to the kernel.
struct Shim {
    fs: Arc<FileSystem>,
    runtime: Handle,
    owner: (u32, u32),
    cache: Duration,
}

impl Shim {
    fn new(fs: Arc<FileSystem>, runtime: Handle) -> Self {
        let owner = (rustix::process::geteuid().as_raw(), rustix::process::getegid().as_raw());
        let cache = fs.options().cache;
        Self { fs, runtime, owner, cache }
    }
}

fn errno(error: &FsError) -> Errno {
    Errno::from_i32(error.errno.raw_os_error())
}

/// Name as the catalog keeps it.
fn text(name: &OsStr) -> Option<String> {
    name.to_str().map(str::to_owned)
}

fn attr(attributes: Attributes, owner: (u32, u32), read_only: bool) -> FileAttr {
    let (kind, perm) = match attributes.kind {
        FileKind::Directory => (FileType::Directory, 0o755),
        // The catalog keeps no modes, and programs lie among data.
        FileKind::File => (FileType::RegularFile, 0o755),
    };
    let time = attributes.modified;
    FileAttr {
        ino: INodeNo(attributes.ino),
        size: attributes.size,
        blocks: attributes.size.div_ceil(512),
        atime: time,
        mtime: time,
        ctime: time,
        crtime: time,
        kind,
        perm: if read_only { perm & 0o555 } else { perm },
        nlink: 1,
        uid: owner.0,
        gid: owner.1,
        rdev: 0,
        blksize: REQUEST,
        flags: 0,
    }
}

/// Answers a request in a task: `$work` is the result of the file system, `$done` answers its success.
macro_rules! answer {
    ($self:ident, $reply:ident, |$fs:ident| $work:expr, |$found:pat_param| $done:expr) => {{
        let $fs = Arc::clone(&$self.fs);
        $self.runtime.spawn(async move {
            match $work.await {
                Ok($found) => $done,
                Err(error) => $reply.error(errno(&error)),
            }
        });
    }};
}

/// Text of a name, or the answer that no entry has it.
macro_rules! name {
    ($name:expr, $reply:ident) => {
        match text($name) {
            Some(name) => name,
            None => return $reply.error(Errno::EILSEQ),
        }
    };
}

impl Filesystem for Shim {
    fn init(&mut self, _request: &Request, config: &mut KernelConfig) -> io::Result<()> {
        // Older kernels lack some of these, and work all the same.
        for ability in [
            InitFlags::FUSE_ASYNC_READ,
            InitFlags::FUSE_PARALLEL_DIROPS,
            InitFlags::FUSE_DO_READDIRPLUS,
            InitFlags::FUSE_READDIRPLUS_AUTO,
            InitFlags::FUSE_ATOMIC_O_TRUNC,
            InitFlags::FUSE_DIRECT_IO_ALLOW_MMAP,
        ] {
            let _ = config.add_capabilities(ability);
        }
        let _ = config.set_max_write(REQUEST);
        let _ = config.set_max_readahead(REQUEST);
        let _ = config.set_max_background(UNDER_WAY);
        Ok(())
    }

    fn lookup(&self, _request: &Request, parent: INodeNo, name: &OsStr, reply: ReplyEntry) {
        let name = name!(name, reply);
        let (owner, read_only, cache) = (self.owner, self.fs.options().read_only, self.cache);
        let files = Arc::clone(&self.fs);
        answer!(self, reply, |fs| fs.lookup(parent.0, &name), |found| {
            let cache = if files.is_made(found.ino) { Duration::ZERO } else { cache };
            reply.entry(&cache, &attr(found, owner, read_only), Generation(0));
        });
    }

    fn forget(&self, _request: &Request, ino: INodeNo, lookups: u64) {
        self.fs.forget(ino.0, lookups);
    }

    fn getattr(&self, _request: &Request, ino: INodeNo, _handle: Option<FileHandle>, reply: ReplyAttr) {
        let (owner, read_only) = (self.owner, self.fs.options().read_only);
        let cache = if self.fs.is_made(ino.0) { Duration::ZERO } else { self.cache };
        answer!(self, reply, |fs| fs.attributes(ino.0), |found| {
            reply.attr(&cache, &attr(found, owner, read_only));
        });
    }

    fn setattr(
        &self,
        _request: &Request,
        ino: INodeNo,
        _mode: Option<u32>,
        _uid: Option<u32>,
        _gid: Option<u32>,
        size: Option<u64>,
        _atime: Option<TimeOrNow>,
        _mtime: Option<TimeOrNow>,
        _ctime: Option<SystemTime>,
        _handle: Option<FileHandle>,
        _crtime: Option<SystemTime>,
        _chgtime: Option<SystemTime>,
        _bkuptime: Option<SystemTime>,
        _flags: Option<BsdFileFlags>,
        reply: ReplyAttr,
    ) {
        let (owner, read_only, cache) = (self.owner, self.fs.options().read_only, self.cache);
        // The catalog has no modes, owners and times of its own: these are accepted and forgotten.
        let work = async move |fs: Arc<FileSystem>| match size {
            Some(size) => fs.set_size(ino.0, size).await,
            None => fs.attributes(ino.0).await,
        };
        answer!(self, reply, |fs| work(fs), |found| reply.attr(&cache, &attr(found, owner, read_only)));
    }

    fn mkdir(
        &self,
        _request: &Request,
        parent: INodeNo,
        name: &OsStr,
        _mode: u32,
        _umask: u32,
        reply: ReplyEntry,
    ) {
        let name = name!(name, reply);
        let (owner, read_only, cache) = (self.owner, self.fs.options().read_only, self.cache);
        answer!(self, reply, |fs| fs.make_directory(parent.0, &name), |found| {
            reply.entry(&cache, &attr(found, owner, read_only), Generation(0));
        });
    }

    fn unlink(&self, _request: &Request, parent: INodeNo, name: &OsStr, reply: ReplyEmpty) {
        let name = name!(name, reply);
        answer!(self, reply, |fs| fs.unlink(parent.0, &name), |()| reply.ok());
    }

    fn rmdir(&self, _request: &Request, parent: INodeNo, name: &OsStr, reply: ReplyEmpty) {
        let name = name!(name, reply);
        answer!(self, reply, |fs| fs.remove_directory(parent.0, &name), |()| reply.ok());
    }

    fn rename(
        &self,
        _request: &Request,
        parent: INodeNo,
        name: &OsStr,
        newparent: INodeNo,
        newname: &OsStr,
        flags: RenameFlags,
        reply: ReplyEmpty,
    ) {
        let (name, newname) = (name!(name, reply), name!(newname, reply));
        if flags.contains(RenameFlags::RENAME_EXCHANGE) {
            return reply.error(Errno::EINVAL);
        }
        let keep = flags.contains(RenameFlags::RENAME_NOREPLACE);
        answer!(self, reply, |fs| fs.rename((parent.0, &name), (newparent.0, &newname), keep), |()| reply
            .ok());
    }

    fn open(&self, _request: &Request, ino: INodeNo, flags: OpenFlags, reply: ReplyOpen) {
        let write = flags.acc_mode() != OpenAccMode::O_RDONLY;
        let truncate = flags.0 & rustix::fs::OFlags::TRUNC.bits() as i32 != 0;
        // Readers of several versions may have one file open, and files of rings grow: the kernel must neither mix their pages
        // nor stop at the size that it knows.
        let direct = if write { FopenFlags::empty() } else { FopenFlags::FOPEN_DIRECT_IO };
        answer!(self, reply, |fs| fs.open(ino.0, OpenMode { write, truncate }), |handle| {
            reply.opened(FileHandle(handle), direct);
        });
    }

    fn create(
        &self,
        _request: &Request,
        parent: INodeNo,
        name: &OsStr,
        _mode: u32,
        _umask: u32,
        _flags: i32,
        reply: ReplyCreate,
    ) {
        let name = name!(name, reply);
        let (owner, read_only, cache) = (self.owner, self.fs.options().read_only, self.cache);
        answer!(self, reply, |fs| fs.create(parent.0, &name), |(found, handle)| {
            let attributes = attr(found, owner, read_only);
            reply.created(&cache, &attributes, Generation(0), FileHandle(handle), FopenFlags::empty());
        });
    }

    fn read(
        &self,
        _request: &Request,
        _ino: INodeNo,
        handle: FileHandle,
        offset: u64,
        size: u32,
        _flags: OpenFlags,
        _lock_owner: Option<LockOwner>,
        reply: ReplyData,
    ) {
        answer!(self, reply, |fs| fs.read(handle.0, offset, u64::from(size)), |bytes| reply.data(&bytes));
    }

    fn write(
        &self,
        _request: &Request,
        _ino: INodeNo,
        handle: FileHandle,
        offset: u64,
        data: &[u8],
        _write_flags: WriteFlags,
        _flags: OpenFlags,
        _lock_owner: Option<LockOwner>,
        reply: ReplyWrite,
    ) {
        match self.fs.write(handle.0, offset, data) {
            Ok(()) => reply.written(data.len() as u32),
            Err(error) => reply.error(errno(&error)),
        }
    }

    fn flush(
        &self,
        _request: &Request,
        _ino: INodeNo,
        handle: FileHandle,
        _owner: LockOwner,
        reply: ReplyEmpty,
    ) {
        answer!(self, reply, |fs| fs.sync(handle.0), |()| reply.ok());
    }

    fn fsync(
        &self,
        _request: &Request,
        _ino: INodeNo,
        handle: FileHandle,
        _datasync: bool,
        reply: ReplyEmpty,
    ) {
        answer!(self, reply, |fs| fs.sync(handle.0), |()| reply.ok());
    }

    fn release(
        &self,
        _request: &Request,
        _ino: INodeNo,
        handle: FileHandle,
        _flags: OpenFlags,
        _lock_owner: Option<LockOwner>,
        _flush: bool,
        reply: ReplyEmpty,
    ) {
        self.fs.release(handle.0);
        reply.ok();
    }

    fn opendir(&self, _request: &Request, ino: INodeNo, _flags: OpenFlags, reply: ReplyOpen) {
        match self.fs.open_directory(ino.0) {
            Ok(handle) => reply.opened(FileHandle(handle), FopenFlags::empty()),
            Err(error) => reply.error(errno(&error)),
        }
    }

    fn readdir(
        &self,
        _request: &Request,
        ino: INodeNo,
        handle: FileHandle,
        offset: u64,
        mut reply: ReplyDirectory,
    ) {
        answer!(self, reply, |fs| fs.list(ino.0, handle.0, offset as usize), |entries| {
            for (at, entry) in entries.iter().enumerate() {
                let kind = match entry.attributes.kind {
                    FileKind::Directory => FileType::Directory,
                    FileKind::File => FileType::RegularFile,
                };
                if reply.add(INodeNo(entry.attributes.ino), offset + at as u64 + 1, kind, &entry.name) {
                    break;
                }
            }
            reply.ok();
        });
    }

    fn readdirplus(
        &self,
        _request: &Request,
        ino: INodeNo,
        handle: FileHandle,
        offset: u64,
        mut reply: ReplyDirectoryPlus,
    ) {
        let (owner, read_only, cache) = (self.owner, self.fs.options().read_only, self.cache);
        let files = Arc::clone(&self.fs);
        answer!(self, reply, |fs| fs.list(ino.0, handle.0, offset as usize), |entries| {
            for (at, entry) in entries.iter().enumerate() {
                let attributes = attr(entry.attributes, owner, read_only);
                let cache = if files.is_made(attributes.ino.0) { Duration::ZERO } else { cache };
                let next = offset + at as u64 + 1;
                if reply.add(attributes.ino, next, &entry.name, &cache, &attributes, Generation(0)) {
                    break;
                }
                // The kernel holds a reference of each entry that it got.
                files.refer(ino.0, entry);
            }
            reply.ok();
        });
    }

    fn releasedir(
        &self,
        _request: &Request,
        _ino: INodeNo,
        handle: FileHandle,
        _flags: OpenFlags,
        reply: ReplyEmpty,
    ) {
        self.fs.release_directory(handle.0);
        reply.ok();
    }

    fn statfs(&self, _request: &Request, _ino: INodeNo, reply: ReplyStatfs) {
        let (blocks, names) = (SPACE_BLOCKS, 255);
        reply.statfs(blocks, blocks, blocks, u64::MAX, u64::MAX, BLOCK, names, BLOCK);
    }

    fn setxattr(
        &self,
        _request: &Request,
        ino: INodeNo,
        name: &OsStr,
        value: &[u8],
        _flags: i32,
        _position: u32,
        reply: ReplyEmpty,
    ) {
        let name = name!(name, reply);
        if !is_kept(&name) {
            return reply.error(Errno::EOPNOTSUPP);
        }
        let Ok(value) = String::from_utf8(value.to_vec()) else { return reply.error(Errno::EILSEQ) };
        answer!(self, reply, |fs| fs.set_attribute(ino.0, &name, Some(&value)), |()| reply.ok());
    }

    fn getxattr(&self, _request: &Request, ino: INodeNo, name: &OsStr, size: u32, reply: ReplyXattr) {
        let name = name!(name, reply);
        // The kernel and programs ask for these at each access; no file has them.
        if !is_kept(&name) {
            return reply.error(Errno::EOPNOTSUPP);
        }
        answer!(self, reply, |fs| fs.attribute(ino.0, &name), |value| give(reply, size, value.as_bytes()));
    }

    fn listxattr(&self, _request: &Request, ino: INodeNo, size: u32, reply: ReplyXattr) {
        answer!(self, reply, |fs| fs.list_attributes(ino.0), |names| {
            let all: Vec<u8> = names.iter().flat_map(|name| name.bytes().chain([0])).collect();
            give(reply, size, &all);
        });
    }

    fn removexattr(&self, _request: &Request, ino: INodeNo, name: &OsStr, reply: ReplyEmpty) {
        let name = name!(name, reply);
        if !is_kept(&name) {
            return reply.error(Errno::EOPNOTSUPP);
        }
        answer!(self, reply, |fs| fs.set_attribute(ino.0, &name, None), |()| reply.ok());
    }
}

/// Answers with a value, or with its length if that is asked for.
fn give(reply: ReplyXattr, size: u32, value: &[u8]) {
    if size == 0 {
        reply.size(value.len() as u32);
    } else if value.len() > size as usize {
        reply.error(Errno::ERANGE);
    } else {
        reply.data(value);
    }
}
