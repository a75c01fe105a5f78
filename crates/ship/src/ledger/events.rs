//! Events of the ledger: the latest notable happenings, for people.

use super::{Ledger, Result};
use rusqlite::params;

/// Greatest number of events; older ones are dropped. They take about two megabytes.
pub const MOST_EVENTS: i64 = 10_000;

/// Notable happening at a time.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LedgerEvent {
    /// Time in milliseconds since 1970.
    pub time_ms: i64,
    /// Kind of the event, one word.
    pub kind: String,
    /// Path of the file, or empty.
    pub path: String,
    /// Message for people to read.
    pub text: String,
}

impl Ledger {
    /// Adds an event, and drops the oldest ones beyond the limit.
    pub fn add_event(&mut self, event: &LedgerEvent) -> Result<()> {
        self.write(|connection| {
            let sql = "INSERT INTO events(time_ms, kind, path, text) VALUES (?1, ?2, ?3, ?4)";
            let values = params![event.time_ms, event.kind, event.path, event.text];
            let number = connection.prepare_cached(sql)?.insert(values)?;
            let sql = "DELETE FROM events WHERE number <= ?1";
            connection.prepare_cached(sql)?.execute([number - MOST_EVENTS]).map(drop)
        })
    }

    /// Latest events, the newest first.
    pub fn events(&self, count: usize) -> Result<Vec<LedgerEvent>> {
        let sql = "SELECT time_ms, kind, path, text FROM events ORDER BY number DESC LIMIT ?1";
        let mut statement = self.connection.prepare_cached(sql)?;
        let rows = statement.query_map([count.min(MOST_EVENTS as usize) as i64], |row| {
            Ok(LedgerEvent { time_ms: row.get(0)?, kind: row.get(1)?, path: row.get(2)?, text: row.get(3)? })
        })?;
        Ok(rows.collect::<rusqlite::Result<_>>()?)
    }
}
