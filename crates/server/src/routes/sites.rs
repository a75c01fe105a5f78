//! Peers of this site: their settings, and the state of the exchange with each.

use crate::access::Access;
use crate::app::App;
use crate::clock::Timestamp;
use crate::problem::{Problem, ProblemKind};
use crate::replication::{INTERVAL, Peer, PeerName, Settings, SiteNames};
use crate::token::Scope;
use axum::extract::{Path, State};
use axum::{Extension, Json};
use holdfast_catalog::{Catalog, CatalogError, VersionVector};
use holdfast_remote::Endpoint;
use http::StatusCode;
use serde::{Deserialize, Serialize};
use std::sync::Arc;
use std::time::Duration;
use utoipa::ToSchema;

/// Shortest pause between two full exchanges.
const SHORTEST_INTERVAL: Duration = Duration::from_millis(100);

/// Peer without its token, and the state of the exchange since the start of the server.
#[derive(Serialize, ToSchema)]
pub(crate) struct PeerBody {
    /// Name of the peer at this site.
    name: String,
    /// Address of the peer's server.
    url: String,
    /// SHA-256 of the only certificate that is trusted, null for the roots of the operating system.
    fingerprint: Option<String>,
    /// Pause between two full exchanges, in milliseconds.
    interval_milliseconds: u64,
    /// State: `paused`, `new` before the first answer, `connected` or `lost`.
    state: &'static str,
    /// Identity of the peer in hexadecimal digits, null before its first answer.
    site: Option<String>,
    /// Time of the last answer, in milliseconds since 1970.
    contact: Option<i64>,
    /// Time of a small request, in microseconds.
    latency_microseconds: Option<u64>,
    /// Number of operations that the peer lacks, as far as this site knows.
    queue: u64,
    /// Age of the oldest operation in the queue, in milliseconds.
    lag_milliseconds: u64,
    /// Number of operations that the peer has taken from this site.
    pushed: u64,
    /// Number of operations that this site has pulled and applied.
    pulled: u64,
    /// Time since which the exchange does not work, in milliseconds since 1970.
    failed_since: Option<i64>,
    /// Reason of the last failure, null while the exchange works.
    error: Option<String>,
}

/// Settings of a peer that are set. A missing one keeps its value.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Wanted {
    /// Address of the peer's server; a new peer needs one.
    url: Option<String>,
    /// Token of this site at the peer.
    token: Option<String>,
    /// SHA-256 of the only certificate of the peer to trust.
    fingerprint: Option<String>,
    /// Pause between two full exchanges, in milliseconds, at least 100; 10 s for a new peer.
    interval_milliseconds: Option<u64>,
    /// True to exchange nothing on this site's part until it is false again.
    paused: Option<bool>,
}

/// Peers in the order of their names.
#[utoipa::path(get, path = "/sites", tag = "replication", responses((status = 200, body = Vec<PeerBody>)))]
pub(crate) async fn list(
    State(app): State<Arc<App>>,
    Extension(access): Extension<Access>,
) -> Result<Json<Vec<PeerBody>>, Problem> {
    access.require_site(Scope::Read)?;
    let mut all = Vec::new();
    for peer in app.replication.peers() {
        all.push(body(&app, &peer).await?);
    }
    Ok(Json(all))
}

/// Adds a peer, or changes the settings of one; the exchange begins at once.
#[utoipa::path(patch, path = "/sites/{name}", tag = "replication", request_body = Wanted,
    params(("name" = String, Path, description = "Name of the peer at this site")),
    responses((status = 200, body = PeerBody), (status = 400, description = "A setting is not allowed")))]
pub(crate) async fn change(
    State(app): State<Arc<App>>,
    Extension(access): Extension<Access>,
    Path(name): Path<String>,
    Json(wanted): Json<Wanted>,
) -> Result<Json<PeerBody>, Problem> {
    access.require(&[Scope::Admin], None)?;
    let name = peer_name(&name)?;
    let bad = |error: &dyn std::fmt::Display| Problem::new(ProblemKind::BadRequest, error);
    let known = app.replication.peer(&name).map(|peer| peer.settings.clone());
    let endpoint = match (&wanted.url, &known) {
        (Some(url), _) => Some(Endpoint::parse(url).map_err(|error| bad(&error))?),
        (None, Some(known)) => Some(known.endpoint.clone()),
        (None, None) => None,
    };
    let Some(mut endpoint) = endpoint else {
        return Err(bad(&format_args!("cannot add the site {name}: it has no address; give one")));
    };
    if let Some(known) = &known {
        endpoint.token.clone_from(&known.endpoint.token);
        endpoint.fingerprint = known.endpoint.fingerprint;
    }
    if let Some(token) = wanted.token {
        endpoint.token = Some(token);
    }
    if let Some(fingerprint) = wanted.fingerprint {
        endpoint.fingerprint = Some(fingerprint.parse().map_err(|error| bad(&error))?);
    }
    let interval = wanted.interval_milliseconds.map(Duration::from_millis);
    let interval = interval.or(known.as_ref().map(|known| known.interval)).unwrap_or(INTERVAL);
    if interval < SHORTEST_INTERVAL {
        return Err(bad(&format_args!(
            "cannot use the interval {interval:?}: it is below 100 ms; take more"
        )));
    }
    let is_paused = wanted.paused.unwrap_or(known.is_some_and(|known| known.is_paused));
    let peer = app.replication.set(name, Settings { endpoint, interval, is_paused }).await;
    let peer = peer.map_err(|error| Problem::internal("keep the site", error))?;
    app.audit(&access, "site change", &peer.name).await;
    if let Err(error) = peer.client() {
        return Err(bad(error));
    }
    Ok(Json(body(&app, &peer).await?))
}

/// Removes a peer. Both sites keep what they have.
#[utoipa::path(delete, path = "/sites/{name}", tag = "replication",
    params(("name" = String, Path, description = "Name of the peer at this site")),
    responses((status = 204, description = "The peer is removed"), (status = 404, description = "There is none")))]
pub(crate) async fn remove(
    State(app): State<Arc<App>>,
    Extension(access): Extension<Access>,
    Path(name): Path<String>,
) -> Result<StatusCode, Problem> {
    access.require(&[Scope::Admin], None)?;
    let name = peer_name(&name)?;
    let removed = app.replication.remove(&name).await;
    if removed.map_err(|error| Problem::internal("remove the site", error))? {
        app.audit(&access, "site remove", &name).await;
        Ok(StatusCode::NO_CONTENT)
    } else {
        Err(Problem::not_found(format_args!("the site {name}")))
    }
}

fn peer_name(text: &str) -> Result<PeerName, Problem> {
    text.parse().map_err(|error| Problem::new(ProblemKind::BadName, error))
}

async fn body(app: &App, peer: &Peer) -> Result<PeerBody, Problem> {
    let status = peer.status();
    let theirs = status.vector;
    let queue = move |catalog: &mut Catalog<_>| {
        let ours: VersionVector = catalog.vector()?;
        let queue: u64 = ours.iter().map(|(site, seq)| seq.saturating_sub(theirs.get(site))).sum();
        let first = match catalog.operations_beyond(&theirs, 1) {
            // The peer needs a snapshot; the age of what it lacks is not known.
            Err(CatalogError::Compacted { .. }) => Vec::new(),
            first => first?,
        };
        Ok((SiteNames::read(catalog)?, queue, first.first().map(|operation| operation.time.millis().0)))
    };
    let (names, queue, oldest) = super::catalog::with(app, "read the state", queue).await?;
    let now = app.clock.now().milliseconds().max(0) as u64;
    let Settings { endpoint, interval, is_paused } = &peer.settings;
    let state = match (is_paused, &status.failure, status.contact) {
        (true, _, _) => "paused",
        (_, Some(_), _) => "lost",
        (_, None, None) => "new",
        (_, None, Some(_)) => "connected",
    };
    let (failed_since, error) = status.failure.unzip();
    let error = error.map(|error| names.named(&error));
    Ok(PeerBody {
        name: peer.name.to_string(),
        url: endpoint.url.to_string(),
        fingerprint: endpoint.fingerprint.map(|fingerprint| fingerprint.to_string()),
        interval_milliseconds: interval.as_millis() as u64,
        state,
        site: status.site.map(|site| site.to_string()),
        contact: status.contact.map(Timestamp::milliseconds),
        latency_microseconds: status.latency.map(|latency| latency.as_micros() as u64),
        queue,
        lag_milliseconds: oldest.map_or(0, |oldest| now.saturating_sub(oldest)),
        pushed: status.pushed,
        pulled: status.pulled,
        failed_since: failed_since.map(Timestamp::milliseconds),
        error,
    })
}
