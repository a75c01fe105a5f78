//! Scheduler: starts due tasks, a bounded number at the same time, and records their runs.

use super::options::DriverOptions;
use super::runner::{Attempt, Runner};
use super::tasks::{self, Ended, Task};
use crate::clock::Clock;
use crate::database::DatabaseError;
use crate::log::{Event, Log};
use crate::metrics::Metrics;
use crate::options::Limits;
use std::collections::HashSet;
use std::sync::Arc;
use std::time::Duration;
use tokio::task::JoinSet;

/// Pause after a failure of the journal.
const JOURNAL_PAUSE: Duration = Duration::from_secs(5);

/// Longest message that is recorded, in bytes.
const MOST_MESSAGE: usize = 8 << 10;

/// Scheduler of all drivers of a server.
pub(crate) struct Scheduler {
    pub(crate) runner: Runner,
    pub(crate) drivers: Vec<DriverOptions>,
    pub(crate) limits: Limits,
    pub(crate) clock: Clock,
    pub(crate) log: Log,
    pub(crate) metrics: Arc<Metrics>,
}

impl Scheduler {
    /// Runs tasks until the runtime ends.
    pub(crate) async fn run(self: Arc<Self>) {
        let names: Vec<String> = self.drivers.iter().map(|driver| driver.name.clone()).collect();
        let now = self.clock.now().milliseconds();
        let database = &self.runner.site.journal.database;
        loop {
            let names = names.clone();
            let resume = move |connection: &_| tasks::resume(connection, &names, now);
            let Err(error) = database.write(resume).await else { break };
            self.log.trouble("drivers", error);
            tokio::time::sleep(JOURNAL_PAUSE).await;
        }
        let most = self.limits.driver_jobs.max(1);
        let mut running = HashSet::new();
        let mut runs = JoinSet::new();
        loop {
            // As many as can be running hide no task that is due.
            let read = move |connection: &_| tasks::first(connection, 2 * most);
            let pause = match database.read(read).await {
                Ok(first) => self.start_due(first, most, &mut running, &mut runs),
                Err(error) => {
                    self.log.trouble("drivers", error);
                    Some(JOURNAL_PAUSE)
                }
            };
            tokio::select! {
                Some(ended) = runs.join_next() => {
                    match ended {
                        Ok(id) => drop(running.remove(&id)),
                        // The task of a run that panicked counts as running, and waits for the next start.
                        Err(error) => self.log.trouble("drivers", error),
                    }
                }
                () = self.runner.site.new_tasks.notified() => {}
                () = tokio::time::sleep(pause.unwrap_or(Duration::MAX)), if pause.is_some() => {}
            }
        }
    }

    /// Starts tasks that are due. Returns the time until the next one is, if a place for it is free.
    fn start_due(
        self: &Arc<Self>,
        first: Vec<Task>,
        most: usize,
        running: &mut HashSet<i64>,
        runs: &mut JoinSet<i64>,
    ) -> Option<Duration> {
        let now = now();
        for task in first {
            if running.contains(&task.id) {
                continue;
            }
            if runs.len() >= most {
                return None;
            }
            // A clock that was set back delays no task for longer than the longest pause.
            let wait = Duration::from_millis(task.due.saturating_sub(now).max(0) as u64);
            if wait > Duration::ZERO && wait <= self.limits.longest_driver_retry {
                return Some(wait);
            }
            running.insert(task.id);
            let scheduler = Arc::clone(self);
            runs.spawn(async move {
                let id = task.id;
                if let Err(error) = scheduler.run_task(task).await {
                    scheduler.log.trouble("drivers", error);
                    // The task is still due, and must not be tried without a pause.
                    tokio::time::sleep(JOURNAL_PAUSE).await;
                }
                id
            });
        }
        None
    }

    async fn run_task(&self, task: Task) -> Result<(), DatabaseError> {
        let database = &self.runner.site.journal.database;
        let Some(driver) = self.drivers.iter().find(|driver| driver.name == task.work.driver) else {
            return Ok(());
        };
        let (started, beginning) = (self.clock.now().milliseconds(), task.clone());
        let run = database.write(move |connection| tasks::start(connection, &beginning, started)).await?;
        let Attempt { path, result } = self.runner.attempt(driver, &task.work).await;
        let attempt = task.attempts.saturating_add(1);
        let doublings = attempt.saturating_sub(1).min(31);
        let pause =
            self.limits.first_retry.saturating_mul(1 << doublings).min(self.limits.longest_driver_retry);
        let is_success = result.is_ok();
        let mut message = result.unwrap_or_else(|reason| reason);
        message.truncate(message.floor_char_boundary(MOST_MESSAGE));
        let due = now().saturating_add(i64::try_from(pause.as_millis()).unwrap_or(i64::MAX / 2));
        let ended =
            Ended { path, is_success, message: message.clone(), time: self.clock.now().milliseconds(), due };
        let id = task.id;
        database.write(move |connection| tasks::end(connection, id, run, &ended)).await?;
        let counter = if is_success { &self.metrics.driver_successes } else { &self.metrics.driver_failures };
        counter.add(1);
        let (driver, project) = (task.work.driver, task.work.project);
        let version = task.work.version.to_string();
        self.log.event(&if is_success {
            Event::DriverSucceeded { driver, project, version, attempt, message }
        } else {
            let retry_milliseconds = pause.as_millis() as u64;
            Event::DriverFailed { driver, project, version, attempt, reason: message, retry_milliseconds }
        });
        Ok(())
    }
}

/// Time by which tasks are due: that of the operating system, as pauses are.
fn now() -> i64 {
    Clock::System.now().milliseconds()
}
