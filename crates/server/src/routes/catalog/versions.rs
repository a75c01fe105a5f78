//! Versions by identity: readers of an open version go on when its object is renamed, replaced or deleted meanwhile.

use super::with;
use crate::access::Access;
use crate::app::App;
use crate::archive::{ArchiveError, OpenVersion, VersionId};
use crate::authorization::Verb;
use crate::contents::{Contents, respond};
use crate::object_path::ProjectName;
use crate::problem::{Problem, ProblemKind};
use crate::site::SiteArchive;
use crate::store_error::blocking;
use axum::Extension;
use axum::extract::{Path, State};
use axum::response::Response;
use holdfast_catalog::{CatalogPath, ObjectId};
use http::HeaderMap;
use std::sync::Arc;

/// Contents of a version of an object, wherever the object is by now, also in the trash.
#[utoipa::path(get, path = "/catalog/versions/{object}/{version}", tag = "catalog",
    params(("object" = String, Path, description = "Identity of the object, or of a link to it"),
        ("version" = String, Path, description = "Identity of the version"),
        ("Range" = Option<String>, Header, description = "One range of bytes")),
    responses((status = 200, description = "The contents"), (status = 206, description = "The range of the contents"),
        (status = 404, description = "The object or the version does not exist, or is purged"),
        (status = 416, description = "No byte is in the range")))]
pub(crate) async fn read(
    State(app): State<Arc<App>>,
    Extension(access): Extension<Access>,
    Path((object, version)): Path<(String, String)>,
    headers: HeaderMap,
) -> Result<Response, Problem> {
    let missing = || {
        Problem::not_found(format_args!(
            "the version {} of {}",
            version.escape_debug(),
            object.escape_debug()
        ))
    };
    let id: ObjectId = object.parse().map_err(|error| Problem::new(ProblemKind::BadRequest, error))?;
    let wanted = VersionId::parse(&version).ok_or_else(missing)?;
    let found =
        with(&app, "find the object", move |catalog| catalog.stat_of(id)).await?.ok_or_else(missing)?;
    for path in &found.paths {
        access.require_on(Verb::Read, path, None)?;
    }
    let path = found.paths.into_iter().next().unwrap_or_default();
    let project = project(&path).ok_or_else(missing)?;
    let open = move |site: &SiteArchive| site.open_found(&path, &found.stat, &wanted);
    respond_version(&app, &headers, project, open).await?.ok_or_else(missing)
}

/// Answer with the contents of a version that is opened on a blocking thread; `None` if there is none.
pub(in crate::routes) async fn respond_version(
    app: &Arc<App>,
    headers: &HeaderMap,
    project: ProjectName,
    open: impl FnOnce(&SiteArchive) -> Result<Option<OpenVersion>, ArchiveError> + Send + 'static,
) -> Result<Option<Response>, Problem> {
    let site = Arc::clone(&app.site);
    let open = blocking(move || open(&site)).await;
    let open = open.map_err(|error| Problem::store("open the version", &error))?;
    let open = open.map_err(|error| Problem::internal("open the version", error))?;
    open.map(|open| respond(Contents::Stored(project, open), headers, false, app)).transpose()
}

fn project(path: &CatalogPath) -> Option<ProjectName> {
    ProjectName::parse(path.components().first()?).ok()
}
