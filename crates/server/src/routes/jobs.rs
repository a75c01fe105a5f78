//! Jobs of this site: copies that it fetches from other sites; and staging for a computation.

use super::catalog::{allowed, problem};
use crate::access::Access;
use crate::app::App;
use crate::authorization::Verb;
use crate::copies::{Job, JobState};
use crate::problem::{Problem, ProblemKind};
use crate::site::version_of;
use crate::store_error::blocking;
use crate::token::Scope;
use axum::extract::{Query, State};
use axum::{Extension, Json};
use serde::{Deserialize, Serialize};
use std::sync::Arc;
use utoipa::{IntoParams, ToSchema};

/// Job of this site.
#[derive(Serialize, ToSchema)]
pub(crate) struct JobBody {
    /// Path of the object when the job was made.
    path: String,
    /// Identity of the object.
    object: String,
    /// Version that is fetched.
    version: String,
    /// Reason of the job: `policy` or `stage`.
    reason: &'static str,
    /// State: `waiting`, `running`, `failed` or `done`. A failed job is tried again.
    state: &'static str,
    /// Number of attempts so far.
    attempts: u32,
    /// Time of the last change of the state, in milliseconds since 1970.
    changed: i64,
    /// Time of the next attempt of a failed job, in milliseconds since 1970.
    due: Option<i64>,
    /// Error of the last attempt of a failed job.
    error: Option<String>,
}

/// Objects that are wanted at a site.
#[derive(Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub(crate) struct StageChoice {
    /// Path of an object, or of a collection for all objects below it.
    path: String,
    /// Name of a peer that shall have them; without it this site.
    near: Option<String>,
}

/// Number of versions that are staged.
#[derive(Serialize, ToSchema)]
pub(crate) struct Staged {
    /// Number of versions that the site lacked and fetches now.
    fetching: u64,
}

fn body(job: Job) -> JobBody {
    let (state, due, error) = match job.state {
        JobState::Waiting => ("waiting", None, None),
        JobState::Running => ("running", None, None),
        JobState::Failed { error, due } => ("failed", Some(due.milliseconds()), Some(error)),
        JobState::Done => ("done", None, None),
    };
    JobBody {
        path: job.path,
        object: job.object.to_string(),
        version: version_of(job.version).to_string(),
        reason: if job.is_staged { "stage" } else { "policy" },
        state,
        attempts: job.attempts,
        changed: job.changed.milliseconds(),
        due,
        error,
    }
}

/// Open jobs of this site and the last completed ones.
#[utoipa::path(get, path = "/jobs", tag = "copies", responses((status = 200, body = Vec<JobBody>)))]
pub(crate) async fn list(
    State(app): State<Arc<App>>,
    Extension(access): Extension<Access>,
) -> Result<Json<Vec<JobBody>>, Problem> {
    access.require_site(Scope::Read)?;
    Ok(Json(app.copier.jobs().into_iter().map(body).collect()))
}

/// Fetches current versions to a site, before all other jobs. A peer is asked for it; it must know the objects already.
#[utoipa::path(post, path = "/jobs", tag = "copies", params(StageChoice),
    responses((status = 200, body = Staged), (status = 400, description = "No known site has the name"),
        (status = 404, description = "The path does not exist")))]
pub(crate) async fn stage(
    State(app): State<Arc<App>>,
    Extension(access): Extension<Access>,
    Query(choice): Query<StageChoice>,
) -> Result<Json<Staged>, Problem> {
    // Another site asks with its token for replication.
    let path = if access.require(&[Scope::Replicate], None).is_ok() {
        choice.path.parse().map_err(|error| Problem::new(ProblemKind::BadName, error))?
    } else {
        allowed(&app, &access, Some(&choice.path), Verb::Change).await?
    };
    if let Some(near) = choice.near.filter(|near| *near != app.name) {
        let peer = app.replication.peers().into_iter().find(|peer| {
            peer.name.as_str() == near || peer.status().own_name.as_deref() == Some(near.as_str())
        });
        let peer = peer.ok_or_else(|| {
            let near = near.escape_debug();
            let detail =
                format_args!("cannot stage at '{near}': no known site has this name; list the sites");
            Problem::new(ProblemKind::BadRequest, detail)
        })?;
        let client = peer.client().map_err(|error| Problem::new(ProblemKind::BadRequest, error))?;
        let staged = client.stage(&path.to_string(), None).await;
        let fetching = staged.map_err(|error| Problem::internal("stage at the other site", error))?;
        return Ok(Json(Staged { fetching }));
    }
    let copier = Arc::clone(&app.copier);
    let staged = blocking(move || copier.stage(&path)).await;
    let staged = staged.map_err(|error| Problem::store("stage the objects", &error))?;
    let fetching = staged.map_err(|error| problem("stage the objects", &error))? as u64;
    Ok(Json(Staged { fetching }))
}
