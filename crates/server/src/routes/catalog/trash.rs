//! Trash: lists of deleted entries, and their restoration.

use super::body::{EntryId, kind_name};
use super::tree::check_place;
use super::{MOST_ENTRIES, allowed, allowed_new, with};
use crate::access::Access;
use crate::app::App;
use crate::authorization::Verb;
use crate::object_path::ProjectName;
use crate::problem::{Problem, ProblemKind};
use crate::token::Scope;
use axum::extract::{Path, Query, State};
use axum::{Extension, Json};
use holdfast_catalog::{Catalog, CatalogPath, ObjectId, Trashed};
use http::StatusCode;
use serde::{Deserialize, Serialize};
use std::sync::Arc;
use utoipa::{IntoParams, ToSchema};

/// Entries of the trash that one request reads: bounds its time where few of them are wanted.
const MOST_READ: usize = 10 * MOST_ENTRIES;

/// Part of the trash.
#[derive(Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub(crate) struct TrashChoice {
    /// Former place of the entries: `/PROJECT/PATH`; without it the project of the token, or the root.
    path: Option<String>,
    /// Identity of an entry behind which the answer begins.
    after: Option<String>,
    /// Most entries of the answer, up to 1000.
    count: Option<usize>,
}

/// New place of a restored entry.
#[derive(Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub(crate) struct NewPlace {
    /// New path, which must be free; without it the entry gets its former path.
    to: Option<String>,
}

/// Entry of the trash.
#[derive(Serialize, ToSchema)]
pub(crate) struct TrashedEntry {
    /// Former path of the entry.
    path: String,
    /// Identity of the entry.
    id: String,
    /// Kind: object or collection.
    kind: &'static str,
    /// Time of the deletion, in milliseconds since 1970.
    deleted: u64,
}

/// Entries of the trash.
#[derive(Serialize, ToSchema)]
pub(crate) struct TrashPage {
    /// Entries in the order of their identities; perhaps none although more follow.
    entries: Vec<TrashedEntry>,
    /// Value of `after` for the next answer, null if there is none.
    next: Option<String>,
}

impl From<Trashed> for TrashedEntry {
    fn from(trashed: Trashed) -> Self {
        Self {
            path: trashed.path.to_string(),
            id: trashed.node.id.to_string(),
            kind: kind_name(trashed.node.kind),
            deleted: trashed.deleted.time.millis().0,
        }
    }
}

fn id(text: &str) -> Result<ObjectId, Problem> {
    text.parse().map_err(|error| Problem::new(ProblemKind::BadRequest, error))
}

/// Deleted entries by identity, with their former paths.
#[utoipa::path(get, path = "/catalog/trash", tag = "catalog", params(TrashChoice),
    responses((status = 200, body = TrashPage), (status = 400, description = "A parameter cannot be read")))]
pub(crate) async fn list(
    State(app): State<Arc<App>>,
    Extension(access): Extension<Access>,
    Query(choice): Query<TrashChoice>,
) -> Result<Json<TrashPage>, Problem> {
    let place = allowed(&app, &access, choice.path.as_deref(), Verb::List).await?;
    let mut after = choice.after.as_deref().map(id).transpose()?;
    let count = choice.count.unwrap_or(MOST_ENTRIES).clamp(1, MOST_ENTRIES);
    let reader = access.clone();
    let list = move |catalog: &mut Catalog<_>| {
        let (mut entries, mut read) = (Vec::new(), 0);
        loop {
            let page = catalog.list_trash(after, MOST_ENTRIES)?;
            let is_last = page.len() < MOST_ENTRIES;
            for trashed in page {
                after = Some(trashed.node.id);
                if place.holds(&trashed.path) && reader.can_read(&trashed.path) {
                    entries.push(TrashedEntry::from(trashed));
                }
                if entries.len() == count {
                    return Ok((entries, after));
                }
            }
            read += MOST_ENTRIES;
            if is_last || read >= MOST_READ {
                return Ok((entries, after.filter(|_| !is_last)));
            }
        }
    };
    let (entries, next) = with(&app, "list the trash", list).await?;
    Ok(Json(TrashPage { entries, next: next.map(|next| next.to_string()) }))
}

/// Takes an entry out of the trash.
///
/// If its former path is taken, it appears there under a numbered name.
#[utoipa::path(post, path = "/catalog/trash/{id}", tag = "catalog",
    params(("id" = String, Path, description = "Identity of the entry"), NewPlace),
    responses((status = 200, body = EntryId), (status = 404, description = "The entry is not in the trash"),
        (status = 409, description = "The new path is taken")))]
pub(crate) async fn restore(
    State(app): State<Arc<App>>,
    Extension(access): Extension<Access>,
    Path(text): Path<String>,
    Query(place): Query<NewPlace>,
) -> Result<Json<EntryId>, Problem> {
    access.require(&[Scope::Write], access.own_project())?;
    let to = match place.to.as_deref() {
        Some(to) => Some(allowed_new(&app, &access, to).await?),
        None => None,
    };
    let (id, found) = find(&app, &access, "restore", &text).await?;
    if let Some(to) = &to {
        check_place(to, found.node.kind)?;
    }
    let restore = move |catalog: &mut Catalog<_>| catalog.restore(id, to.as_ref());
    let path = with(&app, "restore the entry", restore).await?;
    app.audit(&access, "trash restore", &path).await;
    Ok(Json(EntryId { path: path.to_string(), id: id.to_string() }))
}

/// Entry of the trash that the request may change.
async fn find(app: &App, access: &Access, action: &str, text: &str) -> Result<(ObjectId, Trashed), Problem> {
    let id = id(text)?;
    let found = with(app, "find the entry", move |catalog| catalog.trashed(id)).await?;
    // A token of one project learns nothing of other projects, and an account nothing of what it may not read.
    let own = access.own_project().map(ProjectName::as_str);
    let is_own = |path: &CatalogPath| {
        own.is_none_or(|own| path.components().first().is_some_and(|project| project == own))
    };
    let found =
        found.filter(|found| is_own(&found.path) && access.can_read(&found.path)).ok_or_else(|| {
            let detail =
                format!("cannot {action} {id}: it is not in the trash; list the trash to see its entries");
            Problem::new(ProblemKind::NotFound, detail)
        })?;
    access.require_on(Verb::Change, &found.path, None)?;
    Ok((id, found))
}

/// Removes an entry of the trash and all below it for ever, once all sites know that it was deleted.
///
/// Each site removes its bytes by itself, unless another object has them.
#[utoipa::path(delete, path = "/catalog/trash/{id}", tag = "catalog",
    params(("id" = String, Path, description = "Identity of the entry")),
    responses((status = 204, description = "The entry is gone"), (status = 404, description = "The entry is not in the trash"),
        (status = 409, description = "A site has not acknowledged the deletion yet")))]
pub(crate) async fn purge(
    State(app): State<Arc<App>>,
    Extension(access): Extension<Access>,
    Path(text): Path<String>,
) -> Result<StatusCode, Problem> {
    access.require(&[Scope::Write], access.own_project())?;
    let (id, found) = find(&app, &access, "purge", &text).await?;
    with(&app, "purge the entry", move |catalog| catalog.purge(id)).await?;
    app.audit(&access, "trash purge", &found.path).await;
    app.replication.sweep();
    Ok(StatusCode::NO_CONTENT)
}
