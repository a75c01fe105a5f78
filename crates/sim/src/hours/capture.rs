//! Simulated capture: buffers that fill, rows and records that wait for a commit, the runway. Only counted.

use holdfast_ring::Shape;
use std::collections::VecDeque;

/// A slot that waits to be written.
#[derive(Clone, Copy, Debug)]
pub(super) struct Full {
    /// Since when it has had what the journal has not got.
    pub(super) since: f64,
    pub(super) bytes: f64,
}

/// How long what the open slot gained waits, and how much the journal takes of what has waited for too long.
#[derive(Clone, Copy, Debug)]
pub(super) struct Waits {
    /// Seconds that those of a slot wait that fills slowly, ...
    pub(super) flush: f64,
    /// ... which is one that takes longer than this, ...
    pub(super) soon: f64,
    /// ... and that nothing waits for longer than.
    pub(super) hard: f64,
    pub(super) row: f64,
}

/// The slot that is being filled.
#[derive(Clone, Copy, Debug)]
struct Open {
    opened: f64,
    bytes: f64,
    /// Bytes of it that were given to the journal.
    journaled: f64,
    /// When the first came that the journal has not got.
    since: Option<f64>,
}

/// What capture holds.
#[derive(Debug)]
pub(super) struct Capture {
    slot: f64,
    pub(super) free: u32,
    open: Option<Open>,
    /// The oldest first.
    pub(super) full: VecDeque<Full>,
    waits: Waits,
    /// Slots that ended with room in them.
    pub(super) short: u64,
    pub(super) lost: f64,
    pub(super) arrived: f64,
}

impl Capture {
    pub(super) fn new(slot: u64, buffers: u32, waits: Waits) -> Self {
        let full = VecDeque::with_capacity(buffers as usize + 1);
        let slot = slot as f64;
        Self { slot, free: buffers, open: None, full, waits, short: 0, lost: 0.0, arrived: 0.0 }
    }

    /// What the open slot still takes; nothing when none is open.
    pub(super) fn room(&self) -> f64 {
        self.open.map_or(0.0, |open| self.slot - open.bytes)
    }

    /// The same, if one is open.
    pub(super) fn open_room(&self) -> Option<f64> {
        self.open.map(|open| self.slot - open.bytes)
    }

    /// Bytes until something happens; where the journal has all there is, those are the first ones: they begin to wait.
    pub(super) fn until_full(&self) -> f64 {
        let left = |open: Open| if open.since.is_some() { self.slot - open.bytes } else { 4096.0 };
        self.open.map_or(4096.0, left).max(0.5)
    }

    /// `bytes` have arrived by `now`, the first of them at `first`. What is more than a slot took is a burst, or a rounding
    /// error.
    pub(super) fn arrive(&mut self, mut bytes: f64, mut first: f64, now: f64) {
        self.arrived += bytes;
        while bytes > 0.0 {
            let Some(open) = &mut self.open else {
                if self.free == 0 {
                    self.lost += bytes;
                    return;
                }
                self.free -= 1;
                self.open = Some(Open { opened: first, bytes: 0.0, journaled: 0.0, since: None });
                continue;
            };
            let taken = bytes.min(self.slot - open.bytes);
            bytes -= taken;
            open.bytes += taken;
            let since = *open.since.get_or_insert(first);
            // What rounding leaves is not a slot's worth of anything.
            if self.slot - open.bytes < 0.5 {
                self.full.push_back(Full { since, bytes: self.slot });
                self.open = None;
                first = now;
            }
        }
    }

    /// When the journal is to have what the open slot gained.
    pub(super) fn due(&self) -> f64 {
        let Some((open, since)) = self.open.and_then(|open| Some((open, open.since?))) else {
            return f64::INFINITY;
        };
        let Waits { flush, soon, hard, .. } = self.waits;
        // When it will have filled so slowly that what is left of it takes too long.
        let slow = open.opened + soon * open.bytes / (self.slot - open.bytes).max(0.5);
        (since + hard).min(slow.max(since + flush))
    }

    /// When the open slot has so much that is to be durable that its own write is the shorter way, and from when on; whatever
    /// it has where the journal takes nothing of it.
    pub(super) fn overdue(&self, journal: &Journal) -> f64 {
        let kept_out = journal.is_in_snapshot() && self.waits.row < u64::MAX as f64;
        let most = if kept_out { 0.0 } else { self.waits.row };
        let open = self.open.filter(|open| open.bytes - open.journaled > most);
        open.and_then(|open| open.since).map_or(f64::INFINITY, |since| since + self.waits.hard)
    }

    /// Since when the open slot has had what the journal has not got.
    pub(super) fn gaining_since(&self) -> Option<f64> {
        self.open?.since
    }

    /// Ends the open slot with room in it.
    pub(super) fn end_slot(&mut self) {
        if let Some(Open { bytes, since: Some(since), .. }) = self.open.take() {
            self.full.push_back(Full { since, bytes });
            self.short += 1;
        }
    }

    /// Gives the journal up to so many bytes of what the open slot gained: how many, and since when the first of them
    /// has been there.
    fn give(&mut self, most: u64, now: f64) -> Option<(u64, f64)> {
        let open = self.open.as_mut()?;
        let since = open.since?;
        let gained = open.bytes - open.journaled;
        let given = gained.min(most as f64);
        open.journaled += given;
        open.since = (gained - given >= 0.5).then(|| since + (now - since) * given / gained);
        Some((given.ceil() as u64, since))
    }

    /// What the journal has of the open slot.
    fn journaled(&self) -> f64 {
        self.open.map_or(0.0, |open| open.journaled)
    }
}

/// A commit that is to be written.
#[derive(Clone, Copy, Debug)]
pub(super) struct Commit {
    pub(super) offset: u64,
    pub(super) bytes: u64,
    /// Slots that it names.
    pub(super) names: u64,
    /// Since when the oldest of its gains has been there.
    pub(super) since: Option<f64>,
}

/// The journal.
#[derive(Debug)]
pub(super) struct Journal {
    /// Bytes of records that wait.
    records: u64,
    /// Slots named and not begun yet, and how many are named at once.
    pub(super) runway: u64,
    named: u64,
    /// Where extent 0 begins, the bytes of one, which one is in use, and how far.
    base: u64,
    extent: u64,
    second: bool,
    at: u64,
    /// Bytes of the slot table, which a snapshot holds.
    table: u64,
    /// When orders come next.
    pub(super) orders: f64,
}

/// Bytes of the records of an ordinary commit: the runway, or a hold.
const RECORDS: u64 = 8 << 10;

/// Seconds between orders.
const ORDERS: f64 = 5.0;

impl Journal {
    pub(super) fn new(shape: &Shape, buffers: u32, slots: u64, base: u64) -> Self {
        let named = (2 * u64::from(buffers)).max(16).min(slots / 4).max(2);
        Self {
            records: 0,
            runway: named,
            named,
            base,
            extent: 2 * shape.slot.0,
            second: false,
            at: 0,
            table: 16 * slots,
            orders: ORDERS,
        }
    }

    /// What is owed by now.
    pub(super) fn owe(&mut self, now: f64) {
        if now >= self.orders {
            self.orders = now + ORDERS;
            self.records += RECORDS;
        }
    }

    fn renews(&self) -> bool {
        self.runway <= self.named / 2
    }

    /// Whether a commit waits to be written.
    pub(super) fn waits(&self, capture: &Capture, now: f64) -> bool {
        self.records > 0 || now >= capture.due() || self.renews()
    }

    /// Whether more than a commit of records goes before everything else.
    fn is_in_snapshot(&self) -> bool {
        self.records > 1 << 20
    }

    /// The next commit, of `most` bytes; records go first.
    pub(super) fn commit(&mut self, most: u64, capture: &mut Capture, now: f64) -> Commit {
        let most = most.min(1 << 20).min(self.extent / 2);
        let names = if self.renews() { self.named - self.runway } else { 0 };
        let mut bytes = if names > 0 { RECORDS } else { 0 };
        let records = self.records.min(most - bytes);
        self.records -= records;
        bytes += records;
        let given = if now >= capture.due() { capture.give(most - bytes, now) } else { None };
        bytes += given.map_or(0, |(bytes, _)| bytes);
        bytes = bytes.max(1).next_multiple_of(4096);
        if self.at + bytes > self.extent {
            // The other extent begins with all that still counts.
            (self.second, self.at) = (!self.second, 0);
            self.records += self.table + capture.journaled() as u64;
        }
        let offset = self.base + u64::from(self.second) * self.extent + self.at;
        self.at += bytes;
        Commit { offset, bytes, names, since: given.map(|(_, since)| since) }
    }
}
