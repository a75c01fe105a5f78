//! Runs of drivers, for administrators.

use crate::access::Access;
use crate::app::App;
use crate::drivers::tasks::{self, Choice, Run};
use crate::object_path::ProjectName;
use crate::problem::Problem;
use crate::token::Scope;
use axum::extract::{Query, State};
use axum::{Extension, Json};
use serde::{Deserialize, Serialize};
use std::sync::Arc;
use utoipa::{IntoParams, ToSchema};

/// Most runs of one answer.
const MOST_RUNS: usize = 1000;

/// Choice of runs of drivers.
#[derive(Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub(crate) struct RunChoice {
    /// Project of the runs; all projects without it, or the project of the token.
    project: Option<String>,
    /// True for failed runs only.
    #[serde(default)]
    failed: bool,
    /// Number of a run before which the answer begins.
    before: Option<i64>,
    /// Most runs of the answer, up to 1000.
    count: Option<usize>,
}

/// Runs of drivers, from the newest to the oldest.
#[derive(Serialize, ToSchema)]
pub(crate) struct Runs {
    /// Runs of this answer.
    runs: Vec<Run>,
    /// Value of `before` for the next answer, null if there is none.
    next: Option<i64>,
}

/// Runs of drivers on versions, from the newest to the oldest.
#[utoipa::path(get, path = "/drivers/runs", tag = "drivers", params(RunChoice), responses((status = 200, body = Runs)))]
pub(crate) async fn runs(
    State(app): State<Arc<App>>,
    Extension(access): Extension<Access>,
    Query(choice): Query<RunChoice>,
) -> Result<Json<Runs>, Problem> {
    let project = choice.project.as_deref().map(ProjectName::parse).transpose();
    let project = project.map_err(|error| Problem::name("list the runs", &error))?;
    let project = project.or_else(|| access.own_project().cloned());
    access.require(&[Scope::Admin], project.as_ref())?;
    let most = choice.count.unwrap_or(MOST_RUNS).clamp(1, MOST_RUNS);
    let project = project.map(|project| project.to_string());
    let choice = Choice { project, failed: choice.failed, before: choice.before, most };
    let runs = app.site.journal.database.read(move |connection| tasks::runs(connection, &choice)).await;
    let runs = runs.map_err(|error| Problem::internal("list the runs", error))?;
    let next = runs.last().filter(|_| runs.len() == most).map(|run| run.id);
    Ok(Json(Runs { runs, next }))
}
