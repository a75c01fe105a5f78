//! Replication of the catalog with other sites: all write, and all get the operations of all.
//!
//! The parts are those of a replicated metadata server (petashare, section 3.2): the *extractor* takes operations from the
//! log, a *dispatcher* for each peer sends them when they are committed, the *collector* takes those of others, the
//! *injector* applies them, and the *conflict resolver* is the merging of the catalog. The log itself is the outgoing queue:
//! a peer lacks what lies beyond its version vector, so nothing is lost while it is away. A dispatcher also pulls, which
//! repairs what pushes lost. Here is no rule of merging (`catalog`) and no route (`routes`).

mod care;
mod collector;
mod dispatcher;
mod distant;
mod extractor;
mod injector;
mod names;
mod peer;
mod peer_table;
mod status;

use crate::clock::Clock;
use crate::database::DatabaseError;
use crate::error::ServerError;
use crate::log::Log;
use crate::options::Limits;
use crate::site::{DistantReplicas, SiteArchive};
use dispatcher::Dispatcher;
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError, Weak};
use tokio::runtime::Handle;
use tokio::sync::Notify;

pub(crate) use collector::{MOST_BATCH, collect};
pub(crate) use extractor::{Extent, extract};
pub(crate) use injector::{Injected, inject};
pub(crate) use names::SiteNames;
pub(crate) use peer::{INTERVAL, Peer, PeerName, Settings};
pub(crate) use peer_table::prepare;

/// Surroundings of the exchange.
pub(crate) struct Surroundings {
    pub(crate) clock: Clock,
    /// Folder of temporary files.
    pub(crate) folder: PathBuf,
    pub(crate) limits: Limits,
    /// Name that this site gives itself.
    pub(crate) name: String,
}

/// Peers of a site with their dispatchers.
pub(crate) struct Replication {
    site: Arc<SiteArchive>,
    clock: Clock,
    log: Log,
    runtime: Handle,
    /// Folder of temporary files.
    folder: PathBuf,
    /// Wakes the care of the log and of the vaults.
    wake: Arc<Notify>,
    peers: Mutex<BTreeMap<PeerName, Arc<Peer>>>,
}

impl Replication {
    /// Starts the dispatchers of all peers in the journal, and the care of the log. Blocks.
    pub(crate) fn start(
        site: Arc<SiteArchive>,
        surroundings: Surroundings,
        log: Log,
        runtime: Handle,
    ) -> Result<Arc<Self>, ServerError> {
        let Surroundings { clock, folder, limits, name } = surroundings;
        let known = site.journal.database.read_blocking(peer_table::peers);
        let known = known.map_err(|error| {
            ServerError::failed("read the peers of the site", error, "check the file site.db")
        })?;
        let told = site.catalog.with(|catalog| names::tell(catalog, &name));
        told.map_err(|error| ServerError::failed("tell the name of the site", error, "start again"))?;
        let wake = Arc::new(Notify::new());
        let care = care::run(Arc::clone(&site), log.clone(), limits, Arc::clone(&wake));
        runtime.spawn(care);
        let replication = Self { site, clock, log, runtime, folder, wake, peers: Mutex::default() };
        for (name, settings) in known {
            replication.run(name, settings);
        }
        let replication = Arc::new(replication);
        let distant = Arc::downgrade(&replication) as Weak<dyn DistantReplicas>;
        replication.site.connect(distant);
        Ok(replication)
    }

    /// Removes the bytes of purged objects soon.
    pub(crate) fn sweep(&self) {
        self.wake.notify_one();
    }

    /// Peers in the order of their names.
    pub(crate) fn peers(&self) -> Vec<Arc<Peer>> {
        self.peers.lock().unwrap_or_else(PoisonError::into_inner).values().cloned().collect()
    }

    /// Peer with a name.
    pub(crate) fn peer(&self, name: &PeerName) -> Option<Arc<Peer>> {
        self.peers.lock().unwrap_or_else(PoisonError::into_inner).get(name).cloned()
    }

    /// Adds a peer or changes its settings, durably and at once.
    pub(crate) async fn set(&self, name: PeerName, settings: Settings) -> Result<Arc<Peer>, DatabaseError> {
        let (kept, values) = (name.clone(), settings.clone());
        let write = move |connection: &_| peer_table::put(connection, &kept, &values);
        self.site.journal.database.write(write).await?;
        Ok(self.run(name, settings))
    }

    /// Removes a peer; false if there is none. What it has received it keeps.
    pub(crate) async fn remove(&self, name: &PeerName) -> Result<bool, DatabaseError> {
        let removed = name.clone();
        let write = move |connection: &_| peer_table::remove(connection, &removed);
        let is_removed = self.site.journal.database.write(write).await?;
        let peer = self.peers.lock().unwrap_or_else(PoisonError::into_inner).remove(name);
        peer.inspect(|peer| peer.stop());
        Ok(is_removed)
    }

    /// Replaces the dispatcher of a peer by one with new settings.
    fn run(&self, name: PeerName, settings: Settings) -> Arc<Peer> {
        let mut peers = self.peers.lock().unwrap_or_else(PoisonError::into_inner);
        let before = peers.remove(&name).inspect(|before| before.stop());
        // Other settings do not change what the peer has.
        let same = before.filter(|before| before.settings.endpoint.url == settings.endpoint.url);
        let status = same.map(|before| before.status()).unwrap_or_default();
        let peer = Arc::new(Peer::new(name.clone(), settings, status));
        let dispatcher = Dispatcher {
            peer: Arc::clone(&peer),
            site: Arc::clone(&self.site),
            clock: self.clock.clone(),
            log: self.log.clone(),
            folder: self.folder.clone(),
        };
        peer.started(self.runtime.spawn(dispatcher.run()).abort_handle());
        peers.insert(name, Arc::clone(&peer));
        peer
    }
}
