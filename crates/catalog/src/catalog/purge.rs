//! Purge of entries of the trash, and places in the vaults of this site whose bytes nobody needs any more.

use super::lookup::node;
use super::{Catalog, MAX_PAGE, Writer};
use crate::error::{CatalogError, Result};
use crate::ids::{ObjectId, OpId, SiteId};
use crate::merge::Tables;
use crate::operation::{Change, ReplicaPlace};
use crate::store::row::{DELETION, RowReader};
use crate::store::tables::SqlTables;
use crate::store::{CatalogStore, SqlValue, collect, optional};

/// Entries that one operation purges at most: bounds the length of a transaction.
const PURGED: usize = 1000;

impl<S: CatalogStore> Catalog<S> {
    /// Removes the contents of an entry of the trash, and of everything in it, for ever.
    ///
    /// All known sites must have acknowledged its deletion. Several operations may be made, each in a transaction of its
    /// own, the last one for the entry itself. Returns the places at this site whose bytes may be removed now, as
    /// [`unneeded`](Self::unneeded) does.
    pub fn purge(&mut self, object: ObjectId) -> Result<Vec<ReplicaPlace>> {
        while self.write(|writer| writer.purge_some(object))? {}
        self.unneeded(None, MAX_PAGE)
    }

    /// Lists places at this site after a vault and a key whose objects are purged, and that no other replica needs.
    ///
    /// Their bytes may be removed, unless an upload with the same key is under way. The places stay listed until
    /// [`forget_unneeded`](Self::forget_unneeded).
    pub fn unneeded(&mut self, after: Option<(&str, &str)>, limit: usize) -> Result<Vec<ReplicaPlace>> {
        let (site, limit) = (self.site, limit.clamp(1, MAX_PAGE) as u64);
        self.read(|store| {
            let sql = "SELECT vault, key FROM unneeded u WHERE (vault, key) > (?1, ?2) AND NOT EXISTS
                (SELECT 1 FROM replicas r WHERE r.site = ?3 AND r.vault = u.vault AND r.key = u.key
                    AND r.state IS NOT NULL) ORDER BY vault, key LIMIT ?4";
            let (vault, key) = after.unwrap_or_default();
            let values = [vault.into(), key.into(), site.into(), SqlValue::from(limit)];
            collect(store, sql, &values, |row| {
                Ok(ReplicaPlace { site, vault: row.text()?, key: row.text()? })
            })
        })
    }

    /// Forgets unneeded places after their bytes are removed.
    pub fn forget_unneeded(&mut self, places: &[ReplicaPlace]) -> Result<()> {
        self.write(|writer| {
            for place in places {
                let values = [place.vault.as_str().into(), place.key.as_str().into()];
                writer.store.execute("DELETE FROM unneeded WHERE vault = ?1 AND key = ?2", &values)?;
            }
            Ok(())
        })
    }
}

impl<S: CatalogStore> Writer<'_, S> {
    /// Purges some entries below an entry of the trash, or the last of them and the entry. True if any are left.
    fn purge_some(&mut self, object: ObjectId) -> Result<bool> {
        self.check_purge(object)?;
        let sql = "WITH RECURSIVE down (id) AS (SELECT id FROM nodes WHERE id = ?1 UNION ALL SELECT n.id
                FROM down d JOIN nodes n ON n.parent = d.id WHERE n.kind = 0)
            SELECT n.id FROM down d JOIN nodes n ON n.parent = d.id WHERE NOT EXISTS
                (SELECT 1 FROM deletions p WHERE p.object = n.id AND p.purge = 1) LIMIT ?2";
        let values = [object.into(), SqlValue::from(PURGED as u64)];
        let mut entries = collect(self.store, sql, &values, RowReader::object)?;
        let are_left = entries.len() == PURGED;
        entries.extend((!are_left).then_some(object));
        let changes = entries.into_iter().map(|object| Change::Purge { object }).collect();
        self.submit(changes, Vec::new())?;
        Ok(are_left)
    }

    /// Checks that an entry is in the trash, and that all known sites have acknowledged one of its deletions.
    fn check_purge(&mut self, object: ObjectId) -> Result<()> {
        const VERB: &str = "purge";
        let refuse = |reason, remedy| Err(CatalogError::unsuitable_id(VERB, object, reason, remedy));
        let sql = format!("SELECT {DELETION} FROM deletions WHERE object = ?1");
        let deletions = collect(self.store, &sql, &[object.into()], RowReader::deletion)?;
        if node(self.store, object)?.is_none() || deletions.is_empty() {
            return refuse("it is not in the trash", "list the trash to see what is");
        }
        if deletions.iter().any(|deletion| deletion.purge) {
            return refuse("it is purged already", "list the trash to see what is left");
        }
        let mut fewest: Option<Vec<SiteId>> = None;
        for deletion in deletions {
            let sites = self.unaware(deletion.op)?;
            if fewest.as_ref().is_none_or(|fewest| sites.len() < fewest.len()) {
                fewest = Some(sites);
            }
        }
        match fewest {
            Some(sites) if !sites.is_empty() => Err(CatalogError::Unacknowledged { object, sites }),
            _ => Ok(()),
        }
    }

    /// Known sites that have not acknowledged an operation.
    fn unaware(&mut self, op: OpId) -> Result<Vec<SiteId>> {
        let own = self.ledger.next_op().site;
        let mut tables = SqlTables::new(self.store);
        let mut sites = Vec::new();
        for (site, _) in self.ledger.applied().iter().filter(|(site, _)| ![own, op.site].contains(site)) {
            if tables.progress(site)?.is_none_or(|progress| !progress.seen.contains(op)) {
                sites.push(site);
            }
        }
        Ok(sites)
    }
}

/// True for an entry with a purge in force.
pub(super) fn is_purged<S: CatalogStore>(store: &mut S, object: ObjectId) -> Result<bool> {
    let sql = "SELECT 1 FROM deletions WHERE object = ?1 AND purge = 1 LIMIT 1";
    Ok(optional(store, sql, &[object.into()], RowReader::integer)?.is_some())
}
