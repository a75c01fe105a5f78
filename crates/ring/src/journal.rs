//! Write position and queue of the journal: two extents that alternate, each beginning with a snapshot.
//! Positions and queues only; the contents are the ledger's.

use crate::OrderTag;
use crate::snapshot::{Item, Walk};
use holdfast_base::{BLOCK, Sequence, Timestamp};
use holdfast_format::{Cursor, Geometry};
use std::collections::VecDeque;

/// Entries that have memory from the start: more wait only where orders pile up.
const QUEUE: usize = 64;

/// One thing to be recorded, and who waits for it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Entry {
    pub(crate) item: Item,
    pub(crate) order: Option<OrderTag>,
    /// The number of the step in the background that waits for it.
    pub(crate) step: Option<u64>,
    /// Whether it goes with the next commit that is due for something else.
    pub(crate) lazy: bool,
}

impl Entry {
    /// One that nobody waits for, and that is due at once.
    pub(crate) fn new(item: Item) -> Self {
        Self { item, order: None, step: None, lazy: false }
    }
}

/// An extent with at least so many bytes since its snapshot may be given up early: a restart reads all that is in use.
const WORN: u64 = 16 << 20;

/// Bytes of an extent that are used for what open slots gain: what a drive of 100 MiB/s reads in three seconds, and one slot
/// of the largest size with a quarter of records around it. Only extents of such slots are longer.
const READ: u64 = 320 << 20;

/// How far the snapshot is.
#[derive(Clone, Debug, Default)]
pub(crate) struct Snapshot {
    pub(crate) walk: Walk,
    pub(crate) begun: bool,
    /// The runway is in another order than it tells: once more at its end.
    pub(crate) list_again: bool,
    /// The slot that was open when it began, which it takes along.
    pub(crate) of: Option<Sequence>,
    /// How much of that slot it has.
    pub(crate) open: Cursor,
    /// Whether that was all there was when the last commit was filled.
    pub(crate) whole: bool,
    /// What its runway record named.
    pub(crate) named: Option<NamedList>,
}

/// What a runway record reserves: sequences up to this one, and how many of its slots are listed for the first time.
pub(crate) type NamedList = (Sequence, usize);

/// Where recovery found the journal's end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct JournalEnd {
    /// The extent with the newest whole snapshot.
    pub extent: usize,
    /// Bytes of it that are in use.
    pub at: u64,
    /// Its generation.
    pub generation: u64,
    /// The highest generation seen in either extent.
    pub highest: u64,
    /// The number of its last commit.
    pub number: u64,
}

/// A commit that has been given to the disk.
#[derive(Clone, Debug)]
pub(crate) struct Flight {
    pub(crate) offset: u64,
    pub(crate) bytes: usize,
    /// Its write failed.
    pub(crate) failed: bool,
    /// It was written again already.
    pub(crate) retried: bool,
    /// Entries it carries, to be queued again should it fail.
    pub(crate) entries: Vec<Entry>,
    /// How much of which open slot is durable once it is.
    pub(crate) open: Option<(Sequence, Cursor)>,
    /// Whether a snapshot ends with it.
    pub(crate) ends: bool,
    /// The runway record that counts once it is durable.
    pub(crate) named: Option<NamedList>,
    /// When it was filled with all that the open slot had then; `None`: there was more.
    pub(crate) filled: Option<Timestamp>,
    /// Which of all writes it is.
    pub(crate) begun: u64,
}

/// The journal's position and queue.
#[derive(Clone, Debug)]
pub(crate) struct Journal {
    extents: [u64; 2],
    extent_bytes: u64,
    commit_bytes: usize,
    /// A room below this in the extent means it is full.
    least_room: u64,
    current: usize,
    at: u64,
    /// Where its snapshot ended.
    pub(crate) fresh: u64,
    pub(crate) generation: u64,
    highest: u64,
    pub(crate) number: u64,
    pub(crate) queue: VecDeque<Entry>,
    pub(crate) snapshot: Option<Snapshot>,
    pub(crate) flight: Option<Flight>,
    /// Memory for the entries of the next flight.
    pub(crate) spare: Vec<Entry>,
    /// How much of the open slot is durable here.
    pub(crate) open: Cursor,
    /// Bytes of commits written since the start.
    pub(crate) written: u64,
}

impl Journal {
    /// A journal that goes on where recovery found its end.
    pub(crate) fn new(geometry: &Geometry, end: &JournalEnd) -> Self {
        Self {
            extents: [geometry.extent_offset(0), geometry.extent_offset(1)],
            extent_bytes: geometry.extent_bytes(),
            commit_bytes: geometry.commit_bytes(),
            least_room: (geometry.slot_bytes / 4).min(geometry.commit_bytes() as u64),
            current: end.extent,
            at: end.at,
            fresh: 0,
            generation: end.generation,
            highest: end.highest,
            number: end.number,
            queue: VecDeque::with_capacity(QUEUE),
            snapshot: None,
            flight: None,
            spare: Vec::with_capacity(QUEUE),
            open: Cursor::default(),
            written: 0,
        }
    }

    pub(crate) fn push(&mut self, item: Item, order: Option<OrderTag>) {
        self.queue.push_back(Entry { order, ..Entry::new(item) });
    }

    /// The same of what is no reason for a commit, and is recorded as it is by then: once is enough.
    pub(crate) fn push_lazily(&mut self, item: Item) {
        if self.queue.iter().all(|entry| entry.item != item) {
            self.queue.push_back(Entry { lazy: true, ..Entry::new(item) });
        }
    }

    /// Whether something is to be recorded that does not wait for anything else.
    pub(crate) fn is_due(&self) -> bool {
        self.queue.iter().any(|entry| !entry.lazy)
    }

    /// Whether the extent in use has no room left but for orders and runways.
    pub(crate) fn is_full(&self) -> bool {
        // In an extent of many commits one place more is kept for a run that begins behind what is there.
        let kept =
            if self.extent_bytes >= 16 * self.commit_bytes as u64 { self.commit_bytes as u64 } else { 0 };
        (self.extent_bytes - kept).min(READ).saturating_sub(self.at) < self.least_room
    }

    /// Whether so much of the extent is of no use any more that a snapshot, of `live` bytes, is worth its cost.
    pub(crate) fn is_worn(&self, live: impl FnOnce() -> u64) -> bool {
        self.at.saturating_sub(self.fresh) >= WORN && {
            let live = live();
            self.at >= live + live / 4 + WORN
        }
    }

    /// Nothing more can be written to the extent in use.
    pub(crate) fn give_up(&mut self) {
        self.at = self.extent_bytes;
    }

    /// Whether there is no room even for those.
    pub(crate) fn is_out_of_room(&self) -> bool {
        self.extent_bytes - self.at < self.least_room / 4
    }

    /// Goes to the other extent; what comes next is a snapshot.
    pub(crate) fn switch(&mut self, open: Option<Sequence>) {
        self.current = 1 - self.current;
        self.at = 0;
        self.highest += 1;
        self.generation = self.highest;
        self.snapshot = Some(Snapshot { of: open, ..Snapshot::default() });
    }

    /// Offset of the next commit, and the most bytes it may have.
    pub(crate) fn place(&self) -> (u64, usize) {
        let room = (self.extent_bytes - self.at) as usize / BLOCK * BLOCK;
        (self.extents[self.current] + self.at, room.min(self.commit_bytes))
    }

    /// The extent in use: offset and bytes.
    pub(crate) fn extent(&self) -> (u64, u64) {
        (self.extents[self.current], self.extent_bytes)
    }

    /// The other one.
    pub(crate) fn spare_extent(&self) -> (u64, u64) {
        (self.extents[1 - self.current], self.extent_bytes)
    }

    /// Where the extent begins that a place on the lane is in.
    pub(crate) fn extent_of(&self, offset: u64) -> Option<u64> {
        self.extents.into_iter().find(|extent| (*extent..extent + self.extent_bytes).contains(&offset))
    }

    /// Takes note that a commit of `bytes` has been given to the disk.
    pub(crate) fn advance(&mut self, bytes: usize) {
        self.at += bytes as u64;
        if self.snapshot.is_some() {
            self.fresh = self.at;
        }
        self.number += 1;
    }
}
