//! Inspection of a ring: status, holds, slots and streams, the same with and without a recorder.

use crate::condition_hold::promised;
use crate::ledger::Ledger;
use crate::offline_order::BUFFERS;
use crate::recover::Recovered;
use crate::runway::runway_of;
use crate::state::Ring;
use crate::{
    ActKind, ActNumbers, ActStatus, HoldStatus, Range, RingStatus, SlotCounts, SlotStatus, StreamStatus,
    flush,
};
use holdfast_base::{ByteSize, HoldId, Sequence, SlotNo, StreamId, Timestamp};
use holdfast_format::{Act, Counters, Cursor, HoldRecord};
use std::time::Duration;

impl Ledger {
    /// A hold, and how many slots it keeps: those on the medium, and of `unwritten` those that it names.
    fn hold_look(&self, hold: &HoldRecord, unwritten: impl Iterator<Item = Sequence>) -> HoldStatus {
        HoldStatus {
            id: hold.id,
            created: hold.created,
            until: hold.until,
            reason: hold.reason.clone(),
            owner: hold.owner.clone(),
            streams: hold.streams.clone(),
            range: asked(hold),
            slots: self.kept(hold, unwritten),
            sequences: hold.sequences.clone(),
            condition_hold: hold.condition_hold.clone(),
            order: hold.order,
        }
    }

    /// Purges and other acts behind those numbers, the purges first.
    fn act_looks(&self, after: ActNumbers) -> impl Iterator<Item = ActStatus> {
        let purges = (self.dropped_purges + 1..).zip(&self.purges);
        let purges =
            purges.filter(move |(number, _)| *number > after.purges).map(|(number, purge)| ActStatus {
                number,
                kind: ActKind::Purge,
                at: purge.at,
                hold: None,
                stream: purge.stream,
                range: Range {
                    from: if purge.by_time { purge.from } else { Timestamp::MIN },
                    to: if purge.by_time { purge.to } else { Timestamp::MAX },
                    by_event: purge.by_event,
                    ordinals: purge.by_ordinal.then_some((purge.first_ordinal, purge.end_ordinal)),
                },
                slots: 0,
                elements: purge.elements,
                bytes: purge.bytes,
                reason: purge.reason.clone(),
                owner: purge.owner.clone(),
            });
        let others = self.acts.iter().filter(move |act| u64::from(act.number) > after.others);
        purges.chain(others.map(|act| ActStatus {
            number: act.number.into(),
            kind: match act.act {
                Act::Unknown => ActKind::Unknown,
                Act::Hold => ActKind::Hold,
                Act::Release => ActKind::Release,
                Act::End => ActKind::End,
                Act::Export => ActKind::Export,
            },
            at: act.at,
            hold: Some(act.hold).filter(|hold| *hold != HoldId(0)),
            stream: act.stream,
            range: Range {
                from: if act.by_time { act.from } else { Timestamp::MIN },
                to: if act.by_time { act.to } else { Timestamp::MAX },
                by_event: act.by_event,
                ordinals: act.by_ordinal.then_some((act.first_ordinal, act.end_ordinal)),
            },
            slots: act.slots,
            elements: 0,
            bytes: 0,
            reason: act.reason.clone(),
            owner: act.owner.clone(),
        }))
    }

    fn acts_dropped(&self) -> ActNumbers {
        ActNumbers { purges: self.dropped_purges, others: self.dropped_acts() }
    }

    /// Earliest and latest arrival of what is on the medium, as far as known.
    fn span(&self) -> (Option<Timestamp>, Option<Timestamp>) {
        self.table.span().unzip()
    }
}

/// The range that a hold was given for.
fn asked(hold: &HoldRecord) -> Range {
    Range {
        from: hold.from,
        to: hold.to,
        by_event: hold.by_event,
        ordinals: hold.by_ordinal.then_some((hold.first_ordinal, hold.end_ordinal)),
    }
}

impl Ring {
    /// The ring as a whole. `lane` is what a person calls its device.
    pub fn status(&self, lane: &str) -> RingStatus {
        let mut status = RingStatus {
            ring: self.superblock.ring,
            name: self.superblock.name.clone(),
            lane: lane.to_owned(),
            lane_bytes: ByteSize(0),
            slot_bytes: ByteSize(self.ledger.geometry.slot_bytes),
            epoch: self.epoch(),
            sequence: self.ledger.next,
            slots: SlotCounts::default(),
            oldest: None,
            newest: None,
            holds: 0,
            scanned: false,
            durable_after: Duration::ZERO,
        };
        self.refresh(&mut status);
        status
    }

    /// Brings a status up to date, names excepted, without allocating.
    pub fn refresh(&self, status: &mut RingStatus) {
        let (oldest, newest) = self.ledger.span();
        let moving = || self.unplaced.iter().chain(self.flying.iter().map(|f| &f.sealed)).map(|s| s.bounds);
        status.lane_bytes = ByteSize(self.ledger.geometry.lane_bytes);
        status.epoch = self.epoch();
        status.sequence = self.open.map_or(self.ledger.next, |o| o.sequence);
        status.slots = self.ledger.table.counts();
        status.slots.holdable = self.holdable();
        status.slots.promised = self.promised();
        if self.superblock.prefilled {
            status.slots.unwritten = 0;
        }
        status.oldest = oldest.into_iter().chain(moving().map(|b| b.first)).min();
        status.newest = newest.into_iter().chain(moving().map(|b| b.last)).max();
        status.holds = self.ledger.holds.len() as u32;
        status.scanned = self.unscanned == 0;
        status.durable_after = match &self.pledge {
            // A device that stands still for longer than was measured makes it longer meanwhile.
            Some(pledge) => pledge.durable_after.max(self.pending),
            None => flush::durable_after(self.config.flush, self.worst_write.max(self.pending)),
        };
    }

    /// The version of every stream's preamble that is in force, and its bytes.
    pub fn stream_preambles(&self) -> impl Iterator<Item = (StreamId, u32, u32)> {
        let bytes = |id, version| self.preamble(id, version).map_or(0, |bytes| bytes.len() as u32);
        self.ledger.streams.iter().map(move |s| (s.id, s.preamble, bytes(s.id, s.preamble)))
    }

    /// What every stream had come to with the last slot that was sealed.
    pub fn stream_counters(&self) -> impl Iterator<Item = (StreamId, Counters)> {
        self.ledger.streams.iter().map(|s| (s.id, s.counters))
    }

    /// How much of the open slot the journal has, durably.
    pub fn journaled(&self) -> Cursor {
        self.journal.open
    }

    /// Whether a sequence is on the medium and has not expired.
    pub fn holds_sequence(&self, sequence: Sequence) -> bool {
        self.ledger.table.find(sequence).is_some()
    }

    /// At most `count` holds with numbers above `after`, in rising order: each costs a look at every slot that it keeps.
    pub fn hold_looks_after(&self, after: HoldId, count: usize) -> impl Iterator<Item = HoldStatus> {
        let first = self.ledger.holds.iter().position(|h| h.id > after).unwrap_or(self.ledger.holds.len());
        self.ledger.holds[first..]
            .iter()
            .take(count)
            .map(|hold| self.ledger.hold_look(hold, self.unwritten()))
    }

    /// Sequences that are not on the medium yet.
    pub(crate) fn unwritten(&self) -> impl Iterator<Item = Sequence> {
        let moving = self.unplaced.iter().chain(self.flying.iter().map(|f| &f.sealed)).map(|s| s.sequence);
        moving.chain(self.open.map(|o| o.sequence))
    }

    /// Streams.
    pub fn stream_looks(&self) -> impl Iterator<Item = StreamStatus> {
        self.ledger.stream_looks()
    }

    /// Holds.
    pub fn hold_looks(&self) -> impl Iterator<Item = HoldStatus> {
        self.ledger.holds.iter().map(|hold| self.ledger.hold_look(hold, self.unwritten()))
    }

    /// The audit log behind those numbers: purges first, then other acts, each in the order of their numbers.
    pub fn act_looks(&self, after: ActNumbers) -> impl Iterator<Item = ActStatus> {
        self.ledger.act_looks(after)
    }

    /// How much of the audit log has been dropped.
    pub fn acts_dropped(&self) -> ActNumbers {
        self.ledger.acts_dropped()
    }

    /// At most `count` slots from `from` on.
    pub fn slot_looks(&self, from: SlotNo, count: u32) -> impl Iterator<Item = SlotStatus> {
        let end = from.0.saturating_add(count).min(self.ledger.table.len());
        (from.0..end).map(|no| self.ledger.table.look(SlotNo(no)))
    }
}

impl Recovered {
    /// The ring as a whole, as a restart would find it.
    pub fn status(&self, lane: &str) -> RingStatus {
        let mut slots = self.ledger.table.counts();
        // As many as a hold would be granted now.
        let kept_free = self.superblock.reserve.max(runway_of(slots.total, BUFFERS) + BUFFERS);
        let unwritten = || self.rebuilt.iter().map(|slot| slot.sealed.sequence);
        let promises = self.ledger.holds.iter().filter_map(|hold| self.ledger.promise(hold, unwritten()));
        slots.promised = promised(&promises.collect::<Vec<_>>());
        let taken = kept_free.saturating_add(slots.promised);
        slots.holdable = (slots.total - slots.bad - slots.held).saturating_sub(taken);
        if self.superblock.prefilled {
            slots.unwritten = 0;
        }
        let (oldest, newest) = self.ledger.span();
        let rebuilt = || self.rebuilt.iter().map(|r| r.sealed.bounds);
        RingStatus {
            ring: self.superblock.ring,
            name: self.superblock.name.clone(),
            lane: lane.to_owned(),
            lane_bytes: ByteSize(self.ledger.geometry.lane_bytes),
            slot_bytes: ByteSize(self.ledger.geometry.slot_bytes),
            epoch: self.ledger.epoch.epoch,
            sequence: self.ledger.next,
            slots,
            oldest: oldest.into_iter().chain(rebuilt().map(|b| b.first)).min(),
            newest: newest.into_iter().chain(rebuilt().map(|b| b.last)).max(),
            holds: self.ledger.holds.len() as u32,
            scanned: self.ledger.table.iter().all(|(_, s)| s.known),
            durable_after: Duration::ZERO,
        }
    }

    /// Takes note of what a slot's summary says of its bounds; `None` if it is damaged.
    pub fn note_bounds(&mut self, slot: SlotNo, bounds: Option<crate::Bounds>) {
        let mut here = self.ledger.table.get_mut(slot);
        here.known = true;
        match bounds {
            Some(bounds) => here.bounds = bounds,
            None => here.damaged = true,
        }
    }

    /// Streams.
    pub fn stream_looks(&self) -> impl Iterator<Item = StreamStatus> {
        self.ledger.stream_looks()
    }

    /// Holds.
    pub fn hold_looks(&self) -> impl Iterator<Item = HoldStatus> {
        let unwritten = || self.rebuilt.iter().map(|slot| slot.sealed.sequence);
        self.ledger.holds.iter().map(move |hold| self.ledger.hold_look(hold, unwritten()))
    }

    /// The audit log.
    pub fn act_looks(&self) -> impl Iterator<Item = ActStatus> {
        self.ledger.act_looks(ActNumbers::default())
    }

    /// How much of the audit log has been dropped.
    pub fn acts_dropped(&self) -> ActNumbers {
        self.ledger.acts_dropped()
    }

    /// Lets holds end whose time has come, as a recorder would: for who only looks.
    pub fn end_holds(&mut self, now: Timestamp) {
        while let Some(at) = self.ledger.holds.iter().position(|hold| hold.until <= now) {
            let hold = self.ledger.holds.remove(at);
            self.ledger.table.count_hold(&hold.sequences, false);
        }
    }

    /// All slots.
    pub fn slot_looks(&self) -> impl Iterator<Item = SlotStatus> {
        (0..self.ledger.table.len()).map(|no| self.ledger.table.look(SlotNo(no)))
    }
}
