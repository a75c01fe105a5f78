//! Tables of tasks and runs in the journal of the site. Here are statements only; the scheduler decides.

use crate::archive::VersionId;
use crate::database::unreadable;
use holdfast_catalog::ObjectId;
use rusqlite::{Connection, Row};
use serde::Serialize;
use utoipa::ToSchema;

/// Runs of one task that are kept, the newest ones.
const KEPT_RUNS: i64 = 20;

/// Time for which runs of completed tasks are kept, in milliseconds: 90 days.
const KEPT_MILLISECONDS: i64 = 90 * 24 * 3_600_000;

/// Due time of a task whose driver is not configured.
const NEVER: i64 = i64::MAX;

/// Task that is to be added.
#[derive(Clone, Debug)]
pub(crate) struct NewTask {
    /// Name of the driver.
    pub(crate) driver: String,
    /// Project of the object when the version was stored.
    pub(crate) project: String,
    /// Object in the catalog.
    pub(crate) object: ObjectId,
    /// Version of the object.
    pub(crate) version: VersionId,
}

/// Task that has not succeeded yet.
#[derive(Clone, Debug)]
pub(crate) struct Task {
    /// Number of the task.
    pub(crate) id: i64,
    /// Driver, project, object and version.
    pub(crate) work: NewTask,
    /// Number of attempts so far.
    pub(crate) attempts: u32,
    /// Time of the next attempt, in milliseconds since 1970.
    pub(crate) due: i64,
}

/// Attempt of a driver on a version.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, ToSchema)]
pub(crate) struct Run {
    /// Number of the run; later runs have greater numbers.
    pub(crate) id: i64,
    /// Name of the driver.
    pub(crate) driver: String,
    /// Project of the object.
    pub(crate) project: String,
    /// Identity of the object in the catalog.
    pub(crate) object: String,
    /// Path in the catalog, null if the run found none.
    pub(crate) path: Option<String>,
    /// Version of the object.
    pub(crate) version: String,
    /// Number of the attempt, from 1.
    pub(crate) attempt: u32,
    /// Start of the run, in milliseconds since 1970.
    pub(crate) started: i64,
    /// End of the run, null while it goes on.
    pub(crate) ended: Option<i64>,
    /// Outcome: succeeded, failed or interrupted; null while the run goes on.
    pub(crate) outcome: Option<String>,
    /// Text of the driver, or the reason of the failure.
    pub(crate) message: Option<String>,
}

/// End of a run.
#[derive(Clone, Debug)]
pub(crate) struct Ended {
    /// Path in the catalog, if there was one.
    pub(crate) path: Option<String>,
    /// True if the task is done.
    pub(crate) is_success: bool,
    /// Text of the driver, or the reason of the failure.
    pub(crate) message: String,
    /// Time of the end.
    pub(crate) time: i64,
    /// Time of the next attempt of a failed task.
    pub(crate) due: i64,
}

/// Makes the tables and their indexes.
pub(crate) fn prepare(connection: &Connection) -> rusqlite::Result<()> {
    connection.execute_batch(
        "CREATE TABLE IF NOT EXISTS tasks (id INTEGER PRIMARY KEY AUTOINCREMENT, driver TEXT NOT NULL,
            project TEXT NOT NULL, object TEXT NOT NULL, version TEXT NOT NULL, attempts INTEGER NOT NULL,
            due INTEGER NOT NULL) STRICT;
         CREATE INDEX IF NOT EXISTS tasks_due ON tasks (due, id);
         CREATE TABLE IF NOT EXISTS runs (id INTEGER PRIMARY KEY AUTOINCREMENT, task INTEGER NOT NULL,
            driver TEXT NOT NULL, project TEXT NOT NULL, object TEXT NOT NULL, path TEXT, version TEXT NOT NULL,
            attempt INTEGER NOT NULL, started INTEGER NOT NULL, ended INTEGER, outcome TEXT, message TEXT) STRICT;
         CREATE INDEX IF NOT EXISTS runs_task ON runs (task, id);
         CREATE INDEX IF NOT EXISTS runs_project ON runs (project, id);",
    )
}

/// Adds a task, which is due at once.
pub(crate) fn insert(connection: &Connection, task: &NewTask) -> rusqlite::Result<()> {
    let sql =
        "INSERT INTO tasks (driver, project, object, version, attempts, due) VALUES (?1, ?2, ?3, ?4, 0, 0)";
    let values = (&task.driver, &task.project, task.object.to_string(), task.version.as_str());
    connection.execute(sql, values).map(drop)
}

/// Prepares the tasks for a new scheduler: interrupted runs end, tasks of the given drivers are due, others wait.
pub(crate) fn resume(connection: &Connection, drivers: &[String], now: i64) -> rusqlite::Result<()> {
    let sql = "UPDATE runs SET outcome = 'interrupted', ended = ?1 WHERE outcome IS NULL";
    connection.execute(sql, [now])?;
    let sql = "DELETE FROM runs WHERE ended < ?1 AND task NOT IN (SELECT id FROM tasks)";
    connection.execute(sql, [now.saturating_sub(KEPT_MILLISECONDS)])?;
    connection.execute("UPDATE tasks SET due = ?1", [NEVER])?;
    for driver in drivers {
        connection.execute("UPDATE tasks SET due = 0 WHERE driver = ?1", [driver])?;
    }
    Ok(())
}

/// First tasks by the time of their next attempt, at most `most`.
pub(crate) fn first(connection: &Connection, most: usize) -> rusqlite::Result<Vec<Task>> {
    let sql = "SELECT id, driver, project, object, version, attempts, due FROM tasks
        WHERE due < ?1 ORDER BY due, id LIMIT ?2";
    let mut statement = connection.prepare_cached(sql)?;
    let rows = statement.query_map((NEVER, most as i64), |row| {
        let object: String = row.get(3)?;
        let version: String = row.get(4)?;
        let work = NewTask {
            driver: row.get(1)?,
            project: row.get(2)?,
            object: object.parse().map_err(|error| unreadable(3, error))?,
            version: VersionId::parse(&version).ok_or_else(|| unreadable(4, "it is no version"))?,
        };
        Ok(Task { id: row.get(0)?, work, attempts: row.get(5)?, due: row.get(6)? })
    })?;
    rows.collect()
}

/// Records the start of a run, and returns its number.
pub(crate) fn start(connection: &Connection, task: &Task, now: i64) -> rusqlite::Result<i64> {
    let sql = "INSERT INTO runs (task, driver, project, object, version, attempt, started)
        VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7) RETURNING id";
    let work = &task.work;
    let (object, version) = (work.object.to_string(), work.version.as_str());
    let values = (task.id, &work.driver, &work.project, object, version, task.attempts + 1, now);
    connection.query_row(sql, values, |row| row.get(0))
}

/// Records the end of a run: a successful task is removed, a failed one is due again later.
pub(crate) fn end(connection: &Connection, task: i64, run: i64, ended: &Ended) -> rusqlite::Result<()> {
    let outcome = if ended.is_success { "succeeded" } else { "failed" };
    let sql = "UPDATE runs SET ended = ?2, outcome = ?3, message = ?4, path = ?5 WHERE id = ?1";
    connection.execute(sql, (run, ended.time, outcome, &ended.message, &ended.path))?;
    if ended.is_success {
        return connection.execute("DELETE FROM tasks WHERE id = ?1", [task]).map(drop);
    }
    let sql = "UPDATE tasks SET attempts = attempts + 1, due = ?2 WHERE id = ?1";
    connection.execute(sql, (task, ended.due))?;
    let sql = "DELETE FROM runs WHERE task = ?1 AND id <=
        (SELECT id FROM runs WHERE task = ?1 ORDER BY id DESC LIMIT 1 OFFSET ?2)";
    connection.execute(sql, (task, KEPT_RUNS)).map(drop)
}

/// Choice of runs for a list.
#[derive(Clone, Debug, Default)]
pub(crate) struct Choice {
    /// Project of the runs; `None` for all.
    pub(crate) project: Option<String>,
    /// True for failed runs only.
    pub(crate) failed: bool,
    /// Number before which the list goes on.
    pub(crate) before: Option<i64>,
    /// Most runs of the list.
    pub(crate) most: usize,
}

/// Runs from the newest to the oldest.
pub(crate) fn runs(connection: &Connection, choice: &Choice) -> rusqlite::Result<Vec<Run>> {
    let sql = "SELECT id, driver, project, object, path, version, attempt, started, ended, outcome, message
        FROM runs WHERE (?1 IS NULL OR project = ?1) AND (NOT ?2 OR outcome = 'failed') AND id < ?3
        ORDER BY id DESC LIMIT ?4";
    let before = choice.before.unwrap_or(i64::MAX);
    let mut statement = connection.prepare_cached(sql)?;
    let rows = statement.query_map((&choice.project, choice.failed, before, choice.most as i64), run)?;
    rows.collect()
}

fn run(row: &Row<'_>) -> rusqlite::Result<Run> {
    Ok(Run {
        id: row.get(0)?,
        driver: row.get(1)?,
        project: row.get(2)?,
        object: row.get(3)?,
        path: row.get(4)?,
        version: row.get(5)?,
        attempt: row.get(6)?,
        started: row.get(7)?,
        ended: row.get(8)?,
        outcome: row.get(9)?,
        message: row.get(10)?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn with_task() -> Connection {
        let connection = Connection::open_in_memory().unwrap();
        prepare(&connection).unwrap();
        for driver in ["a", "b"] {
            let (driver, project) = (driver.to_owned(), "p".to_owned());
            let version = VersionId::parse("1-1-1").unwrap();
            insert(&connection, &NewTask { driver, project, object: ObjectId::ROOT, version }).unwrap();
        }
        connection
    }

    fn fail(connection: &Connection, due: i64) {
        let task = first(connection, 1).unwrap().remove(0);
        let run = start(connection, &task, 1).unwrap();
        let ended = Ended { path: None, is_success: false, message: "no".to_owned(), time: 2, due };
        end(connection, task.id, run, &ended).unwrap();
    }

    #[test]
    fn a_task_keeps_a_bounded_number_of_runs() {
        let connection = with_task();
        connection.execute("DELETE FROM tasks WHERE driver = 'b'", []).unwrap();
        (0..50).for_each(|_| fail(&connection, 0));
        let runs = runs(&connection, &Choice { most: 100, ..Choice::default() }).unwrap();
        let attempts: Vec<u32> = runs.iter().map(|run| run.attempt).collect();
        assert_eq!(attempts, (31..=50).rev().collect::<Vec<_>>());
    }

    #[test]
    fn a_start_ends_interrupted_runs_and_makes_known_drivers_due() {
        let connection = with_task();
        fail(&connection, 1_000_000);
        let task = first(&connection, 1).unwrap().remove(0);
        assert_eq!(task.work.driver, "b");
        start(&connection, &task, 5).unwrap();
        resume(&connection, &["a".to_owned()], 9).unwrap();
        let due = first(&connection, 10).unwrap();
        assert_eq!(
            due.iter().map(|task| (task.work.driver.as_str(), task.due)).collect::<Vec<_>>(),
            [("a", 0)]
        );
        let run = runs(&connection, &Choice { most: 1, ..Choice::default() }).unwrap().remove(0);
        assert_eq!((run.outcome.as_deref(), run.ended), (Some("interrupted"), Some(9)));
        // Runs of tasks that are gone are dropped after their time; the others stay.
        connection.execute("DELETE FROM tasks WHERE driver = 'a'", []).unwrap();
        resume(&connection, &[], 3 + KEPT_MILLISECONDS).unwrap();
        assert_eq!(runs(&connection, &Choice { most: 9, ..Choice::default() }).unwrap().len(), 1);
    }
}
