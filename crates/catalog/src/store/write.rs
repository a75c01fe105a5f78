//! Writing of records: one statement for each kind.

use super::{CatalogStore, SqlValue};
use crate::error::{CatalogError, Result};
use crate::hlc::Hlc;
use crate::ids::{OpId, Tag};
use crate::record::{Deletion, Record, RecordKey, TaggedAttribute};
use crate::value::Value;
use serde::Serialize;

/// Columns of one attribute row.
const ATTRIBUTE_COLUMNS: usize = 11;

/// Attributes in one statement: bounds its parameters (`SQLite` allows 32766, `PostgreSQL` 65535).
pub(super) const ATTRIBUTE_ROWS: usize = 64;

const NODE: &str =
    "INSERT INTO nodes VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, ?16)
    ON CONFLICT (id) DO UPDATE SET made_time = excluded.made_time, made_site = excluded.made_site,
    parent = excluded.parent, name = excluded.name,
    named_time = excluded.named_time, named_site = excluded.named_site, shown = excluded.shown,
    trashed = excluded.trashed, current_site = excluded.current_site, current_seq = excluded.current_seq,
    current_position = excluded.current_position, current_set_time = excluded.current_set_time,
    current_set_site = excluded.current_set_site";
const MOVE: &str = "INSERT INTO moves VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)
    ON CONFLICT (time, site, object) DO UPDATE SET effective = excluded.effective";
const DELETION: &str = "INSERT INTO deletions VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)";
const VERSION: &str = "INSERT INTO versions VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8)";
const REPLICA: &str = "INSERT INTO replicas VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10)
    ON CONFLICT (object, site, vault, key) DO UPDATE SET version_site = excluded.version_site,
    version_seq = excluded.version_seq, version_position = excluded.version_position, state = excluded.state,
    set_time = excluded.set_time, set_site = excluded.set_site";
const ANNOTATION: &str = "INSERT INTO annotations VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)";
const SITE: &str = "INSERT INTO sites VALUES (?1, ?2, ?3)
    ON CONFLICT (site) DO UPDATE SET applied = excluded.applied, seen = excluded.seen";

const DISPUTE: &str = "INSERT INTO conflicts VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, NULL)
    ON CONFLICT (kind, object, lost_time, lost_site) DO UPDATE SET won_time = excluded.won_time,
    won_site = excluded.won_site, won_seq = excluded.won_seq, settled_time = excluded.settled_time,
    settled_site = excluded.settled_site, choice = excluded.choice";

const GRANT: &str = "INSERT INTO grants VALUES (?1, ?2, ?3, ?4, ?5)
    ON CONFLICT (object, subject) DO UPDATE SET granted = excluded.granted, set_time = excluded.set_time,
    set_site = excluded.set_site";

const FACT: &str = "INSERT INTO facts VALUES (?1, ?2, ?3, ?4, ?5)
    ON CONFLICT (kind, key) DO UPDATE SET body = excluded.body, set_time = excluded.set_time,
    set_site = excluded.set_site";

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

/// Writes a record. Attributes are written by [`put_attributes`] instead.
pub(super) fn put<S: CatalogStore>(store: &mut S, record: &Record) -> Result<()> {
    let mut values = Vec::with_capacity(16);
    let sql = match record {
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
            NODE
        }
        Record::Move(step) => {
            stamp(&mut values, step.stamp);
            values.extend([step.object.into(), step.parent.into(), step.name.as_str().into()]);
            values.extend([step.placement.into(), step.effective.into()]);
            MOVE
        }
        Record::Deletion(row) => {
            values.push(row.object.into());
            op(&mut values, row.op);
            values.extend([row.stamp.time.0.into(), encoded(&row.saw)?, encoded(&row.moved)?]);
            values.push(row.purge.into());
            put_moved(store, row)?;
            DELETION
        }
        Record::Version(row) => {
            values.push(row.object.into());
            tag(&mut values, row.tag);
            values.extend([row.size.into(), row.hash.0.to_vec().into(), row.time.0.into(), row.home.into()]);
            VERSION
        }
        Record::Replica(row) => {
            values.extend([row.object.into(), row.place.site.into()]);
            values.extend([row.place.vault.as_str().into(), row.place.key.as_str().into()]);
            optional_tag(&mut values, row.content.map(|(version, _)| version));
            values.push(row.content.map_or(SqlValue::Null, |(_, state)| SqlValue::Integer(state as i64)));
            stamp(&mut values, row.set);
            REPLICA
        }
        Record::Attribute(row) => return put_attributes(store, std::slice::from_ref(row)),
        Record::Annotation(row) => {
            values.push(row.object.into());
            tag(&mut values, row.tag);
            values.extend([row.stamp.time.0.into(), row.author.as_str().into(), row.text.as_str().into()]);
            ANNOTATION
        }
        Record::Site(row) => {
            values.extend([row.site.into(), row.applied.into(), encoded(&row.seen)?]);
            SITE
        }
        Record::Grant(row) => {
            values.extend([row.object.into(), row.subject.as_str().into()]);
            values.push(row.right.map_or(SqlValue::Null, |right| SqlValue::Integer(right as i64)));
            stamp(&mut values, row.set);
            GRANT
        }
        Record::Fact(row) => {
            values.extend([SqlValue::Integer(row.kind as i64), row.key.as_str().into()]);
            values.push(row.body.as_deref().map_or(SqlValue::Null, SqlValue::from));
            stamp(&mut values, row.set);
            FACT
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
            DISPUTE
        }
    };
    store.execute(sql, &values)?;
    Ok(())
}

/// Writes at most [`ATTRIBUTE_ROWS`] attributes with one statement.
pub(super) fn put_attributes<S: CatalogStore>(store: &mut S, rows: &[TaggedAttribute]) -> Result<()> {
    let mut values = Vec::with_capacity(rows.len() * ATTRIBUTE_COLUMNS);
    let mut sql = String::from("INSERT INTO attributes VALUES ");
    for (place, row) in rows.iter().enumerate() {
        let marks: Vec<String> =
            (1..=ATTRIBUTE_COLUMNS).map(|at| format!("?{}", place * ATTRIBUTE_COLUMNS + at)).collect();
        sql.push_str(if place == 0 { "(" } else { ", (" });
        sql.push_str(&marks.join(", "));
        sql.push(')');
        attribute(&mut values, row)?;
    }
    store.execute(&sql, &values)?;
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
fn put_moved<S: CatalogStore>(store: &mut S, deletion: &Deletion) -> Result<()> {
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
        RecordKey::Attribute(object, attribute) => {
            values.push(object.into());
            tag(&mut values, attribute);
            "DELETE FROM attributes WHERE object = ?1 AND site = ?2 AND seq = ?3 AND position = ?4"
        }
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
