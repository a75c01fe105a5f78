//! A purge at work: on a thread of its own, which asks the capture thread for one small step after the other. One at a
//! time.

use super::tickets::CallerId;
use super::{Bell, PURGE};
use crate::capture::Ask;
use holdfast_base::Timestamp;
use holdfast_format::Superblock;
use holdfast_ingest::Waker;
use holdfast_link::wire::Reply;
use holdfast_ring::{Chore, ChoreReply, PurgeRequest, purge};
use std::sync::mpsc::{Receiver, Sender, SyncSender, channel, sync_channel};
use std::thread::{Builder, JoinHandle};

/// A purge that ended, and what its client is told.
#[derive(Debug)]
pub(super) struct Purged {
    pub(super) caller: CallerId,
    pub(super) request: u64,
    pub(super) reply: Reply,
}

/// A purge at work.
#[derive(Debug)]
struct Job {
    answers: SyncSender<ChoreReply>,
    thread: JoinHandle<()>,
    caller: CallerId,
    request: u64,
}

/// One purge at most.
#[derive(Debug)]
pub(super) struct Purging {
    asks: SyncSender<(u64, Ask)>,
    capture: Waker,
    bell: Bell,
    /// Where the steps' answers go while one is at work.
    job: Option<Job>,
    results: (Sender<Purged>, Receiver<Purged>),
}

impl Purging {
    pub(super) fn new(asks: SyncSender<(u64, Ask)>, capture: Waker, bell: Bell) -> Self {
        Self { asks, capture, bell, job: None, results: channel() }
    }

    /// Begins one; `false` while another is at work, or no thread is to be had.
    pub(super) fn begin(
        &mut self,
        caller: CallerId,
        request: u64,
        order: PurgeRequest,
        superblock: Superblock,
        now: Timestamp,
    ) -> bool {
        if self.job.is_some() {
            return false;
        }
        let (answers, answered) = sync_channel(1);
        let (asks, capture, bell) = (self.asks.clone(), self.capture.clone(), self.bell.clone());
        let results = self.results.0.clone();
        let thread = Builder::new().name("holdfast-purge".to_owned()).spawn(move || {
            let mut port = |chore: Chore| {
                asks.send((PURGE, Ask::Chore(chore))).ok()?;
                capture.wake();
                answered.recv().ok()
            };
            let reply = match purge(&order, &superblock, now, &mut port) {
                Ok(outcome) => Reply::Outcome(outcome),
                Err(error) => Reply::Error { text: error.to_string() },
            };
            let _ = results.send(Purged { caller, request, reply });
            bell.ring();
        });
        match thread {
            Ok(thread) => {
                self.job = Some(Job { answers, thread, caller, request });
                true
            }
            Err(_) => false,
        }
    }

    /// The capture thread's answer to a step.
    pub(super) fn reply(&mut self, reply: ChoreReply) {
        if let Some(job) = &self.job {
            let _ = job.answers.try_send(reply);
        }
    }

    /// The purge that ended, if one did.
    pub(super) fn ended(&mut self) -> Option<Purged> {
        let done = self.results.1.try_recv().ok();
        if done.is_none() && !self.job.as_ref().is_some_and(|job| job.thread.is_finished()) {
            return None;
        }
        let Job { thread, caller, request, .. } = self.job.take()?;
        let failed = thread.join().is_err();
        // It may have said so between our two looks.
        let done = done.or_else(|| self.results.1.try_recv().ok());
        let text = if failed {
            "the purge failed inside: see what is left, and report this"
        } else {
            "the purge ended"
        };
        Some(done.unwrap_or(Purged { caller, request, reply: Reply::Error { text: text.to_owned() } }))
    }
}
