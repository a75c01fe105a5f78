//! Tables of a database, as merging sees them.

use super::row::{DELETION, DISPUTE, FACT, GRANT, MOVE, NODE, REPLICA, RowReader, SITE};
use super::write::{self, ROWS, insert, put_moved, remove, remove_attributes, row};
use super::{CatalogStore, SqlValue, collect, optional};
use crate::dispute::{Dispute, DisputeKind};
use crate::encoding::decode;
use crate::error::Result;
use crate::fact::{Fact, FactKind};
use crate::grant::Grant;
use crate::hlc::Hlc;
use crate::ids::{ObjectId, OpId, SiteId, Tag};
use crate::merge::{MoveKey, Tables};
use crate::operation::{Operation, ReplicaPlace};
use crate::record::{Deletion, Move, Node, Record, RecordKey, Replica, SiteProgress, TaggedAttribute};
use crate::vector::VersionVector;
use std::collections::{BTreeMap, HashMap, HashSet};

/// Objects in one search for deletions: bounds the parameters of a statement.
const OBJECTS: usize = 64;

/// Nodes that are remembered without being written: bounds memory.
const REMEMBERED: usize = 4096;

/// Tables of one catalog, within a transaction of its store.
///
/// Rows wait until there are enough for one statement, and what was read once is remembered: a transaction of many
/// operations on one collection reads and writes little more than their own rows.
pub(crate) struct SqlTables<'a, S> {
    store: &'a mut S,
    /// Nodes that are not written yet.
    changed: BTreeMap<ObjectId, Node>,
    /// Nodes as they are in the database.
    known: HashMap<ObjectId, Node>,
    /// Objects without any row in the database.
    absent: HashSet<ObjectId>,
    /// Collections and names that no visible child has.
    vacant: HashSet<(ObjectId, String)>,
    /// Entries that no deletion concerns.
    undeleted: HashSet<ObjectId>,
    /// Progress of sites, and whether it is still to be written.
    sites: BTreeMap<SiteId, (Option<SiteProgress>, bool)>,
    replicas: BTreeMap<(ObjectId, ReplicaPlace), Replica>,
    versions: Vec<Vec<SqlValue>>,
    attributes: Vec<TaggedAttribute>,
    /// Attributes of one object that are to be removed.
    removed: Option<(ObjectId, Vec<Tag>)>,
    log: Vec<Vec<SqlValue>>,
}

impl<'a, S: CatalogStore> SqlTables<'a, S> {
    pub(crate) fn new(store: &'a mut S) -> Self {
        Self {
            store,
            changed: BTreeMap::new(),
            known: HashMap::new(),
            absent: HashSet::new(),
            vacant: HashSet::new(),
            undeleted: HashSet::new(),
            sites: BTreeMap::new(),
            replicas: BTreeMap::new(),
            versions: Vec::new(),
            attributes: Vec::new(),
            removed: None,
            log: Vec::new(),
        }
    }

    /// Writes all that waits. It must be called before the commit.
    pub(crate) fn flush(&mut self) -> Result<()> {
        self.flush_nodes()?;
        self.flush_replicas()?;
        self.flush_removed()?;
        self.flush_attributes()?;
        insert(self.store, &write::VERSION, &std::mem::take(&mut self.versions))?;
        insert(self.store, &write::LOG, &std::mem::take(&mut self.log))?;
        let is_due = |(progress, is_due): &mut (Option<SiteProgress>, bool)| {
            progress.clone().filter(|_| std::mem::take(is_due)).map(Record::Site)
        };
        let sites: Vec<Record> = self.sites.values_mut().filter_map(is_due).collect();
        self.write(&sites)
    }

    /// Store with all rows written, for reading.
    pub(crate) fn settled(&mut self) -> Result<&mut S> {
        self.flush()?;
        Ok(self.store)
    }

    /// Store with the attributes of an object written, for reading these.
    pub(crate) fn settled_attributes(&mut self, object: ObjectId) -> Result<&mut S> {
        if self.attributes.iter().any(|row| row.object == object) {
            self.flush_attributes()?;
        }
        if self.removed.as_ref().is_some_and(|(concerned, _)| *concerned == object) {
            self.flush_removed()?;
        }
        Ok(self.store)
    }

    /// Visible child of a collection with a shown name.
    pub(crate) fn child(&mut self, parent: ObjectId, shown: &str) -> Result<Option<Node>> {
        let is_it = |node: &&Node| node.parent == parent && node.shown == shown && !node.trashed;
        if let Some(node) = self.changed.values().find(is_it) {
            return Ok(Some(node.clone()));
        }
        let sql = select_nodes("WHERE n.parent = ?1 AND n.shown = ?2 AND n.trashed = 0");
        let found = optional(self.store, &sql, &[parent.into(), shown.into()], RowReader::node)?;
        if found.is_none() {
            // The first one of a given name is shown under it, so no child has it as its given name either.
            self.vacant.insert((parent, shown.to_owned()));
        }
        Ok(found.filter(|node| !self.changed.contains_key(&node.id)))
    }

    /// Notes that an id was made just now, so that nothing has it.
    pub(crate) fn note_fresh(&mut self, id: ObjectId) {
        self.absent.insert(id);
    }

    fn flush_nodes(&mut self) -> Result<()> {
        let nodes = std::mem::take(&mut self.changed);
        for (id, node) in &nodes {
            self.absent.remove(id);
            self.vacant.remove(&(node.parent, node.name.to_string()));
        }
        self.write(&nodes.values().cloned().map(Record::Node).collect::<Vec<_>>())?;
        if self.known.len() + nodes.len() > REMEMBERED {
            self.known.clear();
        }
        self.known.extend(nodes);
        Ok(())
    }

    fn flush_replicas(&mut self) -> Result<()> {
        let replicas = std::mem::take(&mut self.replicas);
        for (object, _) in replicas.keys() {
            self.absent.remove(object);
        }
        self.write(&replicas.into_values().map(Record::Replica).collect::<Vec<_>>())
    }

    fn flush_attributes(&mut self) -> Result<()> {
        let attributes = std::mem::take(&mut self.attributes);
        self.write(&attributes.into_iter().map(Record::Attribute).collect::<Vec<_>>())
    }

    fn flush_removed(&mut self) -> Result<()> {
        self.removed.take().map_or(Ok(()), |(object, tags)| remove_attributes(self.store, object, &tags))
    }

    /// Writes records of one table.
    fn write(&mut self, records: &[Record]) -> Result<()> {
        let rows: Vec<_> = records.iter().map(row).collect::<Result<_>>()?;
        let Some((table, _)) = rows.first() else { return Ok(()) };
        insert(self.store, table, &rows.into_iter().map(|(_, row)| row).collect::<Vec<_>>())
    }
}

impl<S: CatalogStore> Tables for SqlTables<'_, S> {
    fn node(&mut self, id: ObjectId) -> Result<Option<Node>> {
        if let Some(node) = self.changed.get(&id).or_else(|| self.known.get(&id)) {
            return Ok(Some(node.clone()));
        }
        if self.absent.contains(&id) {
            return Ok(None);
        }
        let found = optional(self.store, &select_nodes("WHERE n.id = ?1"), &[id.into()], RowReader::node)?;
        match &found {
            Some(node) if self.known.len() < REMEMBERED => drop(self.known.insert(id, node.clone())),
            Some(_) => {}
            None => drop(self.absent.insert(id)),
        }
        Ok(found)
    }

    fn named(&mut self, parent: ObjectId, name: &str) -> Result<Vec<Node>> {
        let sql = select_nodes("WHERE n.parent = ?1 AND n.name = ?2 AND n.trashed = 0");
        let mut all = if self.vacant.contains(&(parent, name.to_owned())) {
            Vec::new()
        } else {
            collect(self.store, &sql, &[parent.into(), name.into()], RowReader::node)?
        };
        all.retain(|node| !self.changed.contains_key(&node.id));
        let is_one = |node: &&Node| node.parent == parent && node.name.as_str() == name && !node.trashed;
        all.extend(self.changed.values().filter(is_one).cloned());
        Ok(all)
    }

    fn is_below(&mut self, node: ObjectId, above: ObjectId) -> Result<bool> {
        // The root lies below nothing, and has no row from which the search could start.
        if node == above {
            return Ok(true);
        }
        self.flush_nodes()?;
        let sql = "WITH RECURSIVE up (id) AS (SELECT parent FROM nodes WHERE id = ?1
            UNION SELECT n.parent FROM nodes n JOIN up ON n.id = up.id)
            SELECT 1 FROM up WHERE id = ?2 LIMIT 1";
        let found = optional(self.store, sql, &[node.into(), above.into()], RowReader::integer)?;
        Ok(found.is_some())
    }

    fn replica(&mut self, object: ObjectId, place: &ReplicaPlace) -> Result<Option<Replica>> {
        let waiting = self.replicas.get(&(object, place.clone()));
        if waiting.is_some() || self.absent.contains(&object) {
            return Ok(waiting.cloned());
        }
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
        let is_open = |object: &&ObjectId| !self.undeleted.contains(object) && !self.absent.contains(object);
        let objects: Vec<ObjectId> = objects.iter().filter(is_open).copied().collect();
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
        if all.is_empty() {
            self.undeleted.extend(objects);
        }
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
        self.flush()?;
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
        insert(self.store, &write::LOG, &std::mem::take(&mut self.log))?;
        let sql = "SELECT body FROM log WHERE site = ?1 AND seq = ?2";
        optional(self.store, sql, &[id.site.into(), id.seq.into()], |row| Ok(decode(&row.blob()?)?))
    }

    fn progress(&mut self, site: SiteId) -> Result<Option<SiteProgress>> {
        if let Some((progress, _)) = self.sites.get(&site) {
            return Ok(progress.clone());
        }
        let sql = format!("SELECT {SITE} FROM sites WHERE site = ?1");
        let found = optional(self.store, &sql, &[site.into()], RowReader::progress)?;
        self.sites.insert(site, (found.clone(), false));
        Ok(found)
    }

    fn append(&mut self, op: &Operation, bytes: Vec<u8>) -> Result<()> {
        self.log.push(vec![op.id.site.into(), op.id.seq.into(), op.time.0.into(), bytes.into()]);
        if self.log.len() < ROWS {
            return Ok(());
        }
        insert(self.store, &write::LOG, &std::mem::take(&mut self.log))
    }

    fn put(&mut self, record: Record) -> Result<()> {
        match record {
            Record::Node(node) => {
                self.known.remove(&node.id);
                self.changed.insert(node.id, node);
                if self.changed.len() >= ROWS { self.flush_nodes() } else { Ok(()) }
            }
            Record::Replica(row) => {
                self.replicas.insert((row.object, row.place.clone()), row);
                if self.replicas.len() >= ROWS { self.flush_replicas() } else { Ok(()) }
            }
            Record::Version(_) => {
                self.versions.push(row(&record)?.1);
                if self.versions.len() < ROWS {
                    return Ok(());
                }
                insert(self.store, &write::VERSION, &std::mem::take(&mut self.versions))
            }
            Record::Attribute(row) => {
                self.attributes.push(row);
                if self.attributes.len() >= ROWS { self.flush_attributes() } else { Ok(()) }
            }
            Record::Site(row) => {
                self.sites.insert(row.site, (Some(row), true));
                Ok(())
            }
            Record::Deletion(deletion) => {
                self.undeleted.clear();
                self.absent.clear();
                put_moved(self.store, &deletion)?;
                self.write(&[Record::Deletion(deletion)])
            }
            record => self.write(&[record]),
        }
    }

    fn remove(&mut self, key: RecordKey) -> Result<()> {
        let RecordKey::Attribute(object, tag) = key else { return remove(self.store, key) };
        if let Some(at) = self.attributes.iter().position(|row| row.object == object && row.tag == tag) {
            self.attributes.remove(at);
            return Ok(());
        }
        match &mut self.removed {
            Some((concerned, tags)) if *concerned == object && tags.len() < ROWS => {
                tags.push(tag);
                Ok(())
            }
            _ => {
                self.flush_removed()?;
                self.removed = Some((object, vec![tag]));
                Ok(())
            }
        }
    }
}

/// Selection of nodes with a condition.
fn select_nodes(condition: &str) -> String {
    format!("SELECT {NODE} FROM nodes n {condition}")
}
