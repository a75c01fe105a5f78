//! Peer: another site with its settings, its client, its dispatcher, and the state of the exchange.

use super::status::Status;
use holdfast_remote::{Endpoint, RemoteError, Site};
use std::fmt;
use std::str::FromStr;
use std::sync::{Mutex, OnceLock, PoisonError};
use std::time::Duration;
use tokio::task::AbortHandle;

/// Pause between two full exchanges, unless the settings have another.
pub(crate) const INTERVAL: Duration = Duration::from_secs(10);

/// Silence after which a request to a peer ends.
const IDLE: Duration = Duration::from_secs(20);

/// Longest name of a peer in bytes, that of a label in the domain name system.
const MOST_NAME: usize = 63;

/// Name of a peer: letters, digits, `-`, `_` and `.`.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct PeerName(String);

impl PeerName {
    /// Text of the name.
    pub(crate) fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for PeerName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl FromStr for PeerName {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let is_allowed = |c: char| c.is_ascii_alphanumeric() || "-_.".contains(c);
        let first = text.chars().next().is_some_and(|c| c.is_ascii_alphanumeric());
        if first && text.len() <= MOST_NAME && text.chars().all(is_allowed) {
            return Ok(Self(text.to_owned()));
        }
        let name = text.escape_debug();
        Err(format!(
            "cannot use the site name '{name}': it is not 1 to {MOST_NAME} letters, digits, '-', '_' or '.', \
             beginning with a letter or digit; choose another name"
        ))
    }
}

/// Settings of a peer, which administrators change.
#[derive(Clone, PartialEq, Eq)]
pub(crate) struct Settings {
    /// Address and credentials of the peer's server.
    pub(crate) endpoint: Endpoint,
    /// Pause between two full exchanges; committed operations are pushed at once.
    pub(crate) interval: Duration,
    /// True while nothing is exchanged on this site's part.
    pub(crate) is_paused: bool,
}

/// Peer that has a dispatcher.
pub(crate) struct Peer {
    pub(crate) name: PeerName,
    pub(crate) settings: Settings,
    client: Result<Site, RemoteError>,
    status: Mutex<Status>,
    task: OnceLock<AbortHandle>,
}

impl Peer {
    /// Peer that continues from a state.
    pub(super) fn new(name: PeerName, settings: Settings, status: Status) -> Self {
        let endpoint = Endpoint { idle: IDLE, ..settings.endpoint.clone() };
        let client = Site::connect(&endpoint);
        Self { name, settings, client, status: Mutex::new(status), task: OnceLock::new() }
    }

    pub(super) fn started(&self, task: AbortHandle) {
        let _ = self.task.set(task);
    }

    /// Ends the dispatcher. A batch that is being applied here is still applied.
    pub(super) fn stop(&self) {
        if let Some(task) = self.task.get() {
            task.abort();
        }
    }

    /// Client of the peer's server.
    pub(crate) fn client(&self) -> Result<&Site, &RemoteError> {
        self.client.as_ref()
    }

    /// Copy of the present state.
    pub(crate) fn status(&self) -> Status {
        self.status.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Changes the state of the exchange.
    pub(super) fn update<T>(&self, change: impl FnOnce(&mut Status) -> T) -> T {
        change(&mut self.status.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_labels() {
        for good in ["b", "lab-2.example_x", "0"] {
            assert!(good.parse::<PeerName>().is_ok(), "{good}");
        }
        for bad in ["", "-a", "a b", "a/b", "ä", &"x".repeat(64)] {
            assert!(bad.parse::<PeerName>().is_err(), "{bad}");
        }
    }
}
