//! Status of the server: health and metrics.

use crate::access::Access;
use crate::app::App;
use crate::problem::Problem;
use crate::token::Scope;
use axum::extract::State;
use axum::response::{IntoResponse as _, Response};
use axum::{Extension, Json};
use http::header::CONTENT_TYPE;
use serde::Serialize;
use std::sync::{Arc, LazyLock};
use utoipa::ToSchema;

/// Content type of Prometheus' text format.
const EXPOSITION: &str = "text/plain; version=0.0.4; charset=utf-8";

/// Health of the server.
#[derive(Serialize, ToSchema)]
pub(crate) struct Health {
    /// The text `ok`, as long as there is an answer.
    status: &'static str,
    /// Version of the program.
    version: &'static str,
}

/// Sign of life, which needs no token.
#[utoipa::path(get, path = "/healthz", tag = "status", security(()), responses((status = 200, body = Health)))]
pub(crate) async fn health() -> Json<Health> {
    Json(Health { status: "ok", version: env!("CARGO_PKG_VERSION") })
}

/// This description of the HTTP interface, which needs no token.
#[utoipa::path(get, path = "/openapi.json", tag = "status", security(()),
    responses((status = 200, body = String, content_type = "application/json")))]
pub(crate) async fn description() -> Response {
    static TEXT: LazyLock<String> =
        LazyLock::new(|| serde_json::to_string(&super::openapi()).unwrap_or_default());
    ([(CONTENT_TYPE, "application/json")], TEXT.as_str()).into_response()
}

/// Counters of the server in Prometheus' text format. Needs read access to all projects.
#[utoipa::path(get, path = "/metrics", tag = "status",
    responses((status = 200, body = String, content_type = "text/plain")))]
pub(crate) async fn metrics(
    State(app): State<Arc<App>>,
    Extension(access): Extension<Access>,
) -> Result<Response, Problem> {
    access.require_site(Scope::Read)?;
    let text = app.metrics.text(app.uploads.open_count());
    Ok(([(CONTENT_TYPE, EXPOSITION)], text).into_response())
}
