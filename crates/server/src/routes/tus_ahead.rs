//! Segments ahead of an upload's offset: received into memory, and appended when the offset reaches them.

use super::check_usable;
use super::tus_patch::{
    accepted, check_offset, check_size, locked, mismatch, refusal, set_length, too_large,
};
use crate::app::App;
use crate::body_buffer::{BodyBuffer, MOST_BUFFERED};
use crate::checksum::Checksum;
use crate::live_upload::{LiveUpload, UploadGuard};
use crate::problem::Problem;
use crate::receiver::append;
use crate::timing::Timing;
use crate::upload_record::{UploadRecord, UploadState};
use axum::body::Body;
use axum::response::Response;
use http::HeaderName;
use std::sync::Arc;
use std::time::Instant;
use tokio::time::timeout;

/// Header of a segment that may lie above the upload's offset, with the value 1.
pub(crate) const AHEAD: HeaderName = HeaderName::from_static("holdfast-ahead");

/// Greatest distance of a segment from the upload's offset: eight bodies of the greatest length.
const MOST_AHEAD: u64 = 64 << 20;

/// Place of a body that waits for its turn.
pub(crate) struct Segment {
    pub(crate) upload: Arc<LiveUpload>,
    pub(crate) offset: u64,
    /// Length of the upload that the request sets.
    pub(crate) length: Option<u64>,
}

/// Collects a segment, waits for its turn, and appends it.
pub(crate) async fn ahead(
    app: &App,
    segment: Segment,
    buffer: BodyBuffer,
    body: Body,
    checksum: Option<Checksum>,
) -> Result<Response, Problem> {
    let Segment { upload, offset, length } = segment;
    let collected = buffer.collect(&app.uploads, body, checksum).await;
    let body = collected.map_err(|error| refusal(&upload.record(), error))?;
    let started = Instant::now();
    let guard = turn(app, &upload, offset).await?;
    let wait = started.elapsed();
    if let Some(length) = length
        && guard.is_receiving()
    {
        set_length(app, &guard, length).await?;
    }
    let record = guard.record();
    if record.state != UploadState::Receiving {
        check_size(app, &record, body.bytes.len() as u64)?;
        return Ok(accepted(&record, None));
    }
    let (record, appended) = append(&app.uploads, guard, body).await;
    let timing = appended.map_err(|error| refusal(&record, error))?;
    Ok(accepted(&record, Some(Timing { wait: Some(wait), ..timing })))
}

/// Lock of an upload as soon as its offset is `offset`. Refused when the offset is above it, or does not come in time.
async fn turn(app: &App, upload: &Arc<LiveUpload>, offset: u64) -> Result<UploadGuard, Problem> {
    let mut updates = upload.subscribe();
    let is_due = |record: &UploadRecord| record.offset >= offset || record.state != UploadState::Receiving;
    let wait = async {
        // The sender lives as long as `upload`.
        let _ = updates.wait_for(is_due).await;
        upload.lock().await
    };
    let waited = timeout(app.limits.body_idle, wait).await;
    let record = upload.record();
    check_usable(app, &record)?;
    check_offset(&record, offset)?;
    waited.map_err(|_| locked("append to"))
}

/// Refuses a segment that lies too far above the upload's offset, or is too long.
pub(crate) fn check_distance(
    app: &App,
    record: &UploadRecord,
    offset: u64,
    announced: Option<u64>,
) -> Result<(), Problem> {
    if offset < record.offset || offset - record.offset > MOST_AHEAD {
        return Err(mismatch(record, offset));
    }
    let end = record.length.unwrap_or(app.limits.upload);
    let limit = end.saturating_sub(offset).min(MOST_BUFFERED).min(app.limits.request_body);
    if announced.is_some_and(|announced| announced > limit) || offset > end {
        return Err(too_large(record, announced.unwrap_or(0), limit));
    }
    Ok(())
}
