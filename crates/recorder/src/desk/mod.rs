//! The desk: the control thread. It serves the socket, knows sources that end, progress and jobs, and asks the capture
//! thread what only that one knows. The capture thread never waits for it.
//!
//! One loop, all sockets non-blocking. What a client asks goes to the capture thread only while there is a place among
//! the [`ASKS`] under way; a client whose request finds none is not read from until there is.

mod callers;
mod figures;
mod jobs;
mod lately;
mod progress;
mod sources;
mod tickets;

pub use figures::{Facts, SourceFacts, Watched};
pub use jobs::THREAD as JOB_THREAD;
pub use sources::Watch;

use crate::capture::{Answer, Ask};
use crate::plan::MOST_TICKETS;
use callers::Callers;
use figures::Figures;
use holdfast_ingest::StopFlag;
use holdfast_ingest::Waker;
use holdfast_media::BufferPool;
use holdfast_protocol::server::Listener;
use jobs::{Ended, Jobs};
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

/// How often the desk looks around when nothing happens.
const TICK: Duration = Duration::from_millis(250);

/// The id of what a job asks; callers' are counted from 1.
const JOB: u64 = 0;

/// Wakes the desk.
#[derive(Clone, Debug)]
pub struct Bell(Arc<OwnedFd>);

impl Bell {
    /// A bell that nobody has rung.
    pub fn new() -> std::io::Result<Self> {
        Ok(Self(Arc::new(eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?)))
    }

    /// Wakes the desk, or keeps it from falling asleep once.
    pub fn ring(&self) {
        // It fails only where the counter is full: then it is ringing already.
        let _ = rustix::io::write(&*self.0, &1u64.to_ne_bytes());
    }

    fn quiet(&self) {
        let _ = rustix::io::read(&*self.0, &mut [0u8; 8]);
    }
}

/// The capture thread's end: what it is asked, and where its answers go.
#[derive(Debug)]
pub struct Counter {
    asks: Receiver<(u64, Ask)>,
    answers: SyncSender<(Option<u64>, Answer)>,
    bell: Bell,
    answered: bool,
}

impl Counter {
    /// The next ask, if there is one.
    pub fn ask(&mut self) -> Option<(u64, Ask)> {
        self.asks.try_recv().ok()
    }

    /// Answers. There is room for every ask that can be under way; without a desk, nobody wants to know.
    pub fn answer(&mut self, id: Option<u64>, answer: Answer) {
        self.answered |= self.answers.try_send((id, answer)).is_ok();
    }

    /// Wakes the desk if there is something for it.
    pub fn deliver(&mut self) {
        if std::mem::take(&mut self.answered) {
            self.bell.ring();
        }
    }
}

/// The desk's end.
#[derive(Debug)]
struct Window {
    asks: SyncSender<(u64, Ask)>,
    answers: Receiver<(Option<u64>, Answer)>,
    capture: Waker,
    under_way: usize,
    next: u64,
}

impl Window {
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

/// Both ends of the passage between the capture thread, which `capture` wakes, and the desk, which `bell` wakes.
pub fn passage(capture: Waker, bell: Bell) -> (Counter, Passage) {
    // One more each way for a job.
    let (asks, asked) = sync_channel(ASKS + 1);
    let (answers, answered) = sync_channel(ASKS + 1);
    let counter = Counter { asks: asked, answers, bell: bell.clone(), answered: false };
    let window = Window { asks, answers: answered, capture, under_way: 0, next: JOB };
    (counter, Passage { window, bell })
}

/// The desk's end of a passage, before there is a desk.
#[derive(Debug)]
pub struct Passage {
    window: Window,
    bell: Bell,
}

/// What the desk is given.
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

/// What the desk knows at the end.
#[derive(Debug, Default)]
pub struct Report {
    /// Sources that failed, and how.
    pub failures: Vec<String>,
}

/// The control thread's state.
pub struct Desk {
    window: Window,
    bell: Bell,
    listener: Listener,
    /// Whether somebody who comes is a reason to wake.
    listens: bool,
    callers: Callers,
    tickets: Tickets,
    figures: Figures,
    jobs: Jobs,
    sources: Watch,
    stop: StopFlag,
    stopping: bool,
    over: Arc<AtomicBool>,
    progress: Progress,
}

impl Desk {
    /// A desk that is not open yet.
    pub fn new(setup: Setup, passage: Passage) -> Self {
        Self {
            jobs: Jobs::new(
                passage.window.asks.clone(),
                passage.window.capture.clone(),
                passage.bell.clone(),
            ),
            window: passage.window,
            bell: passage.bell,
            listener: setup.listener,
            listens: true,
            callers: Callers::default(),
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
        self.figures.ask(&mut self.window, now);
    }

    /// Sleeps until a socket or the capture thread has something.
    fn wait(&mut self) {
        let room = self.window.has_room();
        let mut fds =
            vec![PollFd::new(&*self.bell.0, PollFlags::IN), interest(&self.listener, self.listens, false)];
        let fixed = fds.len();
        fds.extend(self.callers.interests(room));
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
        self.callers.hang_up(&gone, &mut self.tickets);
        self.bell.quiet();
    }

    fn notice_stop(&mut self) {
        if self.stop.is_stopped() && !std::mem::replace(&mut self.stopping, true) {
            self.progress.say("stopping: what was taken is being written (a second signal ends at once)");
        }
    }

    fn take_answers(&mut self, now: Instant) {
        loop {
            match self.window.answers.try_recv() {
                Ok((None, Answer::JobStep(reply))) => self.jobs.reply(reply),
                Ok((Some(id), answer)) => {
                    self.window.under_way = self.window.under_way.saturating_sub(1);
                    match answer {
                        Answer::Figures(sheet) => self.take_figures(sheet, now),
                        answer => self.callers.answer(id, answer, &mut self.tickets, &mut self.figures, now),
                    }
                }
                Ok((None, _)) => {}
                Err(TryRecvError::Empty | TryRecvError::Disconnected) => break,
            }
        }
        while let Some(Ended { caller, request, reply }) = self.jobs.ended() {
            self.figures.forget(false);
            self.callers.reply(caller, request, &reply, &mut self.tickets);
        }
    }

    fn take_figures(&mut self, sheet: Box<crate::capture::Sheet>, now: Instant) {
        self.figures.take(sheet, now);
        self.callers.answer_waiting(&self.figures, &self.sources, &mut self.tickets);
        if let Some(sheet) = self.figures.sheet() {
            self.progress.show(sheet, &self.figures, now);
        }
    }

    fn accept(&mut self, now: Instant) {
        self.listens = self.callers.accept(&self.listener, &mut self.tickets, now);
    }

    fn serve(&mut self, now: Instant) {
        let Self { window, callers, tickets, figures, jobs, sources, .. } = self;
        callers.serve(&mut callers::Help { window, tickets, figures, jobs, sources, now });
    }
}

impl std::fmt::Debug for Desk {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Desk").field("listener", &self.listener).finish_non_exhaustive()
    }
}

/// The socket's descriptor of something polled.
fn interest(fd: &impl std::os::fd::AsFd, read: bool, write: bool) -> PollFd<'_> {
    let mut flags = PollFlags::empty();
    flags.set(PollFlags::IN, read);
    flags.set(PollFlags::OUT, write);
    PollFd::from_borrowed_fd(fd.as_fd(), flags)
}
