//! Mounted folder with two files, `drive` and `control`: a thin layer over the reply timer without decisions of its
//! own.

use crate::command::Command;
use crate::reply_timer::ReplyTimer;
use fuser::{
    Errno, FileAttr, FileHandle, FileType, Filesystem, FopenFlags, Generation, INodeNo, InitFlags,
    KernelConfig, LockOwner, OpenFlags, ReplyAttr, ReplyData, ReplyDirectory, ReplyEmpty, ReplyEntry,
    ReplyOpen, ReplyWrite, Request, TimeOrNow, WriteFlags,
};
use std::ffi::OsStr;
use std::io;
use std::sync::{Arc, Once};
use std::time::{Duration, SystemTime};

const FOLDER: u64 = 1;
const DRIVE: u64 = 2;
const CONTROL: u64 = 3;

/// Requests that the kernel may have under way on behalf of asynchronous callers: a drive's queue, twice.
const UNDER_WAY: u16 = 64;

/// How long the kernel may remember names and attributes, which never change.
const LONG: Duration = Duration::from_hours(1);

/// The folder.
#[derive(Debug)]
pub(crate) struct Folder {
    pub(crate) timer: Arc<ReplyTimer>,
    pub(crate) born: SystemTime,
    pub(crate) owner: (u32, u32),
    pub(crate) hurried: Once,
    /// Told what is wrong with an order.
    pub(crate) warn: fn(&str),
}

impl Folder {
    fn attributes(&self, ino: u64) -> Option<FileAttr> {
        let (kind, perm, size) = match ino {
            FOLDER => (FileType::Directory, 0o755, 0),
            DRIVE => (FileType::RegularFile, 0o660, self.timer.length()),
            CONTROL => (FileType::RegularFile, 0o660, 0),
            _ => return None,
        };
        Some(FileAttr {
            ino: INodeNo(ino),
            size,
            // All there, as on a drive.
            blocks: size / 512,
            atime: self.born,
            mtime: self.born,
            ctime: self.born,
            crtime: self.born,
            kind,
            perm,
            nlink: 1,
            uid: self.owner.0,
            gid: self.owner.1,
            rdev: 0,
            blksize: 4096,
            flags: 0,
        })
    }

    /// The thread that takes requests in is as urgent as the one that answers. It is the mount's own: it is known by
    /// its first request.
    fn hurry(&self) {
        self.hurried.call_once(|| {
            if let Err(cause) = self.timer.hurry() {
                (self.warn)(&format!("cannot receive requests with real-time priority: {cause}"));
            }
        });
    }
}

impl Filesystem for Folder {
    fn init(&mut self, _request: &Request, config: &mut KernelConfig) -> io::Result<()> {
        // Pieces of a large request go out together; old kernels know fewer.
        let _ = config.add_capabilities(InitFlags::FUSE_ASYNC_DIO);
        let _ = config.set_max_background(UNDER_WAY);
        let _ = config.set_congestion_threshold(UNDER_WAY);
        Ok(())
    }

    fn lookup(&self, _request: &Request, parent: INodeNo, name: &OsStr, reply: ReplyEntry) {
        let ino = match name.to_str() {
            Some("drive") => DRIVE,
            Some("control") => CONTROL,
            _ => return reply.error(Errno::ENOENT),
        };
        match self.attributes(ino).filter(|_| parent.0 == FOLDER) {
            Some(attributes) => reply.entry(&LONG, &attributes, Generation(0)),
            None => reply.error(Errno::ENOENT),
        }
    }

    fn getattr(&self, _request: &Request, ino: INodeNo, _handle: Option<FileHandle>, reply: ReplyAttr) {
        match self.attributes(ino.0) {
            Some(attributes) => reply.attr(&LONG, &attributes),
            None => reply.error(Errno::ENOENT),
        }
    }

    /// Nothing can be changed; shells cut a file to nothing before they write to it, which is let pass for `control`.
    fn setattr(
        &self,
        _request: &Request,
        ino: INodeNo,
        mode: Option<u32>,
        uid: Option<u32>,
        gid: Option<u32>,
        size: Option<u64>,
        _atime: Option<TimeOrNow>,
        _mtime: Option<TimeOrNow>,
        _ctime: Option<SystemTime>,
        _handle: Option<FileHandle>,
        _crtime: Option<SystemTime>,
        _chgtime: Option<SystemTime>,
        _bkuptime: Option<SystemTime>,
        _flags: Option<fuser::BsdFileFlags>,
        reply: ReplyAttr,
    ) {
        let Some(attributes) = self.attributes(ino.0) else { return reply.error(Errno::ENOENT) };
        let same = size.is_none_or(|size| ino.0 == CONTROL || size == attributes.size);
        if same && (mode, uid, gid) == (None, None, None) {
            reply.attr(&LONG, &attributes);
        } else {
            reply.error(Errno::EPERM);
        }
    }

    fn open(&self, _request: &Request, ino: INodeNo, _flags: OpenFlags, reply: ReplyOpen) {
        // The drive without FOPEN_DIRECT_IO: with it the kernel would send the pieces of a large request one by one,
        // and each would miss the platter. Who wants no cache in between opens it with O_DIRECT.
        let how = if ino.0 == CONTROL {
            FopenFlags::FOPEN_DIRECT_IO | FopenFlags::FOPEN_NOFLUSH
        } else {
            FopenFlags::FOPEN_KEEP_CACHE | FopenFlags::FOPEN_NOFLUSH
        };
        reply.opened(FileHandle(0), how);
    }

    fn read(
        &self,
        _request: &Request,
        ino: INodeNo,
        _handle: FileHandle,
        offset: u64,
        size: u32,
        _flags: OpenFlags,
        _owner: Option<LockOwner>,
        reply: ReplyData,
    ) {
        self.hurry();
        if ino.0 == DRIVE {
            return self.timer.read(offset, size.into(), reply);
        }
        let report = self.timer.with_schedule(|schedule, _| schedule.report());
        let from = usize::try_from(offset).unwrap_or(usize::MAX).min(report.len());
        let to = from.saturating_add(size as usize).min(report.len());
        reply.data(&report.as_bytes()[from..to]);
    }

    fn write(
        &self,
        _request: &Request,
        ino: INodeNo,
        _handle: FileHandle,
        offset: u64,
        data: &[u8],
        _how: WriteFlags,
        _flags: OpenFlags,
        _owner: Option<LockOwner>,
        reply: ReplyWrite,
    ) {
        self.hurry();
        if ino.0 == DRIVE {
            return self.timer.write(offset, data, reply);
        }
        match String::from_utf8_lossy(data).parse::<Command>() {
            Ok(command) => {
                self.timer.with_schedule(|schedule, now| schedule.command(now, command));
                reply.written(data.len() as u32);
            }
            Err(wrong) => {
                (self.warn)(&wrong.to_string());
                reply.error(Errno::EINVAL);
            }
        }
    }

    fn fsync(&self, _request: &Request, ino: INodeNo, _handle: FileHandle, _data: bool, reply: ReplyEmpty) {
        if ino.0 == DRIVE { self.timer.flush(reply) } else { reply.ok() }
    }

    fn readdir(
        &self,
        _request: &Request,
        _ino: INodeNo,
        _handle: FileHandle,
        offset: u64,
        mut reply: ReplyDirectory,
    ) {
        let entries = [
            (FOLDER, FileType::Directory, "."),
            (FOLDER, FileType::Directory, ".."),
            (DRIVE, FileType::RegularFile, "drive"),
            (CONTROL, FileType::RegularFile, "control"),
        ];
        for (at, (ino, kind, name)) in entries.into_iter().enumerate().skip(offset as usize) {
            if reply.add(INodeNo(ino), at as u64 + 1, kind, name) {
                break;
            }
        }
        reply.ok();
    }
}
