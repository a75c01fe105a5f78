//! Snapshots for sites that are new or far behind, and compaction of the log.

use super::{Catalog, Writer, load_ledger};
use crate::encoding::decode;
use crate::error::Result;
use crate::hlc::{HlcTime, oldest_within};
use crate::merge::{Tables, removable};
use crate::operation::Operation;
use crate::snapshot::{Head, Item, SnapshotReader, SnapshotWriter};
use crate::store::row::RowReader;
use crate::store::scan::scan;
use crate::store::tables::SqlTables;
use crate::store::{CatalogStore, SqlValue, optional};
use std::io::Read;
use std::time::Duration;

/// Tables that a snapshot fills, and the index of one of them.
const FILLED: [&str; 14] = [
    "nodes",
    "moves",
    "deletions",
    "deletion_entries",
    "versions",
    "replicas",
    "attributes",
    "annotations",
    "conflicts",
    "grants",
    "facts",
    "sites",
    "log",
    "compacted",
];

impl<S: CatalogStore> Catalog<S> {
    /// Passes a snapshot of the catalog to `visit` piece by piece: all records, and the log as far as it is kept.
    pub fn export_snapshot(&mut self, visit: &mut dyn FnMut(&[u8]) -> Result<()>) -> Result<()> {
        let site = self.site;
        self.read(|store| {
            let ledger = load_ledger(store)?;
            let compacted = SqlTables::new(store).compacted()?;
            let (clock, applied) = (ledger.last_time(), ledger.applied().clone());
            let mut writer = SnapshotWriter::new(visit, Head { site, clock, applied, compacted })?;
            scan(store, &mut |record| writer.record(record))?;
            store.query("SELECT body FROM log ORDER BY site, seq", &[], &mut |row| {
                writer.operation(RowReader::new(row).blob()?)
            })?;
            writer.finish()
        })
    }

    /// Replaces the contents of the catalog by a snapshot, in one transaction. Nothing changes if it fails.
    ///
    /// The catalog may have no operations of its own that the snapshot lacks. Those of other sites are applied again.
    pub fn import_snapshot(&mut self, snapshot: &mut dyn Read) -> Result<()> {
        self.write(|writer| writer.import(SnapshotReader::new(snapshot)?))
    }

    /// Removes operations from the log that all known sites have acknowledged and that are older than `age`.
    ///
    /// Operations that recorded conflicts name stay, and all while no other site is known. The age is the time within which a new site, which starts from a
    /// snapshot, must make itself known to all others. Returns the number of removed operations.
    pub fn compact(&mut self, age: Duration) -> Result<u64> {
        self.write(|writer| {
            let (own, now) = (writer.ledger.next_op().site, writer.host.now());
            let mut tables = SqlTables::new(writer.store);
            let known = removable(&mut tables, own, writer.ledger.applied())?;
            let end = oldest_within(age, now);
            let mut removed = 0;
            for (site, seq) in known.iter() {
                removed += writer.compact(site.into(), seq, end)?;
            }
            Ok(removed)
        })
    }
}

impl<S: CatalogStore> Writer<'_, S> {
    /// Removes operations of one site up to a sequence number and a time.
    fn compact(&mut self, site: SqlValue, seq: u64, end: HlcTime) -> Result<u64> {
        let sql = "SELECT MAX(seq) FROM log WHERE site = ?1 AND seq <= ?2 AND time < ?3";
        let values = [site.clone(), seq.into(), end.0.into()];
        let last = optional(self.store, sql, &values, RowReader::optional_integer)?.flatten();
        let Some(last) = last else { return Ok(0) };
        let values = [site, last.into()];
        let removed = self.store.execute(
            "DELETE FROM log WHERE site = ?1 AND seq <= ?2
                AND (site, seq) NOT IN (SELECT lost_site, lost_seq FROM conflicts)
                AND (site, seq) NOT IN (SELECT won_site, won_seq FROM conflicts)",
            &values,
        )?;
        self.store.execute(
            "INSERT INTO compacted VALUES (?1, ?2) ON CONFLICT (site) DO UPDATE SET seq = excluded.seq
                WHERE compacted.seq < excluded.seq",
            &values,
        )?;
        Ok(removed)
    }

    fn import(&mut self, reader: SnapshotReader<'_>) -> Result<()> {
        let now = self.host.now();
        let head = reader.head().clone();
        let mut tables = SqlTables::new(self.store);
        let compacted = tables.compacted()?;
        self.ledger.import(&head, &compacted, now)?;
        let newer: Vec<Operation> = tables.log_beyond(&head.applied)?;
        // Replicas of this site whose objects are purged in the snapshot are kept in mind.
        let own = "site = (SELECT site FROM identity)";
        let keep = format!(
            "INSERT INTO unneeded SELECT DISTINCT vault, key FROM replicas WHERE {own} AND state IS NOT NULL
                ON CONFLICT (vault, key) DO NOTHING"
        );
        self.store.execute(&keep, &[])?;
        for table in FILLED {
            self.store.execute(&format!("DELETE FROM {table}"), &[])?;
        }
        let mut tables = SqlTables::new(self.store);
        reader.read(&mut |item| match item {
            Item::Record(record) => tables.put(record),
            Item::Operation(bytes) => {
                let op = decode(&bytes)?;
                tables.append(&op, bytes)
            }
            Item::Head(_) | Item::End(..) => Ok(()),
        })?;
        tables.flush()?;
        let needed = format!(
            "DELETE FROM unneeded WHERE EXISTS (SELECT 1 FROM replicas r WHERE r.{own}
                AND r.vault = unneeded.vault AND r.key = unneeded.key)"
        );
        self.store.execute(&needed, &[])?;
        for (site, seq) in head.compacted.iter() {
            self.store.execute("INSERT INTO compacted VALUES (?1, ?2)", &[site.into(), seq.into()])?;
        }
        self.note_imported_conflicts(now)?;
        self.apply_batch(&newer, now)?;
        Ok(())
    }
}
