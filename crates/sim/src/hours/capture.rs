//! What capture and the journal hold: buffers that fill, gains and records that wait for a commit, the runway. Only counted.

use holdfast_ring::Shape;
use std::collections::VecDeque;

/// The slot that is being filled.
#[derive(Clone, Copy, Debug)]
struct Open {
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
    /// Since when the full slots have had what the journal has not got, the oldest first.
    pub(super) full: VecDeque<f64>,
    /// Seconds that the open slot may have something that nobody made durable.
    patience: f64,
    pub(super) lost: f64,
    pub(super) arrived: f64,
}

impl Capture {
    pub(super) fn new(slot: u64, buffers: u32, patience: f64) -> Self {
        let full = VecDeque::with_capacity(buffers as usize + 1);
        Self { slot: slot as f64, free: buffers, open: None, full, patience, lost: 0.0, arrived: 0.0 }
    }

    /// What the open slot still takes; nothing when none is open.
    pub(super) fn room(&self) -> f64 {
        self.open.map_or(0.0, |open| self.slot - open.bytes)
    }

    /// The same, if one is open.
    pub(super) fn open_room(&self) -> Option<f64> {
        self.open.map(|open| self.slot - open.bytes)
    }

    /// Bytes until something happens; when none is open, that is a slot's first ones.
    pub(super) fn until_full(&self) -> f64 {
        self.open.map_or(4096.0, |open| self.slot - open.bytes).max(0.5)
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
                self.open = Some(Open { bytes: 0.0, journaled: 0.0, since: None });
                continue;
            };
            let taken = bytes.min(self.slot - open.bytes);
            bytes -= taken;
            open.bytes += taken;
            let since = *open.since.get_or_insert(first);
            // What rounding leaves is not a slot's worth of anything.
            if self.slot - open.bytes < 0.5 {
                self.full.push_back(since);
                self.open = None;
                first = now;
            }
        }
    }

    /// When the journal is to have what the open slot gained.
    pub(super) fn due(&self) -> f64 {
        self.open.and_then(|open| open.since).map_or(f64::INFINITY, |since| since + self.patience)
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
