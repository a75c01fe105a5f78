//! Spool of a file that is written: its contents on a local disk, sent to the site while they are written and at each close.
//!
//! Contiguous writes are sent while further ones come. A write into bytes that were sent already starts the upload anew. A
//! close or an fsync returns once the site has stored all bytes as a version of the object.

use crate::error::FsError;
use crate::fetch::{Patience, Source, persist};
use bytes::Bytes;
use futures::stream::{self, StreamExt as _, TryStreamExt as _};
use holdfast_remote::{NewUpload, RemoteError, RemoteErrorKind, Segment, Site, UploadAddress, UploadState};
use rustix::io::Errno;
use std::fs::File;
use std::io;
use std::ops::Range;
use std::os::unix::fs::FileExt as _;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::{Duration, SystemTime};
use tempfile::{NamedTempFile, TempPath};
use tokio::sync::Notify;

/// Bytes of one segment of an upload.
const SEGMENT: u64 = 4 << 20;

/// Segments under way at the same time.
const PARALLEL: usize = 4;

/// Time for which the site may store an upload before it is asked again.
const STORE: Duration = Duration::from_secs(30);

/// Most time for which the removal of an upload is tried. The site refuses it while it still takes a request that was cut off.
const REMOVAL: Duration = Duration::from_secs(5);

/// Time after which a sender looks whether its spool is still used.
const IDLE: Duration = Duration::from_secs(5);

/// Time of a shared spool that nobody wrote since the last look.
const MARK: SystemTime = SystemTime::UNIX_EPOCH;

/// Contents of a file that is written.
#[derive(Debug)]
pub(crate) struct Spool {
    path: Mutex<Option<TempPath>>,
    handle: File,
    /// True once other processes may write the file directly.
    is_shared: AtomicBool,
    state: Mutex<State>,
    /// Upload that has begun. It is locked while contents are sent: one version after the other.
    sending: tokio::sync::Mutex<Option<Begun>>,
    /// Wakes the sender when a segment of contiguous writes is there.
    segment_is_there: Notify,
}

/// Upload of contiguous writes, begun before the close.
#[derive(Debug)]
struct Begun {
    address: UploadAddress,
    /// Path that the upload has.
    path: String,
}

#[derive(Debug, Default)]
struct State {
    size: u64,
    /// Number of changes so far.
    changes: u64,
    /// Number of changes that the site has.
    stored: u64,
    /// End of the writes that followed each other from the beginning.
    contiguous: u64,
    /// End of the bytes that were read for the upload.
    taken: u64,
    /// True if bytes changed that were taken.
    is_stale: bool,
    /// True once a version was stored, or the file was deleted: further bytes are sent by the next close only.
    is_ended: bool,
}

impl State {
    /// Notes that bytes from an offset on change.
    fn change(&mut self, offset: u64) {
        self.changes += 1;
        self.is_stale |= offset < self.taken;
    }
}

/// Place of a file at a site.
#[derive(Clone, Debug)]
pub(crate) struct Target {
    pub(crate) site: Site,
    pub(crate) project: String,
    /// Path in the project.
    pub(crate) path: String,
    pub(crate) patience: Duration,
}

fn cannot(verb: &str, folder: &Path, error: &io::Error) -> FsError {
    let errno = Errno::from_io_error(error).unwrap_or(Errno::IO);
    FsError::new(
        errno,
        format!("cannot {verb} the spool in {}: {error}; free some space there", folder.display()),
    )
}

/// Removes an upload that nobody wants any more. One that cannot be removed expires.
async fn remove(site: &Site, upload: &UploadAddress, patience: Duration) {
    let _ = persist(patience.min(REMOVAL), || site.terminate(upload)).await;
}

impl Spool {
    /// Makes the spool of an empty file. An empty file is stored too, so it counts as changed.
    pub(crate) fn new(folder: &Path) -> Result<Arc<Self>, FsError> {
        let file = NamedTempFile::with_prefix_in("write-", folder);
        let file = file.map_err(|error| cannot("make", folder, &error))?;
        let (handle, path) = file.into_parts();
        let state = State { changes: 1, ..State::default() };
        let (path, state) = (Mutex::new(Some(path)), Mutex::new(state));
        let (sending, segment_is_there) = (tokio::sync::Mutex::default(), Notify::new());
        let is_shared = AtomicBool::new(false);
        Ok(Arc::new(Self { path, handle, is_shared, state, sending, segment_is_there }))
    }

    /// Makes the spool of a stored version, whose contents are fetched.
    pub(crate) async fn of(folder: &Path, source: &Source, size: u64) -> Result<Arc<Self>, FsError> {
        let spool = Self::new(folder)?;
        let pieces = (0..size).step_by(SEGMENT as usize).map(|at| at..(at + SEGMENT).min(size));
        let copied = stream::iter(pieces).map(|range| async move {
            let bytes = source.fetch(&range).await?;
            Ok::<_, FsError>((range.start, bytes))
        });
        let copied = copied.buffer_unordered(PARALLEL);
        copied
            .try_for_each(|(offset, bytes)| {
                let written = spool.handle.write_all_at(&bytes, offset);
                std::future::ready(written.map_err(|error| cannot("write", folder, &error)))
            })
            .await?;
        *spool.lock() = State { size, ..State::default() };
        Ok(spool)
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        if self.is_shared.load(Ordering::Relaxed) {
            self.look(&mut state);
        }
        state
    }

    /// File of the contents, which other processes may write from now on.
    pub(crate) fn share(&self) -> Result<File, FsError> {
        let file = self.handle.try_clone().map_err(|error| self.failed("share", &error))?;
        // Changes from now on are seen by the time of the file.
        let marked = self.handle.set_modified(MARK);
        marked.map_err(|error| self.failed("share", &error))?;
        self.is_shared.store(true, Ordering::Relaxed);
        Ok(file)
    }

    /// Notes a change that left no trace in the time of the file.
    pub(crate) fn touch(&self) {
        self.lock().change(0);
    }

    /// Looks whether other processes have written.
    fn look(&self, state: &mut State) {
        let Ok(found) = self.handle.metadata() else { return };
        if found.modified().is_ok_and(|modified| modified == MARK) && found.len() == state.size {
            return;
        }
        // A write after the mark is seen next time; one before it is read after it.
        let _ = self.handle.set_modified(MARK);
        state.size = self.handle.metadata().map_or(found.len(), |found| found.len());
        state.change(0);
    }

    /// Size of the contents.
    pub(crate) fn size(&self) -> u64 {
        self.lock().size
    }

    /// True if the site lacks a change.
    pub(crate) fn is_unstored(&self) -> bool {
        let state = self.lock();
        state.stored < state.changes
    }

    pub(crate) fn write(&self, offset: u64, bytes: &[u8]) -> Result<(), FsError> {
        let mut state = self.lock();
        self.handle.write_all_at(bytes, offset).map_err(|error| self.failed("write", &error))?;
        let end = offset + bytes.len() as u64;
        state.size = state.size.max(end);
        state.change(offset);
        if offset == state.contiguous {
            state.contiguous = end;
            if end >= state.taken + SEGMENT {
                self.segment_is_there.notify_one();
            }
        }
        Ok(())
    }

    pub(crate) fn read(&self, offset: u64, length: u64) -> Result<Bytes, FsError> {
        let size = self.size();
        let range = offset.min(size)..offset.saturating_add(length).min(size);
        let mut bytes = vec![0; (range.end - range.start) as usize];
        self.handle.read_exact_at(&mut bytes, range.start).map_err(|error| self.failed("read", &error))?;
        Ok(bytes.into())
    }

    pub(crate) fn set_size(&self, size: u64) -> Result<(), FsError> {
        let mut state = self.lock();
        if state.size != size {
            self.handle.set_len(size).map_err(|error| self.failed("change", &error))?;
            let first = size.min(state.size);
            state.change(first);
            state.size = size;
            state.contiguous = state.contiguous.min(size);
        }
        Ok(())
    }

    fn failed(&self, verb: &str, error: &io::Error) -> FsError {
        let path = self.path.lock().unwrap_or_else(PoisonError::into_inner);
        let path = path.as_ref().map_or(Path::new(""), |path| path);
        cannot(verb, path.parent().unwrap_or(path), error)
    }

    /// Keeps the file of the spool for ever, as the site did not take its contents.
    pub(crate) fn keep(&self) -> Option<PathBuf> {
        let path = self.path.lock().unwrap_or_else(PoisonError::into_inner).take()?;
        path.keep().ok()
    }

    /// Stores the contents at the site, unless it has them. Returns true if a version was made.
    pub(crate) async fn store(self: &Arc<Self>, target: &Target) -> Result<bool, FsError> {
        let mut begun = self.sending.lock().await;
        let (size, changes, is_stale) = {
            let mut state = self.lock();
            if state.stored == state.changes {
                return Ok(false);
            }
            state.taken = 0;
            // An empty file sends nothing, as when a shell redirects into it before the program begins.
            state.is_ended = state.size > 0;
            (state.size, state.changes, std::mem::take(&mut state.is_stale))
        };
        let (address, abandoned) = match begun.take() {
            Some(begun) if !is_stale && begun.path == target.path => (Some(begun.address), None),
            begun => (None, begun),
        };
        let sent = self.send(target, size, address).await;
        // Behind the contents: a site that was away is back by now.
        if let Some(begun) = abandoned {
            remove(&target.site, &begun.address, target.patience).await;
        }
        sent?;
        self.lock().stored = changes;
        Ok(true)
    }

    /// Sends no more bytes while they come, as the file was deleted.
    pub(crate) fn end_sending(&self) {
        self.lock().is_ended = true;
    }

    /// Removes what the site has of an upload that has begun, as nobody wants the file any more.
    pub(crate) async fn abandon(&self, site: &Site, patience: Duration) {
        self.end_sending();
        if let Some(begun) = self.sending.lock().await.take() {
            remove(site, &begun.address, patience).await;
        }
    }

    /// Sends contiguous writes while further ones come, as long as the spool exists.
    pub(crate) async fn send_ahead(spool: Weak<Self>, target: Target) {
        loop {
            let Some(this) = spool.upgrade() else { return };
            // A sleeping sender must not keep the spool.
            let woken = tokio::time::timeout(IDLE, this.segment_is_there.notified()).await;
            if woken.is_ok() && this.send_segments(&target).await.is_err() {
                // The close sends everything, and tells what is wrong.
                return;
            }
        }
    }

    /// Range of contiguous writes that is due, and notes that it is taken.
    fn take_segments(&self) -> Option<Range<u64>> {
        let mut state = self.lock();
        let end = state.contiguous - state.contiguous % SEGMENT;
        let range = state.taken..end;
        let is_due = !state.is_stale && !state.is_ended && end >= range.start + SEGMENT;
        is_due.then(|| {
            state.taken = end;
            range
        })
    }

    async fn send_segments(self: &Arc<Self>, target: &Target) -> Result<(), RemoteError> {
        let mut sending = self.sending.lock().await;
        while let Some(range) = self.take_segments() {
            if sending.is_none() {
                let (project, path) = (Some(target.project.clone()), target.path.clone());
                let new = NewUpload { project, path: path.clone(), ..NewUpload::default() };
                let created = target.site.create(&new).await?;
                *sending = Some(Begun { address: created.address, path });
            }
            let Some(begun) = sending.as_ref() else { return Ok(()) };
            // The close asks which bytes the site has, and sends the others.
            self.append(&target.site, &begun.address, range).await?;
        }
        Ok(())
    }

    /// Sends a range of the contents in parallel segments.
    async fn append(
        self: &Arc<Self>,
        site: &Site,
        upload: &UploadAddress,
        range: Range<u64>,
    ) -> Result<(), RemoteError> {
        let end = range.end;
        let segments = range.step_by(SEGMENT as usize).map(|offset| async move {
            let bytes = self.segment(offset, (end - offset).min(SEGMENT)).await?;
            site.append(upload, &Segment { offset, bytes, ahead: true, ..Segment::default() }).await
        });
        stream::iter(segments).buffered(PARALLEL).try_for_each(|_| std::future::ready(Ok(()))).await
    }

    /// Sends what the site lacks, again and again while it is away.
    async fn send(
        self: &Arc<Self>,
        target: &Target,
        size: u64,
        mut address: Option<UploadAddress>,
    ) -> Result<(), FsError> {
        let mut patience = Patience::new(target.patience);
        loop {
            let Err(error) = self.attempt(target, size, &mut address).await else { return Ok(()) };
            if matches!(error.kind, RemoteErrorKind::Gone | RemoteErrorKind::NotFound) && address.is_some() {
                address = None;
                continue;
            }
            let mut error = error;
            if error.kind == RemoteErrorKind::OffsetMismatch {
                error.kind = RemoteErrorKind::Locked;
            }
            if let Err(error) = patience.wait(error).await {
                // The upload's bytes take space that nobody gives free for days.
                if let Some(address) = address {
                    remove(&target.site, &address, target.patience).await;
                }
                return Err(error);
            }
        }
    }

    /// Sends what the site lacks of the upload, and waits until it is stored.
    async fn attempt(
        self: &Arc<Self>,
        target: &Target,
        length: u64,
        address: &mut Option<UploadAddress>,
    ) -> Result<(), RemoteError> {
        let site = &target.site;
        let (upload, from) = if let Some(upload) = address {
            let progress = site.progress(upload, None).await?;
            let mut from = progress.offset;
            if progress.length.is_none() {
                let bytes = self.segment(from, length.saturating_sub(from).min(SEGMENT)).await?;
                let last = Segment { offset: from, bytes, length: Some(length), ..Segment::default() };
                from = site.append(upload, &last).await?.offset;
            }
            (upload.clone(), from)
        } else {
            let first = if length <= SEGMENT { Some(self.segment(0, length).await?) } else { None };
            let new = NewUpload {
                project: Some(target.project.clone()),
                path: target.path.clone(),
                metadata: Vec::new(),
                length: Some(length),
                first,
            };
            let created = site.create(&new).await?;
            (address.insert(created.address).clone(), created.offset)
        };
        self.append(site, &upload, from..length).await?;
        loop {
            let progress = site.progress(&upload, Some(STORE)).await?;
            match progress.state {
                UploadState::Stored => return Ok(()),
                UploadState::Failed => {
                    let reason = progress.reason.unwrap_or_default();
                    let message = format!("cannot store `{}`: {reason}", target.path);
                    return Err(RemoteError::refused(message));
                }
                UploadState::Receiving | UploadState::Assembling | UploadState::Complete => {}
            }
        }
    }

    async fn segment(self: &Arc<Self>, offset: u64, length: u64) -> Result<Bytes, RemoteError> {
        let spool = Arc::clone(self);
        let read = tokio::task::spawn_blocking(move || {
            let mut bytes = vec![0; length as usize];
            spool.handle.read_exact_at(&mut bytes, offset).map(|()| Bytes::from(bytes))
        });
        let read = read.await.map_err(io::Error::other).flatten();
        // A file that was made shorter meanwhile is sent again with its new size.
        read.map_err(|error| {
            RemoteError::refused(format!("cannot read the spool: {error}; write the file again"))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use holdfast_remote::Endpoint;
    use std::io::{BufRead as _, BufReader, Write as _};
    use std::net::TcpListener;
    use std::sync::mpsc;

    #[test]
    fn the_removal_of_an_upload_is_repeated_while_the_site_has_it_locked() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = format!("http://{}", listener.local_addr().unwrap());
        let (sender, requests) = mpsc::channel();
        std::thread::spawn(move || {
            for status in ["423 Locked", "423 Locked", "204 No Content"] {
                let (mut stream, _) = listener.accept().unwrap();
                let head = BufReader::new(&stream).lines().map(Result::unwrap);
                let head: Vec<String> = head.take_while(|line| !line.is_empty()).collect();
                sender.send((status, head[0].clone())).unwrap();
                let length = if status.starts_with("204") { "" } else { "Content-Length: 0\r\n" };
                write!(stream, "HTTP/1.1 {status}\r\n{length}Connection: close\r\n\r\n").unwrap();
            }
        });
        let folder = tempfile::tempdir().unwrap();
        let spool = Spool::new(folder.path()).unwrap();
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async {
            let site = Site::connect(&Endpoint::parse(&address).unwrap()).unwrap();
            let upload = format!("{address}/files/1").parse().unwrap();
            *spool.sending.lock().await = Some(Begun { address: upload, path: "a".to_owned() });
            spool.abandon(&site, Duration::from_mins(1)).await;
        });
        let requests: Vec<_> = requests.try_iter().collect();
        assert!(requests.iter().all(|(_, line)| line == "DELETE /files/1 HTTP/1.1"), "{requests:?}");
        assert_eq!(requests.last().map(|(status, _)| *status), Some("204 No Content"), "{requests:?}");
    }
}
