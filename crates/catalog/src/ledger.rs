//! Ledger of a site: its clock, its version vector, and the one way in which operations enter the log.
//!
//! Local and remote operations take the same path: check, merge, log, progress. The caller wraps it in a transaction.

use crate::delivery::{Readiness, advance, readiness, since_last};
use crate::encoding::encode;
use crate::error::{CatalogError, Result};
use crate::hlc::{Clock, HlcTime, Millis};
use crate::ids::{ObjectId, OpId, SiteId};
use crate::merge::{Conflict, RecentOperations, Tables, apply, deletion};
use crate::operation::{Change, Operation};
use crate::record::Record;
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
}

impl Ledger {
    /// Ledger that continues after the greatest kept stamp and the applied operations.
    pub(crate) fn new(site: SiteId, last: HlcTime, applied: VersionVector) -> Self {
        Self { site, clock: Clock::new(site, last), applied }
    }

    /// Operations that are applied.
    pub(crate) fn applied(&self) -> &VersionVector {
        &self.applied
    }

    /// Greatest stamp that was given or witnessed.
    pub(crate) fn last_time(&self) -> HlcTime {
        self.clock.last()
    }

    /// Id that the next local operation gets.
    pub(crate) fn next_op(&self) -> OpId {
        OpId { site: self.site, seq: self.applied.get(self.site) + 1 }
    }

    /// Change that moves an entry to the trash, with everything that this site knows.
    pub(crate) fn deletion<T: Tables>(&self, tables: &mut T, object: ObjectId) -> Result<Change> {
        deletion(tables, self.site, &self.applied, object)
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
        Ok(conflicts)
    }
}
