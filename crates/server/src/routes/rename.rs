//! Change of the target path of an upload that is not complete. Objects in the archive keep their paths.

use super::find_upload;
use super::tus_patch::locked;
use crate::access::Access;
use crate::app::App;
use crate::authorization::Verb;
use crate::object_path::ObjectPath;
use crate::problem::{Problem, ProblemKind};
use crate::token::Scope;
use crate::upload_record::{UploadKind, UploadRecord};
use axum::extract::{Path, State};
use axum::{Extension, Json};
use http::StatusCode;
use serde::Deserialize;
use std::sync::Arc;
use tokio::time::timeout;
use utoipa::ToSchema;

/// Target of a rename.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct NewPath {
    /// Path of the object in the upload's project.
    path: String,
}

/// Rename of an unfinished upload: its contents will be stored under the new path. Waits for a request that adds bytes.
#[utoipa::path(post, path = "/files/{id}/path", tag = "uploads",
    params(("id" = String, Path, description = "Identity of the upload, 32 hexadecimal digits")),
    request_body = NewPath,
    responses((status = 204, description = "The new path is durable"),
        (status = 400, description = "The path is not allowed, or a partial upload has none"),
        (status = 409, description = "The upload is complete and keeps its path"),
        (status = 423, description = "Another request changes the upload")))]
pub(crate) async fn rename(
    State(app): State<Arc<App>>,
    Extension(access): Extension<Access>,
    Path(id): Path<String>,
    Json(wanted): Json<NewPath>,
) -> Result<StatusCode, Problem> {
    let (upload, record) = find_upload(&app, &access, &id, &[Scope::Write]).await?;
    let path = ObjectPath::parse(&wanted.path);
    let path = path.map_err(|error| Problem::name("rename the upload", &error))?;
    super::check_rights(&app, &access, Verb::Upload, record.project.as_ref(), Some(&path)).await?;
    if record.kind == UploadKind::Partial {
        let detail = "cannot rename the upload: a partial upload has no path; name the concatenation";
        return Err(Problem::new(ProblemKind::BadRequest, detail));
    }
    check_growing(&record)?;
    let locked = timeout(app.limits.body_idle, upload.lock()).await.map_err(|_| locked("rename"));
    let guard = locked?;
    let record = guard.record();
    super::check_usable(&app, &record)?;
    check_growing(&record)?;
    let changed = app.uploads.change(&guard, |record| record.path = Some(path)).await;
    changed.map_err(|error| Problem::store("rename the upload", &error))?;
    Ok(StatusCode::NO_CONTENT)
}

fn check_growing(record: &UploadRecord) -> Result<(), Problem> {
    if record.state.is_growing() {
        return Ok(());
    }
    let detail = "cannot rename the upload: it is complete; send the file again under the other path";
    Err(Problem::new(ProblemKind::AlreadyComplete, detail))
}
