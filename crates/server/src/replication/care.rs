//! Care of the log and of the vaults: acknowledgements of the operations of others, removal of operations that all sites have,
//! and removal of the bytes of purged objects.

use crate::log::{Event, Log};
use crate::options::Limits;
use crate::site::SiteArchive;
use holdfast_catalog::{Catalog, CatalogStore, Result};
use std::sync::Arc;
use tokio::sync::Notify;
use tokio::time::sleep;

/// Places that are read together.
const PAGE: usize = 1000;

/// Acknowledges, compacts and removes for ever: after a pause, or when `wake` is notified.
pub(super) async fn run(site: Arc<SiteArchive>, log: Log, limits: Limits, wake: Arc<Notify>) {
    loop {
        tokio::select! {
            () = sleep(limits.acknowledge_time) => {}
            () = wake.notified() => {}
        }
        let (shared, age, report) = (Arc::clone(&site), limits.log_age, log.clone());
        let work = move || {
            sweep(&shared, &report)?;
            shared.catalog.with(|catalog| care(catalog, age))
        };
        match tokio::task::spawn_blocking(work).await {
            Ok(Ok(0)) => {}
            Ok(Ok(operations)) => log.event(&Event::Compacted { operations }),
            Ok(Err(error)) => log.trouble("replication", error),
            Err(error) => log.trouble("replication", error),
        }
    }
}

fn care<S: CatalogStore>(catalog: &mut Catalog<S>, age: std::time::Duration) -> Result<u64> {
    catalog.acknowledge()?;
    catalog.compact(age)
}

/// Removes the bytes of purged objects from the vaults of this site. What cannot be removed stays listed for the next time.
fn sweep(site: &SiteArchive, log: &Log) -> Result<()> {
    let mut after: Option<(String, String)> = None;
    loop {
        let behind = after.as_ref().map(|(vault, key)| (vault.as_str(), key.as_str()));
        let places = site.catalog.with(|catalog| catalog.unneeded(behind, PAGE))?;
        let mut removed = Vec::new();
        for place in &places {
            let Some(store) = site.store(&place.vault) else { continue };
            // A key that is being stored belongs to an upload again.
            let is_busy = site.journal.contains(&place.vault, &place.key).unwrap_or(true);
            if is_busy {
                continue;
            }
            match store.store.remove(&place.key) {
                Ok(()) => removed.push(place.clone()),
                Err(error) => log.trouble("archive", error),
            }
        }
        if !removed.is_empty() {
            site.catalog.with(|catalog| catalog.forget_unneeded(&removed))?;
        }
        if places.len() < PAGE {
            return Ok(());
        }
        after = places.last().map(|last| (last.vault.clone(), last.key.clone()));
    }
}
