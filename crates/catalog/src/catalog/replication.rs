//! Exchange of operations with other sites: reading the log, and applying the logs of others.

use super::{Catalog, MAX_PAGE, Writer};
use crate::delivery::{Readiness, readiness};
use crate::digest::StateDigest;
use crate::encoding::decode;
use crate::error::{CatalogError, Result};
use crate::hlc::Millis;
use crate::ids::{OpId, SiteId};
use crate::ledger::Delivery;
use crate::merge::{Conflict, RecentOperations, Tables, acknowledged};
use crate::operation::Operation;
use crate::record::Record;
use crate::store::scan::scan;
use crate::store::tables::SqlTables;
use crate::store::{CatalogStore, SqlValue, collect};
use crate::vector::VersionVector;
use std::collections::BTreeMap;

/// Effect of a batch of remote operations.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Applied {
    /// Number of operations that were applied.
    pub applied: usize,
    /// Number of operations that were known already.
    pub duplicates: usize,
    /// Operations that were not kept, as earlier ones are missing; they must be sent again.
    pub waiting: Vec<OpId>,
    /// Conflicts that the applied operations met, to be told to people.
    pub conflicts: Vec<Conflict>,
    /// Operations that are kept in quarantine, as their stamps are too far ahead.
    pub quarantined: Vec<OpId>,
}

impl<S: CatalogStore> Catalog<S> {
    /// Operations of each site that are applied here.
    pub fn vector(&mut self) -> Result<VersionVector> {
        self.read(read_vector)
    }

    /// Operations that every known site has applied, as its own operations tell.
    ///
    /// A site that makes no changes is behind unless it acknowledges.
    pub fn acknowledged(&mut self) -> Result<VersionVector> {
        let site = self.site;
        self.read(|store| {
            let applied = read_vector(store)?;
            acknowledged(&mut SqlTables::new(store), site, &applied)
        })
    }

    /// Tells other sites which operations this one has applied, by an operation without changes.
    ///
    /// It makes none, and returns false, unless operations that change something arrived since the last own operation.
    pub fn acknowledge(&mut self) -> Result<bool> {
        self.write(|writer| {
            let is_due = writer.ledger.owes_acknowledgement(&mut SqlTables::new(writer.store))?;
            if is_due {
                writer.submit(Vec::new(), Vec::new())?;
            }
            Ok(is_due)
        })
    }

    /// Operations of one site after a sequence number, in order, at most `limit` and at most [`MAX_PAGE`].
    pub fn log_since(&mut self, site: SiteId, seq: u64, limit: usize) -> Result<Vec<Operation>> {
        self.read(|store| read_log(store, site, seq, limit))
    }

    /// Operations that a peer with the given vector lacks, in causal order, at most `limit` and at most [`MAX_PAGE`].
    ///
    /// A peer that lacks operations which are no longer in the log needs a snapshot ([`CatalogError::Compacted`]).
    pub fn operations_beyond(&mut self, vector: &VersionVector, limit: usize) -> Result<Vec<Operation>> {
        let limit = limit.clamp(1, MAX_PAGE);
        self.read(|store| {
            let mut all = Vec::new();
            for (site, _) in read_vector(store)?.beyond(vector).iter() {
                all.extend(read_log(store, site, vector.get(site), limit)?);
            }
            // Stamps respect causality, so their order is a causal one, and each beginning of it is complete.
            all.sort_by_key(Operation::stamp);
            all.truncate(limit);
            Ok(all)
        })
    }

    /// Operations of this site that a peer with the given vector lacks, in order, at most `limit` and at most [`MAX_PAGE`].
    pub fn own_operations_beyond(&mut self, vector: &VersionVector, limit: usize) -> Result<Vec<Operation>> {
        let site = self.site;
        self.read(|store| read_log(store, site, vector.get(site), limit))
    }

    /// Applies operations of other sites in one transaction: in any order, known ones again, all or none.
    ///
    /// An operation whose stamp is more than five minutes ahead is kept in quarantine. The first call after its time has
    /// come applies it, even one with no operations.
    ///
    /// Operations whose predecessors are missing are left out and named in the answer. If they bring conflicts over the
    /// contents of objects that this site made, it settles these with operations of its own.
    pub fn apply(&mut self, operations: &[Operation]) -> Result<Applied> {
        self.write(|writer| {
            let now = writer.host.now();
            writer.apply_batch(operations, now)
        })
    }

    /// Digest of the whole state, equal at all sites with the same operations. It reads every record.
    pub fn digest(&mut self) -> Result<StateDigest> {
        let mut digest = StateDigest::default();
        self.for_each_record(&mut |record| digest.add(&record))?;
        Ok(digest)
    }

    /// Passes every record of one snapshot to `visit`, in no order.
    pub fn for_each_record(&mut self, visit: &mut dyn FnMut(Record)) -> Result<()> {
        self.read(|store| {
            scan(store, &mut |record| {
                visit(record);
                Ok(())
            })
        })
    }
}

impl<S: CatalogStore> Writer<'_, S> {
    /// Applies operations of other sites within this transaction.
    pub(super) fn apply_batch(&mut self, operations: &[Operation], now: Millis) -> Result<Applied> {
        let due = self.take_due(operations, now)?;
        let mut tables = SqlTables::new(self.store);
        let (mut result, mut recent) = (Applied::default(), RecentOperations::default());
        let mut waiting: BTreeMap<(crate::hlc::Hlc, OpId), &Operation> =
            operations.iter().map(|op| ((op.stamp(), op.id), op)).collect();
        result.duplicates = operations.len() - waiting.len();
        waiting.extend(due.iter().map(|op| ((op.stamp(), op.id), op)));
        let mut ahead = Vec::new();
        // In the order of stamps one pass is enough, unless a predecessor is missing.
        let mut first_pass = true;
        loop {
            let before = result.applied;
            let ready: Vec<_> = waiting.iter().map(|(key, op)| (*key, *op)).collect();
            for (key, op) in ready {
                if !first_pass && matches!(readiness(op, self.ledger.applied()), Readiness::Waiting(_)) {
                    continue;
                }
                match self.ledger.remote(&mut tables, op, &mut recent, now)? {
                    Delivery::Applied(conflicts) => {
                        result.applied += 1;
                        result.conflicts.extend(conflicts);
                    }
                    Delivery::Duplicate => result.duplicates += 1,
                    Delivery::Ahead => ahead.push(op),
                    Delivery::Waiting(_) => continue,
                }
                waiting.remove(&key);
            }
            first_pass = false;
            if result.applied == before || waiting.is_empty() {
                break;
            }
        }
        tables.flush()?;
        self.quarantine(&ahead, now)?;
        result.quarantined = ahead.iter().map(|op| op.id).collect();
        if result.applied > 0 {
            self.note_conflicts(now)?;
        }
        result.waiting = waiting.into_keys().map(|(_, id)| id).collect();
        Ok(result)
    }
}

fn read_vector<S: CatalogStore>(store: &mut S) -> Result<VersionVector> {
    let entries =
        collect(store, "SELECT site, applied FROM sites", &[], |row| Ok((row.site()?, row.count()?)))?;
    Ok(entries.into_iter().collect())
}

fn read_log<S: CatalogStore>(store: &mut S, site: SiteId, seq: u64, limit: usize) -> Result<Vec<Operation>> {
    let removed = SqlTables::new(store).compacted()?.get(site);
    if seq < removed {
        return Err(CatalogError::Compacted { site, after: seq, removed });
    }
    let sql = "SELECT body FROM log WHERE site = ?1 AND seq > ?2 ORDER BY seq LIMIT ?3";
    let limit = SqlValue::from(limit.clamp(1, MAX_PAGE) as u64);
    collect(store, sql, &[site.into(), seq.into(), limit], |row| Ok(decode(&row.blob()?)?))
}
