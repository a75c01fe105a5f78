//! Common parts of all opponents: elements arrive at their rate in a bounded memory, a writer takes them from there and
//! makes them durable now and then, and a reader reads beside it. An element that finds no room is lost. An
//! [`ElementStore`] decides where elements go.

use super::cell::{ElementSize, ReadDemand};
use super::tally::{ReadGate, Tally};
use crate::BenchError;
use holdfast_media::Seed;
use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

/// How long a writer without work sleeps.
const NAP: Duration = Duration::from_millis(1);

/// Where elements are put. What is in them does not matter.
pub trait ElementStore: Send {
    /// Puts the next element there; the oldest gives way.
    fn put(&mut self, bytes: u64) -> Result<(), BenchError>;
    /// Makes all of them durable.
    fn sync(&mut self) -> Result<(), BenchError>;
}

/// Elements in memory: their sizes.
#[derive(Clone, Debug)]
pub struct ElementQueue {
    capacity: u64,
    bytes: u64,
    queue: VecDeque<u64>,
}

impl ElementQueue {
    /// For so many bytes.
    pub fn new(capacity: u64) -> Self {
        Self { capacity, bytes: 0, queue: VecDeque::new() }
    }

    /// An element arrives; `false` if there is no room.
    pub fn offer(&mut self, bytes: u64) -> bool {
        let fits = self.bytes + bytes <= self.capacity;
        if fits {
            self.bytes += bytes;
            self.queue.push_back(bytes);
        }
        fits
    }

    /// The oldest is going to be written; it keeps its room until [`ElementQueue::written`].
    pub fn begin(&mut self) -> Option<u64> {
        self.queue.pop_front()
    }

    /// One that was begun is not needed any more.
    pub fn written(&mut self, bytes: u64) {
        self.bytes -= bytes;
    }

    /// Bytes in memory.
    pub fn bytes(&self) -> u64 {
        self.bytes
    }
}

/// How an opponent works.
#[derive(Clone, Copy, Debug)]
pub struct Rules {
    /// Of elements.
    pub size: ElementSize,
    /// Bytes a second that arrive.
    pub offer: f64,
    /// What the reader asks for.
    pub ask: ReadDemand,
    /// Whether the reader gives way to the writer.
    pub priority: bool,
    /// Bytes for elements that wait.
    pub memory: u64,
    /// Bytes between syncs.
    pub sync_bytes: u64,
}

/// Lets elements arrive and be written, and `read` read, until the time is over.
pub fn run(
    rules: &Rules,
    tally: &Tally,
    shelf: &mut dyn ElementStore,
    read: impl FnOnce(&mut ReadGate<'_>) -> Result<(), BenchError> + Send,
) -> Result<(), BenchError> {
    let waiting = Mutex::new(ElementQueue::new(rules.memory));
    let lock = || waiting.lock().unwrap_or_else(PoisonError::into_inner);
    let busy = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let reader = scope.spawn(|| {
            let mut gate = ReadGate::new(tally, rules.ask, rules.priority.then_some(&busy));
            // Who asks for nothing does not read.
            let result = if rules.ask == ReadDemand::Rate(0) { Ok(()) } else { read(&mut gate) };
            if result.is_err() {
                tally.stop();
            }
            result
        });
        scope.spawn(|| {
            tally.lead();
            let mut seed = Seed::new(1);
            let (mut given, mut next) = (0, rules.size.next(&mut seed));
            while tally.wait(|| (given + next) as f64 <= rules.offer * tally.seconds()) {
                tally.offered(next);
                busy.store(true, Relaxed);
                if !lock().offer(next) {
                    tally.lost(next);
                }
                given += next;
                next = rules.size.next(&mut seed);
            }
        });
        let mut dirty = 0;
        let mut write = || {
            while tally.runs() {
                let Some(bytes) = lock().begin() else {
                    busy.store(false, Relaxed);
                    std::thread::sleep(NAP);
                    continue;
                };
                busy.store(true, Relaxed);
                shelf.put(bytes)?;
                lock().written(bytes);
                dirty += bytes;
                if dirty >= rules.sync_bytes {
                    shelf.sync()?;
                    tally.durable(dirty);
                    dirty = 0;
                }
            }
            Ok(())
        };
        let result = write();
        tally.stop();
        // Nobody waits for a reader who waits for what was begun here.
        let result = result.and_then(|()| shelf.sync());
        let read =
            reader.join().unwrap_or_else(|_| Err(BenchError::Accounting("the reader panicked".into())));
        result.and(read)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::mpsc::{Receiver, Sender, channel};

    #[test]
    fn what_finds_no_room_is_lost_and_nothing_else() {
        let mut waiting = ElementQueue::new(100);
        assert!(waiting.offer(60) && waiting.offer(40) && !waiting.offer(1));
        assert_eq!(waiting.begin(), Some(60));
        // It is in memory until it is written.
        assert!(!waiting.offer(1));
        waiting.written(60);
        assert!(waiting.offer(60) && !waiting.offer(1));
        assert_eq!(
            (waiting.bytes(), waiting.begin(), waiting.begin(), waiting.begin()),
            (100, Some(40), Some(60), None)
        );
    }

    #[test]
    fn every_element_is_written_waits_or_is_lost() {
        let mut seed = Seed::new(7);
        let mut waiting = ElementQueue::new(1000);
        let (mut offered, mut lost, mut written, mut under_way) = (0, 0, 0, VecDeque::new());
        for _ in 0..10_000 {
            match seed.below(3) {
                0 => {
                    let bytes = seed.below(400);
                    offered += bytes;
                    lost += if waiting.offer(bytes) { 0 } else { bytes };
                }
                1 => under_way.extend(waiting.begin()),
                _ => {
                    if let Some(bytes) = under_way.pop_front() {
                        waiting.written(bytes);
                        written += bytes;
                    }
                }
            }
            assert_eq!(offered, lost + written + waiting.bytes());
            assert!(waiting.bytes() <= 1000);
        }
        assert!(lost > 0 && written > 0);
    }

    /// A shelf that tells what is done to it, and stands still when it is full.
    struct RecordingStore {
        puts: Sender<u64>,
        go: Receiver<()>,
        room: u64,
        unsynced: u64,
        synced: Vec<u64>,
    }

    impl ElementStore for RecordingStore {
        fn put(&mut self, bytes: u64) -> Result<(), BenchError> {
            if self.room < bytes {
                let _ = self.puts.send(0);
                let _ = self.go.recv();
                return Ok(());
            }
            self.room -= bytes;
            self.unsynced += bytes;
            let _ = self.puts.send(bytes);
            Ok(())
        }

        fn sync(&mut self) -> Result<(), BenchError> {
            self.synced.push(std::mem::take(&mut self.unsynced));
            Ok(())
        }
    }

    #[test]
    fn a_writer_that_stands_still_loses_what_its_memory_does_not_hold() {
        let (puts, put) = channel();
        let (go_on, go) = channel();
        let mut shelf = RecordingStore { puts, go, room: 10 * 4096, unsynced: 0, synced: Vec::new() };
        let rules = Rules {
            size: ElementSize::Fixed(4096),
            offer: 1e9,
            ask: ReadDemand::Rate(0),
            priority: false,
            memory: 20 * 4096,
            sync_bytes: 4 * 4096,
        };
        let tally = Tally::lasting(Duration::from_hours(1));
        let result = std::thread::scope(|scope| {
            let tally = &tally;
            scope.spawn(move || {
                assert_eq!(put.iter().take_while(|bytes| *bytes > 0).count(), 10);
                // Once something more is lost the memory is full again: that is all that is wanted.
                let lost = tally.counts().lost;
                assert!(tally.wait(|| tally.counts().lost > lost + 100 * 4096));
                tally.stop();
                drop(go_on);
            });
            run(&rules, tally, &mut shelf, |_| Err(BenchError::skipped("nobody asked")))
        });
        result.unwrap();
        let counts = tally.counts();
        // Two syncs of four elements; two more are dirty, and synced when it is over; one stands still, and the rest of the memory waits.
        assert_eq!((shelf.synced, counts.durable), (vec![4 * 4096, 4 * 4096, 2 * 4096], 8 * 4096));
        assert_eq!(counts.pending(), (2 + 20) * 4096);
        assert_eq!(counts.read, 0);
    }

    #[test]
    fn a_reader_that_fails_ends_the_cell() {
        let (puts, _put) = channel();
        let (_go_on, go) = channel();
        let mut shelf = RecordingStore { puts, go, room: u64::MAX, unsynced: 0, synced: Vec::new() };
        let rules = Rules {
            size: ElementSize::Fixed(1),
            offer: 1.0,
            ask: ReadDemand::All,
            priority: true,
            memory: 1,
            sync_bytes: 1,
        };
        let tally = Tally::lasting(Duration::from_hours(1));
        let result = run(&rules, &tally, &mut shelf, |gate| {
            gate.got(3);
            Err(BenchError::skipped("broken"))
        });
        assert!(matches!(result, Err(BenchError::Skipped { .. })));
        assert_eq!(tally.counts().read, 3);
    }
}
