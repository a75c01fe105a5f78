//! Counters of a running source, readable by any thread without a lock.

use crate::Cause;
use holdfast_base::Timestamp;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU8, AtomicU64, Ordering};

/// Places for causes: the format numbers them from 1, and has 12.
const CAUSES: usize = 16;

fn place(cause: Cause) -> usize {
    usize::from(cause as u8) % CAUSES
}

/// Counters of one source. Written by its thread only; each is exact, but they are not read at one instant.
#[derive(Debug, Default)]
pub struct SourceCounters {
    /// Elements that reached us, dropped ones included, the kernel's drops not.
    pub elements: AtomicU64,
    /// Bytes of them.
    pub bytes: AtomicU64,
    /// Elements not recorded, by cause.
    dropped: [AtomicU64; CAUSES],
    /// Bytes not recorded, by cause.
    dropped_bytes: [AtomicU64; CAUSES],
    /// Losses of which nobody knows how much they were.
    pub unknown: AtomicU64,
    /// Interruptions at which a counter in the data jumped far, or the interface had been removed: elements may have been lost
    /// upstream.
    pub interrupted: AtomicU64,
    /// Times the source had to wait for an empty batch.
    pub waits: AtomicU64,
    /// Nanoseconds it waited for one.
    pub waited: AtomicU64,
    /// Frames that the interface's own counters say were lost before the kernel could take them, since the start.
    pub interface_drops: AtomicU64,
    /// Frames that it counts as dropped, since the start: before the kernel could take them, or behind us.
    pub perhaps_lost: AtomicU64,
    /// The interface is switched off or removed: nothing arrives until it is up again.
    pub down: AtomicBool,
    /// Producers that are connected (TCP, shared memory).
    pub connections: AtomicU64,
    /// Those that were refused or put out by us: too many, no memory or descriptor for them, silent inside of a large
    /// element while others wait, or an area that they broke.
    pub refused: AtomicU64,
    /// Batches sent.
    pub batches: AtomicU64,
    /// Elements that are not, in part or in whole, what their stream's schema takes them for.
    pub undecodable: AtomicU64,
    /// Texts that are longer than an attribute may be.
    pub too_long: AtomicU64,
    /// Elements whose event time has whole seconds, for want of a rate of frames.
    pub whole_seconds: AtomicU64,
    /// Fields that inferred attributes leave out, in words.
    pub left_out: OnceLock<String>,
    /// Written by the capture thread: elements that are recorded without their options, for want of room in a row.
    pub options_left_out: AtomicU64,
    /// Written by the capture thread: the schema that was inferred in this run, once it is in force.
    pub schema: OnceLock<String>,
    /// Written by the capture thread: what came last is beyond the declared rate.
    beyond: AtomicBool,
    /// See [`SourceCounters::handed_over_until`]; 0: nothing is under way.
    keeps_from: AtomicI64,
}

impl SourceCounters {
    /// Everything that arrived before this has been handed over to the capture thread, `Timestamp::MAX` while the source
    /// has nothing. What arrives after this was called is later than any time that was known before.
    pub fn handed_over_until(&self) -> Timestamp {
        match self.keeps_from.load(Ordering::SeqCst) {
            0 => Timestamp::MAX,
            from => Timestamp(from),
        }
    }

    /// The source may have something that arrived then or later. Said before the clock is read for it.
    pub(crate) fn keep_from(&self, from: Timestamp) {
        self.keeps_from.store(if from.0 == 0 { 1 } else { from.0 }, Ordering::SeqCst);
    }

    /// The source has handed over all there was.
    pub(crate) fn keep_nothing(&self) {
        self.keeps_from.store(0, Ordering::SeqCst);
    }

    /// Elements not recorded because of `cause`.
    pub fn dropped(&self, cause: Cause) -> u64 {
        self.dropped[place(cause)].load(Ordering::Relaxed)
    }

    /// Bytes not recorded because of `cause`, as far as they are known.
    pub fn dropped_bytes(&self, cause: Cause) -> u64 {
        self.dropped_bytes[place(cause)].load(Ordering::Relaxed)
    }

    /// Elements not recorded, whatever the cause.
    pub fn all_dropped(&self) -> u64 {
        self.dropped.iter().map(|n| n.load(Ordering::Relaxed)).sum()
    }

    /// Bytes not recorded, whatever the cause, as far as they are known.
    pub fn all_dropped_bytes(&self) -> u64 {
        self.dropped_bytes.iter().map(|n| n.load(Ordering::Relaxed)).sum()
    }

    pub(crate) fn set_beyond(&self, beyond: bool) {
        self.beyond.store(beyond, Ordering::Relaxed);
    }

    /// The cause that a drop of this source has now.
    pub(crate) fn cause(&self, pressure: &Pressure) -> Cause {
        match pressure.cause() {
            Cause::NoBuffer | Cause::NoProcessor if self.beyond.load(Ordering::Relaxed) => Cause::OverRate,
            cause => cause,
        }
    }

    pub(crate) fn drop_more(&self, cause: Cause, elements: u64, bytes: u64) {
        add(&self.dropped[place(cause)], elements);
        add(&self.dropped_bytes[place(cause)], bytes);
    }
}

/// Adds without a locked instruction: each counter has one writer.
pub(crate) fn add(counter: &AtomicU64, more: u64) {
    counter.store(counter.load(Ordering::Relaxed).wrapping_add(more), Ordering::Relaxed);
}

/// Why there is no room, as the capture thread sees it; shared by all sources of a ring.
#[derive(Debug, Default)]
pub struct Pressure(AtomicU8);

impl Pressure {
    /// All buffers wait for the medium.
    pub fn no_buffer(&self) {
        self.0.store(0, Ordering::Relaxed);
    }

    /// There is room: a source that finds no empty batch is faster than what packs.
    pub fn room(&self) {
        self.0.store(3, Ordering::Relaxed);
    }

    /// No slot is free to be overwritten.
    pub fn no_slot(&self) {
        self.0.store(1, Ordering::Relaxed);
    }

    /// The ring's device is gone.
    pub fn device_absent(&self) {
        self.0.store(2, Ordering::Relaxed);
    }

    /// The cause that a drop has now.
    pub fn cause(&self) -> Cause {
        match self.0.load(Ordering::Relaxed) {
            1 => Cause::NoSlot,
            2 => Cause::DeviceAbsent,
            3 => Cause::NoProcessor,
            _ => Cause::NoBuffer,
        }
    }
}
