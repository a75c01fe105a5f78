//! Upload of input without a known length, such as standard input: bytes are sent as they come, and can be followed.

use super::retry::Retry;
use super::session::failure;
use super::upload::{SEGMENT, Sent, stored};
use bytes::{Bytes, BytesMut};
use holdfast_base::failure::{Failure, Result, reason};
use holdfast_remote::{NewUpload, Segment, Site, UploadAddress};
use std::io::{self, Read};
use std::thread::Builder;
use tokio::sync::mpsc::{Receiver, Sender, channel};

/// Bytes of one read: the size of a pipe.
const PIECE: usize = 64 << 10;

/// Sends what a reader gives until its end.
pub(super) async fn send(
    site: &Site,
    new: NewUpload,
    reader: impl Read + Send + 'static,
    progress: &mut dyn FnMut(u64),
) -> Result<Sent> {
    let created = site.create(&new).await.map_err(|error| failure(&error))?;
    // A segment of pieces waits while another one is sent.
    let (sender, mut pieces) = channel(SEGMENT / PIECE);
    let thread = Builder::new().name("input".to_owned()).spawn(move || read(reader, &sender));
    thread.map_err(|error| Failure::failed(format_args!("cannot start reading: {}", reason(&error))))?;
    let mut hasher = blake3::Hasher::new();
    let mut offset = 0;
    while let Some(bytes) = gather(&mut pieces).await? {
        hasher.update(&bytes);
        let length = bytes.len() as u64;
        append(site, &created.address, offset, bytes, None).await?;
        offset += length;
        progress(offset);
    }
    append(site, &created.address, offset, Bytes::new(), Some(offset)).await?;
    let blake3 = hasher.finalize();
    let stored = stored(site, &created.address, blake3).await?;
    Ok(Sent { version: stored.version, bytes: offset, blake3, resumed: 0 })
}

/// Reads pieces until the end, an error, or the end of their use.
fn read(mut reader: impl Read, pieces: &Sender<io::Result<Bytes>>) {
    loop {
        let mut piece = vec![0; PIECE];
        let piece = match reader.read(&mut piece) {
            Ok(0) => return,
            Ok(length) => {
                piece.truncate(length);
                Ok(Bytes::from(piece))
            }
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            Err(error) => Err(error),
        };
        let is_last = piece.is_err();
        if pieces.blocking_send(piece).is_err() || is_last {
            return;
        }
    }
}

/// Pieces that wait, at most a segment; `None` at the end of the input.
async fn gather(pieces: &mut Receiver<io::Result<Bytes>>) -> Result<Option<Bytes>> {
    let cannot =
        |error: &io::Error| Failure::failed(format_args!("cannot read: {}", reason(error))).at("the input");
    let Some(first) = pieces.recv().await else { return Ok(None) };
    let mut bytes = BytesMut::from(first.map_err(|error| cannot(&error))?);
    while bytes.len() + PIECE <= SEGMENT
        && let Ok(piece) = pieces.try_recv()
    {
        bytes.extend_from_slice(&piece.map_err(|error| cannot(&error))?);
    }
    Ok(Some(bytes.freeze()))
}

/// Appends bytes, and what of them the site lacks again after a failure.
async fn append(
    site: &Site,
    address: &UploadAddress,
    at: u64,
    bytes: Bytes,
    length: Option<u64>,
) -> Result<()> {
    let mut retry = Retry::default();
    let mut segment = Segment { offset: at, bytes, length, ..Segment::default() };
    loop {
        let Err(error) = site.append(address, &segment).await else { return Ok(()) };
        retry.pause_append(error).await.map_err(|error| failure(&error))?;
        match site.progress(address, None).await {
            Ok(now) => {
                let end = segment.offset + segment.bytes.len() as u64;
                if now.offset == end && (length.is_none() || now.length == length) {
                    return Ok(());
                }
                if !(segment.offset..=end).contains(&now.offset) {
                    return Err(Failure::failed("the site has lost bytes of the upload")
                        .advice("send the input again"));
                }
                segment.bytes = segment.bytes.slice((now.offset - segment.offset) as usize..);
                segment.offset = now.offset;
            }
            Err(error) => retry.pause(error).await.map_err(|error| failure(&error))?,
        }
    }
}
