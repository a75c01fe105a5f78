//! Control thread of a recorder: serves the socket, notices sources that end, shows progress, runs jobs, and asks the capture
//! thread for what only that thread knows. The capture thread never waits for it.
//!
//! One loop, all sockets non-blocking. What a client asks goes to the capture thread only while there is a place among
//! the [`ASKS`] under way; a client whose request finds none is not read from until there is.

mod clients;
mod figures;
mod jobs;
mod progress;
mod rate_window;
mod sources;
mod tickets;

pub use figures::{Facts, SourceFacts, Watched};
pub use jobs::THREAD as JOB_THREAD;
pub use sources::Watch;

use crate::capture::{Answer, Ask};
use crate::plan::MOST_TICKETS;
use clients::Clients;
use figures::Figures;
use holdfast_ingest::StopFlag;
use holdfast_ingest::Waker;
use holdfast_media::BufferPool;
use holdfast_protocol::server::Listener;
use jobs::{JobEnd, Jobs};
use progress::Progress;
use rustix::event::{EventfdFlags, PollFd, PollFlags, Timespec, eventfd, poll};
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, TryRecvError, sync_channel};
use std::time::{Duration, Instant};
use tickets::Tickets;

/// Asks under way at once: reads, which wait for their turn, as many as there may be tickets, and a few others.
pub const ASKS: usize = MOST_TICKETS + 16;

/// Interval between two rounds of the control thread when nothing happens.
const TICK: Duration = Duration::from_millis(250);

/// Id of requests that a job sends; ids of clients' requests count from 1.
const JOB: u64 = 0;

/// Wakes the control thread.
#[derive(Clone, Debug)]
pub struct ControlWaker(Arc<OwnedFd>);

impl ControlWaker {
    /// Creates a waker without a pending wake-up.
    pub fn new() -> std::io::Result<Self> {
        Ok(Self(Arc::new(eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?)))
    }

    /// Wakes the control thread, or makes its next sleep return at once.
    pub fn wake(&self) {
        // It fails only if the event counter is full: a wake-up is pending then.
        let _ = rustix::io::write(&*self.0, &1u64.to_ne_bytes());
    }

    fn clear(&self) {
        let _ = rustix::io::read(&*self.0, &mut [0u8; 8]);
    }
}

/// Server end of the control channel, owned by the capture thread: receives requests and sends replies.
#[derive(Debug)]
pub struct ControlServer {
    asks: Receiver<(u64, Ask)>,
    answers: SyncSender<(Option<u64>, Answer)>,
    waker: ControlWaker,
    answered: bool,
}

impl ControlServer {
    /// The next ask, if there is one.
    pub fn ask(&mut self) -> Option<(u64, Ask)> {
        self.asks.try_recv().ok()
    }

    /// Sends a reply. The channel has room for every request under way; without a control thread the reply is dropped.
    pub fn answer(&mut self, id: Option<u64>, answer: Answer) {
        self.answered |= self.answers.try_send((id, answer)).is_ok();
    }

    /// Wakes the control thread if replies were sent since the last call.
    pub fn deliver(&mut self) {
        if std::mem::take(&mut self.answered) {
            self.waker.wake();
        }
    }
}

/// Client end of the control channel, owned by the control thread: sends requests to the capture thread.
#[derive(Debug)]
struct CaptureClient {
    asks: SyncSender<(u64, Ask)>,
    answers: Receiver<(Option<u64>, Answer)>,
    capture: Waker,
    under_way: usize,
    next: u64,
}

impl CaptureClient {
    fn has_room(&self) -> bool {
        self.under_way < ASKS
    }

    /// Asks; the id comes back with the answer. Only when there is room.
    fn ask(&mut self, ask: Ask) -> u64 {
        self.next += 1;
        let id = self.next;
        if self.asks.try_send((id, ask)).is_ok() {
            self.under_way += 1;
        }
        self.capture.wake();
        id
    }
}

/// Creates both ends of the channel between the capture thread, which `capture` wakes, and the control thread, which `waker` wakes.
pub fn channel(capture: Waker, waker: ControlWaker) -> (ControlServer, Channel) {
    // One more each way for a job.
    let (asks, asked) = sync_channel(ASKS + 1);
    let (answers, answered) = sync_channel(ASKS + 1);
    let server = ControlServer { asks: asked, answers, waker: waker.clone(), answered: false };
    let client = CaptureClient { asks, answers: answered, capture, under_way: 0, next: JOB };
    (server, Channel { client, waker })
}

/// Client end of a control channel, before the control thread exists.
#[derive(Debug)]
pub struct Channel {
    client: CaptureClient,
    waker: ControlWaker,
}

/// Everything that the control thread is started with.
#[derive(Debug)]
pub struct Setup {
    /// The socket.
    pub listener: Listener,
    /// The area that reads are answered in.
    pub area: BufferPool,
    /// What never changes.
    pub facts: Facts,
    /// The sources' threads.
    pub sources: Watch,
    /// Raised when the recording is to end.
    pub stop: StopFlag,
    /// Set by the capture thread when all is written.
    pub over: Arc<AtomicBool>,
    /// Whether a person wants to see progress.
    pub progress: bool,
    /// Whether nothing but errors is said.
    pub quiet: bool,
}

/// Result of the control thread.
#[derive(Debug, Default)]
pub struct Report {
    /// Sources that failed, and how.
    pub failures: Vec<String>,
}

/// The control thread's state.
pub struct ControlThread {
    client: CaptureClient,
    waker: ControlWaker,
    listener: Listener,
    /// Whether somebody who comes is a reason to wake.
    listens: bool,
    clients: Clients,
    tickets: Tickets,
    figures: Figures,
    jobs: Jobs,
    sources: Watch,
    stop: StopFlag,
    stopping: bool,
    over: Arc<AtomicBool>,
    progress: Progress,
}

impl ControlThread {
    /// Creates the state; [`ControlThread::run`] starts to serve.
    pub fn new(setup: Setup, channel: Channel) -> Self {
        Self {
            jobs: Jobs::new(
                channel.client.asks.clone(),
                channel.client.capture.clone(),
                channel.waker.clone(),
            ),
            client: channel.client,
            waker: channel.waker,
            listener: setup.listener,
            listens: true,
            clients: Clients::default(),
            tickets: Tickets::new(setup.area),
            figures: Figures::new(setup.facts),
            sources: setup.sources,
            stop: setup.stop,
            stopping: false,
            over: setup.over,
            progress: Progress::new(setup.progress, setup.quiet),
        }
    }

    /// Serves until the capture thread says that it is over.
    pub fn run(mut self) -> Report {
        while !self.over.load(Ordering::Acquire) {
            self.wait();
            self.round(Instant::now());
        }
        self.round(Instant::now());
        self.sources.gather(true, &mut self.progress);
        self.progress.tell_of_refused(&self.figures);
        self.progress.tell_of_left_out(&self.figures);
        self.progress.clear();
        Report { failures: self.sources.into_failures() }
    }

    fn round(&mut self, now: Instant) {
        self.notice_stop();
        self.take_answers(now);
        self.accept(now);
        self.serve(now);
        self.sources.gather(false, &mut self.progress);
        if self.progress.is_due(now) {
            self.figures.want();
        }
        self.figures.ask(&mut self.client, now);
    }

    /// Sleeps until a socket or the capture thread has something.
    fn wait(&mut self) {
        let room = self.client.has_room();
        let mut fds =
            vec![PollFd::new(&*self.waker.0, PollFlags::IN), interest(&self.listener, self.listens, false)];
        let fixed = fds.len();
        fds.extend(self.clients.interests(room));
        let tick = self.figures.due_in(Instant::now()).map_or(TICK, |due| due.min(TICK));
        // Rounded up: a poll that ends too early finds nothing due.
        let tick = Timespec { tv_sec: 0, tv_nsec: (tick.subsec_nanos() + 1_000).min(999_999_999).into() };
        let _ = poll(&mut fds, Some(&tick));
        let gone: Vec<usize> = fds[fixed..]
            .iter()
            .enumerate()
            .filter(|(_, fd)| fd.revents().intersects(PollFlags::HUP | PollFlags::ERR | PollFlags::NVAL))
            .map(|(at, _)| at)
            .collect();
        drop(fds);
        self.clients.hang_up(&gone, &mut self.tickets);
        self.waker.clear();
    }

    fn notice_stop(&mut self) {
        if self.stop.is_stopped() && !std::mem::replace(&mut self.stopping, true) {
            self.progress.say("stopping: writing all received data (a second signal ends at once)");
        }
    }

    fn take_answers(&mut self, now: Instant) {
        loop {
            match self.client.answers.try_recv() {
                Ok((None, Answer::JobStep(reply))) => self.jobs.reply(reply),
                Ok((Some(id), answer)) => {
                    self.client.under_way = self.client.under_way.saturating_sub(1);
                    match answer {
                        Answer::Figures(stats) => self.take_figures(stats, now),
                        answer => self.clients.answer(id, answer, &mut self.tickets, &mut self.figures, now),
                    }
                }
                Ok((None, Answer::Ending)) => self.jobs.abort(),
                Ok((None, _)) => {}
                Err(TryRecvError::Empty | TryRecvError::Disconnected) => break,
            }
        }
        while let Some(JobEnd { client, request, reply }) = self.jobs.ended() {
            self.figures.forget(false);
            self.clients.reply(client, request, &reply, &mut self.tickets);
        }
    }

    fn take_figures(&mut self, stats: Box<crate::capture::Stats>, now: Instant) {
        self.figures.take(stats, now);
        self.clients.answer_waiting(&self.figures, &self.sources, &mut self.tickets);
        if let Some(stats) = self.figures.stats() {
            self.progress.show(stats, &self.figures, now);
        }
    }

    fn accept(&mut self, now: Instant) {
        self.listens = self.clients.accept(&self.listener, &mut self.tickets, now);
    }

    fn serve(&mut self, now: Instant) {
        let Self { client, clients, tickets, figures, jobs, sources, .. } = self;
        clients.serve(&mut clients::Help { capture: client, tickets, figures, jobs, sources, now });
    }
}

impl std::fmt::Debug for ControlThread {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ControlThread").field("listener", &self.listener).finish_non_exhaustive()
    }
}

/// The socket's descriptor of something polled.
fn interest(fd: &impl std::os::fd::AsFd, read: bool, write: bool) -> PollFd<'_> {
    let mut flags = PollFlags::empty();
    flags.set(PollFlags::IN, read);
    flags.set(PollFlags::OUT, write);
    PollFd::from_borrowed_fd(fd.as_fd(), flags)
}
