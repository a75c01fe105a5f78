//! Peers of a site: their settings, and the state of the exchange with each.

use crate::error::RemoteError;
use crate::send::Call;
use crate::site::Site;
use bytes::Bytes;
use reqwest::Method;
use reqwest::header::CONTENT_TYPE;
use serde::{Deserialize, Serialize};
use std::time::Duration;

/// Settings of a peer that are set; a missing one keeps its value, or its default for a new peer.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct PeerChange {
    /// Address of the peer's server; a new peer needs one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub url: Option<String>,
    /// Token of this site at the peer.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub token: Option<String>,
    /// SHA-256 of the only certificate of the peer to trust.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub fingerprint: Option<String>,
    /// Pause between two full exchanges, in milliseconds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub interval_milliseconds: Option<u64>,
    /// True to exchange nothing until it is false again.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub paused: Option<bool>,
}

/// Settings of a peer without its token, and the state of the exchange.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub struct PeerState {
    /// Name of the peer at this site.
    pub name: String,
    /// Address of the peer's server.
    pub url: String,
    /// SHA-256 of the only certificate that is trusted.
    pub fingerprint: Option<String>,
    /// Pause between two full exchanges, in milliseconds.
    pub interval_milliseconds: u64,
    /// State: `paused`, `new`, `connected` or `lost`.
    pub state: String,
    /// Identity of the peer in hexadecimal digits, once it has answered.
    pub site: Option<String>,
    /// Time of the last answer, in milliseconds since 1970.
    pub contact: Option<i64>,
    /// Time of a small request, in microseconds.
    pub latency_microseconds: Option<u64>,
    /// Number of operations that the peer lacks, as far as this site knows.
    pub queue: u64,
    /// Age of the oldest operation in the queue, in milliseconds.
    pub lag_milliseconds: u64,
    /// Number of operations that the peer has taken from this site since the start of the server.
    pub pushed: u64,
    /// Number of operations that this site has pulled since the start of its server.
    pub pulled: u64,
    /// Time since which the exchange does not work, in milliseconds since 1970.
    pub failed_since: Option<i64>,
    /// Reason of the last failure, while the exchange does not work.
    pub error: Option<String>,
}

impl Site {
    /// Lists the peers of the site.
    pub async fn peers(&self) -> Result<Vec<PeerState>, RemoteError> {
        let url = &self.address(["sites"])?;
        let request = self.request(Method::GET, url);
        let action = "list the peers of";
        self.send_json(Call { action, url, request, body: Bytes::new(), patience: Duration::ZERO }).await
    }

    /// Adds a peer, or changes the settings of one.
    pub async fn set_peer(&self, name: &str, change: &PeerChange) -> Result<PeerState, RemoteError> {
        let (action, url) = ("change the peer", &self.address(["sites", name])?);
        let body = serde_json::to_vec(change);
        let body = body.map_err(|error| RemoteError::nonsense(action, url, error))?.into();
        let request = self.request(Method::PATCH, url).header(CONTENT_TYPE, "application/json");
        self.send_json(Call { action, url, request, body, patience: Duration::ZERO }).await
    }

    /// Removes a peer. Both sites keep what they have.
    pub async fn remove_peer(&self, name: &str) -> Result<(), RemoteError> {
        let (action, url) = ("remove the peer", &self.address(["sites", name])?);
        let request = self.request(Method::DELETE, url);
        self.send(Call { action, url, request, body: Bytes::new(), patience: Duration::ZERO }).await.map(drop)
    }
}
