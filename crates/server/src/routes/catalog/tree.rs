//! Changes of the tree: new collections, moves, copies, and deletion into the trash.

use super::body::EntryId;
use super::{MOST_ENTRIES, allowed, allowed_new, authorize, is_readable, with};
use crate::access::Access;
use crate::app::App;
use crate::authorization::Verb;
use crate::problem::{Problem, ProblemKind};
use crate::routes::grants::check_subject;
use crate::site::AnyStore;
use axum::extract::{Query, State};
use axum::{Extension, Json};
use holdfast_catalog::{Catalog, CatalogError, CatalogPath, Find, Kind, Right};
use http::StatusCode;
use serde::{Deserialize, Serialize};
use std::sync::Arc;
use utoipa::{IntoParams, ToSchema};

/// New collection of a request.
#[derive(Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub(crate) struct NewCollection {
    /// Path of the collection: `/PROJECT/PATH`.
    path: String,
    /// True to make missing collections above it, and to accept one that exists.
    #[serde(default)]
    parents: bool,
    /// Account or group that gets the right own on the collection.
    owner: Option<String>,
}

/// Old and new path of an entry.
#[derive(Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub(crate) struct Move {
    /// Path of the entry: `/PROJECT/PATH`.
    from: String,
    /// New path, which must be free.
    to: String,
}

/// Copy of an entry, or the next part of one.
#[derive(Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub(crate) struct Copy {
    /// Path of the entry: `/PROJECT/PATH`.
    from: String,
    /// Path of the copy, which must be free.
    to: String,
    /// True to copy a collection with all below it.
    #[serde(default)]
    recursive: bool,
    /// Value of `next` of the answer before, to continue a copy.
    after: Option<String>,
}

/// Entry to be deleted.
#[derive(Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub(crate) struct Deletion {
    /// Path of the entry: `/PROJECT/PATH`.
    path: String,
    /// True to delete a collection with all below it.
    #[serde(default)]
    recursive: bool,
}

/// Way in which an entry is moved.
#[derive(Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub(crate) struct Replacement {
    /// True to move an object at the new path to the trash.
    #[serde(default)]
    replace: bool,
}

/// Part of a copy that is done.
#[derive(Serialize, ToSchema)]
pub(crate) struct CopyBody {
    /// Number of objects that were made.
    objects: u64,
    /// Number of collections that were made.
    collections: u64,
    /// Bytes of the contents of these objects. They are not stored a second time.
    bytes: u64,
    /// Value of `after` with which the copy goes on, null at its end.
    next: Option<String>,
}

/// Refuses an object in the place of a project, where no request could read it.
pub(super) fn check_place(to: &CatalogPath, kind: Kind) -> Result<(), Problem> {
    if kind != Kind::Collection && to.components().len() < 2 {
        let detail = format!("cannot use the path `{to}`: it names no project; write /PROJECT/PATH");
        return Err(Problem::new(ProblemKind::BadName, detail));
    }
    Ok(())
}

/// Kind of the entry at a path.
fn kind_of(catalog: &mut Catalog<AnyStore>, path: &CatalogPath) -> Result<Kind, CatalogError> {
    Ok(catalog.stat(path)?.node.map_or(Kind::Collection, |node| node.kind))
}

/// Makes a collection; a project is the collection of its name.
#[utoipa::path(post, path = "/catalog/collections", tag = "catalog", params(NewCollection),
    responses((status = 201, body = EntryId), (status = 404, description = "The collection above it does not exist"),
        (status = 409, description = "The path is taken")))]
pub(crate) async fn make_collection(
    State(app): State<Arc<App>>,
    Extension(access): Extension<Access>,
    Query(new): Query<NewCollection>,
) -> Result<(StatusCode, Json<EntryId>), Problem> {
    let path = allowed_new(&app, &access, &new.path).await?;
    let wanted = path.clone();
    let owner = new.owner.clone();
    if let Some(owner) = &new.owner {
        authorize(&app, &access, Verb::Grant, &path).await?;
        check_subject(&app, owner).await?;
    }
    let make = move |catalog: &mut Catalog<_>| {
        let id = catalog.make_collection(&wanted, new.parents)?;
        if let Some(owner) = &new.owner {
            catalog.grant(&wanted, owner, Right::Own)?;
        }
        Ok(id)
    };
    let id = with(&app, "make the collection", make).await?;
    if let Some(owner) = owner {
        app.audit(&access, "grant", format!("own on {path} to {owner}")).await;
    }
    Ok((StatusCode::CREATED, Json(EntryId { path: path.to_string(), id: id.to_string() })))
}

/// Moves or renames an object, or a collection with all below it.
#[utoipa::path(post, path = "/catalog/moves", tag = "catalog", params(Move, Replacement),
    responses((status = 204, description = "The entry has the new path"),
        (status = 404, description = "The entry or the collection above its new path does not exist"),
        (status = 409, description = "The new path is taken")))]
pub(crate) async fn move_entry(
    State(app): State<Arc<App>>,
    Extension(access): Extension<Access>,
    Query(new): Query<Move>,
    Query(Replacement { replace }): Query<Replacement>,
) -> Result<StatusCode, Problem> {
    let from = allowed(&app, &access, Some(&new.from), Verb::Change).await?;
    let to = allowed_new(&app, &access, &new.to).await?;
    if replace {
        authorize(&app, &access, Verb::Change, &to).await?;
    }
    let at = from.clone();
    let kind = with(&app, "move the entry", move |catalog| kind_of(catalog, &at)).await?;
    check_place(&to, kind)?;
    with(&app, "move the entry", move |catalog| catalog.rename_over(&from, &to, replace)).await?;
    Ok(StatusCode::NO_CONTENT)
}

/// Gives an object a second name: a link, which shows the versions of the object.
#[utoipa::path(post, path = "/catalog/links", tag = "catalog", params(Move),
    responses((status = 201, body = EntryId), (status = 400, description = "The entry is no object"),
        (status = 404, description = "The object or the collection above the new path does not exist"),
        (status = 409, description = "The new path is taken")))]
pub(crate) async fn link(
    State(app): State<Arc<App>>,
    Extension(access): Extension<Access>,
    Query(new): Query<Move>,
) -> Result<(StatusCode, Json<EntryId>), Problem> {
    let from = allowed(&app, &access, Some(&new.from), Verb::Read).await?;
    let to = allowed_new(&app, &access, &new.to).await?;
    check_place(&to, Kind::Link)?;
    let path = to.to_string();
    let id = with(&app, "link the object", move |catalog| catalog.link(&from, &to)).await?;
    Ok((StatusCode::CREATED, Json(EntryId { path, id: id.to_string() })))
}

/// Copies the current version of an object, or a collection with all below it. No bytes are moved.
///
/// A large collection is copied in parts: requests with `after` continue until `next` is null.
#[utoipa::path(post, path = "/catalog/copies", tag = "catalog", params(Copy),
    responses((status = 201, body = CopyBody), (status = 400, description = "A collection needs `recursive`"),
        (status = 404, description = "The entry or the collection above its copy does not exist"),
        (status = 409, description = "The path of the copy is taken")))]
pub(crate) async fn copy(
    State(app): State<Arc<App>>,
    Extension(access): Extension<Access>,
    Query(new): Query<Copy>,
) -> Result<(StatusCode, Json<CopyBody>), Problem> {
    // An account copies what it may read; the scope that the change needs is that of its new place.
    let verb = if access.limits().is_some() { Verb::Read } else { Verb::Change };
    let from = allowed(&app, &access, Some(&new.from), verb).await?;
    let to = allowed_new(&app, &access, &new.to).await?;
    let at = from.clone();
    let kind = with(&app, "copy the entry", move |catalog| kind_of(catalog, &at)).await?;
    check_place(&to, kind)?;
    if new.recursive && new.after.is_none() {
        check_links(&app, &access, &from, kind).await?;
    }
    let after: Vec<String> = new.after.iter().flat_map(|after| after.split('/')).map(str::to_owned).collect();
    let copy = move |catalog: &mut Catalog<_>| {
        if new.recursive {
            catalog.copy_recursively(&from, &to, &after, MOST_ENTRIES)
        } else {
            catalog.copy(&from, &to)
        }
    };
    let done = with(&app, "copy the entry", copy).await?;
    let (objects, collections, bytes) = (done.objects, done.collections, done.bytes);
    let next = done.next.map(|names| names.join("/"));
    Ok((StatusCode::CREATED, Json(CopyBody { objects, collections, bytes, next })))
}

/// Refuses a copy of links whose targets the account may not read: copies of links are objects.
async fn check_links(app: &App, access: &Access, from: &CatalogPath, kind: Kind) -> Result<(), Problem> {
    let limits = access.limits().filter(|_| kind == Kind::Collection).cloned();
    let Some(principal) = limits else { return Ok(()) };
    let find = Find { under: from.clone(), ..Find::default() };
    let search = move |catalog: &mut Catalog<_>| {
        let mut after = None;
        loop {
            let page = catalog.find(&find, after, MOST_ENTRIES)?;
            for found in page.found {
                if !is_readable(catalog, Some(&principal), &found.path, found.entry.node.kind)? {
                    return Ok(Some(found.path));
                }
            }
            after = page.next;
            if after.is_none() {
                return Ok(None);
            }
        }
    };
    match with(app, "copy the entry", search).await? {
        Some(link) => authorize(app, access, Verb::Read, &link).await,
        None => Ok(()),
    }
}

/// Moves an object, or a collection with all below it, to the trash.
#[utoipa::path(delete, path = "/catalog/entries", tag = "catalog", params(Deletion),
    responses((status = 200, body = EntryId), (status = 400, description = "A collection needs `recursive`"),
        (status = 404, description = "The entry does not exist")))]
pub(crate) async fn delete(
    State(app): State<Arc<App>>,
    Extension(access): Extension<Access>,
    Query(entry): Query<Deletion>,
) -> Result<Json<EntryId>, Problem> {
    let path = allowed(&app, &access, Some(&entry.path), Verb::Change).await?;
    let deleted = path.clone();
    let delete = move |catalog: &mut Catalog<_>| {
        if entry.recursive { catalog.trash(&deleted) } else { catalog.trash_object(&deleted) }
    };
    let id = with(&app, "delete the entry", delete).await?;
    Ok(Json(EntryId { path: path.to_string(), id: id.to_string() }))
}
