//! Tables of a database, as merging sees them.

use super::row::{DELETION, DISPUTE, FACT, GRANT, MOVE, NODE, REPLICA, RowReader, SITE};
use super::write::{ATTRIBUTE_ROWS, put, put_attributes, remove};
use super::{CatalogStore, SqlValue, collect, optional};
use crate::dispute::{Dispute, DisputeKind};
use crate::encoding::decode;
use crate::error::Result;
use crate::fact::{Fact, FactKind};
use crate::grant::Grant;
use crate::hlc::Hlc;
use crate::ids::{ObjectId, OpId, SiteId};
use crate::merge::{MoveKey, Tables};
use crate::operation::{Operation, ReplicaPlace};
use crate::record::{Deletion, Move, Node, Record, RecordKey, Replica, SiteProgress, TaggedAttribute};
use crate::vector::VersionVector;

/// Objects in one search for deletions: bounds the parameters of a statement.
const OBJECTS: usize = 64;

/// Tables of one catalog, within a transaction of its store.
pub(crate) struct SqlTables<'a, S> {
    store: &'a mut S,
    /// Attributes that wait for their statement: merging never reads attributes.
    attributes: Vec<TaggedAttribute>,
}

impl<'a, S: CatalogStore> SqlTables<'a, S> {
    pub(crate) fn new(store: &'a mut S) -> Self {
        Self { store, attributes: Vec::new() }
    }

    /// Writes the attributes that wait. It must be called before the commit.
    pub(crate) fn flush(&mut self) -> Result<()> {
        let rows = std::mem::take(&mut self.attributes);
        rows.chunks(ATTRIBUTE_ROWS).try_for_each(|rows| put_attributes(self.store, rows))
    }
}

impl<S: CatalogStore> Tables for SqlTables<'_, S> {
    fn node(&mut self, id: ObjectId) -> Result<Option<Node>> {
        let sql = select_nodes("WHERE n.id = ?1");
        optional(self.store, &sql, &[id.into()], RowReader::node)
    }

    fn named(&mut self, parent: ObjectId, name: &str) -> Result<Vec<Node>> {
        let sql = select_nodes("WHERE n.parent = ?1 AND n.name = ?2 AND n.trashed = 0");
        collect(self.store, &sql, &[parent.into(), name.into()], RowReader::node)
    }

    fn is_below(&mut self, node: ObjectId, above: ObjectId) -> Result<bool> {
        // The root lies below nothing, and has no row from which the search could start.
        if node == above {
            return Ok(true);
        }
        let sql = "WITH RECURSIVE up (id) AS (SELECT parent FROM nodes WHERE id = ?1
            UNION SELECT n.parent FROM nodes n JOIN up ON n.id = up.id)
            SELECT 1 FROM up WHERE id = ?2 LIMIT 1";
        let found = optional(self.store, sql, &[node.into(), above.into()], RowReader::integer)?;
        Ok(found.is_some())
    }

    fn replica(&mut self, object: ObjectId, place: &ReplicaPlace) -> Result<Option<Replica>> {
        let sql = format!(
            "SELECT {REPLICA} FROM replicas WHERE object = ?1 AND site = ?2 AND vault = ?3 AND key = ?4"
        );
        let values =
            [object.into(), place.site.into(), place.vault.as_str().into(), place.key.as_str().into()];
        optional(self.store, &sql, &values, RowReader::replica)
    }

    fn grant(&mut self, object: ObjectId, subject: &str) -> Result<Option<Grant>> {
        let sql = format!("SELECT {GRANT} FROM grants WHERE object = ?1 AND subject = ?2");
        optional(self.store, &sql, &[object.into(), subject.into()], RowReader::grant)
    }

    fn fact(&mut self, kind: FactKind, key: &str) -> Result<Option<Fact>> {
        let sql = format!("SELECT {FACT} FROM facts WHERE kind = ?1 AND key = ?2");
        optional(self.store, &sql, &[SqlValue::Integer(kind as i64), key.into()], RowReader::fact)
    }

    fn moves_after(&mut self, (stamp, object): MoveKey) -> Result<Vec<Move>> {
        let sql = format!(
            "SELECT {MOVE} FROM moves WHERE placement = 0 AND (time, site, object) > (?1, ?2, ?3)
                ORDER BY time, site, object"
        );
        let values = [stamp.time.0.into(), stamp.site.into(), object.into()];
        collect(self.store, &sql, &values, RowReader::step)
    }

    fn place_before(&mut self, object: ObjectId, (stamp, _): MoveKey) -> Result<Option<Move>> {
        // An operation moves a collection once at most, so the stamp alone tells what is before.
        let sql = format!(
            "SELECT {MOVE} FROM moves WHERE object = ?1 AND effective = 1
                AND (placement = 1 OR (time, site) < (?2, ?3)) ORDER BY time DESC, site DESC LIMIT 1"
        );
        let values = [object.into(), stamp.time.0.into(), stamp.site.into()];
        optional(self.store, &sql, &values, RowReader::step)
    }

    fn last_move(&mut self, object: ObjectId) -> Result<Option<Hlc>> {
        let sql = "SELECT time, site FROM moves WHERE object = ?1 ORDER BY time DESC, site DESC LIMIT 1";
        optional(self.store, sql, &[object.into()], RowReader::stamp)
    }

    fn dispute(&mut self, kind: DisputeKind, object: ObjectId, lost: Hlc) -> Result<Option<Dispute>> {
        let sql = format!(
            "SELECT {DISPUTE} FROM conflicts
                WHERE kind = ?1 AND object = ?2 AND lost_time = ?3 AND lost_site = ?4"
        );
        let values = [SqlValue::Integer(kind as i64), object.into(), lost.time.0.into(), lost.site.into()];
        optional(self.store, &sql, &values, RowReader::dispute)
    }

    fn deletions(&mut self, objects: &[ObjectId]) -> Result<Vec<Deletion>> {
        let mut all = Vec::new();
        for some in objects.chunks(OBJECTS) {
            let marks: Vec<String> = (1..=some.len()).map(|at| format!("?{at}")).collect();
            let marks = marks.join(", ");
            let sql = format!(
                "SELECT {DELETION} FROM deletions WHERE object IN ({marks}) UNION ALL
                    SELECT d.object, d.site, d.seq, d.time, d.saw, d.moved, d.purge FROM deletion_entries e
                    JOIN deletions d ON d.object = e.object AND d.site = e.site AND d.seq = e.seq
                    WHERE e.entry IN ({marks})"
            );
            let values: Vec<SqlValue> = some.iter().map(|object| (*object).into()).collect();
            all.extend(collect(self.store, &sql, &values, RowReader::deletion)?);
        }
        // A deletion may concern several of the objects.
        all.sort();
        all.dedup();
        Ok(all)
    }

    fn tagged(&mut self, object: ObjectId) -> Result<Vec<RecordKey>> {
        self.flush()?;
        let mut keys = Vec::new();
        for (table, key) in
            [("attributes", RecordKey::Attribute as fn(_, _) -> _), ("annotations", RecordKey::Annotation)]
        {
            let sql = format!("SELECT site, seq, position FROM {table} WHERE object = ?1");
            keys.extend(collect(self.store, &sql, &[object.into()], |row| Ok(key(object, row.tag()?)))?);
        }
        Ok(keys)
    }

    fn erase(&mut self, object: ObjectId) -> Result<()> {
        self.flush()?;
        let keep = "INSERT INTO unneeded SELECT vault, key FROM replicas WHERE object = ?1
            AND site = (SELECT site FROM identity) AND state IS NOT NULL ON CONFLICT (vault, key) DO NOTHING";
        self.store.execute(keep, &[object.into()])?;
        for table in ["versions", "attributes", "annotations", "replicas"] {
            self.store.execute(&format!("DELETE FROM {table} WHERE object = ?1"), &[object.into()])?;
        }
        Ok(())
    }

    fn log_beyond(&mut self, saw: &VersionVector) -> Result<Vec<Operation>> {
        let sites = collect(self.store, "SELECT site FROM sites ORDER BY site", &[], RowReader::site)?;
        let mut all = Vec::new();
        for site in sites {
            let sql = "SELECT body FROM log WHERE site = ?1 AND seq > ?2 ORDER BY seq";
            let values = [site.into(), saw.get(site).into()];
            all.extend(collect(self.store, sql, &values, |row| Ok(decode(&row.blob()?)?))?);
        }
        Ok(all)
    }

    fn compacted(&mut self) -> Result<VersionVector> {
        let rows = collect(self.store, "SELECT site, seq FROM compacted", &[], |row| {
            Ok((row.site()?, row.count()?))
        })?;
        Ok(rows.into_iter().collect())
    }

    fn logged(&mut self, id: OpId) -> Result<Option<Operation>> {
        let sql = "SELECT body FROM log WHERE site = ?1 AND seq = ?2";
        optional(self.store, sql, &[id.site.into(), id.seq.into()], |row| Ok(decode(&row.blob()?)?))
    }

    fn progress(&mut self, site: SiteId) -> Result<Option<SiteProgress>> {
        let sql = format!("SELECT {SITE} FROM sites WHERE site = ?1");
        optional(self.store, &sql, &[site.into()], RowReader::progress)
    }

    fn append(&mut self, op: &Operation, bytes: Vec<u8>) -> Result<()> {
        let values = [op.id.site.into(), op.id.seq.into(), op.time.0.into(), bytes.into()];
        self.store.execute("INSERT INTO log VALUES (?1, ?2, ?3, ?4)", &values)?;
        Ok(())
    }

    fn put(&mut self, record: Record) -> Result<()> {
        match record {
            Record::Attribute(row) => self.attributes.push(row),
            record => put(self.store, &record)?,
        }
        if self.attributes.len() >= ATTRIBUTE_ROWS { self.flush() } else { Ok(()) }
    }

    fn remove(&mut self, key: RecordKey) -> Result<()> {
        self.flush()?;
        remove(self.store, key)
    }
}

/// Selection of nodes with a condition.
fn select_nodes(condition: &str) -> String {
    format!("SELECT {NODE} FROM nodes n {condition}")
}
