//! Orders to hold data of rings, at this site or at any other, and their states.

use super::catalog::{allowed, with};
use crate::access::Access;
use crate::app::App;
use crate::authorization::Verb;
use crate::holds::{HoldOrder, HoldOutcomeFact, HoldProgress, orders};
use crate::problem::{Problem, ProblemKind};
use crate::replication::SiteNames;
use crate::site::AnyStore;
use crate::token::Scope;
use axum::extract::State;
use axum::{Extension, Json};
use holdfast_catalog::{Catalog, CatalogError, FactKind};
use http::StatusCode;
use serde::{Deserialize, Serialize};
use std::sync::Arc;
use utoipa::ToSchema;

/// Longest text of an order in bytes: its fact has a bounded size.
const MOST_TEXT: usize = 1024;

/// Most streams of an order.
const MOST_STREAMS: usize = 8;

/// Order to hold a range of a ring.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Wanted {
    /// Name or identity of the ring's site; this one without it.
    site: Option<String>,
    /// Name of the ring in the configuration of its site.
    ring: String,
    /// Names of streams; all without one.
    #[serde(default)]
    streams: Vec<String>,
    /// Begin of the range, in nanoseconds since 1970.
    from: Option<i64>,
    /// End of the range, in nanoseconds since 1970.
    to: Option<i64>,
    /// True if times mean event times.
    #[serde(default)]
    by_event: bool,
    /// Reason of the hold.
    reason: String,
    /// Owner of the hold.
    owner: String,
    /// End of the hold, in nanoseconds since 1970.
    until: Option<i64>,
}

/// Order with its state.
#[derive(Serialize, ToSchema)]
pub(crate) struct OrderBody {
    /// UUID of the order.
    id: String,
    /// Name of the ring's site.
    site: String,
    /// Name of the ring.
    ring: String,
    /// Names of streams; none for all.
    streams: Vec<String>,
    /// Begin of the range, in nanoseconds since 1970.
    from: Option<i64>,
    /// End of the range, in nanoseconds since 1970.
    to: Option<i64>,
    /// Reason of the hold.
    reason: String,
    /// Owner of the hold.
    owner: String,
    /// Name of the site at which the order was given.
    by: String,
    /// Time of the order, in milliseconds since 1970.
    ordered: i64,
    /// State: `ordered`, `waiting` while the ring is away, `applied`, `expired` or `refused`.
    state: &'static str,
    /// Time of the state, in milliseconds since 1970; null while it is ordered.
    changed: Option<u64>,
    /// Number of the hold on its ring, once it is applied.
    hold: Option<u64>,
    /// Number of slots that are kept.
    slots: Option<u64>,
    /// Number of bytes that are kept.
    bytes: Option<u64>,
    /// Reason of the state, or the part of an applied order that had expired.
    message: Option<String>,
}

fn body(names: &SiteNames, progress: HoldProgress) -> OrderBody {
    let HoldProgress { id, order, state } = progress;
    let changed = state.as_ref().map(|(_, changed)| *changed);
    let (state, held, message) = match state.map(|(state, _)| state) {
        None => ("ordered", None, None),
        Some(HoldOutcomeFact::Applied { hold, slots, bytes, expired }) => {
            ("applied", Some((hold, slots, bytes)), expired)
        }
        Some(HoldOutcomeFact::Expired { reason }) => ("expired", None, Some(reason)),
        Some(HoldOutcomeFact::Refused { reason }) => ("refused", None, Some(reason)),
        Some(HoldOutcomeFact::Waiting { reason }) => ("waiting", None, Some(reason)),
    };
    OrderBody {
        id,
        site: names.of(order.site),
        ring: order.ring,
        streams: order.streams,
        from: order.from,
        to: order.to,
        reason: order.reason,
        owner: order.owner,
        by: names.of(order.by),
        ordered: order.ordered,
        state,
        changed,
        hold: held.map(|held| held.0),
        slots: held.map(|held| held.1),
        bytes: held.map(|held| held.2),
        message,
    }
}

/// Orders of all sites with their states, oldest first.
#[utoipa::path(get, path = "/holds", tag = "holds", responses((status = 200, body = Vec<OrderBody>)))]
pub(crate) async fn list(
    State(app): State<Arc<App>>,
    Extension(access): Extension<Access>,
) -> Result<Json<Vec<OrderBody>>, Problem> {
    access.require_site(Scope::Read)?;
    let read = |catalog: &mut Catalog<AnyStore>| Ok((SiteNames::read(catalog)?, orders(catalog)?));
    let (names, orders) = with(&app, "read the orders", read).await?;
    Ok(Json(orders.into_iter().map(|order| body(&names, order)).collect()))
}

/// Orders a hold. It reaches the ring with the other operations, also after its site was away.
#[utoipa::path(post, path = "/holds", tag = "holds", request_body = Wanted,
    responses((status = 201, body = OrderBody), (status = 400, description = "The site is not known, or a text is too long")))]
pub(crate) async fn order(
    State(app): State<Arc<App>>,
    Extension(access): Extension<Access>,
    Json(wanted): Json<Wanted>,
) -> Result<(StatusCode, Json<OrderBody>), Problem> {
    allowed(&app, &access, Some("/"), Verb::Change).await?;
    let bad = |reason: &str, remedy: &str| {
        let detail = format_args!("cannot order the hold: {reason}; {remedy}");
        Problem::new(ProblemKind::BadRequest, detail)
    };
    let is_long = |text: &String| text.len() > MOST_TEXT;
    let texts = [&wanted.ring, &wanted.reason, &wanted.owner];
    let is_long = wanted.streams.iter().any(is_long) || texts.into_iter().any(is_long);
    if is_long || wanted.streams.len() > MOST_STREAMS {
        return Err(bad("it has more than 8 streams, or a text above 1024 bytes", "order less at once"));
    }
    if wanted.ring.is_empty() || wanted.ring.contains('/') {
        return Err(bad("the ring is no name", "give the name in the configuration file of its site"));
    }
    let (own, ordered) = (app.site.catalog.site(), app.clock.now().milliseconds());
    let order = move |catalog: &mut Catalog<AnyStore>| {
        let names = SiteNames::read(catalog)?;
        let site = wanted.site.as_deref().map_or(Some(own), |text| names.site(text));
        let Some(site) = site else { return Ok(None) };
        let Wanted { ring, streams, from, to, by_event, reason, owner, until, .. } = wanted;
        let by = own;
        let order = HoldOrder { site, ring, streams, from, to, by_event, reason, owner, until, by, ordered };
        let text = serde_json::to_string(&order).unwrap_or_default();
        let id = catalog.fresh_id().to_string();
        catalog.set_fact(FactKind::HoldOrder, &id, Some(&text))?;
        Ok::<_, CatalogError>(Some(body(&names, HoldProgress { id, order, state: None })))
    };
    let ordered = with(&app, "order the hold", order).await?;
    let ordered = ordered.ok_or_else(|| bad("no known site has this name", "list the sites"))?;
    app.audit(&access, "hold order", format!("hf://{}/rings/{}", ordered.site, ordered.ring)).await;
    Ok((StatusCode::CREATED, Json(ordered)))
}
