//! Job: an order of many steps (a purge, a distilling), run on a thread of its own that asks the capture thread for one
//! small step after the other. One job at a time.

use super::tickets::ClientId;
use super::{ControlWaker, JOB};
use crate::capture::Ask;
use crate::run::AHEAD;
use holdfast_base::Timestamp;
use holdfast_format::Superblock;
use holdfast_ingest::Waker;
use holdfast_protocol::wire::Reply;
use holdfast_ring::{JobStep, StepReply, Work};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, Sender, SyncSender, channel, sync_channel};
use std::thread::{Builder, JoinHandle};

/// The thread's name: it says itself what became of it.
pub const THREAD: &str = "holdfast-job";

/// A job that ended, and what its client is told.
#[derive(Debug)]
pub(super) struct JobEnd {
    pub(super) client: ClientId,
    pub(super) request: u64,
    pub(super) reply: Reply,
}

/// A job at work.
#[derive(Debug)]
struct Job {
    name: &'static str,
    /// `None` once it has been aborted.
    answers: Option<SyncSender<StepReply>>,
    thread: JoinHandle<()>,
    client: ClientId,
    request: u64,
    /// Something more urgent waits for its end.
    enough: Arc<AtomicBool>,
}

/// One job at most.
#[derive(Debug)]
pub(super) struct Jobs {
    asks: SyncSender<(u64, Ask)>,
    capture: Waker,
    waker: ControlWaker,
    /// Where the steps' answers go while one is at work.
    job: Option<Job>,
    results: (Sender<JobEnd>, Receiver<JobEnd>),
}

impl Jobs {
    pub(super) fn new(asks: SyncSender<(u64, Ask)>, capture: Waker, waker: ControlWaker) -> Self {
        Self { asks, capture, waker, job: None, results: channel() }
    }

    /// What is at work now, if anything is.
    pub(super) fn at_work(&self) -> Option<&'static str> {
        self.job.as_ref().map(|job| job.name)
    }

    /// What is at work should come to an end where it can.
    pub(super) fn hurry(&self) {
        if let Some(job) = &self.job {
            job.enough.store(true, Ordering::Relaxed);
        }
    }

    /// Begins one while none is at work; `false` where no thread is to be had.
    pub(super) fn begin(
        &mut self,
        client: ClientId,
        request: u64,
        work: Work,
        superblock: Superblock,
        now: Timestamp,
    ) -> bool {
        let (answers, answered) = sync_channel(1);
        let (asks, capture, waker) = (self.asks.clone(), self.capture.clone(), self.waker.clone());
        let results = self.results.0.clone();
        let (name, enough) = (work.name(), Arc::new(AtomicBool::new(false)));
        let hurried = Arc::clone(&enough);
        let thread = Builder::new().name(THREAD.to_owned()).spawn(move || {
            // Nobody waits for it as capture is waited for.
            let _ = rustix::process::nice(AHEAD);
            let mut port = |step: JobStep| {
                asks.send((JOB, Ask::JobStep(step))).ok()?;
                capture.wake();
                answered.recv().ok()
            };
            let enough = || hurried.load(Ordering::Relaxed);
            let reply = match work.run(&superblock, now, &mut port, &enough) {
                Ok(outcome) => Reply::Outcome(outcome),
                Err(error) => Reply::Error { text: error.to_string() },
            };
            let _ = results.send(JobEnd { client, request, reply });
            waker.wake();
        });
        match thread {
            Ok(thread) => {
                self.job = Some(Job { name, answers: Some(answers), thread, client, request, enough });
                true
            }
            Err(_) => false,
        }
    }

    /// The capture thread's answer to a step.
    pub(super) fn reply(&mut self, reply: StepReply) {
        if let Some(answers) = self.job.as_ref().and_then(|job| job.answers.as_ref()) {
            let _ = answers.try_send(reply);
        }
    }

    /// Gives the job no more answers: it says to its client that the recorder ended.
    pub(super) fn abort(&mut self) {
        if let Some(job) = &mut self.job {
            job.answers = None;
        }
    }

    /// The job that ended, if one did.
    pub(super) fn ended(&mut self) -> Option<JobEnd> {
        let done = self.results.1.try_recv().ok();
        if done.is_none() && !self.job.as_ref().is_some_and(|job| job.thread.is_finished()) {
            return None;
        }
        let Job { name, thread, client, request, .. } = self.job.take()?;
        let failed = thread.join().is_err();
        // It may have said so between our two looks.
        let done = done.or_else(|| self.results.1.try_recv().ok());
        let text = if failed {
            format!("internal error in the {name}: check its result, and report this")
        } else {
            format!("the {name} ended")
        };
        Some(done.unwrap_or(JobEnd { client, request, reply: Reply::Error { text } }))
    }
}
