//! Pool of threads whose results come in the order of their jobs, with a bound on the jobs in memory.

use std::collections::VecDeque;
use std::io;
use std::num::NonZeroUsize;
use std::sync::mpsc::{Receiver, Sender, SyncSender, channel, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;

type Jobs<J, R> = Receiver<(J, SyncSender<R>)>;

/// Pool of threads; at most twice as many jobs as threads are in memory.
pub(crate) struct OrderedPool<J, R> {
    jobs: Option<Sender<(J, SyncSender<R>)>>,
    threads: Vec<JoinHandle<()>>,
    pending: VecDeque<Receiver<R>>,
}

impl<J: Send + 'static, R: Send + 'static> OrderedPool<J, R> {
    /// Starts the threads. Each has its own worker, which `worker` makes.
    pub(crate) fn start<W: FnMut(J) -> R + Send + 'static>(
        threads: NonZeroUsize,
        name: &str,
        worker: impl Fn() -> W,
    ) -> io::Result<Self> {
        let (jobs, queue) = channel();
        let queue: Arc<Mutex<Jobs<J, R>>> = Arc::new(Mutex::new(queue));
        let start = |_| {
            let (queue, mut work) = (Arc::clone(&queue), worker());
            std::thread::Builder::new().name(name.to_owned()).spawn(move || {
                loop {
                    let job = queue.lock().unwrap_or_else(PoisonError::into_inner).recv();
                    let Ok((job, reply)) = job else { return };
                    // The receiver is gone if the caller has given up.
                    let _ = reply.send(work(job));
                }
            })
        };
        let threads = (0..threads.get()).map(start).collect::<io::Result<_>>()?;
        Ok(Self { jobs: Some(jobs), threads, pending: VecDeque::new() })
    }

    /// Gives a job; returns the oldest result if enough jobs are pending.
    pub(crate) fn give(&mut self, job: J) -> io::Result<Option<R>> {
        let (reply, result) = sync_channel(1);
        let gone = || io::Error::other("the threads of the pool have ended");
        self.jobs.as_ref().ok_or_else(gone)?.send((job, reply)).map_err(|_| gone())?;
        self.pending.push_back(result);
        if self.pending.len() > 2 * self.threads.len() { self.next() } else { Ok(None) }
    }

    /// Waits for the oldest pending result; `None` if no job is pending.
    pub(crate) fn next(&mut self) -> io::Result<Option<R>> {
        let Some(oldest) = self.pending.pop_front() else { return Ok(None) };
        oldest.recv().map(Some).map_err(|_| io::Error::other("a thread of the pool has broken off"))
    }
}

impl<J, R> Drop for OrderedPool<J, R> {
    fn drop(&mut self) {
        self.jobs = None;
        self.pending.clear();
        for thread in self.threads.drain(..) {
            let _ = thread.join();
        }
    }
}
