//! Destinations of the ledger: where the files of a folder tree were delivered to. Delivered state belongs to a destination.

use super::{Ledger, Result};
use rusqlite::{OptionalExtension as _, params};
use std::fmt;

/// Place at an archive that the files of a folder tree are sent to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Destination {
    /// URL of the archive.
    pub url: String,
    /// Project at the archive.
    pub project: String,
    /// Path in the project before those of the files.
    pub into: String,
}

/// Assignment of a destination to a folder tree.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Binding {
    /// Name of the tree in the ledger.
    pub folder: String,
    /// Destination of its files.
    pub destination: Destination,
    /// False to forget the records of its files, so that the archive is asked for each.
    pub keeps_files: bool,
}

impl fmt::Display for Destination {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.url.trim_end_matches('/'), self.project)?;
        if self.into.is_empty() { Ok(()) } else { write!(f, "/{}", self.into) }
    }
}

impl Ledger {
    /// Destination of a folder tree; `None` if none was recorded.
    pub fn destination(&self, folder: &str) -> Result<Option<Destination>> {
        let sql = "SELECT url, project, into_path FROM destinations WHERE folder = ?1";
        let mut statement = self.connection.prepare_cached(sql)?;
        let row = statement.query_row([folder], |row| {
            Ok(Destination { url: row.get(0)?, project: row.get(1)?, into: row.get(2)? })
        });
        Ok(row.optional()?)
    }

    /// Destinations of all folder trees; none if an earlier version wrote the ledger.
    pub fn destinations(&self) -> Result<Vec<Destination>> {
        let sql = "SELECT 1 FROM sqlite_master WHERE type = 'table' AND name = 'destinations'";
        if self.connection.query_row(sql, [], |_| Ok(())).optional()?.is_none() {
            return Ok(Vec::new());
        }
        let sql = "SELECT url, project, into_path FROM destinations ORDER BY folder";
        let mut statement = self.connection.prepare_cached(sql)?;
        let rows = statement.query_map([], |row| {
            Ok(Destination { url: row.get(0)?, project: row.get(1)?, into: row.get(2)? })
        })?;
        Ok(rows.collect::<rusqlite::Result<_>>()?)
    }

    /// Binds folder trees to their destinations, all or none of them.
    pub fn bind(&mut self, bindings: &[Binding]) -> Result<()> {
        self.write(|connection| {
            for Binding { folder, destination, keeps_files } in bindings {
                let sql = "INSERT OR REPLACE INTO destinations(folder, url, project, into_path) VALUES (?1, ?2, ?3, ?4)";
                let Destination { url, project, into } = destination;
                connection.prepare_cached(sql)?.execute(params![folder, url, project, into])?;
                if !keeps_files {
                    let sql = "DELETE FROM files WHERE folder = ?1";
                    connection.prepare_cached(sql)?.execute([folder])?;
                }
            }
            Ok(())
        })
    }

    /// True if the ledger has files of a folder tree that were sent, or of which an upload is unfinished.
    pub fn has_sent_files(&self, folder: &str) -> Result<bool> {
        let sql = "SELECT 1 FROM files WHERE folder = ?1
             AND (upload IS NOT NULL OR stage IN ('sending', 'verifying', 'done')) LIMIT 1";
        let mut statement = self.connection.prepare_cached(sql)?;
        Ok(statement.query_row([folder], |_| Ok(())).optional()?.is_some())
    }
}
