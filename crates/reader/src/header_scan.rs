//! Scan of the heads of many slots: gaps, slots of a range, arrival times.
//!
//! Heads are read ahead. The rest of a slot is read only where its head requires it.

use super::RingReader;
use super::access::Access;
use super::birds_eye_cache::CachedSlot;
use super::interrupt::{Interrupt, flow};
use super::item::{Item, PlannedSlot, ReadReport, Selection};
use super::output::Output;
use super::read_request::ReadOutcome;
use super::row_filter::RowFilter;
use super::slot_head::{SlotDefect, SlotHead, head_bytes, may_have};
use super::slot_lookup::{IndexedSlot, LookupError};
use crate::ReaderError;
use holdfast_base::{Age, Ordinal, Sequence, StreamId, Timestamp};
use holdfast_format::{EntrySummary, Gap, Kind};
use holdfast_protocol::wire::{OpenSlotProjection, Purpose};
use holdfast_ring::{Ages, Bounds, SlotLook, SlotStatus};
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::ops::ControlFlow;

/// Heads read at once: enough for a drive to order them.
const AHEAD: usize = 16;

/// What is wanted of what a slot has of a stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum SlotMatch {
    Alone,
    /// And the slots before in which elements began that end there.
    WithBeginnings,
}

/// A head on its way.
enum HeadSource {
    /// The bird's-eye view had it, or an index drive, or it is open.
    Known(Box<SlotHead>),
    /// It is being read.
    UnderWay(u64),
}

/// What is done with a head.
type HeadVisitor<'l> =
    dyn FnMut(&mut RingReader, &PlannedSlot, Result<SlotHead, LookupError>) -> Result<(), Interrupt> + 'l;

impl RingReader {
    /// Reads the heads of slots in order and hands each to `look`; of what is open, with what is wanted behind that. This is a
    /// search, whoever wants it.
    fn heads(
        &mut self,
        planned: &[PlannedSlot],
        wanted: &OpenSlotProjection,
        look: &mut HeadVisitor<'_>,
    ) -> Result<(), Interrupt> {
        let before = self.reads_for(Purpose::Search);
        let looked = self.look_through(planned, wanted, look);
        self.reads_for(before);
        looked
    }

    fn look_through(
        &mut self,
        planned: &[PlannedSlot],
        wanted: &OpenSlotProjection,
        look: &mut HeadVisitor<'_>,
    ) -> Result<(), Interrupt> {
        let len = head_bytes(&self.superblock.geometry);
        let mut under_way: VecDeque<(PlannedSlot, HeadSource)> = VecDeque::new();
        let mut next = planned.iter();
        loop {
            while under_way.len() < AHEAD
                && let Some(slot) = next.next()
            {
                if slot.slot.is_none() {
                    self.take_open(slot, wanted)?;
                }
                let told = CachedSlot::of(&self.queue.access, &self.superblock, slot).map(|seen| seen.head);
                let open = || {
                    let bytes = self.queue.access.head_at_hand(slot)?;
                    SlotHead::decode(&bytes, &self.superblock, slot.slot, slot.sequence).ok()
                };
                let coming = match told.or_else(open).or_else(|| self.copied_head(slot)) {
                    Some(head) => HeadSource::Known(Box::new(head)),
                    None => HeadSource::UnderWay(self.queue.submit(slot.want(0, len))?),
                };
                under_way.push_back((*slot, coming));
            }
            let Some((slot, coming)) = under_way.pop_front() else { return Ok(()) };
            let head = match coming {
                HeadSource::Known(head) => Ok(*head),
                HeadSource::UnderWay(tag) => match self.queue.wait(tag)? {
                    ReadOutcome::Bytes(buffer) => {
                        let head = SlotHead::decode(&buffer, &self.superblock, slot.slot, slot.sequence);
                        self.queue.give(buffer);
                        head.map_err(LookupError::Defect)
                    }
                    ReadOutcome::Expired => Err(LookupError::Expired),
                    ReadOutcome::Unreadable(text) => Err(LookupError::Defect(SlotDefect::Damaged(text))),
                },
            };
            let looked = look(self, &slot, head);
            if looked.is_err() {
                for (_, coming) in under_way {
                    if let HeadSource::UnderWay(tag) = coming {
                        self.queue.forget(tag);
                    }
                }
                return looked;
            }
        }
    }

    /// Which slots have something of a selection, as first and last sequences: for holds. What has expired is not among
    /// them. An element that ends in one of them is there from its beginning.
    pub fn sequences(&mut self, selection: &Selection) -> Result<Vec<(Sequence, Sequence)>, ReaderError> {
        let plan = self.plan(selection)?;
        // Ordinals alone tell of every fragment.
        let wanted = if selection.range.is_timed() { SlotMatch::WithBeginnings } else { SlotMatch::Alone };
        let has = |_: &PlannedSlot, entry: &EntrySummary| may_have(entry, selection).then_some(wanted);
        self.sequences_of(&plan.slots, &selection.streams, &has)
    }

    /// The same for elements that are known, by the slot in which they end and the first of them there, and for stretches of
    /// arrival time, which come in order and do not touch each other.
    pub fn sequences_around(
        &mut self,
        streams: &[StreamId],
        known: &BTreeMap<(Sequence, StreamId), Ordinal>,
        spans: &[(Timestamp, Timestamp)],
    ) -> Result<Vec<(Sequence, Sequence)>, ReaderError> {
        let touched = |(first, last): (Timestamp, Timestamp)| {
            let at = spans.partition_point(|(_, to)| *to < first);
            first <= last && spans.get(at).is_some_and(|(from, _)| *from <= last)
        };
        let slots_known: BTreeSet<Sequence> = known.keys().map(|(sequence, _)| *sequence).collect();
        let mut slots = self.candidates()?;
        slots.retain(|slot| {
            let times = slot.first.zip(slot.last);
            slots_known.contains(&slot.sequence) || (!spans.is_empty() && times.is_none_or(touched))
        });
        let has = |slot: &PlannedSlot, entry: &EntrySummary| {
            let named = streams.is_empty() || streams.contains(&entry.stream);
            if named && entry.rows > 0 && entry.arrivals.is_some_and(touched) {
                return Some(SlotMatch::WithBeginnings);
            }
            // Only the first that ends there can have begun before, if it is no copy of several.
            let first = known.get(&(slot.sequence, entry.stream))?;
            let is_first = entry.ordinals.is_none_or(|(least, _)| *first <= least);
            Some(if is_first || slot.is_copy() { SlotMatch::WithBeginnings } else { SlotMatch::Alone })
        };
        self.sequences_of(&slots, streams, &has)
    }

    /// Which of these slots are wanted, and those where elements began that end there.
    fn sequences_of(
        &mut self,
        slots: &[PlannedSlot],
        streams: &[StreamId],
        wanted: &dyn Fn(&PlannedSlot, &EntrySummary) -> Option<SlotMatch>,
    ) -> Result<Vec<(Sequence, Sequence)>, ReaderError> {
        let mut found = BTreeSet::new();
        let mut ages: Vec<(Age, u64)> = Vec::new();
        self.look_for(slots, &mut found, &mut |slot, entry| {
            let wanted = wanted(slot, entry);
            if wanted == Some(SlotMatch::WithBeginnings) {
                ages.push((slot.age, entry.back));
            }
            wanted.is_some()
        })?;
        let ages: Ages = ages.into_iter().collect();
        let mut others = self.candidates()?;
        others.retain(|slot| ages.has(slot.age) && !found.contains(&slot.sequence));
        let wants = |stream| streams.is_empty() || streams.contains(&stream);
        self.look_for(&others, &mut found, &mut |_, entry| entry.rows > 0 && wants(entry.stream))?;
        let mut ranges: Vec<(Sequence, Sequence)> = Vec::new();
        for sequence in found {
            match ranges.last_mut() {
                Some((_, last)) if last.next() == sequence => *last = sequence,
                _ => ranges.push((sequence, sequence)),
            }
        }
        Ok(ranges)
    }

    /// Adds the sequences of slots that have something that is `wanted`, as far as they have not expired.
    fn look_for(
        &mut self,
        slots: &[PlannedSlot],
        found: &mut BTreeSet<Sequence>,
        wanted: &mut dyn FnMut(&PlannedSlot, &EntrySummary) -> bool,
    ) -> Result<(), ReaderError> {
        let result = self.heads(slots, &OpenSlotProjection::SUMMARY, &mut |_, slot, head| {
            let here = match head {
                // Each is asked, whatever the others say.
                Ok(head) => head.summary.entries.iter().filter(|entry| wanted(slot, entry)).count() > 0,
                Err(LookupError::Expired) => false,
                // What cannot be looked into may have it: better held in vain than lost.
                Err(LookupError::Defect(_)) => true,
                Err(LookupError::Failed(error)) => return Err(error.into()),
            };
            if here {
                found.insert(slot.sequence);
            }
            Ok(())
        });
        ended(result)
    }

    /// Gives the gaps of a selection, and what is damaged or expired. The heads of the slots decide which slots have gaps:
    /// a stream's counters leave out losses upstream and purges.
    pub fn gaps(
        &mut self,
        selection: &Selection,
        sink: &mut dyn FnMut(Item<'_>) -> ControlFlow<()>,
    ) -> Result<ReadReport, ReaderError> {
        let mut out = Output::new(sink);
        let plan = self.plan(selection)?;
        let filter = RowFilter::new(&selection.range);
        let mut done = 0;
        let result = self.heads(&plan.slots, &selection.of_open(), &mut |reader, slot, head| {
            let looked = match head {
                Ok(head) => reader.slot_gaps(slot, head, selection, &filter, &mut out),
                Err(miss) => Err(GapScanError::Lookup(miss)),
            };
            match looked {
                Ok(()) => {}
                Err(GapScanError::Off(interrupt)) => return Err(interrupt),
                Err(GapScanError::Lookup(LookupError::Failed(error))) => return Err(error.into()),
                Err(GapScanError::Lookup(LookupError::Expired)) => flow(out.expired(slot))?,
                Err(GapScanError::Lookup(LookupError::Defect(wrong))) => {
                    let place = match wrong {
                        SlotDefect::Damaged(text) => text,
                        SlotDefect::OtherSequence(sequence) => {
                            format!("part header: it holds sequence {sequence}")
                        }
                    };
                    flow(out.damaged(slot, &place))?;
                }
            }
            done += slot.bytes;
            flow(out.item(Item::Progress { bytes: done }))
        });
        if result.is_ok() {
            let _ = out.tell_expired();
        }
        let report = out.report;
        self.queue.drain()?;
        ended(result).map(|()| report)
    }

    /// The gaps of one slot.
    fn slot_gaps(
        &mut self,
        slot: &PlannedSlot,
        head: SlotHead,
        selection: &Selection,
        filter: &RowFilter,
        out: &mut Output<'_>,
    ) -> Result<(), GapScanError> {
        let entries = head.summary.entries.iter();
        let wanted: Vec<Option<StreamId>> = entries
            .map(|entry| (entry.gaps > 0 && may_have(entry, selection)).then_some(entry.stream))
            .collect();
        if wanted.iter().all(Option::is_none) {
            return Ok(());
        }
        let mut looked = IndexedSlot::new(&mut self.queue, *slot, head)?;
        for number in 0..looked.index.directory.len() {
            let entry = looked.index.directory[number];
            if !wanted.iter().enumerate().any(|(at, stream)| stream.is_some() && entry.may_have(at as u16)) {
                continue;
            }
            let chunk = looked.chunk(&mut self.queue, number)?;
            for (row, at) in chunk.rows().filter(|(row, _)| row.kind == Kind::Gap) {
                let Some(stream) = wanted.get(usize::from(row.stream)).copied().flatten() else { continue };
                let start = at as usize + usize::from(row.meta);
                let mut data = Vec::with_capacity(Gap::BYTES);
                looked.payload(&mut self.queue, start, start + row.len as usize, &mut data)?;
                let gap = Gap::decode(&data).map_err(|error| SlotDefect::Damaged(error.to_string()))?;
                if filter.gap(row.ordinal, &gap) {
                    flow(out.gap(stream, row.ordinal, gap))?;
                }
            }
        }
        Ok(())
    }

    /// Finds out the arrival times of every slot whose times are not known, which takes a small read each.
    pub fn learn_times(&mut self) -> Result<(), ReaderError> {
        if self.is_live() {
            return Ok(());
        }
        let unknown: Vec<PlannedSlot> = self
            .candidates()?
            .into_iter()
            .filter(|slot| slot.slot.is_some() && slot.first.is_none())
            .collect();
        self.learn(&unknown)
    }

    /// The same of the oldest slot that no hold keeps, for who asks how far back one can go.
    pub(crate) fn learn_oldest_live(&mut self) -> Result<(), ReaderError> {
        let mut live = self.slots()?;
        live.retain(|slot| slot.has_data() && slot.look != SlotLook::Held);
        live.sort_unstable_by_key(|slot| (slot.age, slot.sequence));
        let bytes = self.superblock.geometry.slot_bytes;
        for SlotStatus { slot, sequence, age, first, last, .. } in live {
            let planned = PlannedSlot { sequence, slot: Some(slot), age, first, last, held: false, bytes };
            if self.times(&planned)?.is_some() {
                return if first.is_some() { Ok(()) } else { self.learn(&[planned]) };
            }
        }
        Ok(())
    }

    /// Learns the bounds of slots, as far as they are not known, all at once.
    pub(crate) fn learn_briefs(&mut self, slots: &[PlannedSlot]) -> Result<(), ReaderError> {
        let unknown = |slot: &&PlannedSlot| slot.slot.is_some() && !self.briefs.contains_key(&slot.sequence);
        let unknown: Vec<PlannedSlot> = slots.iter().filter(unknown).copied().collect();
        let result =
            self.heads(&unknown, &OpenSlotProjection::SUMMARY, &mut |reader, slot, head| match head {
                Ok(head) => {
                    reader.remember(slot.sequence, &head);
                    Ok(())
                }
                Err(LookupError::Failed(error)) => Err(error.into()),
                // Whoever asks it is told.
                Err(LookupError::Expired | LookupError::Defect(_)) => Ok(()),
            });
        ended(result)
    }

    fn learn(&mut self, unknown: &[PlannedSlot]) -> Result<(), ReaderError> {
        let result = self.heads(unknown, &OpenSlotProjection::SUMMARY, &mut |reader, slot, head| {
            let bounds = match head {
                Ok(head) => Some(Bounds::of(head.summary.entries.iter().copied())),
                Err(LookupError::Failed(error)) => return Err(error.into()),
                Err(_) => None,
            };
            if let (Access::Direct(direct), Some(place)) = (&mut reader.queue.access, slot.slot) {
                direct.recovered_mut().note_bounds(place, bounds);
            }
            Ok(())
        });
        ended(result)
    }
}

/// What can come in the way of looking into a slot.
enum GapScanError {
    Lookup(LookupError),
    Off(Interrupt),
}

impl From<LookupError> for GapScanError {
    fn from(miss: LookupError) -> Self {
        Self::Lookup(miss)
    }
}

impl From<SlotDefect> for GapScanError {
    fn from(wrong: SlotDefect) -> Self {
        Self::Lookup(LookupError::Defect(wrong))
    }
}

impl From<Interrupt> for GapScanError {
    fn from(interrupt: Interrupt) -> Self {
        Self::Off(interrupt)
    }
}

/// That the sink had enough is no error.
fn ended(result: Result<(), Interrupt>) -> Result<(), ReaderError> {
    match result {
        Err(Interrupt::Failed(error)) => Err(error),
        _ => Ok(()),
    }
}
