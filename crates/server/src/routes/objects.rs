//! Reads of objects by project and path: finished versions, and uploads that grow towards the next version.

use super::catalog::{authorize, is_readable, with};
use super::uploads::{Follow, open_stored, open_upload};
use crate::access::Access;
use crate::app::App;
use crate::archive::{StoredVersion, VersionId};
use crate::authorization::Verb;
use crate::contents::{Contents, respond};
use crate::object_path::{ObjectPath, ProjectName};
use crate::problem::{Problem, ProblemKind};
use crate::store_error::blocking;
use crate::upload_record::{UploadRecord, UploadState};
use crate::upload_table;
use axum::extract::{Path, Query, State};
use axum::response::Response;
use axum::{Extension, Json};
use holdfast_catalog::{Catalog, CatalogPath, Kind};
use http::HeaderMap;
use serde::{Deserialize, Serialize};
use std::sync::Arc;
use utoipa::{IntoParams, ToSchema};

/// Most objects of one answer.
const MOST_OBJECTS: usize = 1000;

/// Object of a listing.
#[derive(Serialize, ToSchema)]
pub(crate) struct Object {
    /// Path of the object in its project.
    path: String,
    /// Version in the archive.
    version: String,
    /// Size of the contents in bytes.
    size: u64,
    /// BLAKE3 of the contents in hexadecimal digits.
    blake3: String,
    /// Time at which the version was stored, in milliseconds since 1970.
    stored: i64,
}

/// Upload of a listing that the archive does not have yet.
#[derive(Serialize, ToSchema)]
pub(crate) struct Growing {
    /// Path of the object in its project.
    path: String,
    /// Identity of the upload.
    upload: String,
    /// State: receiving, assembling or complete.
    state: &'static str,
    /// Number of durable bytes.
    offset: u64,
    /// Length in bytes, null while it is unknown.
    length: Option<u64>,
}

/// Objects of a project, or versions of an object.
#[derive(Serialize, ToSchema)]
pub(crate) struct Listing {
    /// Finished objects in the order of their paths, or versions from the oldest to the newest.
    objects: Vec<Object>,
    /// Uploads that grow towards the next version, at most 1000.
    growing: Vec<Growing>,
    /// Value of `after` for the next answer, null if there is none.
    next: Option<String>,
}

/// Part of a listing.
#[derive(Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub(crate) struct Page {
    /// Path behind which the answer begins.
    after: Option<String>,
    /// Most objects of the answer, up to 1000.
    count: Option<usize>,
    /// Path of one object whose versions are listed.
    versions: Option<String>,
}

fn object(stored: &StoredVersion) -> Object {
    Object {
        path: stored.path.to_string(),
        version: stored.version.to_string(),
        size: stored.size,
        blake3: stored.blake3.to_hex().to_string(),
        stored: stored.stored.milliseconds(),
    }
}

fn growing(record: UploadRecord) -> Option<Growing> {
    Some(Growing {
        path: record.path?.to_string(),
        upload: record.id.to_string(),
        state: record.state.name(),
        offset: record.offset,
        length: record.length,
    })
}

fn project(text: &str) -> Result<ProjectName, Problem> {
    ProjectName::parse(text).map_err(|error| Problem::name("use the project", &error))
}

fn path(text: &str) -> Result<ObjectPath, Problem> {
    ObjectPath::parse(text).map_err(|error| Problem::name("use the path", &error))
}

/// Objects of a project in the order of their paths, or the versions of one object.
#[utoipa::path(get, path = "/projects/{project}", tag = "objects",
    params(("project" = String, Path, description = "Name of the project"), Page),
    responses((status = 200, body = Listing), (status = 400, description = "A name is not allowed")))]
pub(crate) async fn list(
    State(app): State<Arc<App>>,
    Extension(access): Extension<Access>,
    Path(name): Path<String>,
    Query(page): Query<Page>,
) -> Result<Json<Listing>, Problem> {
    let project = project(&name)?;
    let at = super::place(&project, None)?;
    authorize(&app, &access, Verb::List, &at).await?;
    let after = page.after.as_deref().map(path).transpose()?;
    let only = page.versions.as_deref().map(path).transpose()?;
    if let Some(only) = &only {
        authorize(&app, &access, Verb::Read, &super::place(&project, Some(only))?).await?;
    }
    let count = page.count.unwrap_or(MOST_OBJECTS).min(MOST_OBJECTS);
    let is_page = only.is_none();
    let of_project = project.clone();
    let is_shown =
        |path: &ObjectPath| super::place(&of_project, Some(path)).is_ok_and(|path| access.can_read(&path));
    let (archive, of, of_path) = (Arc::clone(&app.archive), project.clone(), only.clone());
    let found = blocking(move || match &of_path {
        Some(path) => archive.versions(&of, path),
        None => archive.list(&of, after.as_ref(), count),
    });
    let found = found.await.map_err(|error| Problem::store("list the project", &error))?;
    let found = found.map_err(|error| Problem::internal("list the project", error))?;
    let read = move |connection: &_| upload_table::unsettled_of_project(connection, &project, MOST_OBJECTS);
    let uploads = app.uploads.database.read(read).await;
    let mut uploads = uploads.map_err(|error| Problem::internal("list the project", error))?;
    uploads.retain(|record| only.is_none() || record.path == only);
    uploads.retain(|record| record.path.as_ref().is_some_and(is_shown));
    let next = found.last().filter(|_| is_page && found.len() == count).map(|last| last.path.to_string());
    let found = readable(&app, &access, &of_project, found).await?;
    Ok(Json(Listing {
        objects: found.iter().map(object).collect(),
        growing: uploads.into_iter().filter_map(growing).collect(),
        next,
    }))
}

/// Versions that the request may read: the account needs the right on their paths, and on the targets of links.
async fn readable(
    app: &App,
    access: &Access,
    project: &ProjectName,
    found: Vec<StoredVersion>,
) -> Result<Vec<StoredVersion>, Problem> {
    let Some(principal) = access.limits().cloned() else { return Ok(found) };
    let project = project.clone();
    let choose = move |catalog: &mut Catalog<_>| {
        let mut readable = Vec::new();
        for stored in found {
            let path: CatalogPath = format!("/{project}/{}", stored.path).parse()?;
            if is_readable(catalog, Some(&principal), &path, Kind::Link)? {
                readable.push(stored);
            }
        }
        Ok(readable)
    };
    with(app, "list the project", choose).await
}

/// Contents of an object: the newest finished version, or the growing upload if there is none.
#[utoipa::path(get, path = "/projects/{project}/{*path}", tag = "objects",
    params(("project" = String, Path, description = "Name of the project"),
        ("path" = String, Path, description = "Path of the object"), Follow,
        ("Range" = Option<String>, Header, description = "One range of bytes")),
    responses((status = 200, description = "The contents"), (status = 206, description = "The range of the contents"),
        (status = 404, description = "The object does not exist"), (status = 416, description = "No byte is in the range")))]
pub(crate) async fn read(
    State(app): State<Arc<App>>,
    Extension(access): Extension<Access>,
    Path((name, text)): Path<(String, String)>,
    Query(follow): Query<Follow>,
    headers: HeaderMap,
) -> Result<Response, Problem> {
    let project = project(&name)?;
    let path = path(&text)?;
    authorize(&app, &access, Verb::Read, &super::place(&project, Some(&path))?).await?;
    let version = follow.version.as_deref().map(|text| {
        let detail = "cannot read the object: the version contains other characters; copy it from a listing";
        VersionId::parse(text).ok_or_else(|| Problem::new(ProblemKind::BadRequest, detail))
    });
    let contents = open(&app, &project, &path, version.transpose()?, follow.is_wanted()).await?;
    let contents = contents.ok_or_else(|| Problem::not_found(format_args!("the object {project}/{path}")))?;
    respond(contents, &headers, follow.is_wanted(), &app)
}

/// Contents in this order: a complete upload that is not stored yet; with `follow` a growing upload; the newest stored version;
/// a growing upload.
async fn open(
    app: &Arc<App>,
    project: &ProjectName,
    path: &ObjectPath,
    version: Option<VersionId>,
    follow: bool,
) -> Result<Option<Contents>, Problem> {
    let stored = |version| open_stored(app, project.clone(), path.clone(), version);
    if version.is_some() {
        return stored(version).await;
    }
    let upload = app.uploads.newest_unsettled(project, path).await;
    let upload = upload.map_err(|error| Problem::store("find the object", &error))?;
    if let Some(upload) = &upload
        && (follow || upload.record().state == UploadState::Complete)
        && let Some(contents) = open_upload(app, upload).await?
    {
        return Ok(Some(contents));
    }
    if let Some(version) = stored(None).await? {
        return Ok(Some(version));
    }
    match upload {
        Some(upload) => open_upload(app, &upload).await,
        None => Ok(None),
    }
}
