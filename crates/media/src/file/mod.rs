//! The disk of a file: reads and flushes through `io_uring`, writes by threads that wait for them.
//!
//! A file system ends an asynchronous direct write in a worker of the kernel that stays on the core which takes the
//! device's interrupts, at ordinary priority: behind a thread that spins there, a write of 5 ms ends 100 ms later. Whoever
//! waits for a write ends it itself, on any core. On a block device nothing has to be ended: it is `uring`'s alone.

#[cfg(test)]
mod shuttled;
mod signal;
mod sync;
mod target;
mod writer_pool;

use crate::disk::{Completion, Disk, DiskInfo, Medium, Op, Request};
use crate::priority::{self, LaneOptions};
use crate::{InflightLimiter, UringDisk};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::OFlags;
use std::collections::VecDeque;
use std::os::fd::{AsFd as _, BorrowedFd};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::thread::{Builder, JoinHandle};
use std::time::{Duration, Instant};
use target::Target;
use writer_pool::WriterPool;

/// Writes that are under way at once: two slots keep a device busy, and a commit need not wait for either.
const WRITERS: usize = 4;

/// Stack of a thread that only makes system calls: all of it may be locked in memory.
const STACK: usize = 128 << 10;

/// How long a disk that is given up waits for what is under way.
const FAREWELL: Duration = Duration::from_secs(2);

/// A file whose writes are done by threads.
pub struct FileDisk {
    uring: Box<UringDisk>,
    writer_pool: Arc<WriterPool>,
    target: Arc<Target>,
    writers: Vec<JoinHandle<()>>,
    /// Whether the writers were asked for: who only reads needs none.
    begun: bool,
    /// Requests under way, here and there.
    flying: usize,
    /// Writes among them.
    writing: usize,
    /// Requests that failed before anybody took them.
    refused: VecDeque<Completion>,
}

impl FileDisk {
    /// Takes over from `uring` what it is for; gives it back where it should stay as it is: what is no file, or only
    /// looked at.
    pub fn over(uring: Box<UringDisk>) -> Result<Self, Box<UringDisk>> {
        let Some((writer_pool, target)) = prepare(&uring) else { return Err(uring) };
        Ok(Self {
            refused: VecDeque::with_capacity(uring.info().depth),
            uring,
            writer_pool,
            target,
            writers: Vec::with_capacity(WRITERS),
            begun: false,
            flying: 0,
            writing: 0,
        })
    }

    /// What a person should know before relying on it.
    pub fn warnings(&self) -> &[String] {
        self.uring.warnings()
    }

    /// Readable when a completion is there.
    pub fn ready(&self) -> BorrowedFd<'_> {
        self.writer_pool.signal().as_fd()
    }

    /// Starts the writers, to run like the thread that this disk belongs to.
    pub(crate) fn begin(&mut self, options: LaneOptions) {
        if self.begun {
            return;
        }
        self.begun = true;
        let (tell, told) = std::sync::mpsc::sync_channel(WRITERS);
        for _ in 0..WRITERS {
            let (writer_pool, target, tell) =
                (Arc::clone(&self.writer_pool), Arc::clone(&self.target), tell.clone());
            let builder = Builder::new().name("holdfast-write".to_owned()).stack_size(STACK);
            let started = builder.spawn(move || {
                // What is forbidden to them is forbidden to the lane's thread, which tells.
                let _ = priority::apply(options, "");
                let _ = priority::settle(options, "");
                let _ = tell.send(());
                drop(tell);
                writer_pool.work(|op| target.run(op));
            });
            // With fewer it goes on, and without any as a device does.
            self.writers.extend(started);
        }
        drop(tell);
        while told.recv().is_ok() {}
    }

    /// Says which requests take turns, while none is in flight.
    pub(crate) fn limit_inflight(&mut self, limiter: InflightLimiter) {
        self.writer_pool.limit_inflight(limiter);
        self.uring.limit_inflight(limiter);
    }

    fn fetch(&mut self) -> Option<Completion> {
        if let Some(done) = self.refused.pop_front().or_else(|| self.uring.complete(Duration::ZERO)) {
            return Some(done);
        }
        let done = self.writer_pool.take()?;
        self.writing -= 1;
        Some(done)
    }
}

fn prepare(uring: &UringDisk) -> Option<(Arc<WriterPool>, Arc<Target>)> {
    let info = uring.info();
    let writable = rustix::fs::fcntl_getfl(uring.file()).is_ok_and(|flags| flags.contains(OFlags::RDWR));
    if info.medium != Medium::File || !writable {
        return None;
    }
    let file = uring.file().try_clone().ok()?;
    let writer_pool = WriterPool::new(info.depth).ok()?;
    uring.tell(writer_pool.signal().as_fd()).ok()?;
    let target = Target { file, info: info.clone(), syncs_apart: AtomicBool::new(false) };
    Some((Arc::new(writer_pool), Arc::new(target)))
}

impl Disk for FileDisk {
    fn info(&self) -> &DiskInfo {
        self.uring.info()
    }

    fn submit(&mut self, request: Request) -> Result<(), Request> {
        if self.flying >= self.info().depth {
            return Err(request);
        }
        if let Err(error) = self.info().check(&request.op) {
            let Request { tag, op } = request;
            self.refused.push_back(Completion { tag, buffer: op.into_buffer(), result: Err(error) });
        } else if matches!(request.op, Op::Write { .. }) {
            self.begin(LaneOptions::default());
            if self.writers.is_empty() {
                self.uring.submit(request)?;
            } else {
                self.writer_pool.give(request);
                self.writing += 1;
            }
        } else {
            self.uring.submit(request)?;
        }
        self.flying += 1;
        Ok(())
    }

    fn complete(&mut self, wait: Duration) -> Option<Completion> {
        let mut deadline = None;
        loop {
            // Before looking: what is done later rings anew.
            self.writer_pool.signal().hush();
            if let Some(done) = self.fetch() {
                self.flying -= 1;
                return Some(done);
            }
            if self.flying == 0 || wait.is_zero() {
                return None;
            }
            let now = Instant::now();
            let left = deadline.get_or_insert(now + wait).saturating_duration_since(now);
            if left.is_zero() {
                return None;
            }
            let time = Timespec::try_from(left).ok();
            let _ = poll(&mut [PollFd::new(&self.ready(), PollFlags::IN)], time.as_ref());
        }
    }
}

impl Drop for FileDisk {
    fn drop(&mut self) {
        self.writer_pool.end();
        let end = Instant::now() + FAREWELL;
        while self.writing > 0 && Instant::now() < end {
            self.complete(end.saturating_duration_since(Instant::now()));
        }
        if self.writing > 0 {
            // A write that the kernel does not give back may still reach the medium: nobody else should own that.
            self.uring.keep_claim();
            return;
        }
        for writer in self.writers.drain(..) {
            let _ = writer.join();
        }
    }
}

impl std::fmt::Debug for FileDisk {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("FileDisk")
            .field("uring", &self.uring)
            .field("writing", &self.writing)
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    // Promise 1: a commit waits for no slot that has no turn yet; promise 6: what waits at the end is written.
    #[test]
    fn those_without_a_turn_wait_and_others_pass_them() {
        let writer_pool = WriterPool::new(8).unwrap();
        writer_pool.limit_inflight(InflightLimiter::new(|tag| tag < 10, 2));
        for tag in [1, 2, 3, 4, 10, 5] {
            writer_pool.give(Request { tag, op: Op::Flush });
        }
        // So that nobody sleeps here.
        writer_pool.end();
        let next = || writer_pool.next().map(|request| request.tag);
        assert_eq!([next(), next(), next(), next()], [Some(1), Some(2), Some(10), None]);
        let end = |tag| writer_pool.done(Completion { tag, buffer: None, result: Ok(()) });
        end(10);
        assert_eq!(next(), None, "that was nobody's turn");
        end(2);
        assert_eq!([next(), next()], [Some(3), None]);
        end(3);
        end(1);
        assert_eq!([next(), next(), next()], [Some(4), Some(5), None]);
        let done: Vec<u64> = std::iter::from_fn(|| writer_pool.take()).map(|done| done.tag).collect();
        assert_eq!(done, [10, 2, 3, 1]);
    }
}
