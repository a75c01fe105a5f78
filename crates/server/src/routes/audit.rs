//! Audit over HTTP, for administrators of all projects.

use crate::access::Access;
use crate::app::App;
use crate::audit::{AuditRecord, Choice, records};
use crate::clock::Timestamp;
use crate::problem::Problem;
use crate::token::Scope;
use axum::extract::{Query, State};
use axum::{Extension, Json};
use serde::{Deserialize, Serialize};
use std::sync::Arc;
use utoipa::{IntoParams, ToSchema};

/// Most records of one answer.
const MOST_RECORDS: usize = 1000;

/// Choice of records of the audit.
#[derive(Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub(crate) struct AuditChoice {
    /// True for denied requests only.
    #[serde(default)]
    denied: bool,
    /// Time before which no record is wanted, in milliseconds since 1970.
    since: Option<i64>,
    /// Number of a record before which the answer begins.
    before: Option<i64>,
    /// Most records of the answer, up to 1000.
    count: Option<usize>,
}

/// Records of the audit, from the newest to the oldest.
#[derive(Serialize, ToSchema)]
pub(crate) struct AuditPage {
    /// Records of this answer.
    records: Vec<AuditRecord>,
    /// Value of `before` for the next answer, null if there is none.
    next: Option<i64>,
}

/// Denied requests, log-ins and administrative acts of the last 90 days, from the newest to the oldest.
#[utoipa::path(get, path = "/audit", tag = "accounts", params(AuditChoice),
    responses((status = 200, body = AuditPage)))]
pub(crate) async fn list(
    State(app): State<Arc<App>>,
    Extension(access): Extension<Access>,
    Query(choice): Query<AuditChoice>,
) -> Result<Json<AuditPage>, Problem> {
    access.require(&[Scope::Admin], None)?;
    let most = choice.count.unwrap_or(MOST_RECORDS).clamp(1, MOST_RECORDS);
    let since = Timestamp::from_milliseconds(choice.since.unwrap_or_default());
    let choice = Choice { denied: choice.denied, since, before: choice.before, most }.kept(app.clock.now());
    let found = app.site.journal.database.read(move |connection| records(connection, &choice)).await;
    let records = found.map_err(|error| Problem::internal("read the audit", error))?;
    let next = records.last().filter(|_| records.len() == most).map(|last| last.id);
    Ok(Json(AuditPage { records, next }))
}
