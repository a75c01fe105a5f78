//! Quarantine: operations whose stamps are too far ahead of the local clock, kept until their time has come.
//!
//! At most one operation of each site is kept, its next one. Later ones wait for it, and are sent again.

use super::{Catalog, Writer};
use crate::encoding::{decode, encode};
use crate::error::Result;
use crate::hlc::{Hlc, MAX_LEAD_MS, Millis, is_ahead};
use crate::ids::OpId;
use crate::operation::Operation;
use crate::store::{CatalogStore, collect};

/// Operation that is kept in quarantine.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Quarantined {
    /// Operation that is kept.
    pub op: OpId,
    /// Stamp that is too far ahead.
    pub stamp: Hlc,
    /// Time at which the operation arrived first.
    pub noted: Millis,
    /// Time from which it can be applied.
    pub due: Millis,
}

impl<S: CatalogStore> Catalog<S> {
    /// Lists the operations in quarantine by site. The clock of each such site is to be corrected.
    pub fn quarantined(&mut self) -> Result<Vec<Quarantined>> {
        self.read(|store| {
            collect(store, "SELECT noted_ms, body FROM quarantine ORDER BY site", &[], |row| {
                let noted = Millis(row.count()?);
                let op = decode(&row.blob()?)?;
                let due = Millis(op.time.millis().0.saturating_sub(MAX_LEAD_MS));
                Ok(Quarantined { op: op.id, stamp: op.stamp(), noted, due })
            })
        })
    }
}

impl<S: CatalogStore> Writer<'_, S> {
    /// Takes operations out of quarantine whose time has come, but for those that arrive again or are replaced.
    pub(super) fn take_due(&mut self, arrived: &[Operation], now: Millis) -> Result<Vec<Operation>> {
        let mut due: Vec<Operation> =
            collect(self.store, "SELECT body FROM quarantine", &[], |row| Ok(decode(&row.blob()?)?))?;
        let applied = self.ledger.applied();
        due.retain(|op| !is_ahead(op.stamp(), now) || applied.contains(op.id));
        for op in &due {
            self.store.execute("DELETE FROM quarantine WHERE site = ?1", &[op.id.site.into()])?;
        }
        due.retain(|op| !applied.contains(op.id) && arrived.iter().all(|other| other.id != op.id));
        Ok(due)
    }

    /// Keeps operations whose stamps are too far ahead. One that is kept already stays as it is.
    pub(super) fn quarantine(&mut self, ahead: &[&Operation], now: Millis) -> Result<()> {
        for op in ahead {
            let values = [op.id.site.into(), op.id.seq.into(), now.0.into(), encode(op)?.into()];
            let sql = "INSERT INTO quarantine VALUES (?1, ?2, ?3, ?4) ON CONFLICT (site) DO NOTHING";
            self.store.execute(sql, &values)?;
        }
        Ok(())
    }
}
