//! Rights of a request: whether it may write at a path, asked before bytes are gathered for it.

use super::with;
use crate::access::Access;
use crate::app::App;
use crate::authorization::Verb;
use crate::problem::{Problem, ProblemKind};
use crate::token::Scope;
use axum::extract::{Query, State};
use axum::{Extension, Json};
use holdfast_catalog::CatalogPath;
use serde::{Deserialize, Serialize};
use std::sync::Arc;
use utoipa::{IntoParams, ToSchema};

/// Path that a request may write at or not.
#[derive(Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub(crate) struct RightsChoice {
    /// Path of an entry, which need not exist: `/PROJECT/PATH`.
    path: String,
}

/// Rights at a path.
#[derive(Serialize, ToSchema)]
pub(crate) struct Rights {
    /// True if the request may upload and change an entry at the path.
    write: bool,
    /// True if the answer is the same for all paths.
    everywhere: bool,
}

/// Rights of the token at a path.
#[utoipa::path(get, path = "/catalog/rights", tag = "catalog", params(RightsChoice),
    responses((status = 200, body = Rights), (status = 400, description = "The path is not allowed")))]
pub(crate) async fn read(
    State(app): State<Arc<App>>,
    Extension(access): Extension<Access>,
    Query(choice): Query<RightsChoice>,
) -> Result<Json<Rights>, Problem> {
    let path: CatalogPath = choice.path.parse().map_err(|error| Problem::new(ProblemKind::BadName, error))?;
    let Some(token) = &access.token else { return Ok(Json(Rights { write: true, everywhere: true })) };
    let has_scope = token.scopes.grants(Scope::Write);
    let everywhere = !has_scope || (token.project.is_none() && access.limits().is_none());
    if everywhere {
        return Ok(Json(Rights { write: has_scope, everywhere }));
    }
    let at = path.clone();
    let target = with(&app, "find the entry", move |catalog| catalog.link_target(&at)).await?;
    let write = access.require_on(Verb::Upload, &path, target.as_ref()).is_ok();
    Ok(Json(Rights { write, everywhere }))
}
