//! Versions of the ledger: contents that the archive has, and their verification.

use super::files::FileKey;
use super::schema::unreadable;
use super::{Ledger, Result};
use rusqlite::{Connection, OptionalExtension as _, Row, params};

const COLUMNS: &str =
    "folder, relative, shipped_ms, size, modified_ns, changed_ns, blake3, version, verified";

/// Contents of a file that the archive has.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ShippedVersion {
    /// Name of the file when it was shipped.
    pub key: FileKey,
    /// Time at which the archive had it, in milliseconds since 1970.
    pub shipped_ms: i64,
    /// Size of the contents in bytes.
    pub size: u64,
    /// Time of the last change of the contents, in nanoseconds since 1970.
    pub modified_ns: i64,
    /// Time of the last change of contents or attributes, in nanoseconds since 1970.
    pub changed_ns: i64,
    /// BLAKE3 of the contents.
    pub blake3: blake3::Hash,
    /// Version in the archive.
    pub version: String,
    /// True when the archive's hash is the hash of the local file.
    pub verified: bool,
}

fn parse(row: &Row<'_>) -> rusqlite::Result<ShippedVersion> {
    let hash: Vec<u8> = row.get(6)?;
    Ok(ShippedVersion {
        key: FileKey { folder: row.get(0)?, relative: row.get(1)? },
        shipped_ms: row.get(2)?,
        size: row.get::<_, i64>(3)? as u64,
        modified_ns: row.get(4)?,
        changed_ns: row.get(5)?,
        blake3: blake3::Hash::from_slice(&hash).map_err(|_| unreadable("a hash has another length"))?,
        version: row.get(7)?,
        verified: row.get(8)?,
    })
}

pub(super) fn put(connection: &Connection, version: &ShippedVersion) -> rusqlite::Result<()> {
    let sql =
        format!("INSERT OR REPLACE INTO versions({COLUMNS}) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9)");
    let values = params![
        version.key.folder,
        version.key.relative,
        version.shipped_ms,
        version.size as i64,
        version.modified_ns,
        version.changed_ns,
        version.blake3.as_bytes(),
        version.version,
        version.verified,
    ];
    connection.prepare_cached(&sql)?.execute(values).map(drop)
}

impl Ledger {
    /// Inserts or replaces a shipped version.
    pub(super) fn put_version(&mut self, version: &ShippedVersion) -> Result<()> {
        self.write(|connection| put(connection, version))
    }

    /// Newest shipped version of a file; `None` if there is none.
    pub fn newest_version(&self, key: &FileKey) -> Result<Option<ShippedVersion>> {
        let sql = format!(
            "SELECT {COLUMNS} FROM versions WHERE folder = ?1 AND relative = ?2 ORDER BY shipped_ms DESC, rowid DESC LIMIT 1"
        );
        let mut statement = self.connection.prepare_cached(&sql)?;
        Ok(statement.query_row([&key.folder, &key.relative], parse).optional()?)
    }

    /// Versions that were shipped from `from_ms` until before `to_ms`, in the order of time.
    pub fn versions(&self, from_ms: i64, to_ms: i64) -> Result<Vec<ShippedVersion>> {
        let sql = format!(
            "SELECT {COLUMNS} FROM versions WHERE shipped_ms >= ?1 AND shipped_ms < ?2 ORDER BY shipped_ms, rowid"
        );
        let mut statement = self.connection.prepare_cached(&sql)?;
        let rows = statement.query_map([from_ms, to_ms], parse)?;
        Ok(rows.collect::<rusqlite::Result<_>>()?)
    }

    /// Records that a version was verified. Returns false if the version is unknown.
    pub fn set_verified(&mut self, key: &FileKey, version: &str) -> Result<bool> {
        self.write(|connection| {
            let sql = "UPDATE versions SET verified = 1 WHERE folder = ?1 AND relative = ?2 AND version = ?3";
            let values = [key.folder.as_str(), &key.relative, version];
            Ok(connection.prepare_cached(sql)?.execute(values)? > 0)
        })
    }
}
