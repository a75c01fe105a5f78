//! Simulated readers: their next request, and their appetite.

use holdfast_media::Seed;
use holdfast_ring::{Class, ReadRequest};

/// How a reader goes about it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Habit {
    /// Slot after slot, from front to back.
    Sequential,
    /// A quantum anywhere.
    Scattered,
    /// A quantum at one end of the lane, then one at the other.
    Torn,
    /// Slot after slot, but no more than so many bytes a second.
    Paced(f64),
    /// Slot after slot, each read so many seconds after the answer to the one before.
    Stepwise(f64),
    /// The same place over and over: one that cannot be read, in this slot at this byte.
    Stubborn(u64, u64),
}

/// A reader in time.
#[derive(Clone, Debug)]
pub struct Reader {
    pub(super) habit: Habit,
    pub(super) class: Class,
    pub(super) client: u64,
    /// Reads of its that wait or are under way.
    pub(super) asked: usize,
    slot: u64,
    at: u64,
    count: u64,
    /// When one that does not ask at once asks again.
    ready: f64,
    seed: Seed,
}

/// Reads that a reader has under way at once.
const AHEAD: usize = 2;

impl Reader {
    /// A reader of a habit.
    pub fn new(client: u64, class: Class, habit: Habit, seed: u64) -> Self {
        let mut seed = Seed::new(seed);
        let slot = seed.bits() >> 32;
        Self { habit, class, client, asked: 0, slot, at: 0, count: 0, ready: 0.0, seed }
    }

    /// When it asks for more; `None`: when it has got an answer.
    pub(super) fn asks(&self) -> Option<f64> {
        let most = if matches!(self.habit, Habit::Stepwise(_)) { 1 } else { AHEAD };
        (self.asked < most).then_some(self.ready)
    }

    /// It has got an answer.
    pub(super) fn answered(&mut self, now: f64) {
        self.asked -= 1;
        if let Habit::Stepwise(pause) = self.habit {
            self.ready = now + pause;
        }
    }

    /// What it wants next.
    pub(super) fn ask(
        &mut self,
        id: u64,
        now: f64,
        slots: u64,
        slot_bytes: u64,
        quantum: u64,
    ) -> ReadRequest {
        let quantum = quantum.min(slot_bytes);
        self.count += 1;
        let (slot, at) = match self.habit {
            Habit::Sequential | Habit::Paced(_) | Habit::Stepwise(_) => {
                if self.at + quantum > slot_bytes {
                    (self.slot, self.at) = (self.slot + 1, 0);
                }
                let here = (self.slot % slots, self.at);
                self.at += quantum;
                here
            }
            Habit::Scattered => {
                (self.seed.below(slots), self.seed.below((slot_bytes - quantum) / 4096 + 1) * 4096)
            }
            Habit::Torn => (if self.count.is_multiple_of(2) { 0 } else { slots - 1 }, 0),
            Habit::Stubborn(slot, at) => (slot.min(slots - 1), at.min(slot_bytes - quantum)),
        };
        if let Habit::Paced(rate) = self.habit {
            self.ready = self.ready.max(now) + quantum as f64 / rate;
        }
        self.asked += 1;
        ReadRequest {
            id,
            class: self.class,
            client: self.client,
            offset: slot << 32 | at,
            bytes: quantum as u32,
        }
    }
}
