//! Jobs of this site: versions that it fetches, by their object, and the order in which they run. Pure: callers pass the time.

use crate::clock::Timestamp;
use holdfast_catalog::{ObjectId, Tag};
use std::collections::{BTreeMap, VecDeque};
use std::time::Duration;

/// Completed jobs that are kept for lists.
const KEPT: usize = 200;

/// First pause after a failure; each further one is twice as long.
const FIRST_RETRY: Duration = Duration::from_secs(1);

/// Longest pause after a failure.
const LONGEST_RETRY: Duration = Duration::from_mins(10);

/// State of a job.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum JobState {
    /// The job waits for its turn.
    Waiting,
    /// The version is being fetched.
    Running,
    /// The last attempt failed; the next one is due at a time.
    Failed { error: String, due: Timestamp },
    /// This site has a verified replica.
    Done,
}

/// Version that this site fetches.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Job {
    /// Object whose version is fetched.
    pub(crate) object: ObjectId,
    /// Version that is fetched.
    pub(crate) version: Tag,
    /// Path of the object when the job was made.
    pub(crate) path: String,
    /// Priority of the policy; staged versions come before all.
    pub(crate) priority: i64,
    /// True for a version that was asked for by `stage`.
    pub(crate) is_staged: bool,
    /// Number of attempts so far.
    pub(crate) attempts: u32,
    /// State of the job.
    pub(crate) state: JobState,
    /// Time of the last change of the state.
    pub(crate) changed: Timestamp,
}

/// Jobs that are not completed, and the last that are.
#[derive(Debug, Default)]
pub(super) struct Jobs {
    open: BTreeMap<(ObjectId, Tag), Job>,
    done: VecDeque<Job>,
}

impl Jobs {
    /// Adds a job; a known one keeps its state, but is staged from now on if the new one is.
    pub(super) fn add(&mut self, job: &Job) {
        let known = self.open.entry((job.object, job.version)).or_insert_with(|| job.clone());
        if job.is_staged && !known.is_staged {
            (known.is_staged, known.priority) = (true, job.priority);
        }
    }

    /// Starts the due job with the greatest priority, among equal ones the oldest object.
    pub(super) fn start(&mut self, now: Timestamp) -> Option<Job> {
        let is_due = |job: &&mut Job| match &job.state {
            JobState::Waiting => true,
            JobState::Failed { due, .. } => *due <= now,
            JobState::Running | JobState::Done => false,
        };
        let next = self.open.values_mut().filter(is_due);
        let next = next.max_by_key(|job| (job.priority, std::cmp::Reverse((job.object, job.version))))?;
        (next.state, next.changed) = (JobState::Running, now);
        next.attempts += 1;
        Some(next.clone())
    }

    /// Ends an attempt. A version that is not wanted any more leaves no job. True if a staged job is over.
    pub(super) fn end(&mut self, job: &Job, result: Result<bool, String>, now: Timestamp) -> bool {
        let key = (job.object, job.version);
        let mut is_staged = false;
        match result {
            Ok(is_done) => {
                let job = self.open.remove(&key);
                is_staged = job.as_ref().is_some_and(|job| job.is_staged);
                self.done.extend(job.filter(|_| is_done).map(|job| Job {
                    state: JobState::Done,
                    changed: now,
                    ..job
                }));
                while self.done.len() > KEPT {
                    self.done.pop_front();
                }
            }
            Err(error) => {
                if let Some(job) = self.open.get_mut(&key) {
                    let pause = FIRST_RETRY * 2_u32.pow((job.attempts - 1).min(16));
                    let due = now.plus(pause.min(LONGEST_RETRY));
                    (job.state, job.changed) = (JobState::Failed { error, due }, now);
                }
            }
        }
        is_staged
    }

    /// Time of the next attempt of a failed job.
    pub(super) fn next_due(&self) -> Option<Timestamp> {
        let due = self.open.values().filter_map(|job| match &job.state {
            JobState::Failed { due, .. } => Some(*due),
            _ => None,
        });
        due.min()
    }

    /// Open jobs and the last completed ones.
    pub(super) fn all(&self) -> Vec<Job> {
        self.open.values().chain(&self.done).cloned().collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use holdfast_catalog::{OpId, SiteId};

    fn job(number: u8, priority: i64) -> Job {
        let version = Tag { op: OpId { site: SiteId::new(1).unwrap(), seq: 1 }, index: 0 };
        let (object, state) = (ObjectId([number; 16]), JobState::Waiting);
        let changed = Timestamp::from_milliseconds(0);
        Job { object, version, path: String::new(), priority, is_staged: false, attempts: 0, state, changed }
    }

    #[test]
    fn priorities_come_first_and_failed_jobs_wait() {
        let (mut jobs, now) = (Jobs::default(), Timestamp::from_milliseconds(0));
        for job in [job(2, 0), job(1, 0), job(3, 5)] {
            jobs.add(&job);
        }
        let first = jobs.start(now).unwrap();
        assert_eq!(first.object, ObjectId([3; 16]));
        jobs.end(&first, Err("no".to_owned()), now);
        assert_eq!(jobs.next_due(), Some(now.plus(FIRST_RETRY)));
        let second = jobs.start(now).unwrap();
        assert_eq!(second.object, ObjectId([1; 16]));
        jobs.end(&second, Ok(true), now);
        let third = jobs.start(now).unwrap();
        jobs.end(&third, Ok(false), now);
        assert_eq!((jobs.start(now), jobs.all().len()), (None, 2));
        let again = jobs.start(now.plus(FIRST_RETRY)).unwrap();
        assert_eq!((again.object, again.attempts), (first.object, 2));
    }

    #[test]
    fn a_staged_version_overtakes() {
        let (mut jobs, now) = (Jobs::default(), Timestamp::from_milliseconds(0));
        jobs.add(&job(1, 9));
        jobs.add(&job(2, 0));
        jobs.add(&Job { is_staged: true, priority: 100, ..job(2, 0) });
        assert_eq!(jobs.start(now).unwrap().object, ObjectId([2; 16]));
    }
}
