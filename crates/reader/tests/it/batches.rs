//! Reads of a range from a device that answers all requests at once: it never idles, and gets no needless requests.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use holdfast_media::{Completion, Disk, DiskInfo, MemoryDisk, Op, Request};
use holdfast_reader::{Item, RingReader, Selection};
use holdfast_sim::fixture::{TestRing, bytes};
use std::collections::VecDeque;
use std::ops::ControlFlow;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

/// Begins to answer only when somebody waits, and then answers everything.
struct Batches {
    disk: MemoryDisk,
    asked: VecDeque<Request>,
    done: VecDeque<Completion>,
    /// Large reads that wait.
    waiting: Arc<AtomicUsize>,
    most: Arc<AtomicUsize>,
}

fn is_large(op: &Op) -> bool {
    matches!(op, Op::Read { len, .. } if *len > 256 << 10)
}

impl Disk for Batches {
    fn info(&self) -> &DiskInfo {
        self.disk.info()
    }

    fn submit(&mut self, request: Request) -> Result<(), Request> {
        if is_large(&request.op) {
            let now = self.waiting.fetch_add(1, Ordering::Relaxed) + 1;
            self.most.fetch_max(now, Ordering::Relaxed);
        }
        self.asked.push_back(request);
        Ok(())
    }

    fn complete(&mut self, wait: Duration) -> Option<Completion> {
        if self.done.is_empty() && !wait.is_zero() {
            for request in self.asked.drain(..) {
                assert!(self.disk.submit(request).is_ok());
                self.done.extend(self.disk.complete(Duration::ZERO));
            }
            self.waiting.store(0, Ordering::Relaxed);
        }
        self.done.pop_front()
    }
}

#[test]
fn a_device_that_answers_all_at_once_is_never_idle_while_its_answers_are_looked_through() {
    let mut test_ring = TestRing::new(8 << 20, 12, 1);
    let elements = 120;
    for number in 0..elements {
        test_ring.element(0, number, None, b"", &bytes(number as u64, 700_000), 1);
    }
    let (waiting, most) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
    let disk = Batches {
        disk: MemoryDisk::from_image(test_ring.lane()),
        asked: VecDeque::new(),
        done: VecDeque::new(),
        waiting: Arc::clone(&waiting),
        most: Arc::clone(&most),
    };
    let mut reader = RingReader::over(Box::new(disk)).unwrap();
    let plan = reader.plan(&Selection::ALL).unwrap();
    most.store(0, Ordering::Relaxed);
    let (mut given, mut idle) = (0, Vec::new());
    reader
        .read(&plan, &mut |item| {
            if let Item::Element(element) = item {
                given += 1;
                if waiting.load(Ordering::Relaxed) == 0 {
                    idle.push(element.ordinal.0);
                }
            }
            ControlFlow::Continue(())
        })
        .unwrap();
    assert_eq!(given, elements);
    // At the end there is nothing more to ask for.
    assert!(idle.iter().all(|ordinal| *ordinal > elements as u64 * 2 / 3), "{idle:?}");
    assert!((6..=8).contains(&most.load(Ordering::Relaxed)), "{most:?}");
}
