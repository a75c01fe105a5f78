//! Log events of a server, and the callback that receives them.

use serde::Serialize;
use std::fmt;
use std::sync::Arc;

/// Event of a server, serialised as one JSON object with the field `event`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(tag = "event", rename_all = "snake_case")]
#[non_exhaustive]
pub enum Event {
    /// The server accepts connections.
    Started {
        /// Address of the server, with scheme and port.
        url: String,
        /// SHA-256 of the certificate, for servers with TLS.
        fingerprint: Option<String>,
    },
    /// The server answered a request.
    Request {
        /// Method of the request.
        method: String,
        /// Path of the request without its query.
        path: String,
        /// Status of the answer.
        status: u16,
        /// Time until the head of the answer, in milliseconds.
        milliseconds: u64,
        /// Address of the client.
        peer: String,
        /// Public identity of the token, if one was used.
        token: Option<String>,
    },
    /// The archive has stored an upload.
    Stored {
        /// Identity of the upload.
        upload: String,
        /// Project of the object.
        project: String,
        /// Path of the object in its project.
        path: String,
        /// Version that the archive has made.
        version: String,
        /// Size of the contents in bytes.
        size: u64,
        /// BLAKE3 of the contents.
        blake3: String,
    },
    /// The archive could not store an upload; the server tries again.
    DeliveryFailed {
        /// Identity of the upload.
        upload: String,
        /// Reason as the archive reports it.
        reason: String,
        /// Pause before the next attempt, in milliseconds.
        retry_milliseconds: u64,
    },
    /// An upload cannot be completed.
    UploadFailed {
        /// Identity of the upload.
        upload: String,
        /// Reason of the failure.
        reason: String,
    },
    /// The stored contents of a version are damaged; an answer with them was cut.
    DamagedRead {
        /// Project of the object.
        project: String,
        /// Path of the object in its project.
        path: String,
        /// Version with the damaged contents.
        version: String,
        /// BLAKE3 of the bytes that were read.
        found: String,
    },
    /// A driver has done its work on a version.
    DriverSucceeded {
        /// Name of the driver.
        driver: String,
        /// Project of the object.
        project: String,
        /// Version that the driver worked on.
        version: String,
        /// Number of the attempt, from 1.
        attempt: u32,
        /// Text of the driver.
        message: String,
    },
    /// A driver has failed on a version; the server tries again.
    DriverFailed {
        /// Name of the driver.
        driver: String,
        /// Project of the object.
        project: String,
        /// Version that the driver worked on.
        version: String,
        /// Number of the attempt, from 1.
        attempt: u32,
        /// Reason of the failure.
        reason: String,
        /// Pause before the next attempt, in milliseconds.
        retry_milliseconds: u64,
    },
    /// The exchange with a peer works again.
    PeerBack {
        /// Name of the peer.
        peer: String,
    },
    /// The exchange with a peer does not work any more; the server tries again.
    PeerLost {
        /// Name of the peer.
        peer: String,
        /// Reason of the first failure.
        reason: String,
    },
    /// Two sites have changed the same entry; a rule has decided, and `holdfast conflicts` lists what can be settled.
    Conflict {
        /// Kind of the conflict: `same_name`, `renamed_twice`, `contents_twice`, `cycle_avoided` or `rescued`.
        kind: &'static str,
        /// Identity of the entry.
        object: String,
        /// Path of the entry now, null if it lies in the trash.
        path: Option<String>,
    },
    /// The catalog was replaced by that of a peer, as this site was new or far behind.
    SnapshotImported {
        /// Name of the peer.
        peer: String,
    },
    /// Operations that all sites have were removed from the log.
    Compacted {
        /// Number of removed operations.
        operations: u64,
    },
    /// The state of an order to hold data of a ring of this site has changed.
    HoldOrder {
        /// UUID of the order.
        order: String,
        /// Name of the ring.
        ring: String,
        /// State: `applied`, `expired`, `refused` or `waiting`.
        state: &'static str,
    },
    /// An operation waits in quarantine, as its stamp is too far ahead of this clock.
    Quarantined {
        /// Site that made the operation.
        site: String,
        /// Place of the operation in the site's log.
        operation: u64,
    },
    /// Abandoned uploads have expired.
    Expired {
        /// Number of removed uploads.
        uploads: usize,
    },
    /// A connection or a background job ended by an error that no client sees.
    Trouble {
        /// Part of the server that reports the error.
        part: &'static str,
        /// Reason of the error.
        reason: String,
    },
    /// The server has stopped.
    Stopped,
}

/// Callback for events; it must not block.
#[derive(Clone)]
pub struct Log(Arc<dyn Fn(&Event) + Send + Sync>);

impl Log {
    /// Log that calls `receiver` on every event.
    pub fn new(receiver: impl Fn(&Event) + Send + Sync + 'static) -> Self {
        Self(Arc::new(receiver))
    }

    /// Log that drops all events.
    pub fn silent() -> Self {
        Self::new(|_| {})
    }

    pub(crate) fn event(&self, event: &Event) {
        (self.0)(event);
    }

    pub(crate) fn trouble(&self, part: &'static str, reason: impl fmt::Display) {
        self.event(&Event::Trouble { part, reason: reason.to_string() });
    }
}

impl fmt::Debug for Log {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Log")
    }
}
