//! Files of the ledger: identity, unfinished upload and stage.

use super::schema::unreadable;
use super::versions::{self, ShippedVersion};
use super::{Ledger, Result};
use rusqlite::{Connection, OptionalExtension as _, Row, params};

const COLUMNS: &str = "folder, relative, device, inode, upload, upload_path, stage";

/// Name of a file: its folder tree and its path in the tree.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct FileKey {
    /// Root of the tree as it is configured.
    pub folder: String,
    /// Path in the tree.
    pub relative: String,
}

/// Stage of a file on its way to the archive.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FileStage {
    /// Known, with nothing sent yet.
    Waiting,
    /// Sent while it grows or until all bytes are sent.
    Sending,
    /// Sent wholly; the archive has not verified it yet.
    Verifying,
    /// Current contents are in the archive.
    Done,
    /// Given up until it changes or a person asks for it.
    Failed,
}

impl FileStage {
    const ALL: [Self; 5] = [Self::Waiting, Self::Sending, Self::Verifying, Self::Done, Self::Failed];

    /// Name of the stage in the ledger.
    pub fn name(self) -> &'static str {
        match self {
            Self::Waiting => "waiting",
            Self::Sending => "sending",
            Self::Verifying => "verifying",
            Self::Done => "done",
            Self::Failed => "failed",
        }
    }
}

/// Record of a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FileRow {
    /// Name of the file.
    pub key: FileKey,
    /// Device of the file system.
    pub device: u64,
    /// Number of the file in its file system.
    pub inode: u64,
    /// Address of the unfinished upload.
    pub upload: Option<String>,
    /// Path in the tree that the upload was made for.
    pub upload_path: Option<String>,
    /// Stage on the way to the archive.
    pub stage: FileStage,
}

fn parse(row: &Row<'_>) -> rusqlite::Result<FileRow> {
    let stage: String = row.get(6)?;
    let stage = FileStage::ALL.into_iter().find(|known| known.name() == stage);
    Ok(FileRow {
        key: FileKey { folder: row.get(0)?, relative: row.get(1)? },
        device: row.get::<_, i64>(2)? as u64,
        inode: row.get::<_, i64>(3)? as u64,
        upload: row.get(4)?,
        upload_path: row.get(5)?,
        stage: stage.ok_or_else(|| unreadable("a stage is unknown"))?,
    })
}

fn put(connection: &Connection, row: &FileRow) -> rusqlite::Result<()> {
    let sql = format!("INSERT OR REPLACE INTO files({COLUMNS}) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)");
    let (key, stage) = (&row.key, row.stage.name());
    let (device, inode) = (row.device as i64, row.inode as i64);
    let values = params![key.folder, key.relative, device, inode, row.upload, row.upload_path, stage];
    connection.prepare_cached(&sql)?.execute(values).map(drop)
}

impl Ledger {
    /// Record of a file; `None` if it is unknown.
    pub fn file(&self, key: &FileKey) -> Result<Option<FileRow>> {
        let sql = format!("SELECT {COLUMNS} FROM files WHERE folder = ?1 AND relative = ?2");
        let mut statement = self.connection.prepare_cached(&sql)?;
        Ok(statement.query_row([&key.folder, &key.relative], parse).optional()?)
    }

    /// Records of the files with this identity in the file system, such as a renamed file and its links.
    pub fn files_by_inode(&self, device: u64, inode: u64) -> Result<Vec<FileRow>> {
        let sql =
            format!("SELECT {COLUMNS} FROM files WHERE device = ?1 AND inode = ?2 ORDER BY folder, relative");
        let mut statement = self.connection.prepare_cached(&sql)?;
        let rows = statement.query_map([device as i64, inode as i64], parse)?;
        Ok(rows.collect::<rusqlite::Result<_>>()?)
    }

    /// Records of the files in one stage, by folder and path.
    pub fn files_in_stage(&self, stage: FileStage) -> Result<Vec<FileRow>> {
        let sql = format!("SELECT {COLUMNS} FROM files WHERE stage = ?1 ORDER BY folder, relative");
        let mut statement = self.connection.prepare_cached(&sql)?;
        let rows = statement.query_map([stage.name()], parse)?;
        Ok(rows.collect::<rusqlite::Result<_>>()?)
    }

    /// Records of the files of one folder tree, by path.
    pub fn files(&self, folder: &str) -> Result<Vec<FileRow>> {
        let sql = format!("SELECT {COLUMNS} FROM files WHERE folder = ?1 ORDER BY relative");
        let mut statement = self.connection.prepare_cached(&sql)?;
        let rows = statement.query_map([folder], parse)?;
        Ok(rows.collect::<rusqlite::Result<_>>()?)
    }

    /// Inserts or replaces the record of a file.
    pub fn put_file(&mut self, row: &FileRow) -> Result<()> {
        self.write(|connection| put(connection, row))
    }

    /// Removes the record of a file that is gone. Its shipped versions stay.
    pub fn remove_file(&mut self, key: &FileKey) -> Result<()> {
        self.write(|connection| {
            let sql = "DELETE FROM files WHERE folder = ?1 AND relative = ?2";
            connection.prepare_cached(sql)?.execute([&key.folder, &key.relative]).map(drop)
        })
    }

    /// Gives a file another name, in the place of the file that had it. Shipped versions keep the old name.
    pub fn rename_file(&mut self, from: &FileKey, to: &FileKey) -> Result<()> {
        self.write(|connection| {
            let sql =
                "UPDATE OR REPLACE files SET folder = ?3, relative = ?4 WHERE folder = ?1 AND relative = ?2";
            let values = [&from.folder, &from.relative, &to.folder, &to.relative];
            connection.prepare_cached(sql)?.execute(values).map(drop)
        })
    }

    /// Records a shipped version together with the new record of its file.
    pub fn finish_file(&mut self, row: &FileRow, version: &ShippedVersion) -> Result<()> {
        self.write(|connection| {
            put(connection, row)?;
            versions::put(connection, version)
        })
    }
}
