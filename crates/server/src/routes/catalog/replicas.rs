//! Replicas of many objects: their places and states, and those whose versions no other site has.

use super::body::ReplicaBody;
use super::{MOST_ENTRIES, allowed, with};
use crate::access::Access;
use crate::app::App;
use crate::authorization::Verb;
use crate::problem::{Problem, ProblemKind};
use crate::replication::SiteNames;
use crate::site::AnyStore;
use axum::extract::{Query, State};
use axum::{Extension, Json};
use holdfast_catalog::{Catalog, CatalogError, CatalogPath, Find, Kind, ObjectId, Replica};
use serde::{Deserialize, Serialize};
use std::sync::Arc;
use utoipa::{IntoParams, ToSchema};

/// Objects whose replicas one answer has: an object may have many.
const MOST_OBJECTS: usize = MOST_ENTRIES / 4;

/// Replicas of a place.
#[derive(Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub(crate) struct ReplicaChoice {
    /// Path of an object or collection; without it the project of the token, or the root.
    path: Option<String>,
    /// True for the verified replicas at this site whose version no other site has verified.
    #[serde(default)]
    only_here: bool,
    /// Identity of an object behind which the answer begins.
    after: Option<String>,
}

/// Replica with the object that it belongs to.
#[derive(Serialize, ToSchema)]
pub(crate) struct PlacedReplica {
    /// Path of the object, null if it lies in the trash.
    path: Option<String>,
    /// Identity of the object.
    id: String,
    #[serde(flatten)]
    replica: ReplicaBody,
}

/// Replicas of several objects.
#[derive(Serialize, ToSchema)]
pub(crate) struct ReplicaPage {
    /// Replicas in the order of the identities of their objects; perhaps none although more follow.
    entries: Vec<PlacedReplica>,
    /// Value of `after` for the next answer, null if there is none.
    next: Option<String>,
}

type Found = (Vec<(Option<CatalogPath>, Replica)>, Option<ObjectId>);

/// Replicas of an object, or of all objects below a collection, in the order of identities.
#[utoipa::path(get, path = "/catalog/replicas", tag = "catalog", params(ReplicaChoice),
    responses((status = 200, body = ReplicaPage), (status = 404, description = "The entry does not exist")))]
pub(crate) async fn list(
    State(app): State<Arc<App>>,
    Extension(access): Extension<Access>,
    Query(choice): Query<ReplicaChoice>,
) -> Result<Json<ReplicaPage>, Problem> {
    let path = allowed(&app, &access, choice.path.as_deref(), Verb::List).await?;
    let after = choice.after.as_deref().map(str::parse::<ObjectId>).transpose();
    let after = after.map_err(|error| Problem::new(ProblemKind::BadRequest, error))?;
    let list = move |catalog: &mut Catalog<_>| {
        if choice.only_here { only_here(catalog, &path, after) } else { all(catalog, &path, after) }
    };
    let read = move |catalog: &mut Catalog<_>| Ok((SiteNames::read(catalog)?, list(catalog)?));
    let (names, (found, next)) = with(&app, "list the replicas", read).await?;
    let is_readable = |path: &Option<CatalogPath>| match path {
        Some(path) => access.can_read(path),
        None => access.can_read(&CatalogPath::root()),
    };
    let entries = found.into_iter().filter(|(path, _)| is_readable(path)).filter_map(|(path, replica)| {
        let (path, id) = (path.map(|path| path.to_string()), replica.object.to_string());
        Some(PlacedReplica { path, id, replica: ReplicaBody::new(&names, replica)? })
    });
    Ok(Json(ReplicaPage { entries: entries.collect(), next: next.map(|next| next.to_string()) }))
}

fn all(
    catalog: &mut Catalog<AnyStore>,
    path: &CatalogPath,
    after: Option<ObjectId>,
) -> Result<Found, CatalogError> {
    let stat = catalog.stat(path)?;
    if stat.node.is_some_and(|node| node.kind == Kind::Object) {
        let replicas = stat.replicas.into_iter().map(|replica| (Some(path.clone()), replica));
        return Ok((replicas.collect(), None));
    }
    let find = Find { under: path.clone(), ..Find::default() };
    let page = catalog.find(&find, after, MOST_OBJECTS)?;
    let mut replicas = Vec::new();
    for found in page.found.into_iter().filter(|found| found.entry.node.kind == Kind::Object) {
        let of_object = catalog.replicas_of(found.entry.node.id)?.into_iter();
        replicas.extend(of_object.map(|replica| (Some(found.path.clone()), replica)));
    }
    Ok((replicas, page.next))
}

fn only_here(
    catalog: &mut Catalog<AnyStore>,
    path: &CatalogPath,
    after: Option<ObjectId>,
) -> Result<Found, CatalogError> {
    catalog.stat(path)?;
    let page = catalog.only_here(after, MOST_OBJECTS)?;
    let mut objects: Vec<ObjectId> = page.iter().map(|only| only.replica.object).collect();
    objects.dedup();
    let next = objects.last().copied().filter(|_| objects.len() == MOST_OBJECTS);
    let replicas = page.into_iter().map(|only| (only.path, only.replica));
    // Objects in the trash have no place; only the root has them all.
    let is_wanted = |at: &Option<CatalogPath>| at.as_ref().map_or(path.is_root(), |at| path.holds(at));
    Ok((replicas.filter(|(at, _)| is_wanted(at)).collect(), next))
}
