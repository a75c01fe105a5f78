//! Writing of records: one statement for each kind.

use super::{CatalogStore, SqlValue};
use crate::error::{CatalogError, Result};
use crate::hlc::Hlc;
use crate::ids::{ObjectId, OpId, Tag};
use crate::record::{Deletion, Record, RecordKey, TaggedAttribute};
use crate::value::Value;
use serde::Serialize;

/// Rows in one statement: bounds its parameters (`SQLite` allows 32766, `PostgreSQL` 65535).
pub(super) const ROWS: usize = 64;

/// Statement that inserts rows into a table.
#[derive(Debug)]
pub(super) struct Insert {
    /// Name of the table.
    table: &'static str,
    /// Clause for rows that are there already.
    conflict: &'static str,
}

impl Insert {
    const fn new(table: &'static str) -> Self {
        Self { table, conflict: "" }
    }

    const fn or(table: &'static str, conflict: &'static str) -> Self {
        Self { table, conflict }
    }
}

const NODE: Insert = Insert::or(
    "nodes",
    " ON CONFLICT (id) DO UPDATE SET made_time = excluded.made_time, made_site = excluded.made_site,
    parent = excluded.parent, name = excluded.name,
    named_time = excluded.named_time, named_site = excluded.named_site, shown = excluded.shown,
    trashed = excluded.trashed, current_site = excluded.current_site, current_seq = excluded.current_seq,
    current_position = excluded.current_position, current_set_time = excluded.current_set_time,
    current_set_site = excluded.current_set_site",
);
const MOVE: Insert =
    Insert::or("moves", " ON CONFLICT (time, site, object) DO UPDATE SET effective = excluded.effective");
const DELETION: Insert = Insert::new("deletions");
pub(super) const VERSION: Insert = Insert::new("versions");
const REPLICA: Insert = Insert::or(
    "replicas",
    " ON CONFLICT (object, site, vault, key) DO UPDATE SET version_site = excluded.version_site,
    version_seq = excluded.version_seq, version_position = excluded.version_position, state = excluded.state,
    set_time = excluded.set_time, set_site = excluded.set_site",
);
const ATTRIBUTE: Insert = Insert::new("attributes");
const ANNOTATION: Insert = Insert::new("annotations");
const SITE: Insert =
    Insert::or("sites", " ON CONFLICT (site) DO UPDATE SET applied = excluded.applied, seen = excluded.seen");
const DISPUTE: Insert = Insert::or(
    "conflicts",
    " ON CONFLICT (kind, object, lost_time, lost_site) DO UPDATE SET won_time = excluded.won_time,
    won_site = excluded.won_site, won_seq = excluded.won_seq, settled_time = excluded.settled_time,
    settled_site = excluded.settled_site, choice = excluded.choice",
);
const GRANT: Insert = Insert::or(
    "grants",
    " ON CONFLICT (object, subject) DO UPDATE SET granted = excluded.granted, set_time = excluded.set_time,
    set_site = excluded.set_site",
);
const FACT: Insert = Insert::or(
    "facts",
    " ON CONFLICT (kind, key) DO UPDATE SET body = excluded.body, set_time = excluded.set_time,
    set_site = excluded.set_site",
);

/// Statement for rows of the log.
pub(super) const LOG: Insert = Insert::new("log");

/// Encodes a part of a record that no statement looks into.
fn encoded<V: Serialize>(value: &V) -> Result<SqlValue> {
    let bytes = postcard::to_allocvec(value).map_err(|error| CatalogError::Damaged(error.to_string()))?;
    Ok(bytes.into())
}

fn stamp(values: &mut Vec<SqlValue>, stamp: Hlc) {
    values.extend([stamp.time.0.into(), stamp.site.into()]);
}

fn op(values: &mut Vec<SqlValue>, op: OpId) {
    values.extend([op.site.into(), op.seq.into()]);
}

fn tag(values: &mut Vec<SqlValue>, tag: Tag) {
    op(values, tag.op);
    values.push(i64::from(tag.index).into());
}

fn optional_tag(values: &mut Vec<SqlValue>, optional: Option<Tag>) {
    match optional {
        Some(found) => tag(values, found),
        None => values.extend([SqlValue::Null, SqlValue::Null, SqlValue::Null]),
    }
}

/// Row of a record, and the statement that writes it.
pub(super) fn row(record: &Record) -> Result<(&'static Insert, Vec<SqlValue>)> {
    let mut values = Vec::with_capacity(16);
    let insert = match record {
        Record::Node(node) => {
            values.extend([node.id.into(), SqlValue::Integer(node.kind as i64)]);
            stamp(&mut values, node.made);
            values.extend([node.parent.into(), node.name.as_str().into()]);
            stamp(&mut values, node.named);
            values.extend([node.shown.as_str().into(), node.trashed.into()]);
            optional_tag(&mut values, node.current.map(|current| current.version));
            match node.current {
                Some(current) => stamp(&mut values, current.set),
                None => values.extend([SqlValue::Null, SqlValue::Null]),
            }
            values.push(node.target.map_or(SqlValue::Null, SqlValue::from));
            &NODE
        }
        Record::Move(step) => {
            stamp(&mut values, step.stamp);
            values.extend([step.object.into(), step.parent.into(), step.name.as_str().into()]);
            values.extend([step.placement.into(), step.effective.into()]);
            &MOVE
        }
        Record::Deletion(row) => {
            values.push(row.object.into());
            op(&mut values, row.op);
            values.extend([row.stamp.time.0.into(), encoded(&row.saw)?, encoded(&row.moved)?]);
            values.push(row.purge.into());
            &DELETION
        }
        Record::Version(row) => {
            values.push(row.object.into());
            tag(&mut values, row.tag);
            values.extend([row.size.into(), row.hash.0.to_vec().into(), row.time.0.into(), row.home.into()]);
            &VERSION
        }
        Record::Replica(row) => {
            values.extend([row.object.into(), row.place.site.into()]);
            values.extend([row.place.vault.as_str().into(), row.place.key.as_str().into()]);
            optional_tag(&mut values, row.content.map(|(version, _)| version));
            values.push(row.content.map_or(SqlValue::Null, |(_, state)| SqlValue::Integer(state as i64)));
            stamp(&mut values, row.set);
            &REPLICA
        }
        Record::Attribute(row) => {
            attribute(&mut values, row)?;
            &ATTRIBUTE
        }
        Record::Annotation(row) => {
            values.push(row.object.into());
            tag(&mut values, row.tag);
            values.extend([row.stamp.time.0.into(), row.author.as_str().into(), row.text.as_str().into()]);
            &ANNOTATION
        }
        Record::Site(row) => {
            values.extend([row.site.into(), row.applied.into(), encoded(&row.seen)?]);
            &SITE
        }
        Record::Grant(row) => {
            values.extend([row.object.into(), row.subject.as_str().into()]);
            values.push(row.right.map_or(SqlValue::Null, |right| SqlValue::Integer(right as i64)));
            stamp(&mut values, row.set);
            &GRANT
        }
        Record::Fact(row) => {
            values.extend([SqlValue::Integer(row.kind as i64), row.key.as_str().into()]);
            values.push(row.body.as_deref().map_or(SqlValue::Null, SqlValue::from));
            stamp(&mut values, row.set);
            &FACT
        }
        Record::Dispute(row) => {
            values.extend([SqlValue::Integer(row.kind as i64), row.object.into()]);
            for write in [row.lost, row.won] {
                stamp(&mut values, write.stamp);
                values.push(write.seq.into());
            }
            match row.settled {
                Some(settled) => {
                    stamp(&mut values, settled.set);
                    values.push(SqlValue::Integer(settled.choice as i64));
                }
                None => values.extend([SqlValue::Null, SqlValue::Null, SqlValue::Null]),
            }
            // The time at which this site learned of it is set later, and stays.
            values.push(SqlValue::Null);
            &DISPUTE
        }
    };
    Ok((insert, values))
}

/// Writes rows of one table, many with each statement.
pub(super) fn insert<S: CatalogStore>(store: &mut S, insert: &Insert, rows: &[Vec<SqlValue>]) -> Result<()> {
    for part in parts(rows) {
        let columns = part.first().map_or(0, Vec::len);
        let sql =
            format!("INSERT INTO {} VALUES {}{}", insert.table, marks(part.len(), columns), insert.conflict);
        store.execute(&sql, &part.concat())?;
    }
    Ok(())
}

/// Parts of at most [`ROWS`] rows, each a power of two, so that few different statements are prepared.
fn parts<T>(mut rows: &[T]) -> impl Iterator<Item = &[T]> {
    std::iter::from_fn(move || {
        let length = (1 << rows.len().checked_ilog2()?).min(ROWS);
        let part;
        (part, rows) = rows.split_at(length);
        Some(part)
    })
}

/// Marks of the parameters of some rows.
fn marks(rows: usize, columns: usize) -> String {
    let row = |row: usize| {
        let marks: Vec<String> = (1..=columns).map(|at| format!("?{}", row * columns + at)).collect();
        format!("({})", marks.join(", "))
    };
    (0..rows).map(row).collect::<Vec<_>>().join(", ")
}

/// Removes attributes of one object; missing ones are no error.
pub(super) fn remove_attributes<S: CatalogStore>(
    store: &mut S,
    object: ObjectId,
    tags: &[Tag],
) -> Result<()> {
    for part in parts(tags) {
        let mut values = vec![object.into()];
        let is_one = |removed: &Tag| {
            let at = values.len();
            tag(&mut values, *removed);
            format!("(site = ?{} AND seq = ?{} AND position = ?{})", at + 1, at + 2, at + 3)
        };
        let any = part.iter().map(is_one).collect::<Vec<_>>().join(" OR ");
        store.execute(&format!("DELETE FROM attributes WHERE object = ?1 AND ({any})"), &values)?;
    }
    Ok(())
}

fn attribute(values: &mut Vec<SqlValue>, row: &TaggedAttribute) -> Result<()> {
    let attribute = &row.attribute;
    values.extend([row.object.into(), attribute.name.as_str().into()]);
    tag(values, row.tag);
    values.push(attribute.unit.as_deref().map_or(SqlValue::Null, SqlValue::from));
    let key = attribute.key();
    let mut columns = [const { SqlValue::Null }; 4];
    let (place, column) = match &key {
        Value::Text(text) => (0, SqlValue::Text(text.clone())),
        Value::Integer(number) => (1, SqlValue::Integer(*number)),
        Value::Float(number) => (2, SqlValue::Float(number.get())),
        Value::Time(time) => (3, SqlValue::Integer(time.0)),
    };
    columns[place] = column;
    values.extend(columns);
    values.push(if key == attribute.value { SqlValue::Null } else { encoded(&attribute.value)? });
    Ok(())
}

/// Writes the index of the moved entries of a deletion.
pub(super) fn put_moved<S: CatalogStore>(store: &mut S, deletion: &Deletion) -> Result<()> {
    for entry in &deletion.moved {
        let mut values = vec![SqlValue::from(*entry), deletion.object.into()];
        op(&mut values, deletion.op);
        store.execute("INSERT INTO deletion_entries VALUES (?1, ?2, ?3, ?4)", &values)?;
    }
    Ok(())
}

/// Removes a record; a missing one is no error.
pub(super) fn remove<S: CatalogStore>(store: &mut S, key: RecordKey) -> Result<()> {
    let mut values = Vec::with_capacity(4);
    let sql = match key {
        RecordKey::Deletion(object, deletion) => {
            values.push(object.into());
            op(&mut values, deletion);
            let entries = "DELETE FROM deletion_entries WHERE object = ?1 AND site = ?2 AND seq = ?3";
            store.execute(entries, &values)?;
            "DELETE FROM deletions WHERE object = ?1 AND site = ?2 AND seq = ?3"
        }
        RecordKey::Attribute(object, attribute) => return remove_attributes(store, object, &[attribute]),
        RecordKey::Annotation(object, annotation) => {
            values.push(object.into());
            tag(&mut values, annotation);
            "DELETE FROM annotations WHERE object = ?1 AND site = ?2 AND seq = ?3 AND position = ?4"
        }
        RecordKey::Placement(object, stamp) => {
            values.extend([object.into(), stamp.time.0.into(), stamp.site.into()]);
            "DELETE FROM moves WHERE object = ?1 AND time = ?2 AND site = ?3"
        }
    };
    store.execute(sql, &values)?;
    Ok(())
}
