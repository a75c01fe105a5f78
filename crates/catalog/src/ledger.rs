//! Ledger of a site: its clock, its version vector, and the one way in which operations enter the log.
//!
//! Local and remote operations take the same path: check, merge, log, progress. The caller wraps it in a transaction.

use crate::delivery::{Readiness, advance, readiness, since_last};
use crate::encoding::encode;
use crate::error::{CatalogError, Result};
use crate::hlc::{Clock, Hlc, HlcTime, Millis};
use crate::ids::{ObjectId, OpId, SiteId};
use crate::merge::{Conflict, RecentOperations, Tables, apply, deletion};
use crate::operation::{Change, Operation};
use crate::record::Record;
use crate::snapshot::{Head, SnapshotError};
use crate::vector::VersionVector;

/// Result of the delivery of one remote operation.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum Delivery {
    /// Applied and logged, with the conflicts that it met.
    Applied(Vec<Conflict>),
    /// Known already; nothing changed.
    Duplicate,
    /// Not applied: an earlier operation is missing.
    Waiting(OpId),
    /// Not applied: its stamp is too far ahead of the local clock.
    Ahead,
}

/// Clock and version vector of the site that keeps a catalog.
#[derive(Clone, Debug)]
pub(crate) struct Ledger {
    site: SiteId,
    clock: Clock,
    applied: VersionVector,
    /// Operations that entered the log through this ledger.
    entered: u64,
}

impl Ledger {
    /// Ledger that continues after the greatest kept stamp and the applied operations.
    pub(crate) fn new(site: SiteId, last: HlcTime, applied: VersionVector) -> Self {
        Self { site, clock: Clock::new(site, last), applied, entered: 0 }
    }

    /// Operations that are applied.
    pub(crate) fn applied(&self) -> &VersionVector {
        &self.applied
    }

    /// Greatest stamp that was given or witnessed.
    pub(crate) fn last_time(&self) -> HlcTime {
        self.clock.last()
    }

    /// Number of operations that entered the log through this ledger.
    pub(crate) fn entered(&self) -> u64 {
        self.entered
    }

    /// Id that the next local operation gets.
    pub(crate) fn next_op(&self) -> OpId {
        OpId { site: self.site, seq: self.applied.get(self.site) + 1 }
    }

    /// Change that moves an entry to the trash, with everything that this site knows.
    pub(crate) fn deletion<T: Tables>(&self, tables: &mut T, object: ObjectId) -> Result<Change> {
        deletion(tables, self.site, &self.applied, object)
    }

    /// Continues from a snapshot, unless this site has operations which it lacks and cannot apply again.
    pub(crate) fn import(&mut self, head: &Head, compacted: &VersionVector, now: Millis) -> Result<()> {
        let site = head.site;
        let refuse = |reason, remedy| Err(SnapshotError::Unsuitable { site, reason, remedy }.into());
        if self.applied.get(self.site) > head.applied.get(self.site) {
            return refuse(
                "it lacks operations of this site",
                "send these to that site first, and fetch a new snapshot",
            );
        }
        if !head.applied.includes(compacted) {
            return refuse("it is older than the log of this site", "fetch a new snapshot");
        }
        self.clock.witness(Hlc { time: head.clock, site }, now)?;
        let (all, known) = [&head.applied, &self.applied]
            .map(|vector| vector.iter().map(|(_, seq)| seq).sum::<u64>())
            .into();
        self.entered += all.saturating_sub(known);
        self.applied = head.applied.clone();
        Ok(())
    }

    /// True if operations of others that change something were applied since the last own operation.
    ///
    /// Bare acknowledgements do not count, or else idle sites would answer each other for ever.
    pub(crate) fn owes_acknowledgement<T: Tables>(&self, tables: &mut T) -> Result<bool> {
        let own = tables.progress(self.site)?;
        for (site, last) in since_last(own.as_ref(), self.site, &self.applied).iter() {
            let known = own.as_ref().map_or(0, |own| own.seen.get(site));
            for seq in known + 1..=last {
                let op = tables.logged(OpId { site, seq })?;
                if op.is_none_or(|op| !op.is_acknowledgement()) {
                    return Ok(true);
                }
            }
        }
        Ok(false)
    }

    /// Makes, applies and logs a local operation.
    pub(crate) fn local<T: Tables>(
        &mut self,
        tables: &mut T,
        changes: Vec<Change>,
        under: Vec<ObjectId>,
        now: Millis,
    ) -> Result<(Operation, Vec<Conflict>)> {
        let id = self.next_op();
        let own = tables.progress(self.site)?;
        let after = since_last(own.as_ref(), self.site, &self.applied);
        let mut clock = self.clock.clone();
        let time = clock.tick(now)?.time;
        let op = Operation { id, time, after, under, changes };
        let conflicts = self.enter(tables, &op, clock, &mut RecentOperations::default())?;
        Ok((op, conflicts))
    }

    /// Applies and logs a remote operation if it is next. `recent` is kept for one batch.
    pub(crate) fn remote<T: Tables>(
        &mut self,
        tables: &mut T,
        op: &Operation,
        recent: &mut RecentOperations,
        now: Millis,
    ) -> Result<Delivery> {
        match readiness(op, &self.applied) {
            Readiness::Waiting(missing) => return Ok(Delivery::Waiting(missing)),
            Readiness::Duplicate => {
                let is_same = tables.logged(op.id)?.is_none_or(|logged| logged == *op);
                return if is_same {
                    Ok(Delivery::Duplicate)
                } else {
                    Err(CatalogError::Forked { id: op.id })
                };
            }
            Readiness::Ready => {}
        }
        let mut clock = self.clock.clone();
        if clock.witness(op.stamp(), now).is_err() {
            return Ok(Delivery::Ahead);
        }
        self.enter(tables, op, clock, recent).map(Delivery::Applied)
    }

    fn enter<T: Tables>(
        &mut self,
        tables: &mut T,
        op: &Operation,
        clock: Clock,
        recent: &mut RecentOperations,
    ) -> Result<Vec<Conflict>> {
        let bytes = encode(op)?;
        let progress = advance(tables.progress(op.id.site)?, op);
        let mut saw = progress.seen.clone();
        saw.raise(op.id.site, op.id.seq);
        let conflicts = apply(tables, op, &saw, recent)?;
        tables.append(op, bytes)?;
        tables.put(Record::Site(progress))?;
        self.applied.raise(op.id.site, op.id.seq);
        self.clock = clock;
        self.entered += 1;
        Ok(conflicts)
    }
}
