//! State of the exchange with one peer: contact, vector, counters and the last error.

use crate::clock::Timestamp;
use holdfast_catalog::{SiteId, VersionVector};
use std::time::Duration;

/// State of the exchange with one peer, since the start of this server.
#[derive(Clone, Debug, Default)]
pub(crate) struct Status {
    /// Site behind the address, once it has answered.
    pub(crate) site: Option<SiteId>,
    /// Name that the peer gives itself.
    pub(crate) own_name: Option<String>,
    /// Operations that the peer had applied at the last contact.
    pub(crate) vector: VersionVector,
    /// Time of the last answer.
    pub(crate) contact: Option<Timestamp>,
    /// Time of a small request, which orders the sites by nearness.
    pub(crate) latency: Option<Duration>,
    /// Number of operations that the peer has taken from this site.
    pub(crate) pushed: u64,
    /// Number of operations that this site has pulled from the peer and applied.
    pub(crate) pulled: u64,
    /// Time and text of the error since which nothing was exchanged; nothing while the exchange works.
    pub(crate) failure: Option<(Timestamp, String)>,
}

impl Status {
    /// Notes an answer; true if it ends a failure.
    pub(super) fn succeeded(&mut self, now: Timestamp) -> bool {
        self.contact = Some(now);
        self.failure.take().is_some()
    }

    /// Notes an error; true if it begins a failure. The time of its beginning stays.
    pub(super) fn failed(&mut self, now: Timestamp, text: String) -> bool {
        let since = self.failure.as_ref().map(|(since, _)| *since);
        self.failure = Some((since.unwrap_or(now), text));
        since.is_none()
    }
}
