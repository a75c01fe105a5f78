//! Calls on open entries of the tree.

use super::calls::FileAct;
use super::layout::{Status, folder_entry};
use super::opened::{Opened, OpenedKind, Reading, Writing, reopen};
use super::paths::Names;
use super::process::{Piece, piece};
use super::sys::{Answer, Call, Gift, is_only_writer};
use super::{Answered, CONTINUE, DONE, FIRST, Supervisor};
use crate::file_system::{Attributes, FileKind, OpenMode};
use rustix::fd::{AsFd as _, OwnedFd};
use rustix::fs::{OFlags, SeekFrom, seek};
use rustix::io::Errno;
use std::os::unix::fs::FileExt as _;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

/// Most bytes that are asked of the file system at once.
const STEP: u64 = 4 << 20;

/// Descriptors that programs with select(2) can use.
const SELECTABLE: i32 = 1024;

/// Most tries to find a free descriptor.
const TRIES: i32 = 65_536;

fn io(error: &std::io::Error) -> Errno {
    Errno::from_io_error(error).unwrap_or(Errno::IO)
}

impl Supervisor {
    /// Opens an entry of the tree, and gives the process a descriptor.
    pub(super) async fn open(&self, call: &Call, names: Names, flags: u32) -> Answered {
        let flags = OFlags::from_bits_retain(flags);
        if flags.contains(OFlags::TMPFILE) {
            return Err(Errno::OPNOTSUPP);
        }
        let access = flags & OFlags::RWMODE;
        let write = access != OFlags::RDONLY || flags.contains(OFlags::TRUNC);
        let (found, way, handle) = match self.walk_along(&names).await {
            Ok(_) if flags.contains(OFlags::CREATE | OFlags::EXCL) => return Err(Errno::EXIST),
            Ok((found, way)) if found.kind == FileKind::Directory => {
                if write || flags.contains(OFlags::CREATE) {
                    return Err(Errno::ISDIR);
                }
                return self.open_folder(call, found, (names, way), flags);
            }
            Ok(_) if flags.contains(OFlags::DIRECTORY) => return Err(Errno::NOTDIR),
            Ok((found, way)) => {
                let mode = OpenMode { write, truncate: flags.contains(OFlags::TRUNC) };
                let handle = self.fs.open(found.ino, mode).await?;
                (found, way, handle)
            }
            Err(Errno::NOENT) if flags.contains(OFlags::CREATE) => {
                let (name, above) = names.split_last().ok_or(Errno::ISDIR)?;
                let (folder, mut way) = self.walk_along(above).await?;
                if folder.kind != FileKind::Directory {
                    return Err(Errno::NOTDIR);
                }
                let (found, handle) = self.fs.create(folder.ino, name).await?;
                self.opened.refer(found.ino, |ino| self.fs.forget(ino, 1));
                way.push(found.ino);
                (found, way, handle)
            }
            Err(errno) => return Err(errno),
        };
        let given = if let Some(file) = self.fs.local_file(handle)? {
            let own = reopen(&file, access | (flags & OFlags::APPEND)).map_err(|error| io(&error))?;
            if self.fs.is_written(handle) {
                self.keep_writer((found.ino, way), handle, file, &own)?;
            } else {
                // The description reads the spool without the file system.
                self.fs.release(handle);
            }
            own
        } else {
            // Sizes of files made of rings are known once they are open.
            let size = self.fs.attributes(found.ino).await?.size;
            let file = self.opened.unnamed_file(size).map_err(|error| io(&error))?;
            let own = reopen(&file, OFlags::RDONLY).map_err(|error| io(&error))?;
            let kind = OpenedKind::Reader(Reading {
                handle,
                file,
                is_filled: tokio::sync::Mutex::new(size == 0 && !self.fs.is_made(found.ino)),
            });
            self.opened.keep(&own, Arc::new(self.hold(found.ino, way, kind))).map_err(|error| io(&error))?;
            own
        };
        self.give(call, &given, flags)
    }

    /// Keeps a handle of a file that is written. All opens of a file share its spool.
    fn keep_writer(
        &self,
        (ino, way): (u64, Vec<u64>),
        handle: u64,
        file: std::fs::File,
        own: &OwnedFd,
    ) -> Result<(), Errno> {
        if let Some(opened) = self.opened.get(own)
            && let OpenedKind::Writer(writing) = &opened.kind
        {
            let mut handles = lock(&writing.handles);
            // Without handles it is being forgotten.
            if !handles.is_empty() {
                handles.push(handle);
                return Ok(());
            }
        }
        let writing = Writing { handles: Mutex::new(vec![handle]), file, is_mapped: AtomicBool::new(false) };
        self.opened
            .keep(own, Arc::new(self.hold(ino, way, OpenedKind::Writer(writing))))
            .map_err(|error| io(&error))
    }

    /// Entry that holds references to itself and to the folders above.
    fn hold(&self, ino: u64, held: Vec<u64>, kind: OpenedKind) -> Opened {
        for ino in &held {
            self.fs.hold(*ino);
        }
        Opened { ino, held, kind }
    }

    /// Forgets an entry that is not open any more.
    fn forget(&self, opened: &Arc<Opened>) {
        self.opened.remove(opened);
        for ino in &opened.held {
            self.fs.forget(*ino, 1);
        }
    }

    fn open_folder(
        &self,
        call: &Call,
        found: Attributes,
        (names, way): (Names, Vec<u64>),
        flags: OFlags,
    ) -> Answered {
        let handle = self.fs.open_directory(found.ino)?;
        let own = self.opened.unnamed_folder().map_err(|error| io(&error))?;
        let kind = OpenedKind::Folder { names, handle, position: tokio::sync::Mutex::new(0) };
        self.opened.keep(&own, Arc::new(self.hold(found.ino, way, kind))).map_err(|error| io(&error))?;
        self.give(call, &own, flags)
    }

    /// Answers an open call with a high descriptor that is free.
    fn give(&self, call: &Call, file: &OwnedFd, flags: OFlags) -> Answered {
        let gift = if flags.contains(OFlags::CLOEXEC) { Gift::CloseOnExec } else { Gift::Kept };
        let first = FIRST as i32 + 1;
        let start = self.opened.next_number(first, SELECTABLE);
        // Two calls of one process must not find the same number.
        let _giving = lock(&self.giving);
        let numbers = (start..SELECTABLE).chain(first..start).chain(SELECTABLE..TRIES);
        for number in numbers {
            match call.file(number) {
                Ok(_) => {}
                Err(Errno::BADF) => {
                    self.listener.give(call, file.as_fd(), Some(number), gift).map_err(|error| io(&error))?;
                    return Ok(None);
                }
                Err(errno) => return Err(errno),
            }
        }
        Err(Errno::MFILE)
    }

    pub(super) async fn file(&self, call: &Call, opened: &Arc<Opened>, act: FileAct) -> Answered {
        let arguments = call.arguments;
        match act {
            FileAct::Stat { to } => {
                let found = self.fs.attributes(opened.ino).await?;
                let (is_folder, read_only) = (found.kind == FileKind::Directory, self.fs.options().read_only);
                let status = Status::of(found.ino, is_folder, found.size, found.modified, read_only);
                call.put(arguments[to], &status.stat())?;
                return DONE;
            }
            FileAct::GetAttribute => return self.get_attribute(call, opened.ino).await,
            FileAct::SetAttribute => return self.set_attribute(call, opened.ino).await,
            FileAct::ListAttributes => return self.list_attributes(call, opened.ino).await,
            FileAct::RemoveAttribute => return self.remove_attribute(call, opened.ino).await,
            _ => {}
        }
        let is_writer = matches!(opened.kind, OpenedKind::Writer(_));
        if matches!(act, FileAct::Control) && !is_writer {
            return self.control(call);
        }
        match &opened.kind {
            OpenedKind::Reader(reading) => self.reader(call, opened, reading, act).await,
            OpenedKind::Writer(writing) => self.writer(call, writing, act).await,
            OpenedKind::Folder { handle, position, .. } => match act {
                FileAct::Duplicate => self.give(call, &call.file(arguments[0] as i32)?, OFlags::empty()),
                FileAct::List => self.list(call, opened, *handle, &mut *position.lock().await).await,
                FileAct::Seek => {
                    let mut position = position.lock().await;
                    let base = if arguments[2] == 0 { 0 } else { *position };
                    *position = base.wrapping_add(arguments[1]);
                    Ok(Some(Answer::Value(*position as i64)))
                }
                _ => CONTINUE,
            },
            OpenedKind::Current(names) => {
                // A program that closes all descriptors keeps its current folder.
                if let (FileAct::Close, Some(names)) = (act, names) {
                    lock(&self.closed).insert(call.identity()?, names.clone());
                }
                CONTINUE
            }
        }
    }

    /// Carries fcntl(2) out: a copy of a descriptor that is to be seen stays a high one.
    fn control(&self, call: &Call) -> Answered {
        let [descriptor, command, least, ..] = call.arguments;
        let flags = match command as i32 {
            libc::F_DUPFD => OFlags::empty(),
            libc::F_DUPFD_CLOEXEC => OFlags::CLOEXEC,
            _ => return CONTINUE,
        };
        if least > u64::from(FIRST) {
            return CONTINUE;
        }
        self.give(call, &call.file(descriptor as i32)?, flags)
    }

    async fn reader(&self, call: &Call, opened: &Arc<Opened>, reading: &Reading, act: FileAct) -> Answered {
        let [descriptor, address, length, offset, ..] = call.arguments;
        match act {
            FileAct::Read => self.read(call, reading, &[piece(address, length)], None).await,
            FileAct::ReadAt => self.read(call, reading, &[piece(address, length)], Some(offset)).await,
            FileAct::ReadVector => self.read(call, reading, &call.pieces(address, length)?, None).await,
            FileAct::ReadVectorAt => {
                let offset = Some(offset).filter(|offset| *offset != u64::MAX);
                self.read(call, reading, &call.pieces(address, length)?, offset).await
            }
            // Without these the file that stands for it would look like one hole.
            FileAct::Seek if [libc::SEEK_DATA, libc::SEEK_HOLE].contains(&(length as i32)) => {
                if *reading.is_filled.lock().await {
                    return CONTINUE;
                }
                let size = self.fs.attributes(opened.ino).await?.size;
                if address >= size {
                    return Err(Errno::NXIO);
                }
                let position = if length as i32 == libc::SEEK_DATA { address } else { size };
                seek(call.file(descriptor as i32)?, SeekFrom::Start(position))?;
                Ok(Some(Answer::Value(position as i64)))
            }
            FileAct::CopyInKernel if call.number == libc::SYS_copy_file_range => Err(Errno::XDEV),
            FileAct::CopyInKernel => Err(Errno::INVAL),
            FileAct::Map | FileAct::Duplicate => {
                // `dup` gives the lowest descriptor, where reads are not seen.
                self.fill(opened).await?;
                CONTINUE
            }
            FileAct::DuplicateTo => {
                if (address as i32) < FIRST as i32 && descriptor != address {
                    self.fill(opened).await?;
                }
                CONTINUE
            }
            _ => CONTINUE,
        }
    }

    /// Reads bytes at an offset, or at the position, into the memory of a process.
    async fn read(&self, call: &Call, reading: &Reading, to: &[Piece], offset: Option<u64>) -> Answered {
        let is_filled = reading.is_filled.lock().await;
        if *is_filled {
            return CONTINUE;
        }
        let (file, at) = if let Some(offset) = offset {
            // Reads at offsets go on side by side.
            drop(is_filled);
            (None, offset)
        } else {
            let file = call.file(call.arguments[0] as i32)?;
            let at = seek(&file, SeekFrom::Current(0))?;
            (Some((file, is_filled)), at)
        };
        let length: u64 = to.iter().map(|piece| piece.len as u64).sum();
        let mut done = 0;
        while done < length {
            let wanted = (length - done).min(STEP);
            let bytes = match self.fs.read(reading.handle, at + done, wanted).await {
                Ok(bytes) => bytes,
                // The bytes before the error count; the next read tells it.
                Err(_) if done > 0 => break,
                Err(error) => return Err(error.errno),
            };
            call.scatter(to, done, &bytes)?;
            done += bytes.len() as u64;
            if (bytes.len() as u64) < wanted {
                break;
            }
        }
        if let Some((file, _)) = file {
            seek(&file, SeekFrom::Start(at + done))?;
        }
        Ok(Some(Answer::Value(done as i64)))
    }

    /// Fills the file that stands for an open file, so that the kernel reads it.
    pub(super) async fn fill(&self, opened: &Opened) -> Result<(), Errno> {
        let OpenedKind::Reader(reading) = &opened.kind else { return Ok(()) };
        let mut is_filled = reading.is_filled.lock().await;
        let mut at = 0;
        while !*is_filled {
            let bytes = self.fs.read(reading.handle, at, STEP).await?;
            reading.file.write_all_at(&bytes, at).map_err(|error| io(&error))?;
            at += bytes.len() as u64;
            // A file that grows stays as it is now.
            *is_filled = (bytes.len() as u64) < STEP;
        }
        Ok(())
    }

    async fn writer(&self, call: &Call, writing: &Writing, act: FileAct) -> Answered {
        match act {
            FileAct::Sync => {
                self.store(writing).await?;
                DONE
            }
            FileAct::Close => {
                // The descriptor of a failed close stays open: its bytes are stored at the end.
                self.store(writing).await?;
                CONTINUE
            }
            FileAct::Map => {
                let (protection, flags) = (call.arguments[2] as i32, call.arguments[3] as i32);
                let is_shared = flags & libc::MAP_TYPE != libc::MAP_PRIVATE;
                if is_shared && protection & libc::PROT_WRITE != 0 {
                    writing.is_mapped.store(true, Ordering::Relaxed);
                }
                CONTINUE
            }
            _ => CONTINUE,
        }
    }

    async fn store(&self, writing: &Writing) -> Result<(), Errno> {
        let Some(handle) = lock(&writing.handles).first().copied() else { return Ok(()) };
        if writing.is_mapped.load(Ordering::Relaxed) {
            self.fs.touch(handle);
        }
        Ok(self.fs.sync(handle).await?)
    }

    /// Lists entries of a folder from the position on.
    async fn list(&self, call: &Call, opened: &Opened, handle: u64, position: &mut u64) -> Answered {
        /// Number of entries before those of the site: `.` and `..`.
        const OWN: u64 = 2;
        let (address, space) = (call.arguments[1], call.arguments[2] as usize);
        let mut out = Vec::new();
        loop {
            let before = (out.len(), *position);
            if *position < OWN {
                let name = if *position == 0 { "." } else { ".." };
                let entry = folder_entry(opened.ino, *position + 1, true, name);
                if out.len() + entry.len() <= space {
                    out.extend(entry);
                    *position += 1;
                }
            } else {
                for found in self.fs.list(opened.ino, handle, (*position - OWN) as usize).await? {
                    let Attributes { ino, kind, .. } = found.attributes;
                    let entry = folder_entry(ino, *position + 1, kind == FileKind::Directory, &found.name);
                    if out.len() + entry.len() > space {
                        break;
                    }
                    out.extend(entry);
                    *position += 1;
                    // Programs ask for the attributes of what they list.
                    self.fs.refer(opened.ino, &found);
                    self.opened.refer(ino, |ino| self.fs.forget(ino, 1));
                }
            }
            if (out.len(), *position) == before || *position > OWN {
                break;
            }
        }
        call.put(address, &out)?;
        Ok(Some(Answer::Value(out.len() as i64)))
    }

    /// Makes a folder of the tree the current one of a process.
    pub(super) async fn enter(&self, call: &Call, names: Names) -> Answered {
        let found = self.walk(&names).await?;
        if found.kind != FileKind::Directory {
            return Err(Errno::NOTDIR);
        }
        self.mark(call, found.ino, Some(names))?;
        self.is_entered.store(true, Ordering::Relaxed);
        DONE
    }

    /// Notes that the current folder of a process lies outside of the tree again.
    pub(super) fn leave(&self, call: &Call) -> Answered {
        self.mark(call, 0, None)?;
        CONTINUE
    }

    /// Marks the current folder of a process by an open file, which its children inherit.
    fn mark(&self, call: &Call, ino: u64, names: Option<Names>) -> Result<(), Errno> {
        let place = call.file(FIRST as i32);
        let is_own =
            |file| self.opened.get(file).is_some_and(|found| matches!(found.kind, OpenedKind::Current(_)));
        if place.is_ok_and(|file| !is_own(file)) {
            return Err(Errno::MFILE);
        }
        let own: OwnedFd = self.opened.unnamed_file(0).map_err(|error| io(&error))?.into();
        let opened = Opened { ino, held: Vec::new(), kind: OpenedKind::Current(names) };
        self.opened.keep(&own, Arc::new(opened)).map_err(|error| io(&error))?;
        self.listener.give(call, own.as_fd(), Some(FIRST as i32), Gift::Quiet).map_err(|error| io(&error))?;
        let mut closed = lock(&self.closed);
        if !closed.is_empty() {
            closed.remove(&call.identity()?);
        }
        Ok(())
    }

    /// Gives a program that begins the mark of its current folder back.
    pub(super) fn restore(&self, call: &Call, names: Names) -> Answered {
        self.mark(call, 0, Some(names))?;
        CONTINUE
    }

    pub(super) fn tell_current(&self, call: &Call, names: &Names) -> Answered {
        let mut text: Vec<u8> =
            self.prefix.iter().chain(names).flat_map(|name| format!("/{name}").into_bytes()).collect();
        text.push(0);
        if text.len() as u64 > call.arguments[1] {
            return Err(Errno::RANGE);
        }
        call.put(call.arguments[0], &text)?;
        Ok(Some(Answer::Value(text.len() as i64)))
    }

    /// Releases entries whose last descriptor was closed.
    pub(super) fn release_closed(self: &Arc<Self>) {
        for opened in self.opened.closed() {
            match &opened.kind {
                OpenedKind::Reader(reading) => self.fs.release(reading.handle),
                OpenedKind::Folder { handle, .. } => self.fs.release_directory(*handle),
                OpenedKind::Current(_) => {}
                OpenedKind::Writer(_) => {
                    let this = Arc::clone(self);
                    drop(self.runtime.spawn(async move { this.release_writer(&opened).await }));
                    continue;
                }
            }
            self.forget(&opened);
        }
    }

    /// Stores a file of which a description ended, and releases it with the last one.
    async fn release_writer(&self, opened: &Arc<Opened>) {
        let OpenedKind::Writer(writing) = &opened.kind else { return };
        // A failure is told when the shell ends.
        let stored = self.store(writing).await;
        let mut handles = lock(&writing.handles);
        if stored.is_ok() && is_only_writer(&writing.file) {
            let ended = std::mem::take(&mut *handles);
            drop(handles);
            self.forget(opened);
            for handle in ended {
                self.fs.release(handle);
            }
        }
    }
}

fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
