//! Receiver of request bodies: an async pump reads the body, a blocking thread owns the file and makes bytes durable.
//!
//! The thread holds the lock of the upload and works on when the request is dropped: a cut connection ends like a body that
//! was cut, and what was received counts. Only a body with an announced checksum counts wholly or not at all. Bodies that must be
//! in memory before they are appended come from `body_buffer`.

use crate::body_buffer::CollectedBody;
use crate::checksum::Checksum;
use crate::growing_file::GrowingFile;
use crate::live_upload::UploadGuard;
use crate::store_error::{StoreError, blocking};
use crate::timing::{ReceiveSpan, Timing};
use crate::upload_record::UploadRecord;
use crate::upload_store::UploadStore;
use axum::body::Body;
use bytes::Bytes;
use http_body_util::BodyExt as _;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::mpsc::{self, Receiver, Sender};
use tokio::time::{Instant, sleep_until, timeout};

/// Pieces of a body that wait for the thread; hyper's pieces have at most 400 KiB.
const QUEUE: usize = 8;

/// Bytes of a refused body that are read and dropped, so that the client reads the answer before its connection ends.
const MOST_DRAINED: u64 = 8 << 20;

/// Time for the rest of a refused body: who sends it slowly sees a broken connection in the place of the answer.
const DRAIN_TIME: Duration = Duration::from_secs(10);

/// Reason why not all of a body was accepted.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum ReceiveError {
    /// The connection was cut.
    Cut,
    /// The client sent nothing for the limit's time.
    Idle,
    /// The body is longer than the limit or the upload's length.
    TooLong,
    /// The body must be held in memory, and is longer than that allows.
    Oversized,
    /// The body cannot be decoded.
    Undecodable,
    /// The body does not have the announced checksum.
    Mismatch,
    /// The bytes could not be made durable.
    Store(StoreError),
}

enum Piece {
    Bytes(Bytes),
    /// Time to make the received bytes durable.
    Sync,
    /// Regular end of the body; a closed channel without it is a cut.
    End,
}

/// Appends a body to a locked upload. Returns the record after the last durable byte, and the error that ended the body early.
pub(crate) async fn receive(
    store: &Arc<UploadStore>,
    guard: UploadGuard,
    mut body: Body,
    checksum: Option<Checksum>,
) -> (UploadRecord, Result<Timing, ReceiveError>) {
    let upload = Arc::clone(guard.upload());
    let (sender, pieces) = mpsc::channel(QUEUE);
    let writer_store = Arc::clone(store);
    let writer = blocking(move || write(&writer_store, &guard, pieces, checksum));
    let mut span = ReceiveSpan::default();
    let pumped = pump(store, &mut body, &sender, &mut span).await;
    drop(sender);
    let (store_time, written) = match writer.await {
        Ok((time, result)) => (time, result),
        Err(error) => (Duration::ZERO, Err(ReceiveError::Store(error))),
    };
    let result = match (pumped, written) {
        // The pump stops early because the writer has failed, or the writer reports a cut because of the pump's error.
        (Err(pumped), Ok(()) | Err(ReceiveError::Cut)) => Err(pumped),
        (_, written) => written,
    };
    if !matches!(result, Ok(()) | Err(ReceiveError::Cut | ReceiveError::Idle)) {
        drain(store, body).await;
    }
    let timing = Timing { receive: span.length(), wait: None, store: store_time };
    (upload.record(), result.map(|()| timing))
}

/// Appends a collected body to a locked upload, wholly or not at all.
pub(crate) async fn append(
    store: &Arc<UploadStore>,
    guard: UploadGuard,
    body: CollectedBody,
) -> (UploadRecord, Result<Timing, ReceiveError>) {
    let upload = Arc::clone(guard.upload());
    let receive = body.receive;
    let started = Instant::now();
    let writer_store = Arc::clone(store);
    let written = blocking(move || append_blocking(&writer_store, &guard, &body.bytes)).await;
    let timing = Timing { receive, wait: None, store: started.elapsed() };
    (upload.record(), written.map_err(ReceiveError::Store).and_then(|written| written.map(|()| timing)))
}

fn append_blocking(store: &UploadStore, guard: &UploadGuard, bytes: &[u8]) -> Result<(), ReceiveError> {
    let record = guard.record();
    if bytes.len() as u64 > record.room(store.limits.upload) {
        return Err(ReceiveError::TooLong);
    }
    let failed = |error: std::io::Error| ReceiveError::Store(error.into());
    let path = store.file(record.id);
    let mut file = GrowingFile::open(&path, record.offset, store.limits.reserved_space).map_err(failed)?;
    let appended = file.append(bytes).map_err(failed);
    let kept = appended.and_then(|()| store.commit(guard, &mut file).map_err(ReceiveError::Store));
    if kept.is_err() {
        let _ = file.cut(guard.record().offset);
    }
    kept
}

/// Moves pieces of the body to the writer, until the body or the writer ends.
async fn pump(
    store: &UploadStore,
    body: &mut Body,
    sender: &Sender<Piece>,
    span: &mut ReceiveSpan,
) -> Result<(), ReceiveError> {
    let limits = &store.limits;
    let mut received = 0;
    let mut sync_at: Option<Instant> = None;
    let mut idle_at = Instant::now() + limits.body_idle;
    loop {
        if sync_at.is_some_and(|sync_at| Instant::now() >= sync_at) {
            sync_at = None;
            if sender.send(Piece::Sync).await.is_err() {
                return Ok(());
            }
        }
        let wake = sync_at.map_or(idle_at, |sync_at| sync_at.min(idle_at));
        let frame = tokio::select! {
            // Bytes that have arrived count, however late this task runs.
            biased;
            frame = body.frame() => frame,
            () = sleep_until(wake) => {
                if Instant::now() >= idle_at {
                    return Err(ReceiveError::Idle);
                }
                continue;
            }
        };
        let bytes = match frame {
            None => {
                let _ = sender.send(Piece::End).await;
                return Ok(());
            }
            Some(Err(_)) => return Err(ReceiveError::Cut),
            Some(Ok(frame)) => frame.into_data().unwrap_or_default(),
        };
        span.extend();
        received += bytes.len() as u64;
        if received > limits.request_body {
            return Err(ReceiveError::TooLong);
        }
        store.metrics.received_bytes.add(bytes.len() as u64);
        if !bytes.is_empty() && sender.send(Piece::Bytes(bytes)).await.is_err() {
            return Ok(());
        }
        sync_at = sync_at.or_else(|| Some(Instant::now() + limits.sync_time));
        idle_at = Instant::now() + limits.body_idle;
    }
}

/// Reads and drops the rest of a refused body, within bounds.
pub(crate) async fn drain(store: &UploadStore, mut body: Body) {
    let mut left = MOST_DRAINED;
    let read = async {
        while let Some(Ok(frame)) = body.frame().await {
            let length = frame.data_ref().map_or(0, Bytes::len) as u64;
            let Some(rest) = left.checked_sub(length) else { break };
            left = rest;
        }
    };
    let _ = timeout(store.limits.body_idle.min(DRAIN_TIME), read).await;
}

/// Appends pieces to the file; runs on a blocking thread. Returns also the time of the work without that of waiting.
fn write(
    store: &UploadStore,
    guard: &UploadGuard,
    pieces: Receiver<Piece>,
    checksum: Option<Checksum>,
) -> (Duration, Result<(), ReceiveError>) {
    let started = Instant::now();
    let mut waited = Duration::ZERO;
    let result = write_pieces(store, guard, pieces, checksum, &mut waited);
    (started.elapsed().saturating_sub(waited), result)
}

fn write_pieces(
    store: &UploadStore,
    guard: &UploadGuard,
    mut pieces: Receiver<Piece>,
    mut checksum: Option<Checksum>,
    waited: &mut Duration,
) -> Result<(), ReceiveError> {
    let record = guard.record();
    let offset = record.offset;
    let failed = |error: std::io::Error| ReceiveError::Store(error.into());
    let path = store.file(record.id);
    let mut file = GrowingFile::open(&path, offset, store.limits.reserved_space).map_err(failed)?;
    let result = loop {
        let asked = Instant::now();
        let piece = pieces.blocking_recv();
        *waited += asked.elapsed();
        let result = match piece {
            None => break Err(ReceiveError::Cut),
            Some(Piece::End) => break Ok(()),
            Some(Piece::Sync) if checksum.is_none() => {
                store.commit(guard, &mut file).map_err(ReceiveError::Store)
            }
            Some(Piece::Sync) => Ok(()),
            Some(Piece::Bytes(bytes)) => {
                let room = record.room(store.limits.upload).saturating_sub(file.written() - offset);
                if bytes.len() as u64 > room {
                    break Err(ReceiveError::TooLong);
                }
                if let Some(checksum) = &mut checksum {
                    checksum.add(&bytes);
                }
                let appended = file.append(&bytes).map_err(failed);
                if appended.is_ok() && checksum.is_none() && file.unsynced() >= store.limits.sync_bytes {
                    store.commit(guard, &mut file).map_err(ReceiveError::Store)
                } else {
                    appended
                }
            }
        };
        if result.is_err() {
            break result;
        }
    };
    let keeps = match checksum.map(|checksum| result.is_ok().then(|| checksum.matches())) {
        None | Some(Some(true)) => true,
        Some(None) => false,
        Some(Some(false)) => {
            store.metrics.checksum_mismatches.add(1);
            let _ = file.cut(offset);
            return Err(ReceiveError::Mismatch);
        }
    };
    let kept = if keeps { store.commit(guard, &mut file).map_err(ReceiveError::Store) } else { Ok(()) };
    if !keeps || kept.is_err() {
        // The surplus behind the durable offset only occupies space.
        let _ = file.cut(guard.record().offset);
    }
    result.and(kept)
}
