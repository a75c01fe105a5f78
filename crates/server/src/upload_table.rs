//! Tables of uploads and of their block hashes: statements on the `SQLite` file `uploads.db`.

use crate::archive::VersionId;
use crate::clock::Timestamp;
use crate::database::{check_layout, unreadable};
use crate::object_path::{ObjectPath, ProjectName};
use crate::upload_id::UploadId;
use crate::upload_record::{UploadKind, UploadRecord, UploadState};
use rusqlite::{Connection, OptionalExtension as _, Row, params};
use std::collections::HashSet;

/// Version of the table layout, in `user_version` of the file.
const LAYOUT: i64 = 2;

const COLUMNS: &str = "id, kind, header, parts, project, path, metadata, length, offset, state, detail, created, expires, blake3";

/// Number and hash of a complete block.
pub(crate) type BlockHash = (u64, blake3::Hash);

pub(crate) fn prepare(connection: &Connection) -> rusqlite::Result<()> {
    check_layout(connection, LAYOUT)?;
    connection.execute_batch(
        "CREATE TABLE IF NOT EXISTS uploads(
             id TEXT PRIMARY KEY, kind TEXT NOT NULL, header TEXT, parts TEXT, project TEXT, path TEXT,
             metadata TEXT NOT NULL, length INTEGER, offset INTEGER NOT NULL, state TEXT NOT NULL,
             detail TEXT, created INTEGER NOT NULL, expires INTEGER NOT NULL, blake3 BLOB
         ) STRICT, WITHOUT ROWID;
         CREATE INDEX IF NOT EXISTS uploads_by_path ON uploads(project, path);
         CREATE INDEX IF NOT EXISTS uploads_by_state ON uploads(state, expires);
         CREATE INDEX IF NOT EXISTS finals ON uploads(parts) WHERE kind = 'final';
         CREATE TABLE IF NOT EXISTS blocks(
             upload TEXT NOT NULL, number INTEGER NOT NULL, hash BLOB NOT NULL, PRIMARY KEY(upload, number)
         ) STRICT, WITHOUT ROWID;",
    )?;
    // Layout 1 has no column for the hash of the contents.
    let sql = "SELECT 1 FROM pragma_table_info('uploads') WHERE name = 'blake3'";
    if !connection.prepare(sql)?.exists([])? {
        connection.execute_batch("ALTER TABLE uploads ADD COLUMN blake3 BLOB")?;
    }
    Ok(())
}

pub(crate) fn insert(connection: &Connection, record: &UploadRecord) -> rusqlite::Result<()> {
    let (kind, header, parts) = match &record.kind {
        UploadKind::Whole => ("whole", None, None),
        UploadKind::Partial => ("partial", None, None),
        UploadKind::Final { header, parts } => ("final", Some(header), Some(join(parts))),
    };
    let sql = format!(
        "INSERT INTO uploads({COLUMNS}) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, NULL, ?11, ?12, NULL)"
    );
    connection.prepare_cached(&sql)?.execute(params![
        record.id.to_string(),
        kind,
        header,
        parts,
        record.project.as_ref().map(ProjectName::as_str),
        record.path.as_ref().map(ObjectPath::as_str),
        record.metadata,
        record.length.map(|length| length as i64),
        record.offset as i64,
        record.state.name(),
        record.created.milliseconds(),
        record.expires.milliseconds(),
    ])?;
    Ok(())
}

/// Inserts a concatenation unless the same one exists; returns the existing one.
pub(crate) fn insert_final(
    connection: &Connection,
    record: &UploadRecord,
    parts: &[UploadId],
) -> rusqlite::Result<Option<UploadRecord>> {
    let sql = format!(
        "SELECT {COLUMNS} FROM uploads WHERE kind = 'final' AND parts = ?1 AND metadata = ?2 AND project IS ?3
         AND path IS ?4 AND state NOT IN ('failed', 'removed') ORDER BY created DESC LIMIT 1"
    );
    let project = record.project.as_ref().map(ProjectName::as_str);
    let path = record.path.as_ref().map(ObjectPath::as_str);
    let mut statement = connection.prepare_cached(&sql)?;
    let same = statement.query_row(params![join(parts), record.metadata, project, path], parse).optional()?;
    if same.is_none() {
        insert(connection, record)?;
    }
    Ok(same)
}

/// Records bytes that have become durable, and the state that follows from them.
pub(crate) fn advance(
    connection: &Connection,
    record: &UploadRecord,
    blocks: &[BlockHash],
) -> rusqlite::Result<()> {
    let id = record.id.to_string();
    let mut statement = connection
        .prepare_cached("INSERT OR REPLACE INTO blocks(upload, number, hash) VALUES (?1, ?2, ?3)")?;
    for (number, hash) in blocks {
        statement.execute(params![id, *number as i64, hash.as_bytes()])?;
    }
    update(connection, record)
}

/// Records path, length, offset, state, hash and expiry of an upload.
pub(crate) fn update(connection: &Connection, record: &UploadRecord) -> rusqlite::Result<()> {
    let detail = match &record.state {
        UploadState::Stored(version) => Some(version.as_str()),
        UploadState::Failed(reason) => Some(reason.as_str()),
        _ => None,
    };
    let sql = "UPDATE uploads SET length = ?2, offset = ?3, state = ?4, detail = ?5, expires = ?6, path = ?7,
               blake3 = ?8 WHERE id = ?1";
    connection.prepare_cached(sql)?.execute(params![
        record.id.to_string(),
        record.length.map(|length| length as i64),
        record.offset as i64,
        record.state.name(),
        detail,
        record.expires.milliseconds(),
        record.path.as_ref().map(ObjectPath::as_str),
        record.blake3.as_ref().map(blake3::Hash::as_bytes),
    ])?;
    Ok(())
}

/// Turns an upload into a tombstone, which answers "gone" until it expires.
pub(crate) fn remove(connection: &Connection, record: &UploadRecord) -> rusqlite::Result<()> {
    update(connection, record)?;
    connection.execute("DELETE FROM blocks WHERE upload = ?1", [record.id.to_string()])?;
    Ok(())
}

/// Cuts the block hashes of an upload that has lost its end.
pub(crate) fn cut(connection: &Connection, record: &UploadRecord, blocks: u64) -> rusqlite::Result<()> {
    let values = params![record.id.to_string(), blocks as i64];
    connection.execute("DELETE FROM blocks WHERE upload = ?1 AND number >= ?2", values)?;
    update(connection, record)
}

/// Forgets settled uploads whose time has passed.
pub(crate) fn forget(connection: &Connection, now: Timestamp) -> rusqlite::Result<usize> {
    let expired = "state IN ('stored', 'failed', 'removed') AND expires <= ?1";
    let sql = format!("DELETE FROM blocks WHERE upload IN (SELECT id FROM uploads WHERE {expired})");
    connection.execute(&sql, [now.milliseconds()])?;
    connection.execute(&format!("DELETE FROM uploads WHERE {expired}"), [now.milliseconds()])
}

/// Records of all uploads that are not settled.
pub(crate) fn unsettled(connection: &Connection) -> rusqlite::Result<Vec<UploadRecord>> {
    let sql = format!("SELECT {COLUMNS} FROM uploads WHERE state IN ('receiving', 'assembling', 'complete')");
    let mut statement = connection.prepare(&sql)?;
    statement.query_map([], parse)?.collect()
}

/// Identities of failed uploads, whose files are kept until they are forgotten.
pub(crate) fn failed(connection: &Connection) -> rusqlite::Result<HashSet<UploadId>> {
    let mut statement = connection.prepare("SELECT id FROM uploads WHERE state = 'failed'")?;
    let rows = statement.query_map([], |row| row.get::<_, String>(0))?;
    rows.map(|id| Ok(id?.parse().ok())).filter_map(Result::transpose).collect()
}

pub(crate) fn find(connection: &Connection, id: UploadId) -> rusqlite::Result<Option<UploadRecord>> {
    let mut statement = connection.prepare_cached(&format!("SELECT {COLUMNS} FROM uploads WHERE id = ?1"))?;
    statement.query_row([id.to_string()], parse).optional()
}

/// Newest upload to a path that the archive does not have yet.
pub(crate) fn newest_unsettled(
    connection: &Connection,
    project: &ProjectName,
    path: &ObjectPath,
) -> rusqlite::Result<Option<UploadRecord>> {
    let sql = format!(
        "SELECT {COLUMNS} FROM uploads WHERE project = ?1 AND path = ?2
         AND state IN ('receiving', 'assembling', 'complete') ORDER BY created DESC, id DESC LIMIT 1"
    );
    connection.prepare_cached(&sql)?.query_row([project.as_str(), path.as_str()], parse).optional()
}

/// Uploads to a project that the archive does not have yet, in the order of their paths.
pub(crate) fn unsettled_of_project(
    connection: &Connection,
    project: &ProjectName,
    most: usize,
) -> rusqlite::Result<Vec<UploadRecord>> {
    let sql = format!(
        "SELECT {COLUMNS} FROM uploads WHERE project = ?1 AND path IS NOT NULL
         AND state IN ('receiving', 'assembling', 'complete') ORDER BY path, created LIMIT ?2"
    );
    let mut statement = connection.prepare_cached(&sql)?;
    statement.query_map(params![project.as_str(), most as i64], parse)?.collect()
}

/// Hashes of up to `most` complete blocks from number `first` on.
pub(crate) fn blocks(
    connection: &Connection,
    id: UploadId,
    first: u64,
    most: usize,
) -> rusqlite::Result<Vec<BlockHash>> {
    let sql = "SELECT number, hash FROM blocks WHERE upload = ?1 AND number >= ?2 ORDER BY number LIMIT ?3";
    let mut statement = connection.prepare_cached(sql)?;
    let values = params![id.to_string(), first as i64, most as i64];
    let rows = statement
        .query_map(values, |row| Ok((row.get::<_, i64>(0)? as u64, blake3::Hash::from_bytes(row.get(1)?))))?;
    rows.collect()
}

fn join(parts: &[UploadId]) -> String {
    parts.iter().map(UploadId::to_string).collect::<Vec<_>>().join(" ")
}

fn parse(row: &Row<'_>) -> rusqlite::Result<UploadRecord> {
    let text = |column| row.get::<_, Option<String>>(column);
    let detail = text(10)?.unwrap_or_default();
    let id = |text: &str, column| text.parse().map_err(|()| unreadable(column, "it is no upload's identity"));
    let kind = match row.get::<_, String>(1)?.as_str() {
        "whole" => UploadKind::Whole,
        "partial" => UploadKind::Partial,
        "final" => {
            let parts = text(3)?.unwrap_or_default();
            let parts = parts.split_whitespace().map(|part| id(part, 3)).collect::<Result<_, _>>()?;
            UploadKind::Final { header: text(2)?.unwrap_or_default(), parts }
        }
        other => return Err(unreadable(1, format!("the kind '{other}' is unknown"))),
    };
    let state = match row.get::<_, String>(9)?.as_str() {
        "receiving" => UploadState::Receiving,
        "assembling" => UploadState::Assembling,
        "complete" => UploadState::Complete,
        "stored" => UploadState::Stored(
            VersionId::parse(&detail).ok_or_else(|| unreadable(10, format!("'{detail}' is no version")))?,
        ),
        "failed" => UploadState::Failed(detail),
        "removed" => UploadState::Removed,
        other => return Err(unreadable(9, format!("the state '{other}' is unknown"))),
    };
    let project = text(4)?.map(|project| ProjectName::parse(&project)).transpose();
    let path = text(5)?.map(|path| ObjectPath::parse(&path)).transpose();
    Ok(UploadRecord {
        id: id(&row.get::<_, String>(0)?, 0)?,
        kind,
        project: project.map_err(|error| unreadable(4, error))?,
        path: path.map_err(|error| unreadable(5, error))?,
        metadata: row.get(6)?,
        length: row.get::<_, Option<i64>>(7)?.map(|length| length as u64),
        offset: row.get::<_, i64>(8)? as u64,
        state,
        blake3: row.get::<_, Option<[u8; 32]>>(13)?.map(blake3::Hash::from_bytes),
        created: Timestamp::from_milliseconds(row.get(11)?),
        expires: Timestamp::from_milliseconds(row.get(12)?),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_of_layout_1_is_extended() {
        let connection = Connection::open_in_memory().unwrap();
        let id = UploadId::random().unwrap();
        let old = format!(
            "CREATE TABLE uploads(id TEXT PRIMARY KEY, kind TEXT NOT NULL, header TEXT, parts TEXT, project TEXT,
                 path TEXT, metadata TEXT NOT NULL, length INTEGER, offset INTEGER NOT NULL, state TEXT NOT NULL,
                 detail TEXT, created INTEGER NOT NULL, expires INTEGER NOT NULL) STRICT, WITHOUT ROWID;
             INSERT INTO uploads VALUES ('{id}', 'whole', NULL, NULL, 'p', 'a', '', 3, 3, 'stored', '1-x', 0, 0);
             PRAGMA user_version = 1;"
        );
        connection.execute_batch(&old).unwrap();
        // The second call finds the new layout.
        prepare(&connection).unwrap();
        prepare(&connection).unwrap();
        let mut record = find(&connection, id).unwrap().unwrap();
        assert_eq!((record.offset, record.blake3), (3, None));
        record.blake3 = Some(blake3::hash(b"abc"));
        record.path = Some(ObjectPath::parse("b").unwrap());
        update(&connection, &record).unwrap();
        assert_eq!(find(&connection, id), Ok(Some(record)));
        let layout: i64 = connection.query_row("PRAGMA user_version", [], |row| row.get(0)).unwrap();
        assert_eq!(layout, LAYOUT);
    }
}
