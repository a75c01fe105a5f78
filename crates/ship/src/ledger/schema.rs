//! Tables of the ledger and their version. A change of a table increases the version and adds a migration.

use rusqlite::{Connection, Error};

/// Version of the tables, in `user_version` of the file.
const VERSION: i64 = 2;

/// Table that version 2 adds.
const DESTINATIONS: &str = "
    CREATE TABLE destinations(
        folder TEXT PRIMARY KEY, url TEXT NOT NULL, project TEXT NOT NULL, into_path TEXT NOT NULL
    ) STRICT, WITHOUT ROWID;";

const TABLES: &str = "
    CREATE TABLE files(
        folder TEXT NOT NULL, relative TEXT NOT NULL, device INTEGER NOT NULL, inode INTEGER NOT NULL,
        upload TEXT, upload_path TEXT, stage TEXT NOT NULL, PRIMARY KEY(folder, relative)
    ) STRICT, WITHOUT ROWID;
    CREATE INDEX files_by_inode ON files(device, inode);
    CREATE INDEX files_by_stage ON files(stage);
    CREATE TABLE versions(
        folder TEXT NOT NULL, relative TEXT NOT NULL, shipped_ms INTEGER NOT NULL, size INTEGER NOT NULL,
        modified_ns INTEGER NOT NULL, changed_ns INTEGER NOT NULL, blake3 BLOB NOT NULL, version TEXT NOT NULL,
        verified INTEGER NOT NULL, PRIMARY KEY(folder, relative, version)
    ) STRICT;
    CREATE INDEX versions_by_time ON versions(shipped_ms);
    CREATE TABLE minutes(
        minute INTEGER PRIMARY KEY, blocks INTEGER NOT NULL, bytes INTEGER NOT NULL, rate_sum REAL NOT NULL,
        rate_square_sum REAL NOT NULL, read_us INTEGER NOT NULL, network_us INTEGER NOT NULL,
        archive_us INTEGER NOT NULL, produced_bytes INTEGER NOT NULL, resent_bytes INTEGER NOT NULL,
        damaged_blocks INTEGER NOT NULL
    ) STRICT;
    CREATE TABLE rates(
        hour INTEGER NOT NULL, bin INTEGER NOT NULL, count INTEGER NOT NULL, PRIMARY KEY(hour, bin)
    ) STRICT, WITHOUT ROWID;
    CREATE TABLE events(
        number INTEGER PRIMARY KEY, time_ms INTEGER NOT NULL, kind TEXT NOT NULL, path TEXT NOT NULL,
        text TEXT NOT NULL
    ) STRICT;
    CREATE TABLE backlog(minute INTEGER PRIMARY KEY, bytes INTEGER NOT NULL) STRICT;
    CREATE TABLE outages(begin_ms INTEGER NOT NULL, end_ms INTEGER, reason TEXT NOT NULL) STRICT;";

/// Makes the tables of a new file, and refuses those of a newer program.
pub(super) fn prepare(connection: &mut Connection) -> rusqlite::Result<()> {
    let transaction = connection.transaction()?;
    let found: i64 = transaction.query_row("PRAGMA user_version", [], |row| row.get(0))?;
    match found {
        0 => {
            transaction.execute_batch(&format!("{TABLES} {DESTINATIONS} PRAGMA user_version = {VERSION}"))?;
        }
        1 => transaction.execute_batch(&format!("{DESTINATIONS} PRAGMA user_version = {VERSION}"))?,
        VERSION => {}
        newer => {
            let reason = format!("a newer program wrote it (layout {newer}, known is {VERSION})");
            return Err(unreadable(reason));
        }
    }
    transaction.commit()
}

/// Refuses tables of another version.
pub(super) fn check(connection: &Connection) -> rusqlite::Result<()> {
    let found: i64 = connection.query_row("PRAGMA user_version", [], |row| row.get(0))?;
    // Readers use the tables of version 1 alone.
    if (1..=VERSION).contains(&found) {
        return Ok(());
    }
    Err(unreadable(format!("another program wrote it (layout {found}, known is {VERSION})")))
}

/// Error of a value that cannot be understood.
pub(super) fn unreadable(reason: impl Into<Box<dyn std::error::Error + Send + Sync>>) -> Error {
    Error::FromSqlConversionFailure(0, rusqlite::types::Type::Text, reason.into())
}
