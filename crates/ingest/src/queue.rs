//! Bounded exchange of batches between one source and the capture thread, and the parking of both threads.
//!
//! A fixed set of items (batches) goes round: full ones to the capture thread, empty ones back. Nothing is
//! allocated after the start. One lock is taken per batch of some hundred KiB, never per element, and held for a
//! few instructions. What the items are is not known here. Ahead of all items a source may hand over one thing that the
//! capture thread has to agree to.

use super::sync::{Arc, AtomicBool, Condvar, Mutex, MutexGuard, Ordering};
use std::collections::VecDeque;
use std::sync::PoisonError;
use std::time::Duration;

#[derive(Debug, Default)]
struct Signal {
    /// Set by `wake`, taken by the next `wait`: a wake-up before the wait is not lost.
    raised: AtomicBool,
    lock: Mutex<()>,
    bell: Condvar,
}

/// Where one thread waits until somebody has something for it.
#[derive(Debug, Default)]
pub struct Parker {
    signal: Arc<Signal>,
}

/// Wakes the thread of one [`Parker`]; cheap to clone, cheap to call when the thread is awake.
#[derive(Clone, Debug)]
pub struct Waker {
    signal: Arc<Signal>,
}

impl Parker {
    /// A place to wait that nobody has called yet.
    pub fn new() -> Self {
        Self::default()
    }

    /// A handle that wakes this place's thread.
    pub fn waker(&self) -> Waker {
        Waker { signal: Arc::clone(&self.signal) }
    }

    /// Waits for a wake-up, or until the time is over; a wake-up since the last wait returns at once.
    /// True: woken. False: the time is over.
    pub fn wait(&mut self, at_most: Option<Duration>) -> bool {
        let signal = &*self.signal;
        if signal.raised.swap(false, Ordering::AcqRel) {
            return true;
        }
        let mut guard = lock(&signal.lock);
        loop {
            if signal.raised.swap(false, Ordering::AcqRel) {
                return true;
            }
            match at_most {
                None => guard = signal.bell.wait(guard).unwrap_or_else(PoisonError::into_inner),
                Some(span) => {
                    // A spurious return counts as "the time is over": callers look at their queues either way.
                    drop(signal.bell.wait_timeout(guard, span).unwrap_or_else(PoisonError::into_inner));
                    return signal.raised.swap(false, Ordering::AcqRel);
                }
            }
        }
    }
}

impl Waker {
    /// Wakes the thread, or keeps its next wait from sleeping.
    pub fn wake(&self) {
        if !self.signal.raised.swap(true, Ordering::AcqRel) {
            // Passing through the lock makes sure that a thread which saw no signal sleeps before the bell rings.
            drop(lock(&self.signal.lock));
            self.signal.bell.notify_one();
        }
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The other side is gone, and nothing more will come or be taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the other end of the queue is closed")]
pub struct Closed;

#[derive(Debug)]
struct QueueState<T> {
    full: VecDeque<T>,
    /// The last to come back goes out first: it may still be in a processor's cache.
    empty: Vec<T>,
    /// What goes ahead of all items, and what the capture thread says to it.
    ahead: Option<Vec<u8>>,
    word: Option<Result<(), String>>,
    source_gone: bool,
    capture_gone: bool,
}

#[derive(Debug)]
struct SharedQueue<T> {
    state: Mutex<QueueState<T>>,
    capture: Waker,
    source: Waker,
}

/// The source's end: takes empty items, sends full ones. Dropping it ends the queue after what was sent.
#[derive(Debug)]
pub(crate) struct SourceQueue<T> {
    shared: Arc<SharedQueue<T>>,
    parker: Parker,
}

/// The capture thread's end: takes full items, gives empty ones back. Dropping it makes the source stop.
#[derive(Debug)]
pub(crate) struct CaptureQueue<T> {
    shared: Arc<SharedQueue<T>>,
}

/// A pair of ends around `items`, all of them empty at first. `capture` wakes the capture thread.
pub(crate) fn exchange<T>(items: Vec<T>, capture: Waker) -> (SourceQueue<T>, CaptureQueue<T>) {
    let parker = Parker::new();
    let full = VecDeque::with_capacity(items.len());
    let state = Mutex::new(QueueState {
        full,
        empty: items,
        ahead: None,
        word: None,
        source_gone: false,
        capture_gone: false,
    });
    let shared = Arc::new(SharedQueue { state, capture, source: parker.waker() });
    (SourceQueue { shared: Arc::clone(&shared), parker }, CaptureQueue { shared })
}

impl<T> SourceQueue<T> {
    /// An empty item, if there is one now.
    pub(crate) fn try_empty(&mut self) -> Result<Option<T>, Closed> {
        let mut state = lock(&self.shared.state);
        if state.capture_gone { Err(Closed) } else { Ok(state.empty.pop()) }
    }

    /// An empty item; waits until the capture thread gives one back.
    pub(crate) fn wait_empty(&mut self) -> Result<T, Closed> {
        loop {
            if let Some(item) = self.try_empty()? {
                return Ok(item);
            }
            self.parker.wait(None);
        }
    }

    /// Empty items there are now.
    pub(crate) fn spare(&self) -> Result<usize, Closed> {
        let state = lock(&self.shared.state);
        if state.capture_gone { Err(Closed) } else { Ok(state.empty.len()) }
    }

    /// Waits until the capture thread gives something back, at most so long.
    pub(crate) fn wait(&mut self, at_most: Duration) {
        self.parker.wait(Some(at_most));
    }

    /// True when the capture thread has taken everything: it has nothing to do for this source.
    pub(crate) fn all_taken(&self) -> bool {
        lock(&self.shared.state).full.is_empty()
    }

    /// Hands over what goes ahead of all items, and waits for the capture thread's word on it.
    pub(crate) fn offer(&mut self, ahead: Vec<u8>) -> Result<Result<(), String>, Closed> {
        lock(&self.shared.state).ahead = Some(ahead);
        self.shared.capture.wake();
        loop {
            let mut state = lock(&self.shared.state);
            if let Some(word) = state.word.take() {
                return Ok(word);
            }
            if state.capture_gone {
                return Err(Closed);
            }
            drop(state);
            self.parker.wait(None);
        }
    }

    /// Hands a full item over. It never waits: there is room for every item that exists.
    pub(crate) fn send(&mut self, item: T) -> Result<(), Closed> {
        let mut state = lock(&self.shared.state);
        if state.capture_gone {
            return Err(Closed);
        }
        state.full.push_back(item);
        drop(state);
        self.shared.capture.wake();
        Ok(())
    }
}

impl<T> Drop for SourceQueue<T> {
    fn drop(&mut self) {
        lock(&self.shared.state).source_gone = true;
        self.shared.capture.wake();
    }
}

impl<T> CaptureQueue<T> {
    /// The next full item, in the order they were sent.
    pub(crate) fn take(&mut self) -> Option<T> {
        lock(&self.shared.state).full.pop_front()
    }

    /// Gives an item back, emptied.
    pub(crate) fn give_back(&mut self, item: T) {
        lock(&self.shared.state).empty.push(item);
        self.shared.source.wake();
    }

    /// What goes ahead of all items, once it has come.
    pub(crate) fn take_offer(&mut self) -> Option<Vec<u8>> {
        lock(&self.shared.state).ahead.take()
    }

    /// Says whether that can be: the source waits for it.
    pub(crate) fn answer(&mut self, word: Result<(), String>) {
        lock(&self.shared.state).word = Some(word);
        self.shared.source.wake();
    }

    /// Full items that wait.
    pub(crate) fn waiting(&self) -> usize {
        lock(&self.shared.state).full.len()
    }

    /// True once the source is gone: all it will ever send is here.
    pub(crate) fn is_gone(&self) -> bool {
        lock(&self.shared.state).source_gone
    }

    /// True once the source is gone and everything it sent was taken.
    pub(crate) fn is_finished(&self) -> bool {
        let state = lock(&self.shared.state);
        state.source_gone && state.full.is_empty()
    }
}

impl<T> Drop for CaptureQueue<T> {
    fn drop(&mut self) {
        lock(&self.shared.state).capture_gone = true;
        self.shared.source.wake();
    }
}
