//! Searches over rings, of this site or of a peer: they run where the rings are.

use super::catalog::with;
use crate::access::Access;
use crate::app::App;
use crate::problem::{Problem, ProblemKind};
use crate::replication::SiteNames;
use crate::searches::{Search, SearchRefusal, Searches};
use crate::token::Scope;
use axum::body::{Body, Bytes};
use axum::extract::State;
use axum::response::{IntoResponse as _, Response};
use axum::{Extension, Json};
use holdfast_catalog::SiteId;
use holdfast_remote::{NewSearch, RemoteErrorKind};
use http::header::CONTENT_TYPE;
use serde::Deserialize;
use std::convert::Infallible;
use std::sync::Arc;
use tokio::sync::mpsc;
use utoipa::ToSchema;

/// Parts of an answer that wait for the network.
const MOST_PARTS: usize = 16;

/// Search over rings of one site.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Wanted {
    /// Name or identity of the rings' site; this one without it.
    site: Option<String>,
    /// Command that searches: `query`, `grep`, `hash` or `scan`.
    command: String,
    /// Names of rings in the configuration of their site.
    rings: Vec<String>,
    /// Options of the command, `--NAME` or `--NAME=VALUE`.
    #[serde(default)]
    options: Vec<String>,
    /// Query in SQL, of the command `query`.
    sql: Option<String>,
}

/// Runs a search where the rings are, and sends its output in frames: kind (u8: 0 output, 1 message, 2 end with the exit code,
/// 3 silence), length (u32, little-endian) and body. An answer without an end is cut.
#[utoipa::path(post, path = "/searches", tag = "searches", request_body = Wanted,
    responses((status = 200, body = Vec<u8>, content_type = "application/octet-stream"),
        (status = 400, description = "The search is not allowed at the site of the rings"),
        (status = 503, description = "Too many searches wait"),
        (status = 404, description = "No connected site has the name")))]
pub(crate) async fn run(
    State(app): State<Arc<App>>,
    Extension(access): Extension<Access>,
    Json(wanted): Json<Wanted>,
) -> Result<Response, Problem> {
    // A peer asks for its clients, whom it has checked.
    if access.require(&[Scope::Replicate], None).is_err() {
        access.require_site(Scope::Read)?;
    }
    let Wanted { site, command, rings, options, sql } = wanted;
    let search = Search { command, rings, options, sql };
    let own = app.site.catalog.site();
    let names = with(&app, "find the site", SiteNames::read).await?;
    let site = match &site {
        Some(text) => names.site(text).ok_or_else(|| unknown(text))?,
        None => own,
    };
    let object = format!("hf://{}/rings/{}", names.of(site), search.rings.join(","));
    let (sender, receiver) = mpsc::channel::<Bytes>(MOST_PARTS);
    if site == own {
        let admitted = app.searches.admit(&search, &access.user()).map_err(refused)?;
        let (app, log) = (Arc::clone(&app), app.log.clone());
        tokio::spawn(async move { app.searches.run(admitted, log, sender).await });
    } else {
        let running = ask(&app, site, &names.of(site), search.clone()).await?;
        tokio::spawn(Searches::relay(running, sender));
    }
    app.audit(&access, search_act(&search), object).await;
    let parts = futures::stream::unfold(receiver, |mut receiver| async move {
        Some((Ok::<_, Infallible>(receiver.recv().await?), receiver))
    });
    Ok(([(CONTENT_TYPE, "application/octet-stream")], Body::from_stream(parts)).into_response())
}

/// Begins the search at a peer.
async fn ask(
    app: &App,
    site: SiteId,
    name: &str,
    search: Search,
) -> Result<holdfast_remote::RunningSearch, Problem> {
    let peer = app.replication.peers().into_iter().find(|peer| peer.status().site == Some(site));
    let peer = peer.ok_or_else(|| unknown(name))?;
    let client = peer.client().map_err(|error| Problem::internal("ask the site", error))?;
    let Search { command, rings, options, sql } = search;
    let running = client.search(&NewSearch { site: None, command, rings, options, sql }).await;
    running.map_err(|error| {
        let kind = match error.kind {
            RemoteErrorKind::Refused => ProblemKind::BadRequest,
            RemoteErrorKind::Busy => ProblemKind::Busy,
            _ => ProblemKind::Internal,
        };
        Problem::new(kind, format_args!("cannot search at {name}: {}", error.message))
    })
}

/// Act of the audit.
fn search_act(search: &Search) -> &'static str {
    match search.command.as_str() {
        "query" => "search by query",
        "grep" => "search by grep",
        "hash" => "search by hash",
        _ => "search by scan",
    }
}

fn refused(refusal: SearchRefusal) -> Problem {
    match refusal {
        SearchRefusal::Refused(reason) => {
            Problem::new(ProblemKind::BadRequest, format_args!("cannot search: {reason}"))
        }
        SearchRefusal::Busy => {
            Problem::new(ProblemKind::Busy, "cannot search: too many searches wait; try again later")
        }
    }
}

fn unknown(name: &str) -> Problem {
    let name = name.escape_debug();
    let detail =
        format_args!("cannot search: no connected site is named '{name}'; `holdfast site ls` lists them")
            .to_string();
    Problem::new(ProblemKind::NotFound, detail)
}
