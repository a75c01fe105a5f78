//! Dispatcher: the task that exchanges operations with one peer, for ever.
//!
//! After a commit it pushes the operations of its own site. At every interval, and after a failure, it asks the peer for its
//! vector, pushes whatever the peer lacks and pulls whatever this site lacks.

use super::extractor::{Batch, Extent, extract};
use super::injector::{Injected, inject};
use super::peer::Peer;
use super::{MOST_BATCH, collect};
use crate::clock::Clock;
use crate::log::{Event, Log};
use crate::site::SiteArchive;
use holdfast_catalog::{Operation, SiteId, VersionVector};
use holdfast_remote::{RemoteErrorKind, Site};
use std::io::{BufReader, Seek as _, Write as _};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::time::sleep;

/// First pause after a failure; each further one is twice as long.
const FIRST_RETRY: Duration = Duration::from_millis(250);

/// Operations above which a site without those of others takes a snapshot in the place of the log.
const MOST_BY_LOG: u64 = 20_000;

/// Longest pause after a failure.
const LONGEST_RETRY: Duration = Duration::from_secs(15);

/// Dispatcher of one peer.
pub(super) struct Dispatcher {
    pub(super) peer: Arc<Peer>,
    pub(super) site: Arc<SiteArchive>,
    pub(super) clock: Clock,
    pub(super) log: Log,
    /// Folder of temporary files.
    pub(super) folder: PathBuf,
}

impl Dispatcher {
    /// Exchanges operations until the task is aborted. Errors end in the state of the peer and in the log.
    pub(super) async fn run(self) {
        if self.peer.settings.is_paused {
            return;
        }
        let mut commits = self.site.catalog.commits();
        let mut retry = FIRST_RETRY;
        loop {
            commits.mark_unchanged();
            let mut result = self.exchange().await;
            let next = Instant::now() + self.peer.settings.interval;
            while self.note(&result) {
                retry = FIRST_RETRY;
                let left = next.saturating_duration_since(Instant::now());
                tokio::select! {
                    changed = commits.changed() => match changed {
                        Ok(()) => result = self.push_own().await,
                        // The catalog is gone with its server.
                        Err(_) => return,
                    },
                    () = sleep(left) => break,
                }
            }
            if result.is_err() {
                sleep(retry).await;
                retry = (retry * 2).min(LONGEST_RETRY);
            }
        }
    }

    /// Notes the result of an exchange; true if it has succeeded.
    fn note(&self, result: &Result<(), String>) -> bool {
        let (now, name) = (self.clock.now(), self.peer.name.to_string());
        match result {
            Ok(()) => {
                if self.peer.update(|status| status.succeeded(now)) {
                    self.log.event(&Event::PeerBack { peer: name });
                }
                true
            }
            Err(reason) => {
                if self.peer.update(|status| status.failed(now, reason.clone())) {
                    self.log.event(&Event::PeerLost { peer: name, reason: reason.clone() });
                }
                false
            }
        }
    }

    fn client(&self) -> Result<&Site, String> {
        self.peer.client().map_err(ToString::to_string)
    }

    /// Full exchange: each side gets what it lacks.
    async fn exchange(&self) -> Result<(), String> {
        let asked = Instant::now();
        let state = self.client()?.replication_state().await.map_err(|error| error.to_string())?;
        let latency = asked.elapsed();
        let site = u64::from_str_radix(&state.site, 16).ok().and_then(|site| site.try_into().ok());
        let site = site.ok_or("cannot use the site: its identity is unreadable; check its version")?;
        if site == self.site.catalog.site() {
            return Err("cannot use the site: it is this one; remove it".to_owned());
        }
        let mut theirs: VersionVector = parse(&state.vector)?;
        self.peer.update(|status| {
            status.site = Some(site);
            status.own_name = Some(state.name);
            status.latency = Some(latency);
            status.vector = theirs.clone();
        });
        // A peer that needs a snapshot cannot be pushed to, but may have operations.
        let pushed = self.push(&mut theirs, Extent::All).await;
        self.pull(&theirs).await?;
        pushed.map(drop)
    }

    /// Pushes committed operations of this site; a peer that lacks others gets them too.
    async fn push_own(&self) -> Result<(), String> {
        let mut theirs = self.peer.status().vector;
        if self.push(&mut theirs, Extent::Own).await? > 0 {
            self.push(&mut theirs, Extent::All).await?;
        }
        Ok(())
    }

    /// Pushes operations beyond the peer's vector, and returns the number of those that wait there for others.
    async fn push(&self, theirs: &mut VersionVector, extent: Extent) -> Result<u64, String> {
        loop {
            let (site, known) = (Arc::clone(&self.site), theirs.clone());
            let extracted = work(move || site.catalog.with(|catalog| extract(catalog, &known, extent)));
            let Batch { bytes, operations } = extracted.await?;
            if operations == 0 {
                return Ok(0);
            }
            let answer = self.client()?.push_operations(bytes).await;
            let answer = answer.map_err(|error| error.to_string())?;
            let now: VersionVector = parse(&answer.vector)?;
            let is_stuck = now == *theirs;
            *theirs = now;
            self.peer.update(|status| {
                status.vector = theirs.clone();
                status.pushed += answer.applied;
            });
            if answer.waiting > 0 && extent == Extent::Own {
                return Ok(answer.waiting);
            }
            if is_stuck {
                // Quarantined operations hold back those of their site; the peer applies them when their time comes.
                return if answer.quarantined + answer.waiting > 0 {
                    Err("cannot push operations: the peer finds their stamps too far ahead; correct the clocks"
                        .to_owned())
                } else {
                    Ok(0)
                };
            }
        }
    }

    /// Pulls operations until this site has all that the peer had. A new site, and one that is far behind, starts from a snapshot.
    async fn pull(&self, theirs: &VersionVector) -> Result<(), String> {
        let ours = work({
            let site = Arc::clone(&self.site);
            move || site.catalog.with(holdfast_catalog::Catalog::vector)
        });
        let behind: u64 = theirs.iter().map(|(_, seq)| seq).sum();
        if is_new(&ours.await?, self.site.catalog.site()) && behind > MOST_BY_LOG {
            self.start_from_snapshot().await?;
        }
        loop {
            let site = Arc::clone(&self.site);
            let ours = work(move || site.catalog.with(holdfast_catalog::Catalog::vector)).await?;
            if ours.includes(theirs) {
                return Ok(());
            }
            let batch = self.client()?.pull_operations(&ours.to_string(), MOST_BATCH).await;
            if batch.as_ref().is_err_and(|error| error.kind == RemoteErrorKind::Gone) {
                self.start_from_snapshot().await?;
                continue;
            }
            let operations = collect(&batch.map_err(|error| error.to_string())?).map_err(|reason| {
                format!("cannot read operations of the peer: {reason}; compare the versions of the software")
            })?;
            let injected = self.inject(operations).await?;
            self.peer.update(|status| status.pulled += injected.applied);
            if injected.vector == ours {
                return Ok(());
            }
        }
    }

    /// Replaces the catalog by the peer's, with what this site has of others applied again.
    async fn start_from_snapshot(&self) -> Result<(), String> {
        let kept = |error: std::io::Error| format!("cannot keep the snapshot: {error}; free some space");
        let mut file = tempfile::tempfile_in(&self.folder).map_err(kept)?;
        let visit = |piece: &[u8]| file.write_all(piece);
        self.client()?.snapshot(visit).await.map_err(|error| error.to_string())?;
        let (site, peer) = (Arc::clone(&self.site), self.peer.name.to_string());
        file.rewind().map_err(kept)?;
        let mut file = BufReader::with_capacity(1 << 20, file);
        work(move || {
            site.catalog.with(|catalog| {
                catalog.import_snapshot(&mut file)?;
                // The others keep the log for this site once they know it.
                catalog.acknowledge()
            })
        })
        .await?;
        self.log.event(&Event::SnapshotImported { peer });
        Ok(())
    }

    async fn inject(&self, operations: Vec<Operation>) -> Result<Injected, String> {
        let (site, log) = (Arc::clone(&self.site), self.log.clone());
        work(move || inject(&site, &log, &operations)).await
    }
}

/// True for the vector of a site that has no operations of others: its own ones were pushed before.
fn is_new(vector: &VersionVector, own: SiteId) -> bool {
    vector.iter().all(|(site, _)| site == own)
}

/// Runs work on the catalog on a blocking thread.
async fn work<T: Send + 'static>(
    work: impl FnOnce() -> holdfast_catalog::Result<T> + Send + 'static,
) -> Result<T, String> {
    let done = tokio::task::spawn_blocking(work).await;
    let done = done.map_err(|error| format!("cannot use the catalog: {error}; restart the server"))?;
    done.map_err(|error| error.to_string())
}

fn parse(text: &str) -> Result<VersionVector, String> {
    text.parse().map_err(|error| format!("cannot read the vector of the peer: {error}; check its version"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_site_with_its_own_operations_only_is_new() {
        let own = SiteId::new(7).unwrap();
        let vector = |text: &str| parse(text).unwrap();
        assert!(is_new(&vector(""), own) && is_new(&vector("7:3"), own));
        assert!(!is_new(&vector("7:3 8:1"), own));
    }
}
