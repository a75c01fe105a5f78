//! `ReductStore` beside greedy readers: a record an element, the oldest given up by its quota.

use super::{EndReport, Load, ReadLoop, RecorderUnderLoad, below};
use crate::BenchError;
use crate::reductstore::{FIRST, ReductClient, ReductServer};
use crate::work_folder::WorkFolder;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// `ReductStore` at work.
pub struct ReductRecorder {
    server: ReductServer,
    client: ReductClient,
    kept: u64,
    last: Arc<AtomicU64>,
}

impl ReductRecorder {
    /// Begins; left out where it is not installed.
    pub fn begin(place: &WorkFolder, load: &Load) -> Result<Self, BenchError> {
        let quota = format!("{{\"quota_type\":\"FIFO\",\"quota_size\":{}}}", load.kept);
        let (server, client) = ReductServer::begin(place, &quota)?;
        let kept = load.kept / super::ELEMENT as u64;
        Ok(Self { server, client, kept, last: Arc::new(AtomicU64::new(0)) })
    }
}

impl ReductRecorder {
    /// A record after the other over one connection: which of those that are there, `pick` says.
    fn reading(&self, mut pick: impl FnMut(u64, u64) -> u64 + Send + 'static) -> ReadLoop {
        let (port, kept, last) = (self.server.port, self.kept, Arc::clone(&self.last));
        let mut client = None;
        Box::new(move || {
            let end = last.load(Ordering::Relaxed);
            // The newest three quarters of what is kept are there for sure.
            let from = end.saturating_sub(kept * 3 / 4);
            if end == from {
                return Ok(0);
            }
            let mut at = match client.take() {
                Some(client) => client,
                None => ReductClient::connect(port)?,
            };
            let number = pick(from, end);
            let (status, bytes) = at.ask("GET", &format!("/b/bench/elements?ts={}", FIRST + number), &[])?;
            client = Some(at);
            Ok(if status == 200 { bytes } else { 0 })
        })
    }
}

impl RecorderUnderLoad for ReductRecorder {
    fn take(&mut self, number: u64, element: &[u8]) -> Result<(), BenchError> {
        let path = format!("/b/bench/elements?ts={}", FIRST + number);
        let (status, _) = self.client.ask("POST", &path, element)?;
        if status != 200 {
            return Err(BenchError::Accounting(format!("ReductStore does not take a record: {status}")));
        }
        self.last.store(number + 1, Ordering::Relaxed);
        Ok(())
    }

    fn reader(&self, seed: u64) -> Result<ReadLoop, BenchError> {
        let mut random = seed;
        Ok(self.reading(move |from, end| from + below(&mut random, end - from)))
    }

    fn exporter(&self) -> Result<ReadLoop, BenchError> {
        let mut next = 0;
        Ok(self.reading(move |from, end| {
            let number = if (from..end).contains(&next) { next } else { from };
            next = number + 1;
            number
        }))
    }

    fn end(self: Box<Self>) -> Result<EndReport, BenchError> {
        // What it took was acknowledged.
        self.server.end();
        Ok(EndReport::default())
    }
}
