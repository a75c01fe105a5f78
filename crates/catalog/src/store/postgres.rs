//! Store in `PostgreSQL`: one schema of a database, for a site with a server.
//!
//! The client blocks. It must not be used on a worker thread of an async runtime.

use super::{Access, CatalogStore, Dialect, SqlValue};
use crate::error::{CatalogError, Result, StoreError};
use postgres::fallible_iterator::FallibleIterator;
use postgres::types::private::BytesMut;
use postgres::types::{IsNull, ToSql, Type, to_sql_checked};
use postgres::{Client, Config, NoTls, Row, Statement};
use std::collections::HashMap;
use std::error::Error;
use std::str::FromStr;

/// Prepared statements that are kept; the cache is emptied when it is full, as conditions vary.
const STATEMENTS: usize = 256;

/// Catalog database in a schema of `PostgreSQL`.
pub struct PostgresStore {
    client: Client,
    statements: HashMap<String, Statement>,
    schema: String,
    place: String,
}

impl PostgresStore {
    /// Connects as `config` tells (`host=… user=… dbname=…`, or a URL), and creates the schema if it is missing.
    ///
    /// The connection is not encrypted.
    pub fn connect(config: &str, schema: &str) -> Result<Self, StoreError> {
        let place = format!("schema `{schema}` of PostgreSQL");
        let is_plain = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_';
        if schema.is_empty() || schema.len() > 63 || !schema.chars().all(is_plain) {
            let reason = "its name is not a plain word".into();
            let remedy = "use up to 63 small letters, digits and underscores";
            return Err(StoreError { verb: "open", place, reason, remedy });
        }
        let failed = |error: postgres::Error| store_error("connect to", &place, &error);
        let mut client = Config::from_str(config).and_then(|config| config.connect(NoTls)).map_err(failed)?;
        let lock = lock(schema);
        let create = format!(
            "BEGIN; {lock}; CREATE SCHEMA IF NOT EXISTS \"{schema}\"; COMMIT; SET search_path TO \"{schema}\""
        );
        client.batch_execute(&create).map_err(failed)?;
        Ok(Self { client, statements: HashMap::new(), schema: schema.to_owned(), place })
    }

    fn run(&mut self, verb: &'static str, sql: &str) -> Result<(), StoreError> {
        self.client.batch_execute(sql).map_err(|error| store_error(verb, &self.place, &error))
    }

    fn prepare(&mut self, verb: &'static str, sql: &str) -> Result<Statement, StoreError> {
        if let Some(statement) = self.statements.get(sql) {
            return Ok(statement.clone());
        }
        // No statement contains a question mark but those of parameters.
        let prepared = self.client.prepare(&sql.replace('?', "$"));
        let statement = prepared.map_err(|error| store_error(verb, &self.place, &error))?;
        if self.statements.len() >= STATEMENTS {
            self.statements.clear();
        }
        self.statements.insert(sql.to_owned(), statement.clone());
        Ok(statement)
    }
}

/// Statement that makes writers of one schema exclude each other until the end of the transaction.
fn lock(schema: &str) -> String {
    format!("SELECT pg_advisory_xact_lock(1751544678, hashtext('{schema}'))")
}

fn store_error(verb: &'static str, place: &str, error: &postgres::Error) -> StoreError {
    let reason = match error.as_db_error() {
        Some(answer) => format!("{} ({})", answer.message(), answer.code().code()),
        None => error.source().map_or_else(|| error.to_string(), |source| format!("{error}: {source}")),
    };
    let remedy = if error.is_closed() || verb == "connect to" {
        "check that the server runs and accepts this user"
    } else {
        "look into the log of the server"
    };
    let reason = reason.split_whitespace().collect::<Vec<_>>().join(" ");
    StoreError { verb, place: place.to_owned(), reason, remedy }
}

impl ToSql for SqlValue {
    fn to_sql(&self, kind: &Type, out: &mut BytesMut) -> Result<IsNull, Box<dyn Error + Sync + Send>> {
        match self {
            Self::Null => Ok(IsNull::Yes),
            Self::Integer(number) => number.to_sql_checked(kind, out),
            Self::Float(number) => number.to_sql_checked(kind, out),
            Self::Text(text) => text.to_sql_checked(kind, out),
            Self::Blob(bytes) => bytes.to_sql_checked(kind, out),
        }
    }

    fn accepts(_: &Type) -> bool {
        true
    }

    to_sql_checked!();
}

/// Reads a column of one of the types of the schema.
fn value(row: &Row, at: usize) -> Result<SqlValue, postgres::Error> {
    fn or_null<T>(value: Option<T>, wrap: fn(T) -> SqlValue) -> SqlValue {
        value.map_or(SqlValue::Null, wrap)
    }
    let kind = row.columns()[at].type_();
    if *kind == Type::INT8 {
        Ok(or_null(row.try_get(at)?, SqlValue::Integer))
    } else if *kind == Type::INT4 {
        let number: Option<i32> = row.try_get(at)?;
        Ok(or_null(number.map(i64::from), SqlValue::Integer))
    } else if *kind == Type::FLOAT8 {
        Ok(or_null(row.try_get(at)?, SqlValue::Float))
    } else if *kind == Type::BYTEA {
        Ok(or_null(row.try_get(at)?, SqlValue::Blob))
    } else {
        Ok(or_null(row.try_get(at)?, SqlValue::Text))
    }
}

impl CatalogStore for PostgresStore {
    fn dialect(&self) -> Dialect {
        Dialect::Postgres
    }

    fn begin(&mut self, access: Access) -> Result<(), StoreError> {
        match access {
            Access::Read => self.run("read", "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY"),
            Access::Write => {
                let begin = format!("BEGIN; {}", lock(&self.schema));
                self.run("lock", &begin)
            }
        }
    }

    fn commit(&mut self) -> Result<(), StoreError> {
        self.run("commit to", "COMMIT")
    }

    fn rollback(&mut self) -> Result<(), StoreError> {
        self.run("roll back", "ROLLBACK")
    }

    fn execute(&mut self, sql: &str, values: &[SqlValue]) -> Result<u64, StoreError> {
        let statement = self.prepare("change", sql)?;
        let values: Vec<&(dyn ToSql + Sync)> = values.iter().map(|value| value as _).collect();
        let changed = self.client.execute(&statement, &values);
        changed.map_err(|error| store_error("change", &self.place, &error))
    }

    fn query(
        &mut self,
        sql: &str,
        values: &[SqlValue],
        row: &mut dyn FnMut(Vec<SqlValue>) -> Result<()>,
    ) -> Result<()> {
        let statement = self.prepare("read", sql)?;
        let failed = |error| CatalogError::from(store_error("read", &self.place, &error));
        let mut rows = self.client.query_raw(&statement, values).map_err(failed)?;
        while let Some(found) = rows.next().map_err(failed)? {
            let mut columns = Vec::with_capacity(found.len());
            for at in 0..found.len() {
                columns.push(value(&found, at).map_err(failed)?);
            }
            row(columns)?;
        }
        Ok(())
    }
}
