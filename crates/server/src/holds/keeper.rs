//! Keeper: the task that gives the orders for rings of this site to their recorders.

use super::fact::{HoldOutcomeFact, HoldProgress, orders};
use super::{HoldOutcome, HoldTaker};
use crate::log::{Event, Log};
use crate::site::SiteArchive;
use holdfast_catalog::{Change, FactKind, Result, VersionVector};
use std::sync::Arc;
use std::time::Duration;
use tokio::time::sleep;

/// Pause before orders whose ring is away are given again.
const RETRY: Duration = Duration::from_secs(2);

/// Operations that are searched for orders; more lead to a look at all orders.
const MOST_OPERATIONS: usize = 1000;

/// Keeper of the holds of a site.
pub(crate) struct Keeper {
    pub(crate) site: Arc<SiteArchive>,
    pub(crate) log: Log,
    /// Giver of orders; without one the orders for this site wait.
    pub(crate) taker: Option<Arc<dyn HoldTaker>>,
}

impl Keeper {
    /// Gives orders for ever.
    pub(crate) async fn run(self) {
        let Some(taker) = self.taker.clone() else { return };
        let mut commits = self.site.catalog.commits();
        let (mut seen, mut are_waiting) = (None, true);
        loop {
            commits.mark_unchanged();
            let (site, log, taker) = (Arc::clone(&self.site), self.log.clone(), Arc::clone(&taker));
            let known = seen.clone();
            let work = move || keep(&site, &log, taker.as_ref(), known, are_waiting);
            match tokio::task::spawn_blocking(work).await {
                Ok(Ok((vector, waiting))) => (seen, are_waiting) = (Some(vector), waiting),
                Ok(Err(error)) => self.log.trouble("holds", error),
                Err(error) => self.log.trouble("holds", error),
            }
            let retry = async { if are_waiting { sleep(RETRY).await } else { std::future::pending().await } };
            tokio::select! {
                changed = commits.changed() => if changed.is_err() { return },
                () = retry => {}
            }
        }
    }
}

/// Gives the open orders for this site, if there may be any. Returns the vector up to which orders are known, and true if a ring
/// is away.
fn keep(
    site: &SiteArchive,
    log: &Log,
    taker: &dyn HoldTaker,
    known: Option<VersionVector>,
    are_waiting: bool,
) -> Result<(VersionVector, bool)> {
    let own = site.catalog.site();
    let (vector, open) = site.catalog.with(|catalog| {
        let vector = catalog.vector()?;
        let is_new = match known {
            Some(known) => match catalog.operations_beyond(&known, MOST_OPERATIONS) {
                Ok(operations) if operations.len() < MOST_OPERATIONS => {
                    let mut changes = operations.iter().flat_map(|operation| &operation.changes);
                    changes.any(|change| matches!(change, Change::SetFact { kind: FactKind::HoldOrder, .. }))
                }
                _ => true,
            },
            None => true,
        };
        let open = if is_new || are_waiting { orders(catalog)? } else { Vec::new() };
        Ok((vector, open))
    })?;
    let mut is_away = false;
    for progress in open.iter().filter(|progress| progress.order.site == own && progress.is_open()) {
        let Some(order) = progress.ordered() else { continue };
        let outcome = taker.take(&order);
        is_away |= matches!(outcome, HoldOutcome::Away(_));
        tell(site, log, progress, outcome)?;
    }
    Ok((vector, is_away))
}

/// Writes the state of an order for all sites, unless it is known.
fn tell(site: &SiteArchive, log: &Log, progress: &HoldProgress, outcome: HoldOutcome) -> Result<()> {
    let state = HoldOutcomeFact::from(outcome);
    if progress.state.as_ref().is_some_and(|(known, _)| *known == state) {
        return Ok(());
    }
    let body = serde_json::to_string(&state).unwrap_or_default();
    site.catalog.with(|catalog| catalog.set_fact(FactKind::HoldState, &progress.id, Some(&body)))?;
    let state = match state {
        HoldOutcomeFact::Applied { .. } => "applied",
        HoldOutcomeFact::Expired { .. } => "expired",
        HoldOutcomeFact::Refused { .. } => "refused",
        HoldOutcomeFact::Waiting { .. } => "waiting",
    };
    let ring = progress.order.ring.clone();
    log.event(&Event::HoldOrder { order: progress.id.clone(), ring, state });
    Ok(())
}
