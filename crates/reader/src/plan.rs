//! Plan of a read: the slots that a selection can be in.
//!
//! A search narrows them down, because arrival times and ordinals rise with the age of slots.

use super::RingReader;
use super::item::{Plan, PlannedSlot, Selection};
use super::slot_ages::is_broken;
use crate::ReaderError;
use holdfast_base::{Ordinal, StreamId, Timestamp};
use std::ops::Range;

/// Slots that are taken in addition at both ends of a range of time: elements of several sources may have been packed a
/// little out of order.
const MARGIN: usize = 2;

/// Slots in a row of which none may have anything of a range of time before those beyond them are taken to have nothing, either,
/// where that is not known: what one source sent may wait in its queue while others' is packed, and comes into many slots then,
/// little by little.
const LATE: usize = 16;

/// How far a stream that is rare is looked for around slots that are missing: not for ever.
const FAR: usize = 64;

/// Places that are looked at together while a slot is looked for. Beside a recorder that has much to write each answer may
/// take as long as a turn of writing, and half of the candidates is little to learn by it.
const SPREAD: usize = 15;

/// Places evenly spread over a stretch, or all of it.
fn spread(stretch: Range<usize>) -> Vec<usize> {
    if stretch.len() <= SPREAD {
        return stretch.collect();
    }
    (1..=SPREAD).map(|n| stretch.start + stretch.len() * n / (SPREAD + 1)).collect()
}

/// Whether the arrivals in a slot are known without reading it.
fn is_known(slot: &PlannedSlot) -> bool {
    slot.first.is_some() && slot.last.is_some()
}

impl RingReader {
    /// Which slots may have something of `selection`, in the order of their ages.
    pub fn plan(&mut self, selection: &Selection) -> Result<Plan, ReaderError> {
        let candidates = self.candidates()?;
        let range = self.range(&candidates, selection)?;
        let to_end = range.end == candidates.len();
        let (mut expired_before, mut begins) = (None, None);
        if let Some(first) = self.begins_before(&candidates, selection)? {
            let expired = self.has_expired(&candidates, selection)?;
            *(if expired { &mut expired_before } else { &mut begins }) = Some(first);
        }
        let expired_ordinals = self.expired_ordinals(&candidates, selection, FAR)?;
        let mut slots: Vec<PlannedSlot> = candidates[range.clone()].to_vec();
        // Copies keep the age of their youngest original and may hold older elements.
        slots.extend(candidates[range.end..].iter().filter(|slot| slot.is_copy()));
        let bytes = slots.iter().map(|slot| slot.bytes).sum();
        Ok(Plan {
            selection: selection.clone(),
            slots,
            of: candidates.len(),
            bytes,
            expired_before,
            begins,
            expired_ordinals,
            to_end,
        })
    }

    /// The stretch of the candidates that a selection can be in.
    fn range(
        &mut self,
        candidates: &[PlannedSlot],
        selection: &Selection,
    ) -> Result<Range<usize>, ReaderError> {
        let mut range = 0..candidates.len();
        let wanted = &selection.range;
        if wanted.is_timed() && !wanted.by_event {
            let last = |reader: &mut Self, slot: &PlannedSlot| Ok(reader.times(slot)?.map(|(_, last)| last));
            let unknown = |slot: &PlannedSlot| !is_known(slot);
            let start = self.first_where(candidates, unknown, last, |last| last >= wanted.from)?;
            let end = self.first_where(candidates, unknown, last, |last| last > wanted.to)?;
            range.start = self.early(candidates, start, wanted.from)?.saturating_sub(MARGIN);
            range.end = (self.late(candidates, end, wanted.to)? + MARGIN).min(candidates.len());
        }
        if let Some((first, end)) = wanted.ordinals {
            let mut all: Option<Range<usize>> = None;
            for stream in self.streams_of(selection)? {
                let ordinals = |reader: &mut Self, slot: &PlannedSlot| reader.ordinals(slot, stream);
                let start =
                    self.first_where(candidates, |_| true, ordinals, |(_, greatest)| greatest >= first)?;
                let stop = self.first_where(candidates, |_| true, ordinals, |(least, _)| least >= end)?;
                let stop = self.last_of(candidates, stop, stream, end)?;
                let range = all.get_or_insert(start..stop);
                *range = range.start.min(start)..range.end.max(stop);
            }
            let all = all.unwrap_or(0..0);
            range = range.start.max(all.start)..range.end.min(all.end);
        }
        range.end = range.end.max(range.start);
        Ok(range)
    }

    /// Before `start`, the first slot that has something as late as `from`: where a source has ended, what others sent before that may
    /// come behind it.
    fn early(
        &mut self,
        candidates: &[PlannedSlot],
        start: usize,
        from: Timestamp,
    ) -> Result<usize, ReaderError> {
        let near = start.saturating_sub(LATE);
        let unknown: Vec<_> =
            candidates[near..start].iter().filter(|slot| !is_known(slot)).copied().collect();
        self.learn_briefs(&unknown)?;
        for (at, slot) in candidates[..start].iter().enumerate() {
            let is_told = is_known(slot) || (at >= near && !self.is_awaited(slot));
            if is_told && self.times(slot)?.is_some_and(|(_, last)| last >= from) {
                return Ok(at);
            }
        }
        Ok(start)
    }

    /// Behind the last slot that may have something no later than `to`, of those from `end` on, the first that has something later.
    fn late(&mut self, candidates: &[PlannedSlot], end: usize, to: Timestamp) -> Result<usize, ReaderError> {
        let near = &candidates[end..candidates.len().min(end + LATE)];
        let unknown: Vec<_> = near.iter().filter(|slot| !is_known(slot)).copied().collect();
        self.learn_briefs(&unknown)?;
        let mut behind = (self.behind_awaited(candidates, end) + 1).min(candidates.len());
        for (at, slot) in candidates.iter().enumerate().skip(behind) {
            let may_have = if self.is_awaited(slot) {
                // As the one before it.
                at == behind
            } else if is_known(slot) || at < behind + LATE {
                self.times(slot)?.is_none_or(|(first, _)| first <= to)
            } else {
                false
            };
            if may_have {
                behind = at + 1;
            }
        }
        Ok(behind)
    }

    /// Whether a slot would have to be waited for: a recorder has not written it yet. While it writes what has piled up,
    /// that takes longer than all else about a plan.
    fn is_awaited(&self, slot: &PlannedSlot) -> bool {
        slot.slot.is_none() && self.is_live()
    }

    /// Behind the slots from `at` on that would have to be waited for.
    fn behind_awaited(&self, candidates: &[PlannedSlot], at: usize) -> usize {
        let awaited = candidates[at..].iter().take_while(|slot| self.is_awaited(slot)).count();
        at + awaited
    }

    /// Where a stream's ordinals below `end` stop: at `stop`, or behind what follows there and cannot tell yet, unless the
    /// slot before it reaches `end`.
    fn last_of(
        &mut self,
        candidates: &[PlannedSlot],
        stop: usize,
        stream: StreamId,
        end: Ordinal,
    ) -> Result<usize, ReaderError> {
        let behind = self.behind_awaited(candidates, stop);
        if let Some(before) = stop.checked_sub(1).filter(|_| behind > stop)
            && let Some((_, greatest)) = self.ordinals(&candidates[before], stream)?
            && greatest >= end
        {
            return Ok(stop);
        }
        Ok(behind)
    }

    /// The first candidate for which `is` holds, when it holds for all after one for which it does. A candidate that
    /// cannot tell, or would have to be waited for, is passed over. Heads of those that `unknown` says are not known are read for some places at once.
    fn first_where<T>(
        &mut self,
        candidates: &[PlannedSlot],
        unknown: impl Fn(&PlannedSlot) -> bool,
        tell: impl Fn(&mut Self, &PlannedSlot) -> Result<Option<T>, ReaderError>,
        is: impl Fn(T) -> bool,
    ) -> Result<usize, ReaderError> {
        let tell = |reader: &mut Self, slot: &PlannedSlot| {
            if reader.is_awaited(slot) { Ok(None) } else { tell(reader, slot) }
        };
        let (mut low, mut high) = (0, candidates.len());
        while low < high {
            let before = (low, high);
            let places = spread(low..high);
            let slots: Vec<PlannedSlot> = places.iter().map(|at| candidates[*at]).filter(&unknown).collect();
            self.learn_briefs(&slots)?;
            for at in places {
                match tell(self, &candidates[at])?.map(&is) {
                    Some(true) => {
                        high = at;
                        break;
                    }
                    Some(false) => low = at + 1,
                    None => {}
                }
            }
            if before == (low, high) {
                // None of these can tell: the first that can.
                let mut told = None;
                for (at, slot) in candidates[..high].iter().enumerate().skip(low) {
                    told = tell(self, slot)?.map(|answer| (at, is(answer)));
                    if told.is_some() {
                        break;
                    }
                }
                match told {
                    Some((at, false)) => low = at + 1,
                    Some((_, true)) | None => high = low,
                }
            }
        }
        Ok(high)
    }

    /// Earliest and latest arrival in a slot, where that can be had.
    pub(crate) fn times(
        &mut self,
        slot: &PlannedSlot,
    ) -> Result<Option<(Timestamp, Timestamp)>, ReaderError> {
        if let (Some(first), Some(last)) = (slot.first, slot.last) {
            return Ok(Some((first, last)));
        }
        let brief = self.brief(slot)?;
        Ok(brief.and_then(|brief| brief.first.zip(brief.last)))
    }

    /// Bounds of the first of these slots that has elements.
    pub(crate) fn first_times<'s>(
        &mut self,
        slots: impl Iterator<Item = &'s PlannedSlot>,
    ) -> Result<Option<(Timestamp, Timestamp)>, ReaderError> {
        for slot in slots {
            if let Some(times) = self.times(slot)? {
                return Ok(Some(times));
            }
        }
        Ok(None)
    }

    /// Least and greatest ordinal of a stream in a slot, where there are any.
    fn ordinals(
        &mut self,
        slot: &PlannedSlot,
        stream: StreamId,
    ) -> Result<Option<(Ordinal, Ordinal)>, ReaderError> {
        Ok(self.brief(slot)?.and_then(|brief| brief.of_stream(stream)))
    }

    /// The arrival of the oldest data that is left, if the range begins before that.
    fn begins_before(
        &mut self,
        candidates: &[PlannedSlot],
        selection: &Selection,
    ) -> Result<Option<Timestamp>, ReaderError> {
        let range = &selection.range;
        if range.from == Timestamp::MIN || range.by_event {
            return Ok(None);
        }
        let first = self.first_times(candidates.iter())?.map(|(first, _)| first);
        Ok(first.filter(|first| range.from < *first))
    }

    /// Whether anything of the wanted streams has expired.
    fn has_expired(
        &mut self,
        candidates: &[PlannedSlot],
        selection: &Selection,
    ) -> Result<bool, ReaderError> {
        let streams = self.streams()?;
        for stream in streams.iter().filter(|stream| selection.wants(stream.id)) {
            let reached = stream.counters.next_ordinal;
            if self.least(candidates, stream.id)?.unwrap_or(reached) > Ordinal(0) {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// The least ordinal of a stream that the ring still knows of: ordinals count from 0, and what was lost or purged
    /// stands there as a gap, so that what is below has expired.
    fn least(
        &mut self,
        candidates: &[PlannedSlot],
        stream: StreamId,
    ) -> Result<Option<Ordinal>, ReaderError> {
        // The oldest slot usually has every stream; one that is rare is looked for further on, but not for ever.
        for slot in candidates.iter().take(FAR) {
            if let Some((least, _)) = self.ordinals(slot, stream)? {
                return Ok(Some(least));
            }
        }
        Ok(None)
    }

    /// Ordinals of a selection that have expired. A stream is looked for around missing slots in so many at most.
    pub(crate) fn expired_ordinals(
        &mut self,
        candidates: &[PlannedSlot],
        selection: &Selection,
        far: usize,
    ) -> Result<Vec<(StreamId, Ordinal, Ordinal)>, ReaderError> {
        let Some((first, end)) = selection.range.ordinals else { return Ok(Vec::new()) };
        let counters: Vec<_> = self.streams()?.iter().map(|s| (s.id, s.counters.next_ordinal)).collect();
        let mut expired = Vec::new();
        for stream in self.streams_of(selection)? {
            let next = counters.iter().find(|(id, _)| *id == stream).map_or(Ordinal(0), |(_, next)| *next);
            let ordinals = |reader: &mut Self, slot: &PlannedSlot| reader.ordinals(slot, stream);
            let start =
                self.first_where(candidates, |_| true, ordinals, |(_, greatest)| greatest >= first)?;
            let stop = self.first_where(candidates, |_| true, ordinals, |(least, _)| least >= end)?;
            // What is missing may be behind slots that do not have the stream, too.
            let stop = stop.saturating_add(far).min(candidates.len());
            let mut told = Ordinal(0);
            for at in (start..=stop).filter(|at| is_broken(candidates, *at)) {
                let Some((from, to)) = self.hole(candidates, at, stream, next, far)? else { continue };
                let (from, to) = (from.max(first).max(told), to.min(end));
                if from < to {
                    expired.push((stream, from, to));
                    told = to;
                }
            }
        }
        Ok(expired)
    }

    /// The ordinals that a stream does not have around the place before a candidate where slots are missing: behind the
    /// last slot before it that has the stream, up to the first one after it. `None` where that is too far to look.
    fn hole(
        &mut self,
        candidates: &[PlannedSlot],
        at: usize,
        stream: StreamId,
        next: Ordinal,
        far: usize,
    ) -> Result<Option<(Ordinal, Ordinal)>, ReaderError> {
        let (mut before, mut behind) = (Some(Ordinal(0)), Some(next));
        for (looked, slot) in candidates[..at].iter().rev().enumerate() {
            if let Some((_, greatest)) = self.ordinals(slot, stream)? {
                before = Some(Ordinal(greatest.0.saturating_add(1)));
                break;
            }
            if looked == far {
                before = None;
                break;
            }
        }
        for (looked, slot) in candidates[at..].iter().enumerate() {
            if let Some((least, _)) = self.ordinals(slot, stream)? {
                behind = Some(least);
                break;
            }
            if looked == far {
                behind = None;
                break;
            }
        }
        Ok(before.zip(behind))
    }

    /// The streams that a selection means.
    fn streams_of(&mut self, selection: &Selection) -> Result<Vec<StreamId>, ReaderError> {
        if !selection.streams.is_empty() {
            return Ok(selection.streams.clone());
        }
        Ok(self.streams()?.iter().map(|stream| stream.id).collect())
    }
}
