//! Outages of the ledger: times during which the archive took nothing.

use super::{Ledger, Result};
use rusqlite::{OptionalExtension as _, params};

/// Outage of the archive or of the way to it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OutageRow {
    /// Begin in milliseconds since 1970.
    pub begin_ms: i64,
    /// End in milliseconds since 1970; `None` while it lasts.
    pub end_ms: Option<i64>,
    /// Reason in a few words.
    pub reason: String,
}

impl Ledger {
    /// Records the begin of an outage; one that lasts already goes on.
    pub fn begin_outage(&mut self, begin_ms: i64, reason: &str) -> Result<()> {
        self.write(|connection| {
            let sql = "SELECT 1 FROM outages WHERE end_ms IS NULL";
            if connection.prepare_cached(sql)?.query_row([], |_| Ok(())).optional()?.is_some() {
                return Ok(());
            }
            let sql = "INSERT INTO outages(begin_ms, end_ms, reason) VALUES (?1, NULL, ?2)";
            connection.prepare_cached(sql)?.execute(params![begin_ms, reason]).map(drop)
        })
    }

    /// Records the end of the outage that lasts, if there is one.
    pub fn end_outage(&mut self, end_ms: i64) -> Result<()> {
        self.write(|connection| {
            let sql = "UPDATE outages SET end_ms = ?1 WHERE end_ms IS NULL";
            connection.prepare_cached(sql)?.execute([end_ms]).map(drop)
        })
    }

    /// Outages that have not ended before `from_ms`, in their order.
    pub fn outages(&self, from_ms: i64) -> Result<Vec<OutageRow>> {
        let sql = "SELECT begin_ms, end_ms, reason FROM outages WHERE end_ms IS NULL OR end_ms >= ?1
             ORDER BY begin_ms";
        let mut statement = self.connection.prepare_cached(sql)?;
        let rows = statement.query_map([from_ms], |row| {
            Ok(OutageRow { begin_ms: row.get(0)?, end_ms: row.get(1)?, reason: row.get(2)? })
        })?;
        Ok(rows.collect::<rusqlite::Result<_>>()?)
    }
}
