//! Schema of both databases and its migrations. A migration, once released, is never changed.
//!
//! | table | one row for each |
//! |---|---|
//! | `migrations` | applied migration |
//! | `identity` | catalog: its site, and its greatest stamp |
//! | `sites` | site: how much of its log is applied, and what it had seen |
//! | `log` | operation, encoded; gap-free by site after the removed ones |
//! | `compacted` | site whose first operations are removed from the log, up to a number |
//! | `nodes` | object, collection or link, with its registers |
//! | `moves` | placement or move of a collection |
//! | `deletions` | deletion or purge in force |
//! | `deletion_entries` | moved entry of a deletion, an index of its column `moved` |
//! | `unneeded` | place of a replica of this site whose object is purged |
//! | `versions` | version of an object |
//! | `replicas` | replica, or its tombstone |
//! | `attributes` | attribute; exactly one `key_…` column is set |
//! | `annotations` | annotation of an object or a collection |
//! | `conflicts` | write that lost against a concurrent one; `noted_ms` is when this site learned of it |
//! | `grants` | right of a subject on an entry, or its tombstone |
//! | `facts` | text by kind and key, or its tombstone |
//! | `quarantine` | operation whose stamp is too far ahead, the next one of its site |
//!
//! Stamps are two columns, time and site; tags are three: site, seq, position. No uniqueness beyond identities is
//! enforced, as concurrent operations may give two entries one name. Texts are ordered by bytes.

use super::row::RowReader;
use super::{Access, CatalogStore, Dialect, SqlValue, optional, transaction};
use crate::error::{CatalogError, Result};
use crate::hlc::Millis;

/// Statements of each migration, the first being version 1.
const MIGRATIONS: [&[&str]; 9] = [
    FIRST,
    &["CREATE INDEX replicas_key ON replicas (site, vault, key)"],
    CONFLICTS,
    QUARANTINE,
    GRANTS,
    FACTS,
    COMPACTION,
    PURGES,
    LINKS,
];

/// Conflicts of version 3: recorded ones, and indexes of those that other tables show.
const CONFLICTS: &[&str] = &[
    "CREATE TABLE conflicts (kind {int} NOT NULL, object {blob} NOT NULL, lost_time {int} NOT NULL,
        lost_site {int} NOT NULL, lost_seq {int} NOT NULL, won_time {int} NOT NULL, won_site {int} NOT NULL,
        won_seq {int} NOT NULL, settled_time {int}, settled_site {int}, choice {int}, noted_ms {int},
        PRIMARY KEY (kind, object, lost_time, lost_site)){table}",
    "CREATE INDEX conflicts_fresh ON conflicts (kind) WHERE noted_ms IS NULL",
    "CREATE INDEX nodes_numbered ON nodes (id) WHERE trashed = 0 AND shown <> name",
    "CREATE INDEX moves_refused ON moves (object, time, site) WHERE effective = 0",
];

/// Tables and indexes of version 1.
const FIRST: &[&str] = &[
    "CREATE TABLE identity (only_row {int} PRIMARY KEY, site {int} NOT NULL, clock {int} NOT NULL){table}",
    "CREATE TABLE sites (site {int} PRIMARY KEY, applied {int} NOT NULL, seen {blob} NOT NULL){table}",
    "CREATE TABLE log (site {int} NOT NULL, seq {int} NOT NULL, time {int} NOT NULL, body {blob} NOT NULL,
        PRIMARY KEY (site, seq)){rows}",
    "CREATE TABLE nodes (id {blob} NOT NULL PRIMARY KEY, kind {int} NOT NULL,
        made_time {int} NOT NULL, made_site {int} NOT NULL,
        parent {blob} NOT NULL, name {text} NOT NULL, named_time {int} NOT NULL, named_site {int} NOT NULL,
        shown {text} NOT NULL, trashed {int} NOT NULL,
        current_site {int}, current_seq {int}, current_position {int},
        current_set_time {int}, current_set_site {int}){table}",
    "CREATE INDEX nodes_name ON nodes (parent, name)",
    "CREATE INDEX nodes_shown ON nodes (parent, shown) WHERE trashed = 0",
    "CREATE TABLE moves (time {int} NOT NULL, site {int} NOT NULL, object {blob} NOT NULL,
        parent {blob} NOT NULL, name {text} NOT NULL, placement {int} NOT NULL, effective {int} NOT NULL,
        PRIMARY KEY (time, site, object)){table}",
    "CREATE INDEX moves_replayed ON moves (time, site, object) WHERE placement = 0",
    "CREATE INDEX moves_object ON moves (object, time, site)",
    "CREATE TABLE deletions (object {blob} NOT NULL, site {int} NOT NULL, seq {int} NOT NULL,
        time {int} NOT NULL, saw {blob} NOT NULL, moved {blob} NOT NULL,
        PRIMARY KEY (object, site, seq)){table}",
    "CREATE TABLE deletion_entries (entry {blob} NOT NULL, object {blob} NOT NULL, site {int} NOT NULL,
        seq {int} NOT NULL, PRIMARY KEY (entry, object, site, seq)){table}",
    "CREATE INDEX deletion_entries_object ON deletion_entries (object, site, seq)",
    "CREATE TABLE versions (object {blob} NOT NULL, site {int} NOT NULL, seq {int} NOT NULL,
        position {int} NOT NULL, size {int} NOT NULL, hash {blob} NOT NULL, time {int} NOT NULL,
        home {int} NOT NULL, PRIMARY KEY (object, site, seq, position)){table}",
    "CREATE TABLE replicas (object {blob} NOT NULL, site {int} NOT NULL, vault {text} NOT NULL,
        key {text} NOT NULL, version_site {int}, version_seq {int}, version_position {int}, state {int},
        set_time {int} NOT NULL, set_site {int} NOT NULL, PRIMARY KEY (object, site, vault, key)){table}",
    "CREATE INDEX replicas_site ON replicas (site, object)",
    "CREATE TABLE attributes (object {blob} NOT NULL, name {text} NOT NULL, site {int} NOT NULL,
        seq {int} NOT NULL, position {int} NOT NULL, unit {text}, key_text {text}, key_integer {int},
        key_float {real}, key_time {int}, given {blob}, PRIMARY KEY (object, name, site, seq, position)){table}",
    "CREATE INDEX attributes_text ON attributes (name, key_text, object) WHERE key_text IS NOT NULL",
    "CREATE INDEX attributes_integer ON attributes (name, key_integer, object) WHERE key_integer IS NOT NULL",
    "CREATE INDEX attributes_float ON attributes (name, key_float, object) WHERE key_float IS NOT NULL",
    "CREATE INDEX attributes_time ON attributes (name, key_time, object) WHERE key_time IS NOT NULL",
    "CREATE TABLE annotations (object {blob} NOT NULL, site {int} NOT NULL, seq {int} NOT NULL,
        position {int} NOT NULL, time {int} NOT NULL, author {text} NOT NULL, note {text} NOT NULL,
        PRIMARY KEY (object, site, seq, position)){table}",
];

/// Quarantine of version 4.
const QUARANTINE: &[&str] =
    &["CREATE TABLE quarantine (site {int} PRIMARY KEY, seq {int} NOT NULL, noted_ms {int} NOT NULL,
        body {blob} NOT NULL){rows}"];

/// Grants of version 5.
const GRANTS: &[&str] =
    &["CREATE TABLE grants (object {blob} NOT NULL, subject {text} NOT NULL, granted {int},
        set_time {int} NOT NULL, set_site {int} NOT NULL, PRIMARY KEY (object, subject)){table}"];

/// Facts of version 6.
const FACTS: &[&str] = &["CREATE TABLE facts (kind {int} NOT NULL, key {text} NOT NULL, body {text},
        set_time {int} NOT NULL, set_site {int} NOT NULL, PRIMARY KEY (kind, key)){table}"];

/// Compaction of version 7.
const COMPACTION: &[&str] = &["CREATE TABLE compacted (site {int} PRIMARY KEY, seq {int} NOT NULL){table}"];

/// Purges of version 8.
const PURGES: &[&str] = &[
    "ALTER TABLE deletions ADD COLUMN purge {int} NOT NULL DEFAULT 0",
    "CREATE TABLE unneeded (vault {text} NOT NULL, key {text} NOT NULL, PRIMARY KEY (vault, key)){table}",
];

/// Links of version 9.
const LINKS: &[&str] =
    &["ALTER TABLE nodes ADD COLUMN target {blob}", "CREATE INDEX nodes_links ON nodes (id) WHERE kind = 2"];

/// Table of applied migrations, made before the first.
const LEDGER: &str =
    "CREATE TABLE IF NOT EXISTS migrations (version {int} PRIMARY KEY, applied_ms {int} NOT NULL){table}";

/// Fills in the types of a dialect.
fn statement(template: &str, dialect: Dialect) -> String {
    let (int, blob, text, real, table, rows) = match dialect {
        // Small rows lie in the tree of their key; long ones (the log) do not.
        Dialect::Sqlite => ("INTEGER", "BLOB", "TEXT", "REAL", " STRICT, WITHOUT ROWID", " STRICT"),
        Dialect::Postgres => ("BIGINT", "BYTEA", "TEXT COLLATE \"C\"", "DOUBLE PRECISION", "", ""),
    };
    [
        ("{int}", int),
        ("{blob}", blob),
        ("{text}", text),
        ("{real}", real),
        ("{table}", table),
        ("{rows}", rows),
    ]
    .iter()
    .fold(template.to_owned(), |sql, (mark, word)| sql.replace(mark, word))
}

/// Newest schema version that this software knows.
pub(crate) const NEWEST: i64 = MIGRATIONS.len() as i64;

/// Brings the schema to the newest version. A schema of newer software is refused and left alone.
pub(crate) fn migrate<S: CatalogStore>(store: &mut S, now: Millis) -> Result<()> {
    transaction(store, Access::Write, |store| {
        let dialect = store.dialect();
        store.execute(&statement(LEDGER, dialect), &[])?;
        let found = optional(store, "SELECT MAX(version) FROM migrations", &[], RowReader::optional_integer)?;
        let found = found.flatten().unwrap_or(0);
        if found > NEWEST {
            return Err(CatalogError::NewerSchema { found, known: NEWEST });
        }
        for (version, migration) in (1..).zip(MIGRATIONS).skip(found as usize) {
            for template in migration {
                store.execute(&statement(template, dialect), &[])?;
            }
            let values = [SqlValue::Integer(version), now.0.into()];
            store.execute("INSERT INTO migrations (version, applied_ms) VALUES (?1, ?2)", &values)?;
        }
        Ok(())
    })
}
