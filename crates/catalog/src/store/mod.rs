//! Stores: one set of SQL statements over a small trait with two databases behind it.
//!
//! Statements are written once, with parameters `?1`, `?2` …, in the SQL that `SQLite` and `PostgreSQL` share.
//! Differences of the dialects are confined to `schema` and `condition_sql`.

pub(crate) mod condition_sql;
pub(crate) mod postgres;
pub(crate) mod row;
pub(crate) mod scan;
pub(crate) mod schema;
pub(crate) mod sqlite;
pub(crate) mod tables;
mod write;

use crate::error::{Result, StoreError};

/// Value of a parameter or of a column.
#[derive(Clone, PartialEq, Debug)]
pub enum SqlValue {
    /// Missing value of any type.
    Null,
    /// Signed integer of 64 bits.
    Integer(i64),
    /// Floating-point number in double precision.
    Float(f64),
    /// Text in UTF-8 without NUL.
    Text(String),
    /// Bytes of any length.
    Blob(Vec<u8>),
}

impl From<i64> for SqlValue {
    fn from(number: i64) -> Self {
        Self::Integer(number)
    }
}

impl From<bool> for SqlValue {
    fn from(flag: bool) -> Self {
        Self::Integer(i64::from(flag))
    }
}

impl From<&str> for SqlValue {
    fn from(text: &str) -> Self {
        Self::Text(text.to_owned())
    }
}

impl From<Vec<u8>> for SqlValue {
    fn from(bytes: Vec<u8>) -> Self {
        Self::Blob(bytes)
    }
}

impl From<crate::ids::ObjectId> for SqlValue {
    fn from(id: crate::ids::ObjectId) -> Self {
        Self::Blob(id.0.to_vec())
    }
}

impl From<crate::ids::SiteId> for SqlValue {
    fn from(site: crate::ids::SiteId) -> Self {
        Self::Integer(site.number() as i64)
    }
}

impl From<u64> for SqlValue {
    fn from(number: u64) -> Self {
        // Sequence numbers, sizes and stamps are checked to fit when an operation is made or decoded.
        Self::Integer(i64::try_from(number).unwrap_or(i64::MAX))
    }
}

/// Dialect of SQL that a store speaks.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Dialect {
    /// Dialect of `SQLite` 3.
    Sqlite,
    /// Dialect of `PostgreSQL` 15 and later.
    Postgres,
}

/// Purpose of a transaction.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Access {
    /// Reads one snapshot and changes nothing.
    Read,
    /// Changes the catalog; writers of one catalog exclude each other from the start.
    Write,
}

/// Database of a catalog. A store that is dropped within a transaction leaves nothing of it.
pub trait CatalogStore {
    /// Dialect of SQL that the store speaks.
    fn dialect(&self) -> Dialect;
    /// Begins a new transaction.
    fn begin(&mut self, access: Access) -> Result<(), StoreError>;
    /// Commits the transaction; its effects are durable on return.
    fn commit(&mut self) -> Result<(), StoreError>;
    /// Abandons the open transaction.
    fn rollback(&mut self) -> Result<(), StoreError>;
    /// Executes a statement and returns the number of changed rows.
    fn execute(&mut self, sql: &str, values: &[SqlValue]) -> Result<u64, StoreError>;
    /// Passes each row of a query to `row`, whose first error ends the query.
    fn query(
        &mut self,
        sql: &str,
        values: &[SqlValue],
        row: &mut dyn FnMut(Vec<SqlValue>) -> Result<()>,
    ) -> Result<()>;
}

/// Store that is chosen at run time.
impl<S: CatalogStore + ?Sized> CatalogStore for Box<S> {
    fn dialect(&self) -> Dialect {
        (**self).dialect()
    }

    fn begin(&mut self, access: Access) -> Result<(), StoreError> {
        (**self).begin(access)
    }

    fn commit(&mut self) -> Result<(), StoreError> {
        (**self).commit()
    }

    fn rollback(&mut self) -> Result<(), StoreError> {
        (**self).rollback()
    }

    fn execute(&mut self, sql: &str, values: &[SqlValue]) -> Result<u64, StoreError> {
        (**self).execute(sql, values)
    }

    fn query(
        &mut self,
        sql: &str,
        values: &[SqlValue],
        row: &mut dyn FnMut(Vec<SqlValue>) -> Result<()>,
    ) -> Result<()> {
        (**self).query(sql, values, row)
    }
}

/// Runs `work` in a transaction: commits its success, abandons its failure.
pub(crate) fn transaction<S: CatalogStore, T>(
    store: &mut S,
    access: Access,
    work: impl FnOnce(&mut S) -> Result<T>,
) -> Result<T> {
    store.begin(access)?;
    match work(store) {
        Ok(done) => {
            if let Err(error) = store.commit() {
                // The first error tells more than one of the clean-up.
                let _ = store.rollback();
                return Err(error.into());
            }
            Ok(done)
        }
        Err(error) => {
            let _ = store.rollback();
            Err(error)
        }
    }
}

/// Collects the rows of a query, each read by `read`.
pub(crate) fn collect<S: CatalogStore, T>(
    store: &mut S,
    sql: &str,
    values: &[SqlValue],
    read: impl Fn(&mut row::RowReader) -> Result<T>,
) -> Result<Vec<T>> {
    let mut rows = Vec::new();
    store.query(sql, values, &mut |columns| {
        rows.push(read(&mut row::RowReader::new(columns))?);
        Ok(())
    })?;
    Ok(rows)
}

/// Reads the only row of a query, if there is one.
pub(crate) fn optional<S: CatalogStore, T>(
    store: &mut S,
    sql: &str,
    values: &[SqlValue],
    read: impl Fn(&mut row::RowReader) -> Result<T>,
) -> Result<Option<T>> {
    Ok(collect(store, sql, values, read)?.pop())
}
