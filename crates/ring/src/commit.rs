//! Commits of the journal: when one is due, which records it holds, and what follows when it is durable.
//! `journal` chooses its place, `ledger` its contents.

use crate::event::{Action, DeviceState};
use crate::journal::Flight;
use crate::snapshot::{Item, Runway, Walk};
use crate::state::{Appending, Ring};
use crate::table::State;
use holdfast_base::{Sequence, SlotNo, Timestamp};
use holdfast_format::{CommitHead, CommitWriter, Cursor};
use holdfast_media::Fault;

/// Bytes of the open slot that a snapshot takes along.
const LARGE: u32 = 64 << 20;

/// Lists of the runway in one extent whose places do not tell sequences, about: a restart reads the headers of all slots that
/// these name.
const UNTOLD: u32 = 8;

impl Ring {
    /// The lowest sequence that is not on the medium.
    pub(crate) fn lowest_unwritten(&self) -> Sequence {
        let flying = self.flying.iter().map(|f| f.sealed.sequence);
        let unplaced = self.unplaced.iter().map(|s| s.sequence);
        let open = self.open.iter().map(|o| o.sequence);
        let doubted = self.doubted.iter().map(|(sequence, _)| *sequence);
        flying.chain(unplaced).chain(open).chain(doubted).min().unwrap_or(self.ledger.next)
    }

    /// Whether a commit should be made now: where it goes and how large it may be. The caller fills it with
    /// [`Ring::fill`] and submits it.
    pub fn plan_commit(&mut self) -> Option<(u64, usize)> {
        let place = self.place_of_commit();
        // A step of a purge that still overwrites what stood there ends first.
        place.filter(|_| self.jobs.erasing != Some(self.journal.extent().0))
    }

    fn place_of_commit(&mut self) -> Option<(u64, usize)> {
        if self.journal.flight.is_some() {
            return None;
        }
        if matches!(self.device, DeviceState::Absent { .. }) {
            return None;
        }
        if let Some(snapshot) = &self.journal.snapshot {
            // Its end waits for what the journal alone has of sealed slots.
            let walked = snapshot.walk == Walk::Whole && !snapshot.list_again;
            let waits = walked && snapshot.whole && !self.may_end_snapshot();
            if waits {
                self.unblock();
            }
            return (!waits).then(|| self.journal.place());
        }
        if self.starting.is_some() {
            self.look_for_start();
            if self.appending == Appending::Yes && self.journal.is_out_of_room() {
                self.stop_appending();
            }
            if self.journaled.is_empty() && self.appending != Appending::Yes {
                self.switch_extent();
                return Some(self.journal.place());
            }
            if self.journal.is_out_of_room() {
                self.unblock();
                return None;
            }
        }
        if self.jobs.switching && self.may_switch() && !self.open_is_large() {
            self.switch_extent();
            self.jobs.switching = false;
            return Some(self.journal.place());
        }
        let gains = self.flush_wanted && self.starting.is_none();
        if !self.journal.is_due() && !gains {
            return None;
        }
        let may_switch = self.may_switch() && !self.open_is_large();
        let is_worn = || self.jobs.runway_order.untold > UNTOLD || self.journal.is_worn(|| self.live_bytes());
        if self.starting.is_none() && may_switch && is_worn() {
            self.switch_extent();
        } else if self.journal.is_full() && self.starting.is_none() {
            let out_of_room = self.journal.is_out_of_room();
            if may_switch || out_of_room {
                self.switch_extent();
            } else if !self.journal.is_due() {
                return None;
            }
        }
        Some(self.journal.place())
    }

    /// Whether the run can begin before all that the journal alone has is on the medium: behind it, in the same extent.
    fn look_for_start(&mut self) {
        if self.appending != Appending::Unknown || self.journaled.is_empty() {
            return;
        }
        self.appending = Appending::No;
        // A superblock that knows less than the journal is told by a snapshot.
        if let Some(epoch) = self.starting
            && !self.journal.is_out_of_room()
            && self.superblock.geometry == self.ledger.geometry
        {
            self.appending = Appending::Yes;
            self.ledger.epoch = epoch;
            self.ledger.unclean = true;
            // Behind the streams of the run, which nothing of it may be found without.
            self.journal.queue.append(&mut self.joining);
            self.journal.push(Item::Epoch, None);
        }
    }

    /// Whether the run cannot begin before what is doubted has been looked at.
    pub(crate) fn start_waits_for_doubts(&self) -> bool {
        self.is_starting() && self.appending == Appending::No && !self.doubted.is_empty()
    }

    /// The run cannot begin behind what is in the journal: it begins with a snapshot, once that is on the medium.
    fn stop_appending(&mut self) {
        self.appending = Appending::No;
        self.journal.queue.retain(|entry| entry.item != Item::Epoch);
    }

    /// Whether a snapshot that begins now can end: nothing of sealed slots is in the journal alone, and slots are there.
    fn may_switch(&self) -> bool {
        self.journaled.is_empty() && self.runway.len() > 1
    }

    /// Whether the journal has more of the open slot than a snapshot is to take along: a restart that finds a snapshot that
    /// is not whole reads all that it has, and the other extent behind it.
    fn open_is_large(&self) -> bool {
        self.journal.open.payload > LARGE && self.open.is_some_and(|open| open.journaled)
    }

    /// Whether the open slot should be sealed short so that the other extent can begin with little.
    pub(crate) fn is_too_large_for_snapshot(&self) -> bool {
        let wanted = self.journal.is_full() || self.jobs.switching;
        wanted && self.open_is_large() && self.journal.snapshot.is_none() && self.starting.is_none()
    }

    /// About what a snapshot would take now.
    fn live_bytes(&self) -> u64 {
        let open = self.journal.open;
        let table = 16 * u64::from(self.ledger.table.len());
        table + self.ledger.control_bytes() + u64::from(open.payload) + 16 * u64::from(open.rows)
    }

    /// What the journal alone has must reach the medium before its extent may be given up, and no slot is named for it,
    /// nor can one be. Then it takes slots that are not named durably: after a crash the journal has it still, and what
    /// stood there was the oldest.
    fn unblock(&mut self) {
        if self.runway.is_empty() && self.flying.is_empty() && !self.unplaced.is_empty() {
            // What comes behind them can wait until their places are named.
            let last = self.unplaced.iter().rposition(|sealed| self.journaled.contains(&sealed.sequence));
            if last.is_none() && !self.doubted.is_empty() {
                // It is the check behind capture that is waited for.
                return;
            }
            let wanted = last.map_or(1, |at| at + 1).min(self.naming.len());
            self.take_unnamed(wanted);
            if self.runway.is_empty() {
                self.runway.extend(self.failed_writes.take());
            }
            // Else the snapshot's table would tell of what stood there before.
            self.list_again();
            if let Some(snapshot) = &mut self.journal.snapshot {
                snapshot.named = snapshot.named.map(|(until, _)| (until, 0));
            }
        }
    }

    /// Takes so many of the places that are not named durably, in the order in which a restart looks there. It knows of no
    /// pins: what these have kept goes in its turn.
    pub(crate) fn take_unnamed(&mut self, count: usize) {
        let mut scratch = std::mem::take(&mut self.slots_scratch);
        self.ledger.table.pinned_victims(count, &mut scratch);
        let mut pinned = scratch.iter().copied().peekable();
        for _ in 0..count {
            let table = &mut self.ledger.table;
            let Some(turn) = self.naming.first().map(|no| table.get(*no).turn()) else { break };
            let place = if let Some(no) = pinned.next_if(|no| table.get(*no).turn() < turn) {
                table.name(no);
                no
            } else {
                self.naming.remove(0)
            };
            self.runway.push_back(place);
        }
        self.slots_scratch = scratch;
    }

    /// Whether nothing would be lost if the extent in use were given up.
    pub(crate) fn may_end_snapshot(&self) -> bool {
        self.journaled.is_empty() || self.starved().is_some()
    }

    pub(crate) fn switch_extent(&mut self) {
        let oldest =
            self.ledger.table.iter().filter(|(_, s)| s.state == State::Data).map(|(_, s)| s.sequence).min();
        self.ledger.make_room();
        self.ledger.forget_preambles(oldest.unwrap_or(self.ledger.next).min(self.lowest_unwritten()));
        if let Some(epoch) = self.starting {
            self.ledger.epoch = epoch;
            self.ledger.unclean = true;
        }
        if self.superblock.geometry != self.ledger.geometry {
            self.superblock.geometry = self.ledger.geometry.clone();
            self.ledger.recovery = self.superblock.to_recovery_string();
        }
        self.jobs.runway_order.untold = 0;
        self.journal.switch(self.open.map(|o| o.sequence));
    }

    /// The slots that the sequences from the lowest unwritten one on have got, in the order of the sequences: also those
    /// whose write overtook an older one, so that a slot's place in the list tells its sequence.
    pub(crate) fn list_flying(&mut self, slots: &mut Vec<SlotNo>) {
        let lowest = self.lowest_unwritten();
        let table = &self.ledger.table;
        self.landed.retain(|(sequence, no)| {
            let here = table.get(*no);
            *sequence > lowest && here.state == State::Data && here.sequence == *sequence
        });
        let landed = self.landed.iter().copied();
        self.order_scratch.clear();
        let flying = self.flying.iter().map(|f| (f.sealed.sequence, f.slot));
        let doubted = self.doubted.iter().copied();
        self.order_scratch.extend(flying.chain(landed).chain(doubted));
        self.order_scratch.sort_unstable();
        self.order_scratch.dedup();
        slots.extend(self.order_scratch.iter().map(|(_, no)| *no));
    }

    /// The slots of a runway record, in its order; how many of them sequences are reserved for.
    fn list_runway(&mut self, slots: &mut Vec<SlotNo>) -> usize {
        slots.clear();
        self.list_flying(slots);
        slots.extend(&self.runway);
        slots.extend(&self.naming);
        slots.extend(&self.jobs.copying);
        let usable = slots.len();
        // What failed goes last: no sequence is given to it, and places in front of it tell theirs.
        slots.extend(self.failed_writes.slots());
        usable
    }

    /// Fills the planned commit. `gains` appends what the open slot has from a cursor on, as far as there is room,
    /// and tells how far it came and whether that was all.
    pub fn fill(
        &mut self,
        writer: &mut CommitWriter<'_>,
        gains: &mut dyn FnMut(Cursor, &mut CommitWriter<'_>) -> (Cursor, bool),
    ) -> CommitHead {
        let (offset, _) = self.journal.place();
        let naming = self.lowest_unwritten();
        let mut slots = std::mem::take(&mut self.slots_scratch);
        let usable = self.list_runway(&mut slots) as u64;
        let until = self.could_reserve().max(Sequence(naming.0 + usable + 1));
        let tells = !self.jobs.runway_order.are_broken();
        let runway = Runway { naming, slots: &slots, until, tells };
        let mut flight = Flight {
            offset,
            bytes: 0,
            failed: false,
            retried: false,
            entries: std::mem::take(&mut self.journal.spare),
            open: None,
            ends: false,
            named: None,
            filled: Some(self.ticked),
            begun: self.failed_writes.begin(),
        };
        let mut head = CommitHead {
            ring: self.superblock.ring,
            generation: self.journal.generation,
            number: self.journal.number + 1,
            epoch: self.ledger.epoch.epoch,
            begins: false,
            part: false,
            ends: false,
        };
        let open_of = self.open.map(|o| o.sequence);
        let may_end = self.may_end_snapshot();
        let may_gain = !self.journal.is_full() && self.starting.is_none();
        if let Some(snapshot) = &mut self.journal.snapshot {
            head.begins = !snapshot.begun;
            head.part = true;
            snapshot.begun = true;
            while snapshot.walk != Walk::Whole {
                let names = snapshot.walk == Walk::Runway;
                if !self.ledger.emit_part(&mut snapshot.walk, &runway, writer) {
                    break;
                }
                if names {
                    snapshot.named = Some((until, self.naming.len()));
                    self.jobs.runway_order.list(naming);
                }
            }
            if snapshot.walk == Walk::Whole
                && snapshot.list_again
                && self.ledger.emit(&mut Item::Runway, &runway, writer)
            {
                snapshot.list_again = false;
                snapshot.named = Some((until, self.naming.len()));
                self.jobs.runway_order.list(naming);
            }
            if snapshot.walk == Walk::Whole && !snapshot.list_again {
                // A slot that was opened meanwhile has nothing in the old extent; what it gains comes later, so that
                // no more than one slot has to fit.
                let mut all = true;
                if let Some(of) = open_of.filter(|of| snapshot.of == Some(*of)) {
                    (snapshot.open, all) = gains(snapshot.open, writer);
                    flight.open = Some((of, snapshot.open));
                }
                snapshot.whole = all;
                head.ends = all && may_end;
                flight.ends = head.ends;
                flight.named = snapshot.named.filter(|_| head.ends);
            }
        } else {
            while let Some(entry) = self.journal.queue.front_mut() {
                if !self.ledger.emit(&mut entry.item, &runway, writer) {
                    break;
                }
                if matches!(entry.item, Item::Runway | Item::Epoch) {
                    flight.named = Some((until, self.naming.len()));
                    self.jobs.runway_order.list(naming);
                }
                flight.entries.extend(self.journal.queue.pop_front());
            }
            if self.flush_wanted && may_gain && self.journal.queue.is_empty() {
                let mut all = true;
                if let Some(of) = open_of {
                    // With every new slot the runway again, so that a restart has few slots to look into.
                    if self.journal.open == Cursor::default()
                        && self.ledger.emit(&mut Item::Runway, &runway, writer)
                    {
                        flight.named = Some((until, self.naming.len()));
                        self.jobs.runway_order.list(naming);
                    }
                    let (open, whole) = gains(self.journal.open, writer);
                    flight.open = Some((of, open));
                    (all, flight.filled) = (whole, flight.filled.filter(|_| whole));
                }
                self.flush_wanted = !all;
            }
        }
        self.slots_scratch = slots;
        if let (Some(open), true) = (&mut self.open, flight.open.is_some()) {
            open.journaled = true;
        }
        if head.part && !head.ends {
            // Not durable before the snapshot is whole.
            flight.open = None;
        }
        self.journal.flight = Some(flight);
        head
    }

    /// Takes note of the filled commit's length; it is in flight from here on.
    pub fn filled(&mut self, bytes: usize) {
        if let Some(flight) = &mut self.journal.flight {
            flight.bytes = bytes;
        }
        self.journal.advance(bytes);
    }

    pub(crate) fn committed(&mut self, result: Result<(), Fault>, now: Timestamp, out: &mut Vec<Action>) {
        let Some(mut flight) = self.journal.flight.take() else {
            return;
        };
        if let Err(fault) = result {
            // The driver keeps the commit's bytes and writes them again where they belong: at once the first time.
            if fault == Fault::Io && !flight.retried {
                self.retry_commit = true;
            } else if fault == Fault::Io && self.journal.snapshot.is_none() && self.starting.is_none() {
                // The place is bad: the other extent says it all.
                for entry in flight.entries.drain(..).rev() {
                    self.journal.queue.push_front(entry);
                }
                self.journal.spare = flight.entries;
                self.want_flush(true);
                self.switch_extent();
                return;
            } else if fault == Fault::Io && self.appending == Appending::Yes && self.starting.is_some() {
                // Nothing can follow here: what only this extent has goes to its place first, and then the other begins.
                self.journal.give_up();
                for entry in flight.entries.drain(..).rev() {
                    self.journal.queue.push_front(entry);
                }
                self.journal.spare = flight.entries;
                self.stop_appending();
                return;
            } else {
                self.absent(fault, now);
            }
            self.journal.flight = Some(Flight { failed: true, retried: true, ..flight });
            return;
        }
        self.device = DeviceState::Well;
        self.succeeded(flight.begun);
        self.journal.written += flight.bytes as u64;
        if let Some((until, fresh)) = flight.named {
            self.runway.extend(self.naming.drain(..fresh.min(self.naming.len())));
            self.reserved = self.reserved.max(until);
        }
        if let (Some(open), Some((of, cursor))) = (&mut self.open, flight.open)
            && open.sequence == of
        {
            self.journal.open = cursor;
            match flight.filled {
                // What came while the commit was under way is that old already.
                Some(filled) => open.filling.journaled(filled),
                None => open.filling.journaled_to(cursor.whole),
            }
        }
        if flight.ends {
            self.journal.snapshot = None;
            self.starting = None;
        }
        if self.starting.is_some() && flight.entries.iter().any(|entry| entry.item == Item::Epoch) {
            self.starting = None;
        }
        for entry in flight.entries.drain(..) {
            self.recorded(&entry, out);
        }
        self.journal.spare = flight.entries;
    }

    /// Where the commit in flight is to be written again, if its write failed and the device may answer again.
    pub fn retry_commit(&mut self) -> Option<u64> {
        if !std::mem::take(&mut self.retry_commit) {
            return None;
        }
        let flight = self.journal.flight.as_mut().filter(|f| f.failed)?;
        flight.failed = false;
        flight.begun = self.failed_writes.begin();
        Some(flight.offset)
    }
}
