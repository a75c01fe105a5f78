//! Core of the tus protocol: abilities, state and termination of an upload. Continuation is in `tus_patch`.

use super::find_upload;
use super::tus_headers::{TUS_RESUMABLE, TUS_VERSION, TUS_VERSIONS, check_version, description};
use super::tus_patch::locked;
use crate::access::Access;
use crate::app::App;
use crate::checksum::ALGORITHMS;
use crate::problem::{Problem, ProblemKind};
use crate::token::Scope;
use crate::upload_record::{UploadKind, UploadRecord, UploadState};
use axum::Extension;
use axum::extract::{Path, Query, Request, State};
use axum::middleware::Next;
use axum::response::{IntoResponse as _, Response};
use http::{HeaderMap, HeaderName, HeaderValue, StatusCode};
use serde::Deserialize;
use std::sync::Arc;
use std::time::Duration;
use tokio::time::timeout;
use utoipa::IntoParams;

/// Extensions of the protocol that this server has.
const EXTENSIONS: &str =
    "creation,creation-with-upload,creation-defer-length,concatenation,checksum,expiration,termination";

/// Abilities beyond the protocol: segments ahead, encoded bodies, the hash of the unfinished block, renames, waiting HEAD.
const OWN_EXTENSIONS: &str = "ahead,zstd,tail,path,wait";

/// Longest time for which HEAD waits: below the patience of common proxies.
const MOST_WAIT: Duration = Duration::from_secs(30);

/// Layer that adds the protocol's version to every answer.
pub(crate) async fn mark_version(request: Request, next: Next) -> Response {
    let mut response = next.run(request).await;
    response.headers_mut().insert(TUS_RESUMABLE, HeaderValue::from_static(TUS_VERSION));
    response
}

/// Abilities of the server: versions, extensions, limits.
#[utoipa::path(options, path = "/files/", tag = "uploads", security(()),
    responses((status = 204, description = "The headers Tus-Version, Tus-Extension, Tus-Max-Size, Tus-Checksum-Algorithm, Holdfast-Extensions")))]
pub(crate) async fn options(State(app): State<Arc<App>>) -> Response {
    let size = app.limits.upload.to_string();
    let headers = [
        (TUS_VERSIONS, TUS_VERSION),
        (HeaderName::from_static("tus-extension"), EXTENSIONS),
        (HeaderName::from_static("tus-max-size"), &size),
        (HeaderName::from_static("tus-checksum-algorithm"), ALGORITHMS),
        (HeaderName::from_static("holdfast-extensions"), OWN_EXTENSIONS),
    ];
    (StatusCode::NO_CONTENT, headers.map(|(name, value)| (name, value.to_owned()))).into_response()
}

/// Parameter of a waiting HEAD.
#[derive(Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub(crate) struct Wait {
    /// Seconds for which the answer may wait until the upload is stored or has failed, up to 30.
    wait: Option<u64>,
}

/// State of an upload: offset, length, metadata, and the hash of stored contents.
#[utoipa::path(head, path = "/files/{id}", tag = "uploads",
    params(("id" = String, Path, description = "Identity of the upload, 32 hexadecimal digits"), Wait,
        ("Tus-Resumable" = String, Header, description = "1.0.0")),
    responses((status = 200, description = "The headers Upload-Offset, Upload-Length, Upload-Metadata, Upload-Concat, \
            Holdfast-State, and Holdfast-Blake3 of a stored upload"),
        (status = 404, description = "The upload does not exist"), (status = 410, description = "The upload is gone"),
        (status = 409, description = "The upload has failed; the header Holdfast-Reason tells why")))]
pub(crate) async fn head(
    State(app): State<Arc<App>>,
    Extension(access): Extension<Access>,
    Path(id): Path<String>,
    Query(Wait { wait }): Query<Wait>,
    headers: HeaderMap,
) -> Result<Response, Problem> {
    check_version(&headers)?;
    let scopes = [Scope::Read, Scope::Write];
    let (upload, mut record) = find_upload(&app, &access, &id, &scopes).await?;
    if let Some(seconds) = wait {
        let mut updates = upload.subscribe();
        let time = Duration::from_secs(seconds).min(MOST_WAIT);
        // The end of the time is no error, and the sender lives as long as `upload`.
        let _ = timeout(time, updates.wait_for(is_final)).await;
        record = find_upload(&app, &access, &id, &scopes).await?.1;
    }
    Ok((StatusCode::OK, description(&record)).into_response())
}

/// True when the state of an upload changes no more by itself.
fn is_final(record: &UploadRecord) -> bool {
    let is_part = record.state == UploadState::Complete && record.kind == UploadKind::Partial;
    record.state.is_settled() || is_part
}

/// Termination of an upload; stored versions stay in the archive.
#[utoipa::path(delete, path = "/files/{id}", tag = "uploads",
    params(("id" = String, Path, description = "Identity of the upload, 32 hexadecimal digits"),
        ("Tus-Resumable" = String, Header, description = "1.0.0")),
    responses((status = 204, description = "The upload is gone"), (status = 423, description = "Another request uses it")))]
pub(crate) async fn terminate(
    State(app): State<Arc<App>>,
    Extension(access): Extension<Access>,
    Path(id): Path<String>,
    headers: HeaderMap,
) -> Result<Response, Problem> {
    check_version(&headers)?;
    let found = find_upload(&app, &access, &id, &[Scope::Write]).await;
    let upload = match found {
        Ok((upload, _)) => upload,
        // A failed upload can only be terminated.
        Err(problem) if problem.kind() == ProblemKind::NotComplete => {
            let id = id.parse().map_err(|()| Problem::not_found("the upload"))?;
            let found = app.uploads.find(id).await.ok().flatten();
            found.ok_or_else(|| Problem::not_found("the upload"))?
        }
        Err(problem) => return Err(problem),
    };
    let guard = upload.try_lock().ok_or_else(|| locked("terminate"))?;
    if guard.record().state == UploadState::Removed {
        return Ok(StatusCode::NO_CONTENT.into_response());
    }
    let removed = app.uploads.remove(&guard).await;
    if removed.map_err(|error| Problem::store("terminate the upload", &error))? {
        Ok(StatusCode::NO_CONTENT.into_response())
    } else {
        Err(locked("terminate"))
    }
}
