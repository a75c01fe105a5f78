//! Store in `SQLite`: one file, for one site without a server.

use super::{Access, CatalogStore, Dialect, SqlValue};
use crate::error::{Result, StoreError};
use rusqlite::types::{ToSqlOutput, Value, ValueRef};
use rusqlite::{Connection, ToSql, params_from_iter};
use std::fs::OpenOptions;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Time for which a statement waits for another process to finish its transaction.
const BUSY: Duration = Duration::from_secs(30);

/// Compiled statements that are kept, more than the catalog has.
const STATEMENTS: usize = 256;

/// Settings of a connection: a commit is durable on return, and readers do not wait for writers.
const SETTINGS: &str = "PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL; PRAGMA temp_store = MEMORY;
    PRAGMA cache_size = -65536;";

/// Catalog database in a file of `SQLite`.
#[derive(Debug)]
pub struct SqliteStore {
    connection: Connection,
    path: PathBuf,
}

impl SqliteStore {
    /// Opens a file, and creates it if it is missing.
    pub fn open(path: &Path) -> Result<Self, StoreError> {
        let failed = |error: rusqlite::Error| store_error("open", path, &error);
        // The catalog has tokens of other sites. SQLite gives its log and its shared memory the permissions of the database;
        // a file that cannot be made is told by the opening. A file that is there is not opened: to close it would drop the
        // locks of this process's other connections.
        let _ = OpenOptions::new().create_new(true).write(true).mode(0o600).open(path);
        let connection = Connection::open(path).map_err(failed)?;
        connection.busy_timeout(BUSY).map_err(failed)?;
        connection.set_prepared_statement_cache_capacity(STATEMENTS);
        connection.execute_batch(SETTINGS).map_err(failed)?;
        Ok(Self { connection, path: path.to_owned() })
    }

    fn failed(&self, verb: &'static str) -> impl Fn(rusqlite::Error) -> StoreError {
        move |error| store_error(verb, &self.path, &error)
    }

    fn run(&mut self, verb: &'static str, sql: &str) -> Result<(), StoreError> {
        self.connection.execute_batch(sql).map_err(self.failed(verb))
    }
}

fn store_error(verb: &'static str, path: &Path, error: &rusqlite::Error) -> StoreError {
    use rusqlite::ErrorCode::{DatabaseBusy, DatabaseCorrupt, DiskFull, NotADatabase, ReadOnly};
    let remedy = match error.sqlite_error_code() {
        Some(DatabaseBusy) => "wait for the other process that writes to it, then try again",
        Some(DatabaseCorrupt | NotADatabase) => "restore it from another site or a backup",
        Some(DiskFull) => "free space on its file system",
        Some(ReadOnly) => "make the file and its folder writable",
        _ => "check the file and its folder",
    };
    let reason = error.to_string().split_whitespace().collect::<Vec<_>>().join(" ");
    StoreError { verb, place: path.display().to_string(), reason, remedy }
}

impl ToSql for SqlValue {
    fn to_sql(&self) -> rusqlite::Result<ToSqlOutput<'_>> {
        Ok(match self {
            Self::Null => ToSqlOutput::Owned(Value::Null),
            Self::Integer(number) => ToSqlOutput::Owned(Value::Integer(*number)),
            Self::Float(number) => ToSqlOutput::Owned(Value::Real(*number)),
            Self::Text(text) => ToSqlOutput::Borrowed(ValueRef::Text(text.as_bytes())),
            Self::Blob(bytes) => ToSqlOutput::Borrowed(ValueRef::Blob(bytes)),
        })
    }
}

fn value(column: ValueRef<'_>) -> SqlValue {
    match column {
        ValueRef::Null => SqlValue::Null,
        ValueRef::Integer(number) => SqlValue::Integer(number),
        ValueRef::Real(number) => SqlValue::Float(number),
        ValueRef::Text(text) => SqlValue::Text(String::from_utf8_lossy(text).into_owned()),
        ValueRef::Blob(bytes) => SqlValue::Blob(bytes.to_vec()),
    }
}

impl CatalogStore for SqliteStore {
    fn dialect(&self) -> Dialect {
        Dialect::Sqlite
    }

    fn begin(&mut self, access: Access) -> Result<(), StoreError> {
        match access {
            Access::Read => self.run("read", "BEGIN DEFERRED"),
            Access::Write => self.run("lock", "BEGIN IMMEDIATE"),
        }
    }

    fn commit(&mut self) -> Result<(), StoreError> {
        self.run("commit to", "COMMIT")
    }

    fn rollback(&mut self) -> Result<(), StoreError> {
        // An error may have ended the transaction already.
        if self.connection.is_autocommit() { Ok(()) } else { self.run("roll back", "ROLLBACK") }
    }

    fn execute(&mut self, sql: &str, values: &[SqlValue]) -> Result<u64, StoreError> {
        let failed = self.failed("change");
        let mut statement = self.connection.prepare_cached(sql).map_err(&failed)?;
        let changed = statement.execute(params_from_iter(values)).map_err(&failed)?;
        Ok(changed as u64)
    }

    fn query(
        &mut self,
        sql: &str,
        values: &[SqlValue],
        row: &mut dyn FnMut(Vec<SqlValue>) -> Result<()>,
    ) -> Result<()> {
        let failed = self.failed("read");
        let mut statement = self.connection.prepare_cached(sql).map_err(&failed)?;
        let width = statement.column_count();
        let mut rows = statement.query(params_from_iter(values)).map_err(&failed)?;
        while let Some(found) = rows.next().map_err(&failed)? {
            let mut columns = Vec::with_capacity(width);
            for at in 0..width {
                columns.push(value(found.get_ref(at).map_err(&failed)?));
            }
            row(columns)?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::MetadataExt as _;

    /// Locks of files with this path's inode, as the kernel lists them.
    fn locks(path: &Path) -> usize {
        let inode = format!(":{} ", std::fs::metadata(path).unwrap().ino());
        let all = std::fs::read_to_string("/proc/locks").unwrap();
        all.lines().filter(|line| line.contains(&inode)).count()
    }

    // Promise 4: without its lock, the log of an open database is removed by the next program that closes it.
    #[test]
    fn another_connection_leaves_the_locks_of_the_first() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("catalog.db");
        let mut first = SqliteStore::open(&path).unwrap();
        first.execute("CREATE TABLE t (a INTEGER)", &[]).unwrap();
        let held = locks(&path);
        assert!(held > 0);
        drop(SqliteStore::open(&path).unwrap());
        assert_eq!(locks(&path), held);
        drop(first);
        assert_eq!(locks(&path), 0);
    }
}
