//! Policies of collections: the number of copies and the sites that shall have them.

use super::catalog::{allowed, with};
use crate::access::Access;
use crate::app::App;
use crate::authorization::Verb;
use crate::copies::{Policies, Policy, PolicyBody};
use crate::problem::{Problem, ProblemKind};
use crate::replication::SiteNames;
use crate::site::AnyStore;
use crate::token::Scope;
use axum::extract::{Query, State};
use axum::{Extension, Json};
use holdfast_catalog::{Catalog, CatalogError, CatalogPath, FactKind, ObjectId, Result};
use http::StatusCode;
use serde::{Deserialize, Serialize};
use std::sync::Arc;
use utoipa::{IntoParams, ToSchema};

/// Most sites of one policy: its fact has a bounded size.
const MOST_SITES: usize = 500;

/// Collection of a policy.
#[derive(Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub(crate) struct Place {
    /// Path of a collection, `/` for all.
    path: String,
}

/// Policy of a collection and everything below it that has no nearer one.
#[derive(Serialize, ToSchema)]
pub(crate) struct PolicyEntry {
    /// Path of the collection.
    path: String,
    /// Number of sites that shall have a verified replica.
    copies: usize,
    /// Names of the sites in the order in which they are chosen.
    sites: Vec<String>,
    /// Priority of the jobs; greater ones come first.
    priority: i32,
}

/// Policy that is set.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Wanted {
    /// Number of sites that shall have a verified replica, at least 1.
    copies: usize,
    /// Names or identities of sites, at least as many as copies.
    sites: Vec<String>,
    /// Priority of the jobs, 0 without it; greater ones come first.
    #[serde(default)]
    priority: i32,
}

fn entry(names: &SiteNames, policy: &Policy) -> PolicyEntry {
    let PolicyBody { copies, sites, priority } = &policy.body;
    let sites = sites.iter().map(|site| names.of(*site)).collect();
    PolicyEntry { path: policy.path.to_string(), copies: *copies, sites, priority: *priority }
}

/// Policies in the order of their paths.
#[utoipa::path(get, path = "/policies", tag = "copies", responses((status = 200, body = Vec<PolicyEntry>)))]
pub(crate) async fn list(
    State(app): State<Arc<App>>,
    Extension(access): Extension<Access>,
) -> Result<Json<Vec<PolicyEntry>>, Problem> {
    access.require_site(Scope::Read)?;
    let read = |catalog: &mut Catalog<_>| Ok((SiteNames::read(catalog)?, Policies::read(catalog)?));
    let (names, policies) = with(&app, "read the policies", read).await?;
    Ok(Json(policies.iter().map(|policy| entry(&names, policy)).collect()))
}

fn collection(catalog: &mut Catalog<AnyStore>, path: &CatalogPath) -> Result<ObjectId> {
    // The root has no record, but a listing.
    catalog.list(path, None, 1)?;
    Ok(catalog.stat(path)?.node.map_or(ObjectId::ROOT, |node| node.id))
}

/// Sets the policy of a collection. The sites that it names fetch what they lack.
#[utoipa::path(put, path = "/policies", tag = "copies", params(Place), request_body = Wanted,
    responses((status = 200, body = PolicyEntry), (status = 400, description = "The policy cannot be carried out"),
        (status = 404, description = "The collection does not exist")))]
pub(crate) async fn set(
    State(app): State<Arc<App>>,
    Extension(access): Extension<Access>,
    Query(place): Query<Place>,
    Json(wanted): Json<Wanted>,
) -> Result<Json<PolicyEntry>, Problem> {
    let path = allowed(&app, &access, Some(&place.path), Verb::Change).await?;
    let bad = |reason: &dyn std::fmt::Display, remedy: &str| {
        let detail = format_args!("cannot set the policy of {path}: {reason}; {remedy}");
        Problem::new(ProblemKind::BadRequest, detail)
    };
    if wanted.copies == 0 || wanted.copies > wanted.sites.len() || wanted.sites.len() > MOST_SITES {
        let (copies, sites) = (wanted.copies, wanted.sites.len());
        let reason = format_args!("{copies} copies cannot be at {sites} sites").to_string();
        return Err(bad(&reason, "name at least as many sites as copies"));
    }
    let names = with(&app, "read the sites", SiteNames::read).await?;
    let mut sites = Vec::new();
    for text in &wanted.sites {
        let Some(site) = names.site(text) else {
            let reason = format_args!("'{}' is not one known site", text.escape_debug()).to_string();
            return Err(bad(&reason, "see `holdfast site ls`, or give its identity"));
        };
        if sites.contains(&site) {
            return Err(bad(&format_args!("'{}' is listed twice", text.escape_debug()), "list it once"));
        }
        sites.push(site);
    }
    let body = PolicyBody { copies: wanted.copies, sites, priority: wanted.priority };
    let at = path.clone();
    let set = move |catalog: &mut Catalog<AnyStore>| {
        let collection = collection(catalog, &at)?;
        let text = serde_json::to_string(&body).unwrap_or_default();
        catalog.set_fact(FactKind::Policy, &collection.to_string(), Some(&text))?;
        Ok(Policy { collection, path: at, body })
    };
    let policy = with(&app, "set the policy", set).await?;
    app.audit(&access, "policy set", &policy.path).await;
    Ok(Json(entry(&names, &policy)))
}

/// Removes the policy of a collection. Copies that are there stay.
#[utoipa::path(delete, path = "/policies", tag = "copies", params(Place),
    responses((status = 204, description = "The policy is removed"), (status = 404, description = "There is none")))]
pub(crate) async fn remove(
    State(app): State<Arc<App>>,
    Extension(access): Extension<Access>,
    Query(place): Query<Place>,
) -> Result<StatusCode, Problem> {
    let path = allowed(&app, &access, Some(&place.path), Verb::Change).await?;
    let at = path.clone();
    let remove = move |catalog: &mut Catalog<AnyStore>| {
        let key = collection(catalog, &at)?.to_string();
        if catalog.fact(FactKind::Policy, &key)?.is_none() {
            return Ok::<_, CatalogError>(false);
        }
        catalog.set_fact(FactKind::Policy, &key, None)?;
        Ok(true)
    };
    if with(&app, "remove the policy", remove).await? {
        app.audit(&access, "policy remove", &path).await;
        Ok(StatusCode::NO_CONTENT)
    } else {
        Err(Problem::not_found(format_args!("a policy of {path}")))
    }
}
