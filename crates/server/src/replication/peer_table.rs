//! Table of peers in the journal of the site. Here are statements only.

use super::peer::{PeerName, Settings};
use crate::database::unreadable;
use holdfast_remote::Endpoint;
use rusqlite::Connection;
use std::time::Duration;

/// Makes the table if it is missing.
pub(crate) fn prepare(connection: &Connection) -> rusqlite::Result<()> {
    connection.execute_batch(
        "CREATE TABLE IF NOT EXISTS peers (name TEXT PRIMARY KEY, url TEXT NOT NULL, token TEXT, fingerprint TEXT,
            interval_ms INTEGER NOT NULL, paused INTEGER NOT NULL) STRICT",
    )
}

/// Writes a peer in the place of the one with its name.
pub(super) fn put(connection: &Connection, name: &PeerName, settings: &Settings) -> rusqlite::Result<()> {
    let Settings { endpoint, interval, is_paused } = settings;
    let fingerprint = endpoint.fingerprint.map(|fingerprint| fingerprint.to_string());
    let interval = i64::try_from(interval.as_millis()).unwrap_or(i64::MAX);
    let values = (name.as_str(), endpoint.url.as_str(), &endpoint.token, fingerprint, interval, is_paused);
    let sql = "INSERT OR REPLACE INTO peers (name, url, token, fingerprint, interval_ms, paused)
        VALUES (?1, ?2, ?3, ?4, ?5, ?6)";
    connection.execute(sql, values).map(drop)
}

/// Removes a peer; false if there is none.
pub(super) fn remove(connection: &Connection, name: &PeerName) -> rusqlite::Result<bool> {
    Ok(connection.execute("DELETE FROM peers WHERE name = ?1", [name.as_str()])? == 1)
}

/// Reads all peers in the order of their names.
pub(super) fn peers(connection: &Connection) -> rusqlite::Result<Vec<(PeerName, Settings)>> {
    let sql = "SELECT name, url, token, fingerprint, interval_ms, paused FROM peers ORDER BY name";
    let mut statement = connection.prepare(sql)?;
    let rows = statement.query_map([], |row| {
        let name = row.get::<_, String>(0)?.parse::<PeerName>().map_err(|error| unreadable(0, error))?;
        let endpoint = Endpoint::parse(&row.get::<_, String>(1)?).map_err(|error| unreadable(1, error))?;
        let fingerprint = row.get::<_, Option<String>>(3)?.map(|text| text.parse()).transpose();
        let fingerprint = fingerprint.map_err(|error| unreadable(3, error))?;
        let interval = Duration::from_millis(row.get::<_, i64>(4)?.unsigned_abs());
        let endpoint = Endpoint { token: row.get(2)?, fingerprint, ..endpoint };
        Ok((name, Settings { endpoint, interval, is_paused: row.get(5)? }))
    })?;
    rows.collect()
}
