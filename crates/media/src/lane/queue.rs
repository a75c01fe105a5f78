//! Bounded queue from one thread to one other, allocated at the start. It never waits: its users settle who
//! sleeps and who wakes whom.

use super::sync::{Arc, AtomicUsize, Mutex, Ordering, PoisonError};

struct Shared<T> {
    /// Each lock is taken by one side at a time: the counters say whose turn it is. So nobody ever waits for it.
    slots: Box<[Mutex<Option<T>>]>,
    /// Items taken out so far.
    head: AtomicUsize,
    /// Items put in so far.
    tail: AtomicUsize,
}

/// The end where items go in.
pub(super) struct Sender<T>(Arc<Shared<T>>);

/// The end where they come out.
pub(super) struct Receiver<T>(Arc<Shared<T>>);

/// A queue of at most `room` items.
pub(super) fn queue<T>(room: usize) -> (Sender<T>, Receiver<T>) {
    let slots = (0..room.max(1)).map(|_| Mutex::new(None)).collect();
    let shared = Arc::new(Shared { slots, head: AtomicUsize::new(0), tail: AtomicUsize::new(0) });
    (Sender(Arc::clone(&shared)), Receiver(shared))
}

impl<T> Shared<T> {
    fn slot(&self, number: usize) -> &Mutex<Option<T>> {
        &self.slots[number % self.slots.len()]
    }
}

impl<T> Sender<T> {
    /// Puts an item in; gives it back when the queue is full.
    pub(super) fn push(&mut self, item: T) -> Result<(), T> {
        let shared = &*self.0;
        let tail = shared.tail.load(Ordering::Relaxed);
        if tail.wrapping_sub(shared.head.load(Ordering::Acquire)) >= shared.slots.len() {
            return Err(item);
        }
        *shared.slot(tail).lock().unwrap_or_else(PoisonError::into_inner) = Some(item);
        shared.tail.store(tail.wrapping_add(1), Ordering::Release);
        Ok(())
    }
}

impl<T> Receiver<T> {
    /// Takes the oldest item out.
    pub(super) fn pop(&mut self) -> Option<T> {
        let shared = &*self.0;
        let head = shared.head.load(Ordering::Relaxed);
        if head == shared.tail.load(Ordering::Acquire) {
            return None;
        }
        let item = shared.slot(head).lock().unwrap_or_else(PoisonError::into_inner).take();
        shared.head.store(head.wrapping_add(1), Ordering::Release);
        item
    }
}
