//! Upload of a local file: in segments, several at a time, resumed where an earlier run ended, and verified by the hash of the
//! stored contents. Input without a known length is in `upload_stream`.

use super::path::SitePath;
use super::resume_mark::ResumeMark;
use super::retry::Retry;
use super::session::{Session, failure};
use super::{AttributeText, upload_stream};
use crate::out::say;
use bytes::Bytes;
use futures::{StreamExt as _, TryStreamExt as _};
use holdfast_base::failure::{Failure, Result, reason};
use holdfast_remote::{
    AttributeChange, NewUpload, Progress, RemoteError, RemoteErrorKind, Segment, Site, SiteExtension,
    UploadAddress, UploadState,
};
use std::collections::BTreeSet;
use std::fs::{File, Metadata};
use std::io::{self, Read};
use std::ops::Range;
use std::os::unix::fs::{FileExt as _, MetadataExt as _};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

/// Bytes of one request: a lost connection costs so much, and each is made durable by the site.
pub(super) const SEGMENT: usize = 8 << 20;

/// Segments on their way at the same time: less than the 64 MiB that a site holds ahead of their turn.
const PARALLEL: usize = 4;

/// Time that one request waits until the archive has the upload.
const WAIT: Duration = Duration::from_secs(30);

/// Upload of one object.
#[derive(Debug)]
pub(crate) struct Upload<'a> {
    /// Session with the site.
    pub(crate) session: &'a Session,
    /// Path of the object.
    pub(crate) path: &'a SitePath,
    /// Attributes that the object gets.
    pub(crate) attributes: &'a [AttributeText],
    /// Version that must be current when the upload is stored, or `none` if the path must be free.
    pub(crate) replaces: Option<&'a str>,
}

/// Contents that a site has stored.
#[derive(Clone, Debug)]
pub(crate) struct Sent {
    /// Version in the archive of the site.
    pub(crate) version: Option<String>,
    /// Size of the contents in bytes.
    pub(crate) bytes: u64,
    /// BLAKE3 of the contents, equal here and at the site.
    pub(crate) blake3: blake3::Hash,
    /// Bytes that the site had from an earlier run.
    pub(crate) resumed: u64,
}

/// File that is being sent, with the hash of its first bytes.
struct Sending {
    file: Arc<File>,
    hasher: blake3::Hasher,
    hashed: u64,
}

impl Upload<'_> {
    /// Sends a file. `progress` gets the number of bytes that the site has.
    pub(crate) fn file(&self, path: &Path, progress: &mut dyn FnMut(u64)) -> Result<Sent> {
        let cannot = |error: &io::Error| Failure::io("cannot read the file", path, error);
        let file = File::open(path).map_err(|error| cannot(&error))?;
        let found = file.metadata().map_err(|error| cannot(&error))?;
        if found.is_dir() {
            return Err(Failure::usage("this is a folder").at_path(path).advice("give -r to send folders"));
        }
        if !found.is_file() {
            return self.reader(file, progress);
        }
        let sending = Sending { file: Arc::new(file), hasher: blake3::Hasher::new(), hashed: 0 };
        let mark = ResumeMark::of(self.session.address(), &self.path.to_string(), path, &found);
        let sent = self.session.run(self.send(sending, &found, &mark, progress))?;
        let now = std::fs::metadata(path).map_err(|error| cannot(&error))?;
        if (now.len(), now.mtime(), now.mtime_nsec()) != (found.len(), found.mtime(), found.mtime_nsec()) {
            return Err(Failure::failed("the file changed while it was sent")
                .at_path(path)
                .advice("send it again: its new contents become the next version"));
        }
        self.add_attributes()?;
        Ok(sent)
    }

    /// Sends what a reader gives until its end, as it comes.
    pub(crate) fn reader(
        &self,
        reader: impl Read + Send + 'static,
        progress: &mut dyn FnMut(u64),
    ) -> Result<Sent> {
        let new = self.new_upload(None);
        let sent = self.session.run(upload_stream::send(self.session.site(), new, reader, progress))?;
        self.add_attributes()?;
        Ok(sent)
    }

    fn new_upload(&self, length: Option<u64>) -> NewUpload {
        let mut keys = BTreeSet::new();
        let metadata = self.attributes.iter().filter_map(AttributeText::metadata);
        let metadata = metadata.filter(|(key, _)| keys.insert(key.clone()));
        let replaces = self.replaces.map(|version| ("replaces".to_owned(), version.to_owned()));
        let metadata = metadata.chain(replaces).collect();
        let project = self.path.project().map(str::to_owned);
        NewUpload { project, path: self.path.inside(), metadata, length, first: None }
    }

    /// Adds the attributes that the upload could not carry.
    fn add_attributes(&self) -> Result<()> {
        let sent = self.new_upload(None).metadata;
        let is_sent =
            |attribute: &&AttributeText| attribute.metadata().is_some_and(|pair| sent.contains(&pair));
        let rest = self.attributes.iter().filter(|attribute| !is_sent(attribute));
        let add: Vec<_> = rest.map(AttributeText::request).collect();
        if add.is_empty() {
            return Ok(());
        }
        let change = AttributeChange { add, remove: Vec::new() };
        let path = self.path.to_string();
        self.session.request(self.session.site().catalog_attributes(&path, &change)).map(drop)
    }

    async fn send(
        &self,
        mut sending: Sending,
        found: &Metadata,
        mark: &ResumeMark,
        progress: &mut dyn FnMut(u64),
    ) -> Result<Sent> {
        let (site, length) = (self.session.site(), found.len());
        let resumable = resumable(site, mark, &sending, length).await?;
        let (address, resumed, mut offset) = if let Some((address, resumed)) = resumable {
            (address, resumed, resumed)
        } else {
            let (address, sent) = self.create(&sending, length, mark).await?;
            (address, 0, sent)
        };
        progress(offset);
        let is_short = offset == length;
        let abilities =
            if is_short { None } else { Some(site.abilities().await.map_err(|error| failure(&error))?) };
        let ahead = abilities.is_some_and(|abilities| abilities.has_site(SiteExtension::Ahead));
        let mut retry = Retry::default();
        while offset < length {
            match append(site, &address, &mut sending, offset..length, ahead, progress).await? {
                Ok(()) => break,
                Err(error) => retry.pause_append(error).await.map_err(|error| failure(&error))?,
            }
            let now = match site.progress(&address, None).await {
                Ok(now) => now,
                Err(error) => {
                    retry.pause(error).await.map_err(|error| failure(&error))?;
                    continue;
                }
            };
            if now.offset > offset {
                retry.progress();
            }
            offset = now.offset;
            progress(offset);
        }
        sending.hash_to(length).await?;
        let blake3 = sending.hasher.finalize();
        let stored = stored(site, &address, blake3).await;
        // A refused upload is not resumed, and a stored one needs no mark.
        mark.remove();
        Ok(Sent { version: stored?.version, bytes: length, blake3, resumed })
    }

    /// Creates the upload; a short file goes with the creation. Returns the number of bytes that the site has, too.
    async fn create(
        &self,
        sending: &Sending,
        length: u64,
        mark: &ResumeMark,
    ) -> Result<(UploadAddress, u64)> {
        let mut new = self.new_upload(Some(length));
        if length <= SEGMENT as u64 {
            new.first = Some(read(&sending.file, 0, length as usize).await?);
        }
        let created = self.session.site().create(&new).await.map_err(|error| failure(&error))?;
        if created.offset < length {
            mark.write(&created.address);
        }
        Ok((created.address, created.offset))
    }
}

impl Sending {
    /// Hashes the file up to an offset.
    async fn hash_to(&mut self, to: u64) -> Result<()> {
        while self.hashed < to {
            let length = (to - self.hashed).min(SEGMENT as u64) as usize;
            let bytes = read(&self.file, self.hashed, length).await?;
            self.hasher.update(&bytes);
            self.hashed += length as u64;
        }
        Ok(())
    }
}

/// Reads exactly so many bytes of a file on a blocking thread.
async fn read(file: &Arc<File>, offset: u64, length: usize) -> Result<Bytes> {
    let file = Arc::clone(file);
    let work = move || {
        let mut bytes = vec![0; length];
        file.read_exact_at(&mut bytes, offset).map(|()| Bytes::from(bytes))
    };
    let bytes = tokio::task::spawn_blocking(work).await.map_err(io::Error::other).flatten();
    bytes.map_err(|error| match error.kind() {
        io::ErrorKind::UnexpectedEof => {
            Failure::failed("the file became shorter while it was sent").advice("send it again")
        }
        _ => Failure::failed(format_args!("cannot read the file: {}", reason(&error))),
    })
}

/// Upload of an earlier run with its offset, if the site still has it and its bytes are those of the file.
async fn resumable(
    site: &Site,
    mark: &ResumeMark,
    sending: &Sending,
    length: u64,
) -> Result<Option<(UploadAddress, u64)>> {
    let Some(address) = mark.read() else { return Ok(None) };
    let known = match site.progress(&address, None).await {
        Ok(known) => known,
        Err(error) if matches!(error.kind, RemoteErrorKind::Gone | RemoteErrorKind::NotFound) => {
            mark.remove();
            return Ok(None);
        }
        Err(error) => return Err(failure(&error)),
    };
    if known.state != UploadState::Failed
        && known.length == Some(length)
        && is_prefix(site, &address, &sending.file).await?
    {
        return Ok(Some((address, known.offset)));
    }
    mark.remove();
    terminate(site, &address).await;
    Ok(None)
}

/// Ends an upload that is of no use, also at a busy site. It may have ended meanwhile, and expires by itself.
async fn terminate(site: &Site, address: &UploadAddress) {
    let mut retry = Retry::default();
    while let Err(error) = site.terminate(address).await {
        if retry.pause(error).await.is_err() {
            return;
        }
    }
}

/// True if the blocks that the site has are those of the file.
async fn is_prefix(site: &Site, address: &UploadAddress, file: &Arc<File>) -> Result<bool> {
    let mut first = Some(0);
    while let Some(from) = first {
        let page = site.blocks(address, from).await.map_err(|error| failure(&error))?;
        for (number, hash) in (page.first..).zip(&page.blocks) {
            let bytes = read(file, number * page.block_bytes, page.block_bytes as usize).await?;
            if blake3::hash(&bytes) != *hash {
                return Ok(false);
            }
        }
        if let Some(tail) = page.tail.filter(|_| page.next.is_none()) {
            let start = page.offset / page.block_bytes * page.block_bytes;
            let bytes = read(file, start, (page.offset - start) as usize).await?;
            return Ok(blake3::hash(&bytes) == tail);
        }
        first = page.next;
    }
    Ok(true)
}

/// Appends a range of the file, up to its end, `ahead` with several segments at a time. The inner error is that of a request.
async fn append(
    site: &Site,
    address: &UploadAddress,
    sending: &mut Sending,
    rest: Range<u64>,
    ahead: bool,
    progress: &mut dyn FnMut(u64),
) -> Result<Result<(), RemoteError>> {
    let (offset, length) = (rest.start, rest.end);
    let file = Arc::clone(&sending.file);
    let segments = futures::stream::iter((offset..length).step_by(SEGMENT)).map(|at| {
        let file = Arc::clone(&file);
        async move {
            let bytes = read(&file, at, (length - at).min(SEGMENT as u64) as usize).await?;
            let end = at + bytes.len() as u64;
            let segment = Segment { offset: at, bytes, ahead: ahead && at > offset, ..Segment::default() };
            let mut retry = Retry::default();
            loop {
                match site.append(address, &segment).await {
                    Ok(_) => return Ok::<_, Failure>(Ok(end)),
                    // The segments ahead of this one wait at the site.
                    Err(error) if error.kind == RemoteErrorKind::Busy => {
                        if let Err(error) = retry.pause(error).await {
                            return Ok(Err(error));
                        }
                    }
                    Err(error) => return Ok(Err(error)),
                }
            }
        }
    });
    let mut ends = segments.buffered(if ahead { PARALLEL } else { 1 });
    while let Some(end) = ends.try_next().await? {
        match end {
            Ok(end) => {
                progress(end);
                sending.hash_to(end).await?;
            }
            Err(error) => return Ok(Err(error)),
        }
    }
    Ok(Ok(()))
}

/// Waits until the archive of the site has an upload, and compares its hash.
pub(super) async fn stored(site: &Site, address: &UploadAddress, blake3: blake3::Hash) -> Result<Progress> {
    let mut retry = Retry::default();
    let mut waits = 0;
    loop {
        let now = match site.progress(address, Some(WAIT)).await {
            Ok(now) => now,
            Err(error) => {
                retry.pause(error).await.map_err(|error| failure(&error))?;
                continue;
            }
        };
        retry.progress();
        match now.state {
            UploadState::Stored => {
                return match now.blake3 {
                    Some(hash) if hash == blake3 => Ok(now),
                    Some(_) => Err(Failure::failed("the stored bytes are not those that were read")
                        .advice("send the file again: its contents become the next version")),
                    None => Err(Failure::failed("the site does not tell the hash of the stored bytes")
                        .advice("compare them by `holdfast get`")),
                };
            }
            UploadState::Failed => {
                return Err(Failure::failed(now.reason.unwrap_or_else(|| "the upload failed".to_owned())));
            }
            _ => waits += 1,
        }
        if waits == 1 {
            say("the site has all bytes; waiting until its archive has stored them");
        }
    }
}
