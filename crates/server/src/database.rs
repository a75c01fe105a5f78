//! `SQLite` database with one owner: a thread that runs jobs in order and commits waiting writes together.
//!
//! Tables and statements belong to the modules that use them (`upload_table`, `token_table`).

use crate::data_folder::make_private_file;
use crate::error::{ServerError, reason};
use rusqlite::{Connection, ErrorCode};
use std::fmt;
use std::path::Path;
use std::sync::mpsc::{self, Receiver, SyncSender};
use std::thread::JoinHandle;
use std::time::Duration;
use tokio::sync::oneshot;

/// Jobs that wait for the thread; senders block beyond that.
const QUEUE: usize = 1024;

/// Writes that one transaction commits together: bounds the delay of the first of them.
const MOST_TOGETHER: usize = 256;

/// Error of a database job.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum DatabaseError {
    /// No space is left for the database.
    Full,
    /// The statement failed for another reason.
    Failed(String),
    /// The thread of the database has ended.
    Closed,
}

impl From<rusqlite::Error> for DatabaseError {
    fn from(error: rusqlite::Error) -> Self {
        match error.sqlite_error_code() {
            Some(ErrorCode::DiskFull) => Self::Full,
            _ => Self::Failed(error.to_string()),
        }
    }
}

impl fmt::Display for DatabaseError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Full => f.write_str("no space is left for the database"),
            Self::Failed(reason) => f.write_str(reason),
            Self::Closed => f.write_str("the database is closed"),
        }
    }
}

type Answer = Box<dyn FnOnce(Result<(), DatabaseError>) + Send>;

enum Job {
    /// Read, answered at once.
    Read(Box<dyn FnOnce(&Connection) + Send>),
    /// Write, answered after the commit.
    Write(Write),
}

/// Write that is given the open transaction, or the reason why there is none.
type Write = Box<dyn FnOnce(Result<&Connection, DatabaseError>) -> Answer + Send>;

/// Sharing of a database file with other processes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Sharing {
    /// This process alone opens the file.
    Exclusive,
    /// Commands may open the file while the server runs.
    Shared,
}

/// Handle of a database and its thread.
#[derive(Debug)]
pub(crate) struct Database {
    jobs: Option<SyncSender<Job>>,
    thread: Option<JoinHandle<()>>,
}

impl Database {
    /// Opens or makes the file, runs `prepare` on it, and starts its thread.
    pub(crate) fn open(
        path: &Path,
        sharing: Sharing,
        prepare: impl FnOnce(&Connection) -> rusqlite::Result<()>,
    ) -> Result<Self, ServerError> {
        let failed = |reason: &dyn fmt::Display| {
            ServerError::failed(
                format_args!("open the database {}", path.display()),
                reason,
                "check the file and its folder, or restore it",
            )
        };
        // SQLite gives its log and its shared memory the permissions of the database.
        make_private_file(path).map_err(|error| failed(&reason(&error)))?;
        let connection = Connection::open(path).map_err(|error| failed(&error))?;
        let settings = match sharing {
            Sharing::Exclusive => "PRAGMA locking_mode=EXCLUSIVE; ",
            Sharing::Shared => "",
        };
        // FULL: a commit is durable when it is acknowledged.
        let settings = format!("{settings}PRAGMA journal_mode=WAL; PRAGMA synchronous=FULL;");
        connection.busy_timeout(Duration::from_secs(10)).map_err(|error| failed(&error))?;
        connection.execute_batch(&settings).map_err(|error| failed(&error))?;
        prepare(&connection).map_err(|error| failed(&error))?;
        let (jobs, queue) = mpsc::sync_channel(QUEUE);
        let builder = std::thread::Builder::new().name("database".to_owned());
        let thread = builder.spawn(move || run(&connection, &queue)).map_err(|error| failed(&error))?;
        Ok(Self { jobs: Some(jobs), thread: Some(thread) })
    }

    fn send(&self, job: Job) {
        if let Some(jobs) = &self.jobs {
            // A closed queue drops the job, and with it the sender of its answer.
            let _ = jobs.send(job);
        }
    }

    /// Runs a read and waits for its result. Must not be called on an async thread.
    pub(crate) fn read_blocking<T: Send + 'static>(
        &self,
        work: impl FnOnce(&Connection) -> rusqlite::Result<T> + Send + 'static,
    ) -> Result<T, DatabaseError> {
        let (sender, receiver) = mpsc::sync_channel(1);
        self.send(Job::Read(Box::new(move |connection| {
            let _ = sender.send(work(connection));
        })));
        Ok(receiver.recv().map_err(|_| DatabaseError::Closed)??)
    }

    /// Runs a write and waits until it is durable. Must not be called on an async thread.
    pub(crate) fn write_blocking<T: Send + 'static>(
        &self,
        work: impl FnOnce(&Connection) -> rusqlite::Result<T> + Send + 'static,
    ) -> Result<T, DatabaseError> {
        let (sender, receiver) = mpsc::sync_channel(1);
        self.send(write_job(work, move |result| {
            let _ = sender.send(result);
        }));
        receiver.recv().map_err(|_| DatabaseError::Closed)?
    }

    /// Runs a read and awaits its result.
    pub(crate) async fn read<T: Send + 'static>(
        &self,
        work: impl FnOnce(&Connection) -> rusqlite::Result<T> + Send + 'static,
    ) -> Result<T, DatabaseError> {
        let (sender, receiver) = oneshot::channel();
        self.send(Job::Read(Box::new(move |connection| {
            let _ = sender.send(work(connection));
        })));
        Ok(receiver.await.map_err(|_| DatabaseError::Closed)??)
    }

    /// Runs a write and awaits its durability.
    pub(crate) async fn write<T: Send + 'static>(
        &self,
        work: impl FnOnce(&Connection) -> rusqlite::Result<T> + Send + 'static,
    ) -> Result<T, DatabaseError> {
        let (sender, receiver) = oneshot::channel();
        self.send(write_job(work, move |result| {
            let _ = sender.send(result);
        }));
        receiver.await.map_err(|_| DatabaseError::Closed)?
    }

    /// Queues a write whose result nobody needs.
    pub(crate) fn write_later(
        &self,
        work: impl FnOnce(&Connection) -> rusqlite::Result<()> + Send + 'static,
    ) {
        self.send(write_job(work, |_| {}));
    }
}

impl Drop for Database {
    fn drop(&mut self) {
        self.jobs = None;
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

fn write_job<T: Send + 'static>(
    work: impl FnOnce(&Connection) -> rusqlite::Result<T> + Send + 'static,
    answer: impl FnOnce(Result<T, DatabaseError>) + Send + 'static,
) -> Job {
    Job::Write(Box::new(move |connection| {
        let result = connection.and_then(|connection| in_savepoint(connection, work));
        Box::new(move |committed: Result<(), DatabaseError>| {
            answer(result.and_then(|value| committed.map(|()| value)));
        })
    }))
}

/// Runs one write in a savepoint, so that its failure undoes only itself.
fn in_savepoint<T>(
    connection: &Connection,
    work: impl FnOnce(&Connection) -> rusqlite::Result<T>,
) -> Result<T, DatabaseError> {
    if connection.is_autocommit() {
        // SQLite has undone the transaction after a failure of an earlier job.
        return Err(DatabaseError::Full);
    }
    connection.execute_batch("SAVEPOINT job")?;
    let result = work(connection);
    let ended = match &result {
        Ok(_) => connection.execute_batch("RELEASE job"),
        Err(_) => connection.execute_batch("ROLLBACK TO job; RELEASE job"),
    };
    let value = result?;
    ended?;
    Ok(value)
}

fn run(connection: &Connection, queue: &Receiver<Job>) {
    while let Ok(first) = queue.recv() {
        let mut writes = Vec::new();
        let mut next = Some(first);
        while let Some(job) = next {
            match job {
                Job::Read(read) => read(connection),
                Job::Write(write) => writes.push(write),
            }
            next = if writes.len() < MOST_TOGETHER { queue.try_recv().ok() } else { None };
        }
        if !writes.is_empty() {
            commit(connection, writes);
        }
    }
}

fn commit(connection: &Connection, writes: Vec<Write>) {
    let begun = connection.execute_batch("BEGIN IMMEDIATE").map_err(DatabaseError::from);
    let open = begun.map(|()| connection);
    let answers: Vec<Answer> = writes.into_iter().map(|write| write(open.clone())).collect();
    let committed = open.and_then(|open| Ok(open.execute_batch("COMMIT")?));
    if committed.is_err() && !connection.is_autocommit() {
        let _ = connection.execute_batch("ROLLBACK");
    }
    for answer in answers {
        answer(committed.clone());
    }
}

/// Checks the layout version of a file, and writes it to a new file.
pub(crate) fn check_layout(connection: &Connection, layout: i64) -> rusqlite::Result<()> {
    let found: i64 = connection.query_row("PRAGMA user_version", [], |row| row.get(0))?;
    if found > layout {
        let reason = format!("a newer program wrote it (layout {found}, known is {layout})");
        return Err(unreadable(0, reason));
    }
    connection.execute_batch(&format!("PRAGMA user_version = {layout}"))
}

/// Error of a column whose value cannot be understood.
pub(crate) fn unreadable(
    column: usize,
    reason: impl Into<Box<dyn std::error::Error + Send + Sync>>,
) -> rusqlite::Error {
    rusqlite::Error::FromSqlConversionFailure(column, rusqlite::types::Type::Text, reason.into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_failed_write_undoes_only_itself() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.db");
        let open = || {
            Database::open(&path, Sharing::Exclusive, |connection| {
                connection.execute_batch("CREATE TABLE IF NOT EXISTS t(a INTEGER PRIMARY KEY)")
            })
        };
        let database = open().unwrap();
        let insert = |value: i64| {
            database
                .write_blocking(move |connection| connection.execute("INSERT INTO t VALUES (?1)", [value]))
        };
        assert_eq!(insert(1), Ok(1));
        assert!(matches!(insert(1), Err(DatabaseError::Failed(_))));
        assert_eq!(insert(2), Ok(1));
        drop(database);
        let count = open().unwrap().read_blocking(|connection| {
            connection.query_row("SELECT count(*) FROM t", [], |row| row.get::<_, i64>(0))
        });
        assert_eq!(count, Ok(2));
    }
}
