//! Timer of replies: a thread that sleeps until a reply is due and sends it. Holds the bytes of the drive.

use crate::schedule::{Answer, RequestSchedule};
use fuser::{Errno, ReplyData, ReplyEmpty, ReplyWrite};
use holdfast_base::{ByteSize, Clock, SystemClock, Timestamp};
use holdfast_media::drive::{AccessKind, DriveAccess};
use holdfast_media::{Buffer, BufferPool, Fault, Lock, PoolError, run_first};
use std::num::NonZeroU64;
use std::ops::Range;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError, RwLock};
use std::time::Duration;

/// Above the recorder's I/O threads: a drive is hardware, and those wait for it.
const PRIORITY: i32 = 45;

/// So long before an answer is due the thread wakes, if it may run first: a kernel that is busy with something long wakes
/// even the most urgent thread late.
const EARLY: Duration = Duration::from_millis(4);

/// How often it looks then whether something came that is due before.
const GLANCE: Duration = Duration::from_micros(50);

/// How a request is answered.
#[derive(Debug)]
pub(crate) enum Token {
    Read(ReplyData),
    Write(ReplyWrite),
    Flush(ReplyEmpty),
}

/// The schedule, the bytes, and the clock that both threads look at.
#[derive(Debug)]
pub(crate) struct ReplyTimer {
    schedule: Mutex<RequestSchedule<Token>>,
    due_earlier: Condvar,
    bytes: RwLock<Buffer>,
    length: u64,
    clock: SystemClock,
    start: Timestamp,
    realtime: bool,
}

/// A panic elsewhere leaves numbers that are still of use.
fn whatever<T>(lock: Result<T, PoisonError<T>>) -> T {
    lock.unwrap_or_else(PoisonError::into_inner)
}

impl ReplyTimer {
    /// With as many bytes as the schedule's drive; `warn` is told what was wanted and could not be had.
    pub(crate) fn new(
        schedule: RequestSchedule<Token>,
        bytes: ByteSize,
        realtime: bool,
        warn: impl Fn(&str),
    ) -> Result<Self, PoolError> {
        // Locked pages are never late.
        let lock = if realtime { Lock::Wanted } else { Lock::No };
        let mut pool = BufferPool::new(1, usize::try_from(bytes.0).unwrap_or(usize::MAX), lock)?;
        if let Some(warning) = pool.warning() {
            warn(warning);
        }
        let none = PoolError::Size { count: 1, bytes: 0 };
        let buffer = pool.take().ok_or(none)?;
        let clock = SystemClock::new();
        let start = clock.now();
        Ok(Self {
            schedule: Mutex::new(schedule),
            due_earlier: Condvar::new(),
            bytes: RwLock::new(buffer),
            length: bytes.0,
            clock,
            start,
            realtime,
        })
    }

    /// Time since the drive was switched on.
    fn now(&self) -> Timestamp {
        Timestamp(self.clock.now().0 - self.start.0)
    }

    /// Bytes of the drive.
    pub(crate) fn length(&self) -> u64 {
        self.length
    }

    fn schedule(&self) -> MutexGuard<'_, RequestSchedule<Token>> {
        whatever(self.schedule.lock())
    }

    /// Calls `what` with the schedule; wakes the replying thread if the next reply became due earlier.
    pub(crate) fn with_schedule<R>(
        &self,
        what: impl FnOnce(&mut RequestSchedule<Token>, Timestamp) -> R,
    ) -> R {
        let mut schedule = self.schedule();
        let before = schedule.next();
        let result = what(&mut schedule, self.now());
        let earlier = match (before, schedule.next()) {
            (Some(before), Some(next)) => next < before,
            (None, Some(_)) => true,
            (_, None) => false,
        };
        if earlier {
            self.due_earlier.notify_one();
        }
        result
    }

    /// The part of a range that lies on the drive.
    fn inside(&self, offset: u64, len: u64) -> Range<usize> {
        let end = offset.saturating_add(len).min(self.length) as usize;
        end.min(offset as usize)..end
    }

    /// A read arrived.
    pub(crate) fn read(&self, offset: u64, len: u64, reply: ReplyData) {
        let len = self.inside(offset, len).len() as u64;
        let access = DriveAccess { kind: AccessKind::Read, offset, len };
        self.with_schedule(|schedule, now| schedule.arrive(now, access, Token::Read(reply)));
    }

    /// A write arrived. What is beyond the end finds no space.
    pub(crate) fn write(&self, offset: u64, data: &[u8], reply: ReplyWrite) {
        let range = self.inside(offset, data.len() as u64);
        if range.is_empty() && !data.is_empty() {
            return reply.error(Errno::ENOSPC);
        }
        let access = DriveAccess { kind: AccessKind::Write, offset, len: range.len() as u64 };
        let carried_out =
            self.with_schedule(|schedule, now| schedule.arrive(now, access, Token::Write(reply)));
        if carried_out {
            let count = range.len();
            whatever(self.bytes.write())[range].copy_from_slice(&data[..count]);
        }
    }

    /// A flush arrived.
    pub(crate) fn flush(&self, reply: ReplyEmpty) {
        let access = DriveAccess { kind: AccessKind::Flush, offset: 0, len: 0 };
        self.with_schedule(|schedule, now| schedule.arrive(now, access, Token::Flush(reply)));
    }

    /// Lets the calling thread run before all others, if that was asked for.
    pub(crate) fn hurry(&self) -> std::io::Result<()> {
        if !self.realtime {
            return Ok(());
        }
        rustix::thread::set_current_timer_slack(NonZeroU64::new(1))?;
        run_first(PRIORITY)
    }

    /// Sends replies when they are due, for ever.
    pub(crate) fn serve(&self) -> ! {
        let mut schedule = self.schedule();
        loop {
            let now = self.now();
            if let Some(answer) = schedule.take(now) {
                drop(schedule);
                let due = answer.due;
                self.send(answer);
                schedule = self.schedule();
                schedule.answered(self.now(), due);
                continue;
            }
            let early = if self.realtime { EARLY } else { Duration::ZERO };
            schedule = match schedule.next() {
                Some(due) if due.since(now) > early => {
                    whatever(self.due_earlier.wait_timeout(schedule, due.since(now).saturating_sub(early))).0
                }
                // Something earlier may arrive meanwhile.
                Some(due) => {
                    drop(schedule);
                    let until = due.min(now + GLANCE);
                    while self.now() < until {
                        std::hint::spin_loop();
                    }
                    self.schedule()
                }
                None => whatever(self.due_earlier.wait(schedule)),
            };
        }
    }

    fn send(&self, answer: Answer<Token>) {
        let DriveAccess { offset, len, .. } = answer.access;
        let errno = match answer.fault {
            None => None,
            Some(Fault::Gone) => Some(Errno::ENODEV),
            Some(_) => Some(Errno::EIO),
        };
        match (answer.token, errno) {
            (Token::Read(reply), None) => reply.data(&whatever(self.bytes.read())[self.inside(offset, len)]),
            (Token::Write(reply), None) => reply.written(len as u32),
            (Token::Flush(reply), None) => reply.ok(),
            (Token::Read(reply), Some(errno)) => reply.error(errno),
            (Token::Write(reply), Some(errno)) => reply.error(errno),
            (Token::Flush(reply), Some(errno)) => reply.error(errno),
        }
    }
}
