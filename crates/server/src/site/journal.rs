//! Journal of a site, the `SQLite` file `site.db`: keys that are being stored, the tasks and runs of drivers, and the audit.
//!
//! A key is in the journal from before its bytes are put until its version is in the catalog. The tasks of its drivers are
//! made in the transaction that removes it, so no crash loses or repeats one. Statements of tasks are in `drivers::tasks`.

use crate::clock::Timestamp;
use crate::database::{Database, DatabaseError, Sharing, check_layout};
use crate::drivers::tasks::{self, NewTask};
use crate::error::ServerError;
use rusqlite::Connection;
use std::path::Path;

/// Name of the file in the data folder.
const FILE: &str = "site.db";

/// Version of the table layout, in `user_version` of the file.
const LAYOUT: i64 = 1;

/// Key that is being stored.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Intent {
    /// Name of the vault that gets the bytes.
    pub(crate) vault: String,
    /// Key of the bytes in the vault.
    pub(crate) key: String,
    /// Time at which storing began.
    pub(crate) started: Timestamp,
}

/// Journal of one site. Methods block.
pub(crate) struct Journal {
    pub(crate) database: Database,
}

impl Journal {
    /// Opens the journal in a data folder, or makes it there.
    pub(crate) fn open(data: &Path) -> Result<Self, ServerError> {
        let database = Database::open(&data.join(FILE), Sharing::Exclusive, |connection| {
            check_layout(connection, LAYOUT)?;
            connection.execute_batch(
                "CREATE TABLE IF NOT EXISTS intents (vault TEXT NOT NULL, key TEXT NOT NULL,
                    started INTEGER NOT NULL, PRIMARY KEY (vault, key)) STRICT, WITHOUT ROWID",
            )?;
            crate::audit::prepare(connection)?;
            crate::replication::prepare(connection)?;
            tasks::prepare(connection)
        })?;
        Ok(Self { database })
    }

    /// Adds a key before its bytes are put; a known key keeps its time.
    pub(crate) fn begin(&self, intent: Intent) -> Result<(), DatabaseError> {
        self.database.write_blocking(move |connection| {
            let values = (intent.vault, intent.key, intent.started.milliseconds());
            let sql = "INSERT OR IGNORE INTO intents (vault, key, started) VALUES (?1, ?2, ?3)";
            connection.execute(sql, values).map(drop)
        })
    }

    /// Removes a key whose version is in the catalog, and adds its tasks. A key that is not here has them already.
    pub(crate) fn finish(&self, vault: &str, key: &str, tasks: Vec<NewTask>) -> Result<(), DatabaseError> {
        let (vault, key) = (vault.to_owned(), key.to_owned());
        self.database.write_blocking(move |connection| {
            if remove(connection, &vault, &key)? {
                tasks.iter().try_for_each(|task| tasks::insert(connection, task))?;
            }
            Ok(())
        })
    }

    /// Removes a key whose bytes were removed.
    pub(crate) fn forget(&self, vault: &str, key: &str) -> Result<(), DatabaseError> {
        self.finish(vault, key, Vec::new())
    }

    /// True if the key is being stored.
    pub(crate) fn contains(&self, vault: &str, key: &str) -> Result<bool, DatabaseError> {
        let values = (vault.to_owned(), key.to_owned());
        self.database.read_blocking(move |connection| {
            let sql = "SELECT EXISTS (SELECT 1 FROM intents WHERE vault = ?1 AND key = ?2)";
            connection.query_row(sql, values, |row| row.get(0))
        })
    }

    /// All keys that were being stored when the server ended.
    pub(crate) fn intents(&self) -> Result<Vec<Intent>, DatabaseError> {
        self.database.read_blocking(|connection| {
            let mut statement = connection.prepare("SELECT vault, key, started FROM intents")?;
            let rows = statement.query_map([], |row| {
                let started = Timestamp::from_milliseconds(row.get(2)?);
                Ok(Intent { vault: row.get(0)?, key: row.get(1)?, started })
            })?;
            rows.collect()
        })
    }
}

fn remove(connection: &Connection, vault: &str, key: &str) -> rusqlite::Result<bool> {
    let sql = "DELETE FROM intents WHERE vault = ?1 AND key = ?2";
    Ok(connection.execute(sql, (vault, key))? == 1)
}
