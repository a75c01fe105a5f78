//! Options of a server: data folder, address, transport, limits. Every option has a default.

use crate::clock::Clock;
use crate::drivers::DriverOptions;
use crate::extract::Extractor;
use crate::holds::HoldTaker;
use crate::log::Log;
use crate::searches::SearchProgram;
use crate::site::{CatalogSource, NamedStore};
use std::fmt;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

/// Port of a server without configuration.
pub const DEFAULT_PORT: u16 = 7370;

/// Encryption of the server's connections.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Transport {
    /// Plain HTTP on a loopback address, a self-signed certificate on any other.
    #[default]
    Automatic,
    /// Plain HTTP, for a server behind a proxy that encrypts.
    Plain,
    /// TLS with a certificate made at the first start, which clients recognise by its fingerprint.
    SelfSigned,
    /// TLS with certificate and key from PEM files.
    Files {
        /// File with the certificate and its chain.
        certificate: PathBuf,
        /// File with the private key.
        key: PathBuf,
    },
}

/// Limits of a server; each default has its reason beside it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Connections at the same time: each may occupy one blocking thread.
    pub connections: usize,
    /// Connections of one address that have shown no valid token; beyond it a new one takes the place of the oldest. `None` for
    /// a quarter of all connections, so that others find room.
    pub strangers: Option<usize>,
    /// Bytes of one request's body: a bound for a client that never ends.
    pub request_body: u64,
    /// Bytes of one upload: below the greatest file of ext4, 16 TiB.
    pub upload: u64,
    /// Uploads that are not settled, which are kept in memory.
    pub open_uploads: usize,
    /// Requests of one token, or of one address without token, per second on average.
    pub requests_per_second: u32,
    /// Requests of one token or address in a burst.
    pub request_burst: u32,
    /// Bytes that uploads leave free on the disk, so that the databases can still commit.
    pub reserved_space: u64,
    /// Appended bytes after which a running request becomes durable.
    pub sync_bytes: u64,
    /// Time after which appended bytes of a slow request become durable and visible to readers.
    pub sync_time: Duration,
    /// Silence within a request's body after which the request ends.
    pub body_idle: Duration,
    /// Memory of all bodies that are held in memory, such as segments that wait for their turn: four windows of 64 MiB. An
    /// encoded body takes up to 16 MiB.
    pub ahead_bytes: usize,
    /// Time for the head of a request, and for a TLS handshake.
    pub header_time: Duration,
    /// Time for the body of a request that needs no token.
    pub public_body_time: Duration,
    /// Life of an unfinished upload after its last byte, and of a finished one's record.
    pub upload_lifetime: Duration,
    /// First pause after a failed delivery to the archive; each further one is twice as long.
    pub first_retry: Duration,
    /// Longest pause after a failed delivery to the archive.
    pub longest_retry: Duration,
    /// Deliveries to the archive and concatenations at the same time: they compete for the disk with uploads.
    pub background_jobs: usize,
    /// Runs of drivers at the same time: they compete for the disk with uploads.
    pub driver_jobs: usize,
    /// Longest pause after a failed run of a driver: a run may read the whole version.
    pub longest_driver_retry: Duration,
    /// Pause between acknowledgements of the operations of other sites: each is an operation itself.
    pub acknowledge_time: Duration,
    /// Age from which operations that all sites have are removed from the log; younger ones let a new site join.
    pub log_age: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            connections: 256,
            strangers: None,
            request_body: 1 << 40,
            upload: 8 << 40,
            open_uploads: 10_000,
            requests_per_second: 1_000,
            request_burst: 2_000,
            reserved_space: 64 << 20,
            sync_bytes: 16 << 20,
            sync_time: Duration::from_secs(1),
            body_idle: Duration::from_mins(1),
            ahead_bytes: 256 << 20,
            header_time: Duration::from_secs(30),
            public_body_time: Duration::from_secs(30),
            upload_lifetime: Duration::from_hours(7 * 24),
            first_retry: Duration::from_secs(1),
            longest_retry: Duration::from_mins(1),
            background_jobs: 2,
            driver_jobs: 2,
            longest_driver_retry: Duration::from_hours(1),
            acknowledge_time: Duration::from_mins(1),
            log_age: Duration::from_hours(7 * 24),
        }
    }
}

impl Limits {
    /// Connections of one address that have shown no valid token.
    pub(crate) fn strangers_of_address(&self) -> usize {
        self.strangers.unwrap_or(self.connections / 4).max(1)
    }
}

/// Options of a server. `ServerOptions::new(FOLDER)` is a complete configuration.
#[derive(Clone)]
pub struct ServerOptions {
    /// Folder of all state.
    pub data: PathBuf,
    /// Name that the site gives itself, shown at other sites.
    pub name: String,
    /// Address to listen on; port 0 lets the operating system choose.
    pub listen: SocketAddr,
    /// Encryption of the server's connections.
    pub transport: Transport,
    /// Limits of requests, uploads and connections.
    pub limits: Limits,
    /// Vaults of finished uploads; new versions go to the first. Empty for the folder `archive` in the data folder.
    pub stores: Vec<NamedStore>,
    /// Database of the catalog; `None` for the `SQLite` file `catalog.db` in the data folder.
    pub catalog: Option<CatalogSource>,
    /// Drivers that run for new versions.
    pub drivers: Vec<DriverOptions>,
    /// Extractors of attributes besides the built-in ones.
    pub extractors: Vec<Extractor>,
    /// Giver of orders to the recorders of this site.
    pub holds: Option<Arc<dyn HoldTaker>>,
    /// Maker of programs that search the rings of this site; without it none can be searched.
    pub searches: Option<Arc<dyn SearchProgram>>,
    /// Source of the current time.
    pub clock: Clock,
    /// Receiver of log events.
    pub log: Log,
}

impl ServerOptions {
    /// Options of a server with all state in `data`, on the loopback address.
    pub fn new(data: impl Into<PathBuf>) -> Self {
        Self {
            data: data.into(),
            name: "site".to_owned(),
            listen: SocketAddr::from((Ipv4Addr::LOCALHOST, DEFAULT_PORT)),
            transport: Transport::default(),
            limits: Limits::default(),
            stores: Vec::new(),
            catalog: None,
            drivers: Vec::new(),
            extractors: Vec::new(),
            holds: None,
            searches: None,
            clock: Clock::System,
            log: Log::silent(),
        }
    }
}

impl fmt::Debug for ServerOptions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ServerOptions")
            .field("data", &self.data)
            .field("listen", &self.listen)
            .field("transport", &self.transport)
            .field("limits", &self.limits)
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn strangers_of_an_address_have_a_quarter_of_the_connections() {
        for (connections, strangers) in [(256, 64), (8, 2), (3, 1), (1, 1)] {
            let limits = Limits { connections, ..Limits::default() };
            assert_eq!(limits.strangers_of_address(), strangers);
        }
        let given = |strangers| Limits { strangers: Some(strangers), ..Limits::default() };
        assert_eq!([100, 0].map(|strangers| given(strangers).strangers_of_address()), [100, 1]);
    }
}
