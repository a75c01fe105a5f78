//! Catalog over HTTP: properties of entries, lists of collections, searches, and changes of attributes.
//!
//! The first name of a path is the project, and decides the access. A token of one project sees that project only.

pub(super) mod attribute_batch;
mod body;
pub(super) mod replicas;
pub(super) mod rights;
pub(super) mod trash;
pub(super) mod tree;
pub(super) mod versions;

use crate::access::Access;
use crate::app::App;
use crate::authorization::Verb;
use crate::object_path::{ObjectPath, ProjectName};
use crate::principal::Principal;
use crate::problem::{Problem, ProblemKind};
use crate::replication::SiteNames;
use crate::site::AnyStore;
use crate::store_error::blocking;
use attribute_batch::read_attributes;
use axum::extract::{Query, State};
use axum::{Extension, Json};
use body::{AttributeChanges, Entry, FoundEntry, FoundPage, ListPage, StatBody};
use holdfast_catalog::{Catalog, CatalogError, CatalogPath, Condition, Find, Kind, ObjectId, Right};
use serde::Deserialize;
use std::sync::Arc;
use utoipa::IntoParams;

/// Most entries of one answer.
const MOST_ENTRIES: usize = 1000;

/// Most attributes of one change: bounds the operation in the catalog.
const MOST_ATTRIBUTES: usize = 1000;

/// Path of an entry.
#[derive(Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub(crate) struct Place {
    /// Path of an object or collection: `/PROJECT/PATH`.
    path: String,
}

/// Part of a collection.
#[derive(Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub(crate) struct ListChoice {
    /// Path of the collection; without it the project of the token, or the root.
    path: Option<String>,
    /// Name behind which the answer begins.
    after: Option<String>,
    /// Most entries of the answer, up to 1000.
    count: Option<usize>,
}

/// Search for entries of the catalog.
#[derive(Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub(crate) struct FindChoice {
    /// Collection below which entries are searched; without it the project of the token, or the root.
    under: Option<String>,
    /// Condition over attributes, such as `fits.exptime > 10 and target = "m31"`.
    condition: Option<String>,
    /// Pattern of the entry's name with `*`, `?` and `[abc]`.
    name: Option<String>,
    /// Identity of an entry behind which the answer begins.
    after: Option<String>,
    /// Most entries of the answer, up to 1000.
    count: Option<usize>,
}

/// Path of a request, if the request has access to it. Without a path it is the project of the token, or the root.
pub(super) async fn allowed(
    app: &App,
    access: &Access,
    path: Option<&str>,
    verb: Verb,
) -> Result<CatalogPath, Problem> {
    let bad = |error| Problem::new(ProblemKind::BadName, error);
    let own = || access.own_project().map(|own| CatalogPath::root().child(own.as_str()));
    let path = path.map(str::parse).or_else(own).transpose().map_err(bad)?.unwrap_or_default();
    let project = path.components().first().map(|project| ProjectName::parse(project)).transpose();
    project.map_err(|error| Problem::name("use the path", &error))?;
    authorize(app, access, verb, &path).await?;
    Ok(path)
}

/// Requires scope and rights for a verb on a path.
pub(super) async fn authorize(
    app: &App,
    access: &Access,
    verb: Verb,
    path: &CatalogPath,
) -> Result<(), Problem> {
    let at = path.clone();
    let target = match access.limits() {
        Some(_) if verb != Verb::List => {
            with(app, "find the entry", move |catalog| catalog.link_target(&at)).await?
        }
        _ => None,
    };
    access.require_on(verb, path, target.as_ref())
}

/// True if the account of a request may read an entry, and the target of a link.
pub(super) fn is_readable(
    catalog: &mut Catalog<AnyStore>,
    limits: Option<&Principal>,
    path: &CatalogPath,
    kind: Kind,
) -> Result<bool, CatalogError> {
    let Some(principal) = limits else { return Ok(true) };
    let has = |path: &CatalogPath| principal.right_on(path).is_some();
    Ok(has(path) && (kind != Kind::Link || catalog.link_target(path)?.is_none_or(|target| has(&target))))
}

/// Path of a request that a new entry gets, if the request may write there. Uploads could make the same path.
async fn allowed_new(app: &App, access: &Access, path: &str) -> Result<CatalogPath, Problem> {
    let path = allowed(app, access, Some(path), Verb::Change).await?;
    if let Some(inside) = path.components().get(1..).filter(|inside| !inside.is_empty()) {
        let checked = ObjectPath::parse(&inside.join("/"));
        checked.map_err(|error| Problem::name("use the path", &error))?;
    }
    Ok(path)
}

/// Runs work on the catalog on a blocking thread.
pub(crate) async fn with<T: Send + 'static>(
    app: &App,
    action: &str,
    work: impl FnOnce(&mut Catalog<AnyStore>) -> Result<T, CatalogError> + Send + 'static,
) -> Result<T, Problem> {
    let site = Arc::clone(&app.site);
    let done = blocking(move || {
        site.catalog.with(work).map_err(|error| {
            let names = site.catalog.with(SiteNames::read).unwrap_or_default();
            let text = names.named(&error.to_string());
            (error, text)
        })
    });
    let done = done.await.map_err(|error| Problem::store(action, &error))?;
    done.map_err(|(error, text)| problem_with(action, &error, &text))
}

pub(super) fn problem(action: &str, error: &CatalogError) -> Problem {
    problem_with(action, error, &error.to_string())
}

/// Problem of an error with a text of its own.
fn problem_with(action: &str, error: &CatalogError, text: &str) -> Problem {
    match error {
        CatalogError::NotFound { .. } => Problem::new(ProblemKind::NotFound, text),
        CatalogError::Exists { .. } => Problem::new(ProblemKind::NameTaken, text),
        CatalogError::Name(_) => Problem::new(ProblemKind::BadName, text),
        CatalogError::Unacknowledged { .. } => Problem::new(ProblemKind::Unacknowledged, text),
        CatalogError::Compacted { .. } => Problem::new(ProblemKind::Compacted, text),
        CatalogError::Unsuitable { .. }
        | CatalogError::Value(_)
        | CatalogError::Condition(_)
        | CatalogError::Glob { .. }
        | CatalogError::Invalid(_)
        | CatalogError::Decode(_) => Problem::new(ProblemKind::BadRequest, text),
        _ => Problem::internal(action, text),
    }
}

/// All properties of an object or collection.
#[utoipa::path(get, path = "/catalog/stat", tag = "catalog", params(Place),
    responses((status = 200, body = StatBody), (status = 404, description = "The entry does not exist")))]
pub(crate) async fn stat(
    State(app): State<Arc<App>>,
    Extension(access): Extension<Access>,
    Query(place): Query<Place>,
) -> Result<Json<StatBody>, Problem> {
    let path = allowed(&app, &access, Some(&place.path), Verb::Read).await?;
    let wanted = path.clone();
    let read = move |catalog: &mut Catalog<_>| Ok((SiteNames::read(catalog)?, catalog.stat(&wanted)?));
    let (names, stat) = with(&app, "read the entry", read).await?;
    Ok(Json(StatBody::new(&names, &path, stat)))
}

/// Entries of one collection in the order of their names.
#[utoipa::path(get, path = "/catalog/list", tag = "catalog", params(ListChoice),
    responses((status = 200, body = ListPage), (status = 404, description = "The collection does not exist")))]
pub(crate) async fn list(
    State(app): State<Arc<App>>,
    Extension(access): Extension<Access>,
    Query(choice): Query<ListChoice>,
) -> Result<Json<ListPage>, Problem> {
    let path = allowed(&app, &access, choice.path.as_deref(), Verb::List).await?;
    let count = choice.count.unwrap_or(MOST_ENTRIES).min(MOST_ENTRIES);
    let limits = access.limits().cloned();
    let list = move |catalog: &mut Catalog<_>| {
        let mut listing = catalog.list(&path, choice.after.as_deref(), count)?;
        if let Some(principal) = limits {
            let mut shown = Vec::new();
            for entry in listing.entries {
                let at = path.child(&entry.node.shown)?;
                let leads = entry.node.kind == Kind::Collection && principal.reaches(&at, Right::Read);
                if leads || is_readable(catalog, Some(&principal), &at, entry.node.kind)? {
                    shown.push(entry);
                }
            }
            listing.entries = shown;
        }
        Ok(listing)
    };
    let listing = with(&app, "list the collection", list).await?;
    let entries = listing.entries.into_iter().map(Entry::from).collect();
    Ok(Json(ListPage { entries, next: listing.next }))
}

/// Objects and collections whose attributes satisfy a condition, in the order of their identities.
#[utoipa::path(get, path = "/catalog/find", tag = "catalog", params(FindChoice),
    responses((status = 200, body = FoundPage),
        (status = 400, description = "The condition cannot be read; the detail names the position of the error"),
        (status = 404, description = "The collection does not exist")))]
pub(crate) async fn find(
    State(app): State<Arc<App>>,
    Extension(access): Extension<Access>,
    Query(choice): Query<FindChoice>,
) -> Result<Json<FoundPage>, Problem> {
    let under = allowed(&app, &access, choice.under.as_deref(), Verb::List).await?;
    let bad = |error: &dyn std::fmt::Display| Problem::new(ProblemKind::BadRequest, error);
    let condition = choice.condition.as_deref().map(str::parse::<Condition>).transpose();
    let condition = condition.map_err(|error| bad(&error))?;
    let after = choice.after.as_deref().map(str::parse::<ObjectId>).transpose();
    let after = after.map_err(|error| bad(&error))?;
    let count = choice.count.unwrap_or(MOST_ENTRIES).min(MOST_ENTRIES);
    let find = Find { under, condition, name: choice.name };
    let limits = access.limits().cloned();
    let search = move |catalog: &mut Catalog<_>| {
        let mut page = catalog.find(&find, after, count)?;
        let mut readable = Vec::new();
        for found in page.found {
            if is_readable(catalog, limits.as_deref(), &found.path, found.entry.node.kind)? {
                readable.push(found);
            }
        }
        page.found = readable;
        Ok(page)
    };
    let page = with(&app, "search the catalog", search).await?;
    Ok(Json(FoundPage {
        entries: page.found.into_iter().map(FoundEntry::from).collect(),
        next: page.next.map(|next| next.to_string()),
    }))
}

/// Change of the attributes of an entry: removes those with the given names, and adds others, all or none.
#[utoipa::path(post, path = "/catalog/attributes", tag = "catalog", params(Place), request_body = AttributeChanges,
    responses((status = 200, body = StatBody), (status = 400, description = "An attribute is not allowed"),
        (status = 404, description = "The entry does not exist")))]
pub(crate) async fn change_attributes(
    State(app): State<Arc<App>>,
    Extension(access): Extension<Access>,
    Query(place): Query<Place>,
    Json(changes): Json<AttributeChanges>,
) -> Result<Json<StatBody>, Problem> {
    let path = allowed(&app, &access, Some(&place.path), Verb::Change).await?;
    let (added, removed) = (read_attributes(changes.add)?, changes.remove);
    let wanted = path.clone();
    let change = move |catalog: &mut Catalog<_>| {
        let is_removed = |name: &str| removed.iter().any(|removed| removed == name);
        catalog.set_attributes(&wanted, None, &is_removed, &added)?;
        Ok((SiteNames::read(catalog)?, catalog.stat(&wanted)?))
    };
    let (names, stat) = with(&app, "change the attributes", change).await?;
    Ok(Json(StatBody::new(&names, &path, stat)))
}
