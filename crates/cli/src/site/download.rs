//! Download of an object: resumed after a broken connection, followed while it grows, and verified by the hash of the stored
//! version.

use super::path::SitePath;
use super::retry::Retry;
use super::session::{Session, failure};
use holdfast_base::failure::{Failure, Kind, Result, reason};
use holdfast_remote::{ByteRange, ObjectReader, ReadRequest, RemoteErrorKind, UploadState};
use std::io::{self, Write};
use std::time::{Duration, Instant};

/// Pause between questions for the version of an upload that was followed to its end.
const PAUSE: Duration = Duration::from_millis(200);

/// Time after which an upload that was followed to its end should be stored.
const PATIENCE: Duration = Duration::from_mins(2);

/// Download of one object.
#[derive(Debug)]
pub(crate) struct Download<'a> {
    /// Session with the site.
    pub(crate) session: &'a Session,
    /// Path of the object.
    pub(crate) path: &'a SitePath,
    /// Version in the archive; `None` for the newest.
    pub(crate) version: Option<&'a str>,
    /// Range of bytes; `None` for the whole object.
    pub(crate) range: Option<ByteRange>,
    /// True to wait for the end of an upload.
    pub(crate) follow: bool,
}

/// Contents that were received.
#[derive(Clone, Debug)]
pub(crate) struct Received {
    /// Version of the contents; `None` for a part of an upload.
    pub(crate) version: Option<String>,
    /// Number of bytes received.
    pub(crate) bytes: u64,
    /// BLAKE3 of these bytes.
    pub(crate) blake3: blake3::Hash,
    /// True if that is the hash of the stored version; false for a range.
    pub(crate) verified: bool,
}

impl Download<'_> {
    /// Writes the contents. `progress` gets the number of bytes so far, and that of all if it is known.
    pub(crate) fn write_to(
        &self,
        output: &mut dyn Write,
        progress: &mut dyn FnMut(u64, Option<u64>),
    ) -> Result<Received> {
        self.session.run(self.receive(output, progress))
    }

    async fn receive(
        &self,
        output: &mut dyn Write,
        progress: &mut dyn FnMut(u64, Option<u64>),
    ) -> Result<Received> {
        let site = self.session.site();
        let mut request = ReadRequest {
            project: self.path.project().unwrap_or_default().to_owned(),
            path: self.path.inside(),
            version: self.version.map(str::to_owned),
            range: self.range,
            follow: self.follow,
            ..ReadRequest::default()
        };
        let mut reader = site.read(&request).await.map_err(|error| failure(&error))?;
        self.check_complete(&reader)?;
        let (mut hasher, mut received) = (blake3::Hasher::new(), 0);
        let mut retry = Retry::default();
        loop {
            let error = match reader.chunk().await {
                Ok(Some(bytes)) => {
                    write(output, &bytes)?;
                    hasher.update(&bytes);
                    received += bytes.len() as u64;
                    retry.progress();
                    progress(received, self.total(&reader));
                    continue;
                }
                Ok(None) => break,
                Err(error) => error,
            };
            retry.pause(error).await.map_err(|error| failure(&error))?;
            // The rest of the same version, from the next byte on.
            request.version = reader.version.clone();
            request.follow = self.follow && request.version.is_none();
            let first = self.range.map_or(0, |range| range.first) + received;
            request.range = Some(ByteRange { first, last: self.range.and_then(|range| range.last) });
            if self.total(&reader) == Some(received) {
                break;
            }
            reader = loop {
                match site.read(&request).await {
                    Ok(next) => break next,
                    Err(error) => retry.pause(error).await.map_err(|error| failure(&error))?,
                }
            };
        }
        output.flush().map_err(|error| unwritten(&error))?;
        let blake3 = hasher.finalize();
        let (version, verified) = if self.range.is_some() {
            (reader.version, false)
        } else if let Some(wanted) = reader.blake3 {
            if wanted != blake3 {
                return Err(self.damaged(&wanted));
            }
            (reader.version, true)
        } else {
            (Some(self.stored(blake3, received).await?), true)
        };
        Ok(Received { version, bytes: received, blake3, verified })
    }

    /// Refuses contents that still grow, unless they are followed or a part of them is wanted.
    fn check_complete(&self, reader: &ObjectReader) -> Result<()> {
        let is_growing = matches!(reader.state, Some(UploadState::Receiving | UploadState::Assembling));
        if is_growing && !self.follow && self.range.is_none() {
            return Err(Failure::failed("the upload of this object is not complete")
                .at(self.path)
                .advice("--follow waits for its end, --range reads a part"));
        }
        Ok(())
    }

    /// Number of all bytes of the download, if it is known.
    fn total(&self, reader: &ObjectReader) -> Option<u64> {
        let size = reader.size?;
        Some(match self.range {
            None => size,
            Some(ByteRange { first, last }) => {
                let end = last.map_or(size, |last| size.min(last.saturating_add(1)));
                end.saturating_sub(first)
            }
        })
    }

    fn damaged(&self, wanted: &blake3::Hash) -> Failure {
        Failure::failed(format_args!("the bytes do not have the hash {}", wanted.to_hex()))
            .at(self.path)
            .advice("get the object again")
    }

    /// Waits until the site has stored contents that were received before, and returns their version.
    async fn stored(&self, blake3: blake3::Hash, bytes: u64) -> Result<String> {
        let (site, hash) = (self.session.site(), blake3.to_hex());
        let (project, path) = (self.path.project().unwrap_or_default(), self.path.inside());
        let started = Instant::now();
        loop {
            let page = match site.versions(project, &path).await {
                Ok(page) => Some(page),
                Err(error) if error.kind == RemoteErrorKind::NotFound => None,
                Err(error) => return Err(failure(&error)),
            };
            let mut versions = page.iter().flat_map(|page| &page.objects).rev();
            let same = versions.find(|version| version.size == bytes && version.blake3 == hash.as_str());
            if let Some(same) = same {
                return Ok(same.version.clone());
            }
            if page.is_some_and(|page| page.growing.is_empty()) {
                return Err(self.damaged(&blake3));
            }
            if started.elapsed() > PATIENCE {
                return Err(Failure::failed(
                    "the site has not stored the upload, so that it cannot be verified",
                )
                .at(self.path)
                .advice("get the object later"));
            }
            tokio::time::sleep(PAUSE).await;
        }
    }
}

fn write(output: &mut dyn Write, bytes: &[u8]) -> Result<()> {
    output.write_all(bytes).map_err(|error| unwritten(&error))
}

/// Failure of the output: a reader that has left is none.
fn unwritten(error: &io::Error) -> Failure {
    if error.kind() == io::ErrorKind::BrokenPipe {
        return Failure::said(Kind::Done);
    }
    let failure = Failure::failed(format_args!("cannot write the object: {}", reason(error)));
    if error.kind() == io::ErrorKind::StorageFull { failure.advice("make room") } else { failure }
}
