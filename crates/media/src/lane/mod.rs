//! A disk with a thread of its own: the only one that touches it. The owner talks to it through two queues, and is
//! itself a [`Disk`] to whoever uses it.

mod queue;
mod serve;
#[cfg(test)]
mod shuttled;
mod sync;
mod waker;

use crate::disk::{Completion, Disk, DiskInfo, Request};
use crate::priority::{self, LaneOptions};
use crate::real::RealDisk;
use queue::{Receiver, Sender, queue};
use serve::{Answer, Ports, serve};
use std::os::fd::BorrowedFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};
use waker::Waker;

/// The owner's side of a lane's I/O thread. After [`Lane::spawn`] nothing is allocated.
pub struct Lane {
    info: DiskInfo,
    orders: Sender<Request>,
    answers: Receiver<Answer>,
    waker: Arc<Waker>,
    stop: Arc<AtomicBool>,
    flying: usize,
    thread: Option<JoinHandle<()>>,
    warnings: Vec<String>,
}

impl Lane {
    /// Moves a real disk into a thread of its own, called `name` (the kernel shows its first 15 bytes).
    ///
    /// `notify` runs on that thread after completions were put into the queue: it should wake the owner, as
    /// [`std::thread::Thread::unpark`] does, and must not take long.
    pub fn spawn(
        disk: RealDisk,
        name: &str,
        options: LaneOptions,
        notify: Box<dyn Fn() + Send>,
    ) -> std::io::Result<Self> {
        let warnings = disk.warnings().to_vec();
        Self::start(disk, RealDisk::ready, RealDisk::begin, warnings, name, options, notify)
    }

    /// As [`Lane::spawn`], for a disk in memory: tests and benches.
    pub fn spawn_simulated<D: Disk + 'static>(
        disk: D,
        name: &str,
        options: LaneOptions,
        notify: Box<dyn Fn() + Send>,
    ) -> std::io::Result<Self> {
        Self::start(disk, |_| None, |_, _| {}, Vec::new(), name, options, notify)
    }

    fn start<D: Disk + 'static>(
        mut disk: D,
        ready: fn(&D) -> Option<BorrowedFd<'_>>,
        begin: fn(&mut D, LaneOptions),
        mut warnings: Vec<String>,
        name: &str,
        options: LaneOptions,
        notify: Box<dyn Fn() + Send>,
    ) -> std::io::Result<Self> {
        let info = disk.info().clone();
        let (orders, orders_out) = queue(info.depth);
        let (answers_in, answers) = queue(info.depth);
        let waker = Arc::new(Waker::new()?);
        let stop = Arc::new(AtomicBool::new(false));
        let mut ports = Ports {
            orders: orders_out,
            answers: answers_in,
            waker: Arc::clone(&waker),
            stop: Arc::clone(&stop),
            notify,
        };
        let (tell, told) = std::sync::mpsc::sync_channel(1);
        let owned = name.to_owned();
        let thread = std::thread::Builder::new().name(owned.clone()).spawn(move || {
            let mut warnings = priority::apply(options, &owned);
            begin(&mut disk, options);
            warnings.extend(priority::settle(options, &owned));
            let _ = tell.send(warnings);
            serve(&mut disk, ready, &mut ports);
        })?;
        warnings.extend(told.recv().unwrap_or_default());
        Ok(Self { info, orders, answers, waker, stop, flying: 0, thread: Some(thread), warnings })
    }

    /// What a person should know before relying on it.
    pub fn warnings(&self) -> &[String] {
        &self.warnings
    }

    /// Whether the I/O thread runs. If it does not, something panicked there, and nothing will complete any more.
    pub fn alive(&self) -> bool {
        self.thread.as_ref().is_some_and(|thread| !thread.is_finished())
    }

    fn fetch(&mut self) -> Option<Completion> {
        let Answer { done, bytes } = self.answers.pop()?;
        self.info.bytes = bytes;
        self.flying -= 1;
        Some(done)
    }
}

impl Disk for Lane {
    fn info(&self) -> &DiskInfo {
        &self.info
    }

    fn submit(&mut self, request: Request) -> Result<(), Request> {
        if self.flying >= self.info.depth {
            return Err(request);
        }
        self.orders.push(request)?;
        self.flying += 1;
        self.waker.wake();
        Ok(())
    }

    fn complete(&mut self, wait: Duration) -> Option<Completion> {
        let mut deadline = None;
        loop {
            if let Some(done) = self.fetch() {
                return Some(done);
            }
            if wait.is_zero() || self.flying == 0 || !self.alive() {
                return None;
            }
            let now = Instant::now();
            let left = deadline.get_or_insert(now + wait).saturating_duration_since(now);
            if left.is_zero() {
                return None;
            }
            std::thread::park_timeout(left);
        }
    }
}

impl Drop for Lane {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Release);
        self.waker.wake();
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

impl std::fmt::Debug for Lane {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Lane").field("info", &self.info).field("flying", &self.flying).finish_non_exhaustive()
    }
}
