//! Schema of iRODS's catalog in `PostgreSQL`: objects, triples and the map between them, with iRODS's indexes.
//!
//! Triples that are equal share a row, and all values are text: times as seconds of eleven digits, numbers as decimals. Changes
//! do what `imeta` does, but many in one transaction, and searches join the tables as its general query does.

use super::database::{MOST_MATCHES, MetadataDatabase, TripleChange};
use super::objects::{self, IN_COLLECTION};
use crate::BenchError;
use holdfast_catalog::{
    Access, Attribute, CatalogStore as _, Condition, Nanos, Operator, PostgresStore, SqlValue, Value,
};
use std::collections::HashMap;
use std::fmt::Write as _;
use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::ops::Range;

/// Identity of the first object or triple.
const FIRST_ID: i64 = 10_000;

/// Rows of one statement of a load.
const ROWS: usize = 1000;

const SCHEMA: [&str; 17] = [
    "CREATE SEQUENCE r_objectid START WITH 10000",
    "CREATE TABLE r_data_main (data_id BIGINT NOT NULL, coll_id BIGINT NOT NULL, data_name VARCHAR(1000) NOT NULL,
        data_repl_num INTEGER NOT NULL, data_version VARCHAR(250) DEFAULT '0', data_type_name VARCHAR(250) NOT NULL,
        data_size BIGINT NOT NULL, resc_group_name VARCHAR(250), resc_name VARCHAR(250) NOT NULL,
        data_path VARCHAR(2700) NOT NULL, data_owner_name VARCHAR(250) NOT NULL,
        data_owner_zone VARCHAR(250) NOT NULL, data_is_dirty INTEGER DEFAULT 0, data_status VARCHAR(250),
        data_checksum VARCHAR(1000), data_expiry_ts VARCHAR(32), data_map_id BIGINT DEFAULT 0, data_mode VARCHAR(32),
        r_comment VARCHAR(1000), create_ts VARCHAR(32), modify_ts VARCHAR(32), resc_hier VARCHAR(1000))",
    "CREATE TABLE r_meta_main (meta_id BIGINT NOT NULL, meta_namespace VARCHAR(250),
        meta_attr_name VARCHAR(2700) NOT NULL, meta_attr_value VARCHAR(2700) NOT NULL, meta_attr_unit VARCHAR(250),
        r_comment VARCHAR(1000), create_ts VARCHAR(32), modify_ts VARCHAR(32))",
    "CREATE TABLE r_objt_metamap (object_id BIGINT NOT NULL, meta_id BIGINT NOT NULL, create_ts VARCHAR(32),
        modify_ts VARCHAR(32))",
    "CREATE INDEX idx_data_main1 ON r_data_main (data_id)",
    "CREATE UNIQUE INDEX idx_data_main2 ON r_data_main (coll_id, data_name, data_repl_num, data_version)",
    "CREATE INDEX idx_data_main3 ON r_data_main (coll_id)",
    "CREATE INDEX idx_data_main4 ON r_data_main (data_name)",
    "CREATE INDEX idx_data_main5 ON r_data_main (data_type_name)",
    "CREATE INDEX idx_data_main6 ON r_data_main (data_path)",
    "CREATE UNIQUE INDEX idx_meta_main1 ON r_meta_main (meta_id)",
    "CREATE INDEX idx_meta_main2 ON r_meta_main (meta_attr_name)",
    "CREATE INDEX idx_meta_main3 ON r_meta_main (meta_attr_value)",
    "CREATE INDEX idx_meta_main4 ON r_meta_main (meta_attr_unit)",
    "CREATE UNIQUE INDEX idx_objt_metamap1 ON r_objt_metamap (object_id, meta_id)",
    "CREATE INDEX idx_objt_metamap2 ON r_objt_metamap (object_id)",
    "CREATE INDEX idx_objt_metamap3 ON r_objt_metamap (meta_id)",
];

/// Table of objects with the columns that are set.
const DATA: &str =
    "r_data_main (data_id, coll_id, data_name, data_path, data_repl_num, data_type_name, data_size,
    resc_name, data_owner_name, data_owner_zone, create_ts, modify_ts)";

const DATA_ROW: &str =
    "({1}, {2}, {3}, {4}, 0, 'generic', 4096, 'disk', 'rods', 'zone', '01700000000', '01700000000')";

/// Table of triples with the columns that are set.
const META: &str =
    "r_meta_main (meta_id, meta_attr_name, meta_attr_value, meta_attr_unit, create_ts, modify_ts)";

const META_ROW: &str = "({1}, {2}, {3}, {4}, '01700000000', '01700000000')";

/// Catalog in iRODS's schema.
pub struct IrodsDatabase {
    store: PostgresStore,
    /// Identities of loaded triples by their hashes.
    loaded: HashMap<u64, i64>,
    next_id: i64,
}

/// Name, value and unit as iRODS keeps them.
fn texts(triple: &Attribute) -> [SqlValue; 3] {
    let unit = triple.unit.as_deref().unwrap_or_default();
    [triple.name.as_str().into(), SqlValue::Text(text(&triple.value)), unit.into()]
}

fn text(value: &Value) -> String {
    match value {
        Value::Time(Nanos(nanos)) => format!("{:011}", nanos / 1_000_000_000),
        other => other.to_string(),
    }
}

impl IrodsDatabase {
    /// Makes the tables in an empty schema.
    pub fn new(mut store: PostgresStore) -> Result<Self, BenchError> {
        for statement in SCHEMA {
            store.execute(statement, &[]).map_err(BenchError::during("making iRODS's schema"))?;
        }
        Ok(Self { store, loaded: HashMap::new(), next_id: FIRST_ID })
    }

    /// Runs work in one transaction.
    fn write<T>(&mut self, work: impl FnOnce(&mut Self) -> Result<T, BenchError>) -> Result<T, BenchError> {
        let failed = BenchError::during("changing iRODS's tables");
        // One statement makes a lock for the catalog; here it has no one to wait for.
        self.store.begin(Access::Write).map_err(failed)?;
        let done = work(self);
        let ended = if done.is_ok() { self.store.commit() } else { self.store.rollback() };
        ended.map_err(BenchError::during("changing iRODS's tables"))?;
        done
    }

    fn fresh_id(&mut self) -> i64 {
        self.next_id += 1;
        self.next_id - 1
    }

    fn execute(&mut self, sql: &str, values: &[SqlValue]) -> Result<u64, BenchError> {
        self.store.execute(sql, values).map_err(BenchError::during("changing iRODS's tables"))
    }

    /// Inserts rows into a table with its columns, many by one statement. In `template` `{N}` is the N-th value of a row.
    fn insert_rows(&mut self, table: &str, template: &str, rows: &[Vec<SqlValue>]) -> Result<(), BenchError> {
        for part in rows.chunks(ROWS) {
            let mut values = Vec::new();
            let mut marked = Vec::with_capacity(part.len());
            for row in part {
                let marks = (1..=row.len()).fold(template.to_owned(), |text, at| {
                    text.replace(&format!("{{{at}}}"), &format!("?{}", values.len() + at))
                });
                marked.push(marks);
                values.extend(row.iter().cloned());
            }
            self.execute(&format!("INSERT INTO {table} VALUES {}", marked.join(", ")), &values)?;
        }
        Ok(())
    }

    /// First column of the first row of a query.
    fn find(&mut self, sql: &str, values: &[SqlValue]) -> Result<Option<i64>, BenchError> {
        let mut found = None;
        let read = self.store.query(sql, values, &mut |row| {
            if let Some(SqlValue::Integer(number)) = row.first() {
                found = Some(*number);
            }
            Ok(())
        });
        read.map_err(BenchError::during("reading iRODS's tables"))?;
        Ok(found)
    }

    fn object(&mut self, number: u64) -> Result<i64, BenchError> {
        let values = [SqlValue::from(number / IN_COLLECTION), objects::file_name(number).as_str().into()];
        let sql = "SELECT data_id FROM r_data_main WHERE coll_id = ?1 AND data_name = ?2";
        let found = self.find(sql, &values)?;
        found.ok_or_else(|| BenchError::accounting(format!("object {number} is not there")))
    }

    fn add(&mut self, object: i64, triples: &[Attribute]) -> Result<(), BenchError> {
        let known = "SELECT meta_id FROM r_meta_main WHERE meta_attr_name = ?1 AND meta_attr_value = ?2
            AND meta_attr_unit = ?3";
        let new = "INSERT INTO r_meta_main (meta_id, meta_attr_name, meta_attr_value, meta_attr_unit, create_ts, modify_ts)
            VALUES (nextval('r_objectid'), ?1, ?2, ?3, '01700000000', '01700000000') RETURNING meta_id";
        let map = "INSERT INTO r_objt_metamap VALUES (?1, ?2, '01700000000', '01700000000')";
        for triple in triples {
            let values = texts(triple);
            let id = match self.find(known, &values)? {
                Some(id) => Some(id),
                None => self.find(new, &values)?,
            };
            let id = id.ok_or_else(|| BenchError::accounting("a new triple has no identity"))?;
            self.execute(map, &[object.into(), id.into()])?;
        }
        Ok(())
    }

    fn remove(&mut self, object: i64, triples: &[Attribute]) -> Result<(), BenchError> {
        let sql =
            "DELETE FROM r_objt_metamap WHERE object_id = ?1 AND meta_id IN (SELECT meta_id FROM r_meta_main
            WHERE meta_attr_name = ?2 AND meta_attr_value = ?3 AND meta_attr_unit = ?4)";
        for triple in triples {
            let [name, value, unit] = texts(triple);
            let removed = self.execute(sql, &[object.into(), name, value, unit])?;
            if removed != 1 {
                return Err(BenchError::accounting(format!("{removed} rows in the place of a triple")));
            }
        }
        Ok(())
    }
}

impl MetadataDatabase for IrodsDatabase {
    fn load(&mut self, numbers: Range<u64>, triples: fn(u64) -> Vec<Attribute>) -> Result<(), BenchError> {
        let (mut data, mut meta, mut map) = (Vec::new(), Vec::new(), Vec::new());
        for number in numbers {
            let object = self.fresh_id();
            let name = objects::file_name(number);
            let path = SqlValue::Text(format!("/vault{}", objects::path(number)));
            data.push(vec![object.into(), (number / IN_COLLECTION).into(), name.as_str().into(), path]);
            for triple in triples(number) {
                let mut hasher = DefaultHasher::new();
                let values = texts(&triple);
                (&triple.name, text(&triple.value), &triple.unit).hash(&mut hasher);
                let hash = hasher.finish();
                let id = if let Some(id) = self.loaded.get(&hash) {
                    *id
                } else {
                    let id = self.fresh_id();
                    self.loaded.insert(hash, id);
                    meta.push([vec![SqlValue::from(id)], values.to_vec()].concat());
                    id
                };
                map.push(vec![object.into(), id.into()]);
            }
        }
        self.write(|database| {
            database.insert_rows(DATA, DATA_ROW, &data)?;
            database.insert_rows(META, META_ROW, &meta)?;
            database.insert_rows("r_objt_metamap", "({1}, {2}, '01700000000', '01700000000')", &map)
        })
    }

    fn settle(&mut self) -> Result<(), BenchError> {
        self.find("SELECT setval('r_objectid', ?1)", &[self.next_id.into()])?;
        self.execute("VACUUM ANALYZE", &[]).map(drop)
    }

    fn change(&mut self, changes: &[TripleChange]) -> Result<(), BenchError> {
        self.write(|database| {
            for TripleChange { number, removed, added } in changes {
                let object = database.object(*number)?;
                database.remove(object, removed)?;
                database.add(object, added)?;
            }
            Ok(())
        })
    }

    fn ask(&mut self, question: &Condition) -> Result<usize, BenchError> {
        let (sql, values) = search(question)?;
        let mut rows = 0;
        let read = self.store.query(&sql, &values, &mut |_| {
            rows += 1;
            Ok(())
        });
        read.map(|()| rows).map_err(BenchError::during("searching iRODS's tables"))
    }
}

/// Statement of a search by comparisons that all hold.
fn search(question: &Condition) -> Result<(String, Vec<SqlValue>), BenchError> {
    let parts = match question {
        Condition::All(all) => all.as_slice(),
        one => std::slice::from_ref(one),
    };
    let (mut joins, mut tests, mut values) = (String::new(), Vec::new(), Vec::new());
    for (at, part) in parts.iter().enumerate() {
        let Condition::Compare { attribute, operator, literal } = part else {
            return Err(BenchError::accounting(format!("`{part}` is not translated")));
        };
        let _ = write!(
            joins,
            " JOIN r_objt_metamap x{at} ON x{at}.object_id = d.data_id JOIN r_meta_main m{at} ON m{at}.meta_id = x{at}.meta_id"
        );
        values.extend([SqlValue::from(attribute.as_str()), SqlValue::Text(text(literal))]);
        let (name, value) = (values.len() - 1, values.len());
        let is_number =
            matches!(literal, Value::Integer(_) | Value::Float(_)) && *operator != Operator::Equal;
        let test = if is_number {
            // Without CASE a text of another attribute may be cast.
            format!(
                "CASE WHEN m{at}.meta_attr_name = ?{name} THEN CAST(m{at}.meta_attr_value AS DECIMAL) END {} CAST(?{value}::text AS DECIMAL)",
                operator.text()
            )
        } else {
            format!("m{at}.meta_attr_value {} ?{value}", operator.text())
        };
        tests.push(format!("m{at}.meta_attr_name = ?{name} AND {test}"));
    }
    let tests = tests.join(" AND ");
    let sql = format!(
        "SELECT DISTINCT d.coll_id, d.data_name FROM r_data_main d{joins} WHERE {tests} LIMIT {MOST_MATCHES}"
    );
    Ok((sql, values))
}
