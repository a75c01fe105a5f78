//! Schedule of requests: a state machine over the drive model that decides when and how each request is answered. It
//! neither sleeps nor holds bytes, and has no clock.
//!
//! The account is kept in modelled time. A machine wakes up a little late for every answer, and whoever waited for it
//! asks again so much later. If that counted as their pause, every late answer would cost the drive a revolution. So a
//! request that comes after an answer arrives, for the model, as long after the modelled end of that as it really came
//! after the answer; and what comes while an overdue answer has not gone out yet was in the queue in time.

use crate::command::Command;
use crate::lateness::Lateness;
use holdfast_base::Timestamp;
use holdfast_media::Fault;
use holdfast_media::drive::{AccessKind, Drive, DriveAccess};
use std::collections::BTreeMap;
use std::time::Duration;

/// How requests are treated.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Mode {
    Timed,
    Fast,
    Eio,
    /// Since when.
    Hang(Timestamp),
    Gone,
}

/// A request that waits for its time; `token` is how it is answered.
#[derive(Debug)]
struct Waiting<T> {
    access: DriveAccess,
    token: T,
    fault: Option<Fault>,
    /// Whether the model says when; others go out as soon as they can.
    timed: bool,
    /// What it takes of the drive's time.
    takes: Takes,
}

/// What of the drive's time an access takes: from the end of the one before it to its own.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Takes {
    /// The drive goes over the bytes.
    streaming: Duration,
    /// It gets there, waits for the angle, or tries again. What is neither was a pause of whoever asks.
    getting_there: Duration,
}

impl Takes {
    /// `free` is when the one before was done, `stream` how long the bytes take by themselves.
    fn of(free: Timestamp, arrived: Timestamp, done: Timestamp, stream: Duration) -> Self {
        let all = done.since(free);
        let streaming = stream.min(all);
        let rest = all.saturating_sub(streaming);
        Self { streaming, getting_there: rest.saturating_sub(arrived.since(free)) }
    }
}

/// A request whose time has come.
#[derive(Debug, PartialEq)]
pub(crate) struct Answer<T> {
    /// What was asked.
    pub(crate) access: DriveAccess,
    /// How it is answered.
    pub(crate) token: T,
    /// What went wrong.
    pub(crate) fault: Option<Fault>,
    /// When the model wanted it out, if it did.
    pub(crate) due: Option<Timestamp>,
}

/// What was answered since the last reset: what waits has taken none of the drive's time yet.
#[derive(Clone, Copy, Debug, Default)]
struct Counts {
    reads: u64,
    read_bytes: u64,
    writes: u64,
    written_bytes: u64,
    flushes: u64,
    faults: u64,
    reading: Takes,
    writing: Takes,
}

impl Counts {
    fn add(&mut self, access: &DriveAccess, failed: bool, takes: Takes) {
        let sum = |sum: &mut Takes| {
            sum.streaming += takes.streaming;
            sum.getting_there += takes.getting_there;
        };
        match access.kind {
            AccessKind::Read => {
                self.reads += 1;
                self.read_bytes += access.len;
                sum(&mut self.reading);
            }
            AccessKind::Write => {
                self.writes += 1;
                self.written_bytes += access.len;
                sum(&mut self.writing);
            }
            AccessKind::Flush => self.flushes += 1,
        }
        self.faults += u64::from(failed);
    }
}

/// The requests of a drive. How many there are at once is bounded by the kernel.
#[derive(Debug)]
pub(crate) struct RequestSchedule<T> {
    drive: Drive,
    mode: Mode,
    /// By the time at which they are due, and in the order of arrival.
    waiting: BTreeMap<(Timestamp, u64), Waiting<T>>,
    /// What came while the drive hung.
    held: Vec<(DriveAccess, T)>,
    arrivals: u64,
    /// When, for the model, the last request arrived.
    arrived: Timestamp,
    /// How late the last answer was.
    late: Duration,
    lateness: Lateness,
    counts: Counts,
}

impl<T> RequestSchedule<T> {
    /// Without requests; answers that are later than `limit` count as late.
    pub(crate) fn new(drive: Drive, limit: Duration) -> Self {
        Self {
            drive,
            mode: Mode::Timed,
            waiting: BTreeMap::new(),
            held: Vec::new(),
            arrivals: 0,
            arrived: Timestamp::MIN,
            late: Duration::ZERO,
            lateness: Lateness::new(limit),
            counts: Counts::default(),
        }
    }

    /// A request arrived. Whether it is to be carried out at all: what fails for being told to changes no bytes.
    pub(crate) fn arrive(&mut self, now: Timestamp, access: DriveAccess, token: T) -> bool {
        let mut takes = Takes::default();
        let (due, fault, timed) = match self.mode {
            Mode::Timed => {
                self.arrived = self.modelled(now);
                let free = self.drive.free();
                let stream = self.drive.stream_time(access.kind, access.offset, access.len);
                let served = self.drive.serve(access, self.arrived);
                takes = Takes::of(free, self.arrived, served.done, stream);
                (served.done, served.fault, true)
            }
            Mode::Fast => (now, None, false),
            Mode::Eio => (now, Some(Fault::Io), false),
            Mode::Gone => (now, Some(Fault::Gone), false),
            Mode::Hang(_) => {
                self.held.push((access, token));
                return true;
            }
        };
        self.arrivals += 1;
        self.waiting.insert((due, self.arrivals), Waiting { access, token, fault, timed, takes });
        fault.is_none()
    }

    /// When, for the model, a request arrives that comes now.
    fn modelled(&self, now: Timestamp) -> Timestamp {
        let overdue = self.waiting.first_key_value().map(|((due, _), _)| now.since(*due));
        (now - self.late.max(overdue.unwrap_or_default())).max(self.arrived)
    }

    /// When the next answer is due; `None` when nothing waits, or nothing is to be answered.
    pub(crate) fn next(&self) -> Option<Timestamp> {
        let first = self.waiting.first_key_value().map(|((due, _), _)| *due);
        first.filter(|_| !matches!(self.mode, Mode::Hang(_)))
    }

    /// The next answer, if its time has come.
    pub(crate) fn take(&mut self, now: Timestamp) -> Option<Answer<T>> {
        self.next().filter(|due| *due <= now)?;
        let ((due, _), waiting) = self.waiting.pop_first()?;
        let Waiting { access, token, fault, timed, takes } = waiting;
        self.counts.add(&access, fault.is_some(), takes);
        Some(Answer { access, token, fault, due: timed.then_some(due) })
    }

    /// An answer that was due then has gone out.
    pub(crate) fn answered(&mut self, now: Timestamp, due: Option<Timestamp>) {
        if let Some(due) = due {
            self.late = now.since(due);
            self.lateness.add(self.late);
        }
    }

    /// Carries out an order.
    pub(crate) fn command(&mut self, now: Timestamp, command: Command) {
        let mode = match command {
            Command::Ok => Mode::Timed,
            Command::Fast => Mode::Fast,
            Command::Eio => Mode::Eio,
            Command::Vanish => Mode::Gone,
            Command::Hang => match self.mode {
                Mode::Hang(since) => Mode::Hang(since),
                _ => Mode::Hang(now),
            },
            Command::Stall(length) => return self.pause(self.modelled(now), length),
            Command::Reset => {
                self.lateness.reset();
                self.counts = Counts::default();
                return;
            }
        };
        if let Mode::Hang(since) = self.mode
            && !matches!(mode, Mode::Hang(_))
        {
            self.pause(since, now.since(since));
        }
        self.mode = mode;
        if mode == Mode::Gone {
            for ((_, number), waiting) in std::mem::take(&mut self.waiting) {
                let gone = Waiting { fault: Some(Fault::Gone), timed: false, ..waiting };
                self.waiting.insert((now, number), gone);
            }
        }
        if !matches!(mode, Mode::Hang(_)) {
            for (access, token) in std::mem::take(&mut self.held) {
                self.arrive(now, access, token);
            }
        }
    }

    /// All that is under way at `from` is done so much later.
    fn pause(&mut self, from: Timestamp, length: Duration) {
        self.drive.stall(from, length);
        for ((due, number), waiting) in std::mem::take(&mut self.waiting) {
            let due = if waiting.timed { due.max(from) + length } else { due };
            self.waiting.insert((due, number), waiting);
        }
    }

    /// Whether the machine was too slow for the model.
    pub(crate) fn too_slow(&self) -> bool {
        self.lateness.too_slow()
    }

    /// Counters and lateness, a line each.
    pub(crate) fn report(&self) -> String {
        let mode = match self.mode {
            Mode::Timed => "ok",
            Mode::Fast => "fast",
            Mode::Eio => "eio",
            Mode::Hang(_) => "hang",
            Mode::Gone => "vanish",
        };
        let Counts { reads, read_bytes, writes, written_bytes, flushes, faults, reading, writing } =
            self.counts;
        let [read_us, to_read_us, write_us, to_write_us] =
            [reading.streaming, reading.getting_there, writing.streaming, writing.getting_there]
                .map(|time| time.as_micros());
        format!(
            "model {}\nbytes {}\nmode {mode}\nreads {reads}\nread_bytes {read_bytes}\nwrites {writes}\n\
             written_bytes {written_bytes}\nflushes {flushes}\nread_us {read_us}\nto_read_us {to_read_us}\n\
             write_us {write_us}\nto_write_us {to_write_us}\nfaults {faults}\nunder_way {}\n{}",
            self.drive.model().name,
            self.drive.model().bytes,
            self.waiting.len() + self.held.len(),
            self.lateness.lines(),
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use holdfast_media::DriveModel;

    const MIB: u64 = 1 << 20;

    fn schedule() -> RequestSchedule<u32> {
        RequestSchedule::new(Drive::new(DriveModel::paper(), 1), Duration::from_millis(1))
    }

    fn write(n: u64) -> DriveAccess {
        DriveAccess { kind: AccessKind::Write, offset: n * MIB, len: MIB }
    }

    fn ms(millis: u64) -> Duration {
        Duration::from_millis(millis)
    }

    fn at(millis: i64) -> Timestamp {
        Timestamp(millis * 1_000_000)
    }

    /// Answers what is first, so much later than it was due; when that was.
    fn answer(schedule: &mut RequestSchedule<u32>, late: Duration) -> Timestamp {
        let now = schedule.next().unwrap() + late;
        let answer = schedule.take(now).unwrap();
        schedule.answered(now, answer.due);
        now
    }

    #[test]
    fn a_late_answer_does_not_cost_a_revolution() {
        // A host that keeps two writes in the queue, asked for as soon as one is answered.
        let run = |late: Duration| {
            let mut schedule = schedule();
            schedule.arrive(at(0), write(0), 0);
            schedule.arrive(at(0), write(1), 0);
            for n in 2..200 {
                let now = answer(&mut schedule, late);
                schedule.arrive(now, write(n), 0);
            }
            schedule.drive.free()
        };
        // Later than a write takes: without the account in modelled time the queue would be empty each time.
        for late in [Duration::from_micros(40), ms(3), ms(14), ms(40)] {
            assert_eq!(run(late), run(Duration::ZERO), "{late:?}");
        }
        let stream = Drive::new(DriveModel::paper(), 1).stream_time(AccessKind::Write, 0, 200 * MIB);
        assert!(run(ms(14)).since(at(0)) < stream + ms(15));
    }

    #[test]
    fn what_comes_before_an_overdue_answer_was_in_the_queue() {
        let mut schedule = schedule();
        schedule.arrive(at(0), write(0), 0);
        let due = schedule.next().unwrap();
        schedule.arrive(due + ms(5), write(1), 0);
        let stream = schedule.drive.stream_time(AccessKind::Write, MIB, MIB);
        answer(&mut schedule, ms(6));
        assert!(schedule.next().unwrap().since(due).abs_diff(stream) < Duration::from_nanos(3));
    }

    #[test]
    fn all_of_the_time_is_accounted_for() {
        let mut schedule = schedule();
        let read = |n: u64| DriveAccess { kind: AccessKind::Read, ..write(n) };
        // In a row, far away, back again, one after a pause, and two in a row of which the second comes late.
        let asked = [write(0), write(1), read(9000), read(4000), write(2), read(100), read(101)];
        let pauses = [0, 0, 0, 0, 0, 500, 2];
        let (mut now, mut sum, mut rested) = (at(0), Duration::ZERO, Duration::ZERO);
        for (access, pause) in asked.into_iter().zip(pauses) {
            let before = now;
            schedule.arrive(now + ms(pause), access, 0);
            now = answer(&mut schedule, Duration::ZERO);
            sum += now.since(before);
            // The drive reads on where somebody read.
            rested += if pause == 500 { ms(500) } else { Duration::ZERO };
        }
        let Counts { reading, writing, .. } = schedule.counts;
        let stream = |kind, from: u64, count| schedule.drive.stream_time(kind, from * MIB, count * MIB);
        assert_eq!(
            writing.streaming,
            stream(AccessKind::Write, 0, 1)
                + stream(AccessKind::Write, 1, 1)
                + stream(AccessKind::Write, 2, 1)
        );
        let far = [9000, 4000, 100, 101].map(|from| stream(AccessKind::Read, from, 1));
        assert_eq!(reading.streaming, far.iter().sum());
        let all = reading.streaming + reading.getting_there + writing.streaming + writing.getting_there;
        assert!((all + rested).abs_diff(sum) < Duration::from_nanos(20), "{all:?} and {rested:?} of {sum:?}");
        assert!(reading.getting_there > ms(15) && writing.getting_there > ms(5), "{reading:?} {writing:?}");
        assert!(schedule.report().contains(&format!("\nto_read_us {}\n", reading.getting_there.as_micros())));
    }

    #[test]
    fn a_real_pause_loses_a_revolution_and_only_one() {
        let mut schedule = schedule();
        schedule.arrive(at(0), write(0), 0);
        let due = schedule.next().unwrap();
        // Answered more than a revolution late; the host takes one more millisecond to ask again.
        let now = answer(&mut schedule, ms(14)) + ms(1);
        schedule.arrive(now, write(1), 0);
        let stream = schedule.drive.stream_time(AccessKind::Write, MIB, MIB);
        let lost = schedule.next().unwrap().since(due).saturating_sub(stream);
        assert!(lost.abs_diff(Duration::from_nanos(11_111_111)) < Duration::from_micros(1), "{lost:?}");
    }

    #[test]
    fn a_drive_hangs_stalls_fails_and_vanishes_as_told() {
        let mut schedule = schedule();
        assert!(schedule.arrive(at(0), write(0), 0));
        let due = schedule.next().unwrap();
        schedule.command(at(1), Command::Stall(ms(3000)));
        assert_eq!(schedule.next(), Some(due + ms(3000)));
        schedule.command(at(2), Command::Hang);
        assert!(schedule.arrive(at(10), write(1), 1), "it may yet be carried out");
        schedule.command(at(20), Command::Hang);
        assert_eq!((schedule.next(), schedule.take(at(1 << 40))), (None, None));
        assert!(schedule.report().contains("mode hang\n") && schedule.report().contains("under_way 2\n"));
        schedule.command(at(10_002), Command::Ok);
        assert_eq!(schedule.next(), Some(due + ms(3000 + 10_000)));
        answer(&mut schedule, Duration::ZERO);
        // That one came while the drive hung; its predecessor was at work then.
        let next = schedule.next().unwrap();
        assert!(next.since(due) < ms(13_000 + 30), "{next:?}");

        schedule.command(next, Command::Eio);
        assert!(!schedule.arrive(next, write(2), 2));
        let order: Vec<_> = std::iter::from_fn(|| schedule.take(next)).map(|a| (a.token, a.fault)).collect();
        assert_eq!(order, [(1, None), (2, Some(Fault::Io))]);

        assert!(schedule.report().contains("writes 3\n"), "counted when it is answered");
        schedule.command(next, Command::Ok);
        schedule.arrive(next, write(3), 3);
        assert!(schedule.report().contains("writes 3\n") && schedule.report().contains("under_way 1\n"));
        schedule.command(next, Command::Vanish);
        assert!(!schedule.arrive(next, write(4), 4));
        let order: Vec<_> = std::iter::from_fn(|| schedule.take(next)).map(|a| (a.token, a.fault)).collect();
        assert_eq!(order, [(3, Some(Fault::Gone)), (4, Some(Fault::Gone))]);
        assert!(schedule.report().contains("faults 3\n"));

        schedule.command(next, Command::Fast);
        assert!(schedule.arrive(next, write(5), 5));
        let answer = schedule.take(next).unwrap();
        assert_eq!((answer.due, answer.fault), (None, None));
        schedule.answered(next + ms(500), answer.due);
        assert!(schedule.report().contains("late 0\n"), "nothing is late that has no time");
        schedule.command(next, Command::Reset);
        assert!(schedule.report().contains("writes 0\nwritten_bytes 0\n"));
    }
}
