//! Orders to hold data of rings of any site, and their states.

use crate::error::RemoteError;
use crate::send::Call;
use crate::site::Site;
use bytes::Bytes;
use reqwest::Method;
use reqwest::header::CONTENT_TYPE;
use serde::{Deserialize, Serialize};
use std::time::Duration;

/// Order to hold a range of a ring.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct NewHoldOrder {
    /// Name or identity of the ring's site; the asked one without it.
    pub site: Option<String>,
    /// Name of the ring in the configuration of its site.
    pub ring: String,
    /// Names of streams; none for all.
    pub streams: Vec<String>,
    /// Begin of the range, in nanoseconds since 1970.
    pub from: Option<i64>,
    /// End of the range, in nanoseconds since 1970.
    pub to: Option<i64>,
    /// True if times mean event times.
    pub by_event: bool,
    /// Reason of the hold.
    pub reason: String,
    /// Owner of the hold.
    pub owner: String,
    /// End of the hold, in nanoseconds since 1970.
    pub until: Option<i64>,
}

/// Order with its state.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub struct SiteHoldOrder {
    /// UUID of the order.
    pub id: String,
    /// Name of the ring's site.
    pub site: String,
    /// Name of the ring in the configuration of its site.
    pub ring: String,
    /// Names of streams; none for all.
    pub streams: Vec<String>,
    /// Begin of the range, in nanoseconds since 1970.
    pub from: Option<i64>,
    /// End of the range, in nanoseconds since 1970.
    pub to: Option<i64>,
    /// Reason of the hold.
    pub reason: String,
    /// Owner of the hold.
    pub owner: String,
    /// Name of the site at which the order was given.
    pub by: String,
    /// Time of the order, in milliseconds since 1970.
    pub ordered: i64,
    /// State: `ordered`, `waiting`, `applied`, `expired` or `refused`.
    pub state: String,
    /// Time of the state, in milliseconds since 1970.
    pub changed: Option<i64>,
    /// Number of the hold on its ring, once it is applied.
    pub hold: Option<u64>,
    /// Number of slots that are kept.
    pub slots: Option<u64>,
    /// Number of bytes that are kept.
    pub bytes: Option<u64>,
    /// Reason of the state, or the part that had expired.
    pub message: Option<String>,
}

impl Site {
    /// Orders a hold at any site.
    pub async fn order_hold(&self, order: &NewHoldOrder) -> Result<SiteHoldOrder, RemoteError> {
        let (action, url) = ("order the hold by", &self.address(["holds"])?);
        let body = serde_json::to_vec(order);
        let body = body.map_err(|error| RemoteError::nonsense(action, url, error))?.into();
        let request = self.request(Method::POST, url).header(CONTENT_TYPE, "application/json");
        self.send_json(Call { action, url, request, body, patience: Duration::ZERO }).await
    }

    /// Lists the orders of all sites, oldest first.
    pub async fn hold_orders(&self) -> Result<Vec<SiteHoldOrder>, RemoteError> {
        let url = &self.address(["holds"])?;
        let (action, request) = ("list the orders of", self.request(Method::GET, url));
        self.send_json(Call { action, url, request, body: Bytes::new(), patience: Duration::ZERO }).await
    }
}
