//! Recorders beside greedy readers: elements come at a steady rate whatever becomes of them, wait in a bounded queue for the
//! recorder to take them, and are lost when that is full. How long it takes until each can be read by others is taken
//! down. The recorders are in `holdfast`, `plain_files` and `reductstore`.

pub mod holdfast;
pub mod plain_files;
pub mod reductstore;

use crate::BenchError;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, TryRecvError, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

/// Bytes of an element.
pub const ELEMENT: usize = 1 << 20;

/// Elements that wait for a recorder at most: everybody gets as much.
const QUEUE: usize = 64;

/// The world goes before the contestants.
const PRIORITY: i32 = 30;

/// When it was kept waiting for longer than that all the same, the machine stood still, and what comes then comes at once.
const LATE: Duration = Duration::from_millis(100);

/// What is to be recorded.
#[derive(Clone, Copy, Debug)]
pub struct Load {
    /// Bytes a second.
    pub rate: u64,
    /// For how long.
    pub lasts: Duration,
    /// Bytes that are kept: the oldest go.
    pub kept: u64,
    /// Readers that take all they get.
    pub readers: usize,
    /// Whether all that is kept is exported meanwhile, again and again.
    pub exports: bool,
}

/// When what came can be read by others.
#[derive(Debug)]
pub struct VisibilityLag {
    start: Instant,
    /// When each that was taken was to come, in the order in which they were taken.
    due: Mutex<Vec<Duration>>,
    lags: Mutex<Vec<Duration>>,
}

impl VisibilityLag {
    fn new() -> Self {
        Self { start: Instant::now(), due: Mutex::default(), lags: Mutex::default() }
    }

    fn coming(&self, due: Duration) {
        self.due.lock().unwrap_or_else(PoisonError::into_inner).push(due);
    }

    /// As many as that can be read now.
    pub fn visible(&self, count: u64) {
        let now = self.start.elapsed();
        let due = self.due.lock().unwrap_or_else(PoisonError::into_inner);
        let mut lags = self.lags.lock().unwrap_or_else(PoisonError::into_inner);
        let count = usize::try_from(count).unwrap_or(usize::MAX).min(due.len());
        for at in lags.len()..count {
            lags.push(now.saturating_sub(due[at]));
        }
    }
}

/// One that records.
pub trait RecorderUnderLoad {
    /// Takes an element; comes back when it has it.
    fn take(&mut self, number: u64, element: &[u8]) -> Result<(), BenchError>;

    /// What one of its readers does, again and again: bytes that it got.
    fn reader(&self, seed: u64) -> Result<ReadLoop, BenchError>;

    /// What its exporter does, again and again: all that is kept, oldest first, goes to a program of others; bytes of it.
    fn exporter(&self) -> Result<ReadLoop, BenchError>;

    /// Ends it.
    fn end(self: Box<Self>) -> Result<EndReport, BenchError>;

    /// Whether it tells by itself when elements can be read; otherwise they can when they are taken.
    fn tells(&self) -> bool {
        false
    }
}

/// What a recorder says at the end.
#[derive(Clone, Copy, Debug, Default)]
pub struct EndReport {
    /// Elements that it lost itself.
    pub lost: u64,
    /// The least time for which it could have gone on without any write ending, if it knows.
    pub slack: Option<Duration>,
    /// What the device took for requests, where something was promised of it.
    pub device: Option<DeviceLatency>,
}

/// The longest that a device took for a request, and what it takes at most by its profile.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DeviceLatency {
    /// For a write.
    pub write: Duration,
    /// For a read.
    pub read: Duration,
    /// What was measured of it allows so long a write.
    pub longest_write: Duration,
    /// And so long a read.
    pub longest_read: Duration,
}

impl DeviceLatency {
    /// A request that took longer than the profile allows, in words.
    pub fn beyond(&self) -> Option<String> {
        [("write", self.write, self.longest_write), ("read", self.read, self.longest_read)]
            .into_iter()
            .find(|(_, took, longest)| took > longest)
            .map(|(what, took, longest)| {
                let (took, longest) = (took.as_secs_f64(), longest.as_secs_f64());
                format!("a {what} took {took:.1} s, by the profile {longest:.1} s at most")
            })
    }
}

/// What a reader does again and again.
pub type ReadLoop = Box<dyn FnMut() -> Result<u64, BenchError> + Send>;

/// How it went.
#[derive(Clone, Debug, Default)]
pub struct LoadOutcome {
    /// Elements that came, and that were lost.
    pub came: u64,
    /// Of these.
    pub lost: u64,
    /// Until an element could be read: the middle, the 99th of a hundred, the worst.
    pub lags: [Duration; 3],
    /// Bytes a second that readers got.
    pub read: u64,
    /// Why readers had to begin again: that often.
    pub broken: u64,
    /// The least time for which it could have gone on without any write ending, if it knows.
    pub slack: Option<Duration>,
    /// What the device took for requests, where something was promised of it.
    pub device: Option<DeviceLatency>,
    /// Of those that were lost: who came when the queue was full.
    pub unqueued: u64,
    /// How much later than it was to come one came at most.
    pub late: Duration,
}

impl LoadOutcome {
    /// Whether what was promised was kept: a loss is a fault unless the device was another than was measured.
    pub fn verdict(&self) -> Result<String, BenchError> {
        match (&self.device, self.lost) {
            (None, _) => Ok("–".to_owned()),
            (Some(_), 0) => Ok("nothing lost".to_owned()),
            (Some(device), lost) => match device.beyond() {
                Some(why) => Ok(format!("void: {why}")),
                None if self.late > LATE => {
                    let late = self.late.as_secs_f64();
                    Ok(format!("void: elements came {late:.1} s late, then many at once"))
                }
                None => Err(BenchError::Accounting(format!(
                    "{lost} of {} elements were lost inside the guarantee, {} of them before the recorder got them",
                    self.came, self.unqueued
                ))),
            },
        }
    }
}

/// Lets it record.
pub fn play(
    load: &Load,
    begin: impl FnOnce(Arc<VisibilityLag>) -> Result<Box<dyn RecorderUnderLoad>, BenchError>,
) -> Result<LoadOutcome, BenchError> {
    let seen = Arc::new(VisibilityLag::new());
    let mut recorder = begin(Arc::clone(&seen))?;
    let (stop, read, broken) = (AtomicBool::new(false), AtomicU64::new(0), AtomicU64::new(0));
    let mut readings = Vec::new();
    for number in 0..load.readers {
        readings.push(recorder.reader(number as u64 + 1)?);
    }
    if load.exports {
        readings.push(recorder.exporter()?);
    }
    let (full, filled) = sync_channel(QUEUE);
    let (back, empty) = sync_channel(QUEUE);
    for _ in 0..QUEUE {
        let _ = back.send(noise());
    }
    let started = Instant::now();
    let shift = started.duration_since(seen.start);
    let (made, taken) = std::thread::scope(|scope| {
        for mut reading in readings {
            let (stop, read, broken) = (&stop, &read, &broken);
            scope.spawn(move || {
                while !stop.load(Ordering::Relaxed) {
                    match reading() {
                        Ok(0) => std::thread::sleep(Duration::from_millis(5)),
                        Ok(bytes) => _ = read.fetch_add(bytes, Ordering::Relaxed),
                        Err(_) => {
                            broken.fetch_add(1, Ordering::Relaxed);
                            std::thread::sleep(Duration::from_millis(5));
                        }
                    }
                }
            });
        }
        let producer = scope.spawn(move || produce(load, started, &empty, &full));
        let taken = take(&mut *recorder, &filled, &back, &seen, shift);
        drop(filled);
        let made = producer.join().unwrap_or_default();
        stop.store(true, Ordering::Relaxed);
        (made, taken)
    });
    let took = started.elapsed();
    taken?;
    let EndReport { lost: own, slack, device } = recorder.end()?;
    let ProducedCount { came, lost: unqueued, late } = made;
    let lost = unqueued + own;
    let mut lags = seen.lags.lock().unwrap_or_else(PoisonError::into_inner).clone();
    let lags = middle_most_worst(&mut lags);
    let read = (read.into_inner() as f64 / took.as_secs_f64()) as u64;
    Ok(LoadOutcome { came, lost, lags, read, broken: broken.into_inner(), slack, device, unqueued, late })
}

/// The middle, the 99th of a hundred, the worst.
pub fn middle_most_worst(lags: &mut [Duration]) -> [Duration; 3] {
    lags.sort_unstable();
    let at = |share: f64| lags.get(((lags.len() as f64 * share) as usize).min(lags.len().saturating_sub(1)));
    [0.5, 0.99, 1.0].map(|share| at(share).copied().unwrap_or_default())
}

type QueuedElement = (u64, Duration, Vec<u8>);

/// Elements that came.
#[derive(Clone, Copy, Debug, Default)]
struct ProducedCount {
    came: u64,
    /// Found no room.
    lost: u64,
    /// How late one came at most.
    late: Duration,
}

/// Elements as they come.
fn produce(
    load: &Load,
    started: Instant,
    empty: &Receiver<Vec<u8>>,
    full: &std::sync::mpsc::SyncSender<QueuedElement>,
) -> ProducedCount {
    // As far as that is allowed.
    let _ = holdfast_media::run_first(PRIORITY);
    let mut made = ProducedCount::default();
    loop {
        let ProducedCount { came, .. } = made;
        let due = Duration::from_secs_f64(came as f64 * ELEMENT as f64 / load.rate as f64);
        if due >= load.lasts {
            return made;
        }
        std::thread::sleep(due.saturating_sub(started.elapsed()));
        made.late = made.late.max(started.elapsed().saturating_sub(due));
        match empty.try_recv() {
            Ok(mut element) => {
                element[..8].copy_from_slice(&came.to_le_bytes());
                if full.send((came, due, element)).is_err() {
                    return made;
                }
            }
            Err(TryRecvError::Empty) => made.lost += 1,
            Err(TryRecvError::Disconnected) => return made,
        }
        made.came += 1;
    }
}

/// Hands what has come to the recorder.
fn take(
    recorder: &mut dyn RecorderUnderLoad,
    filled: &Receiver<QueuedElement>,
    back: &std::sync::mpsc::SyncSender<Vec<u8>>,
    seen: &VisibilityLag,
    shift: Duration,
) -> Result<(), BenchError> {
    let mut count = 0;
    while let Ok((number, due, element)) = filled.recv() {
        seen.coming(due + shift);
        recorder.take(number, &element)?;
        count += 1;
        if !recorder.tells() {
            seen.visible(count);
        }
        let _ = back.send(element);
    }
    Ok(())
}

/// What cannot be compressed.
fn noise() -> Vec<u8> {
    let mut random = 0x9e37_79b9_7f4a_7c15_u64;
    let mut next = || {
        random ^= random << 13;
        random ^= random >> 7;
        random ^= random << 17;
        random.to_le_bytes()
    };
    (0..ELEMENT / 8).flat_map(|_| next()).collect()
}

/// A number below `end` that differs from call to call.
pub(crate) fn below(random: &mut u64, end: u64) -> u64 {
    *random ^= *random << 13;
    *random ^= *random >> 7;
    *random ^= *random << 17;
    *random % end.max(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_loss_is_a_fault_unless_the_device_was_another_than_was_measured() {
        let second = Duration::from_secs(1);
        let device =
            DeviceLatency { write: second, read: second, longest_write: second, longest_read: second };
        let outcome = |lost, device| LoadOutcome { came: 9, lost, device, ..LoadOutcome::default() };
        assert_eq!(outcome(3, None).verdict().unwrap(), "–");
        assert_eq!(outcome(0, Some(device)).verdict().unwrap(), "nothing lost");
        assert!(matches!(outcome(1, Some(device)).verdict(), Err(BenchError::Accounting(_))));
        let late = LoadOutcome { late: second, ..outcome(1, Some(device)) };
        assert_eq!(late.verdict().unwrap(), "void: elements came 1.0 s late, then many at once");
        let stalled = DeviceLatency { read: 2 * second, ..device };
        let said = outcome(1, Some(stalled)).verdict().unwrap();
        assert_eq!(said, "void: a read took 2.0 s, by the profile 1.0 s at most");
    }
}
