//! Ledger of a shipper: durable state in one `SQLite` file of a folder that one shipper uses at a time.
//!
//! Here belong opening, locking and the error. Rows and statements are in the modules of their tables. Every function is one
//! transaction, durable when it returns, so that the process may be killed at any time. Functions block.

mod destinations;
mod events;
mod files;
mod journal;
mod outages;
mod schema;
mod throughput;
mod versions;

pub use destinations::{Binding, Destination};
pub use events::{LedgerEvent, MOST_EVENTS};
pub use files::{FileKey, FileRow, FileStage};
pub use journal::Journal;
pub use outages::OutageRow;
pub use versions::ShippedVersion;

use rusqlite::{Connection, ErrorCode, OpenFlags, TransactionBehavior};
use rustix::fs::FlockOperation;
use std::fs::{DirBuilder, File};
use std::io;
use std::os::unix::fs::DirBuilderExt as _;
use std::path::Path;
use std::time::Duration;

/// File of the lock in the state folder.
const LOCK_FILE: &str = "lock";

/// Time that a reader waits for a writer's checkpoint.
const PATIENCE: Duration = Duration::from_secs(5);

/// File of the database in the state folder.
const DATABASE_FILE: &str = "ledger.db";

/// Error of the ledger, of the form "cannot VERB OBJECT: REASON; REMEDY".
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{text}")]
pub struct LedgerError {
    text: String,
    is_passing: bool,
}

impl LedgerError {
    fn folder(folder: &Path, reason: impl std::fmt::Display, remedy: &str) -> Self {
        let text = format!("cannot use the state folder {}: {reason}; {remedy}", folder.display());
        Self { text, is_passing: false }
    }

    /// True if the disk of the ledger takes nothing now and may later: it is full, read-only or away. A damaged ledger stays so.
    pub fn is_passing(&self) -> bool {
        self.is_passing
    }
}

impl From<rusqlite::Error> for LedgerError {
    fn from(error: rusqlite::Error) -> Self {
        let code = error.sqlite_error_code();
        let is_full = code == Some(ErrorCode::DiskFull);
        let remedy = if is_full { "make room on its disk" } else { "check the state folder and its disk" };
        let is_passing = matches!(
            code,
            Some(
                ErrorCode::DiskFull
                    | ErrorCode::ReadOnly
                    | ErrorCode::SystemIoFailure
                    | ErrorCode::CannotOpen
                    | ErrorCode::PermissionDenied
                    | ErrorCode::DatabaseBusy
                    | ErrorCode::DatabaseLocked
                    | ErrorCode::FileLockingProtocolFailed
                    | ErrorCode::OutOfMemory
            )
        );
        Self { text: format!("cannot use the ledger: {error}; {remedy}"), is_passing }
    }
}

/// Result of functions of the ledger.
pub type Result<T> = std::result::Result<T, LedgerError>;

/// Durable state of a shipper.
#[derive(Debug)]
pub struct Ledger {
    connection: Connection,
    /// True between `begin` and `commit`.
    is_batch: bool,
    /// Lock of the state folder, held as long as the ledger is open for writing.
    _lock: Option<File>,
}

impl Ledger {
    /// Opens or makes the ledger of a state folder, and locks the folder.
    pub fn open(folder: &Path) -> Result<Self> {
        let lock = lock(folder)?;
        let file = folder.join(DATABASE_FILE);
        let failed = |error: rusqlite::Error| {
            let reason = format!("{DATABASE_FILE} cannot be opened ({error})");
            LedgerError::folder(folder, reason, "restore it, or choose another folder")
        };
        let mut connection = Connection::open(file).map_err(failed)?;
        // FULL: a commit is durable when it returns.
        let settings = "PRAGMA journal_mode=WAL; PRAGMA synchronous=FULL;";
        connection.execute_batch(settings).map_err(failed)?;
        schema::prepare(&mut connection).map_err(failed)?;
        Ok(Self { connection, is_batch: false, _lock: Some(lock) })
    }

    /// Opens the ledger of a state folder for reading, also while a shipper uses it.
    pub fn read(folder: &Path) -> Result<Self> {
        let file = folder.join(DATABASE_FILE);
        let failed = |error: rusqlite::Error| {
            LedgerError::folder(folder, error, "name the state folder of a shipper that has run")
        };
        if !file.exists() {
            return Err(LedgerError::folder(
                folder,
                "it has no ledger",
                "name the state folder of a shipper",
            ));
        }
        let connection =
            Connection::open_with_flags(file, OpenFlags::SQLITE_OPEN_READ_ONLY).map_err(failed)?;
        connection.busy_timeout(PATIENCE).map_err(failed)?;
        schema::check(&connection).map_err(failed)?;
        Ok(Self { connection, is_batch: false, _lock: None })
    }

    /// Begins a batch: changes until `commit` become durable together.
    pub fn begin(&mut self) -> Result<()> {
        self.connection.execute_batch("BEGIN IMMEDIATE")?;
        self.is_batch = true;
        Ok(())
    }

    /// Makes the changes of a batch durable.
    pub fn commit(&mut self) -> Result<()> {
        self.is_batch = false;
        Ok(self.connection.execute_batch("COMMIT")?)
    }

    /// Gives the changes of a batch up.
    fn roll_back(&mut self) {
        self.is_batch = false;
        // The engine may have rolled back by itself.
        let _ = self.connection.execute_batch("ROLLBACK");
    }

    /// Runs a transaction that writes.
    fn write<T>(&mut self, work: impl FnOnce(&Connection) -> rusqlite::Result<T>) -> Result<T> {
        if self.is_batch {
            return Ok(work(&self.connection)?);
        }
        let transaction = self.connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
        let result = work(&transaction)?;
        transaction.commit()?;
        Ok(result)
    }
}

fn lock(folder: &Path) -> Result<File> {
    let failed =
        |error: io::Error| LedgerError::folder(folder, error, "check its path and its access rights");
    DirBuilder::new().recursive(true).mode(0o700).create(folder).map_err(failed)?;
    let file = File::options().create(true).truncate(false).write(true).open(folder.join(LOCK_FILE));
    let file = file.map_err(failed)?;
    match rustix::fs::flock(&file, FlockOperation::NonBlockingLockExclusive) {
        Ok(()) => Ok(file),
        Err(rustix::io::Errno::WOULDBLOCK) => Err(LedgerError::folder(
            folder,
            "another shipper uses it",
            "stop that shipper, or choose another folder",
        )),
        Err(error) => Err(failed(error.into())),
    }
}
