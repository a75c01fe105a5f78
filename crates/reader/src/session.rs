//! Session of one read: slot by slot, chunk by chunk, row by row, from the plan to the sink.

use super::access::Access;
use super::assembler::{Assembler, FragmentStep, PartialElement};
use super::backfill;
use super::interrupt::{Interrupt, SlotInterrupt, enough, flow};
use super::item::{Element, Item, Missing, PlannedSlot};
use super::output::{Output, Preambles};
use super::read_ahead::{PreparedSlot, ReadAhead};
use super::row_filter::RowFilter;
use super::row_position::RowPosition;
use super::slot_ages::missing_between;
use super::slot_head::SlotDefect;
use crate::ReaderError;
use holdfast_base::{Age, StreamId};
use holdfast_format::{Cause, Chunk, Flags, Gap, Kind, Row};

/// Finds a preamble.
pub(crate) type LoadPreamble<'l> =
    dyn FnMut(&mut Access, StreamId, u32) -> Result<Option<Vec<u8>>, ReaderError> + 'l;

/// What outlives a change of access in the middle of a read.
pub(crate) struct ReadState<'s> {
    pub(crate) out: Output<'s>,
    pub(crate) assembler: Assembler,
    pub(crate) filter: RowFilter,
    pub(crate) preambles: Preambles,
    /// Whether damage was found since the read began.
    pub(crate) damage: bool,
    /// The age of the last slot that expired since the read began.
    pub(crate) expired: Option<Age>,
    /// The slot, by its place in the plan, whose damage has been confirmed.
    pub(crate) confirmed: Option<usize>,
    /// Whether damage must be confirmed: a recorder may have taken the ring.
    pub(crate) suspicious: bool,
    /// Bytes of slots dealt with.
    pub(crate) done: u64,
}

impl ReadState<'_> {
    /// What a fragment that is missing between slots of these ages is put down to, if anything is known.
    pub(crate) fn hole(&self, candidates: &[PlannedSlot], after: Age, until: Age) -> Option<Missing> {
        let expired = self.expired.is_some_and(|expired| after < expired && expired <= until);
        if self.damage {
            Some(Missing::Damaged)
        } else {
            (expired || missing_between(candidates, after, until)).then_some(Missing::Expired)
        }
    }
}

/// How the slots that are looked through may be found again: older ones, for the beginnings of elements.
pub(crate) struct Session<'a, 's, 'f> {
    pub(crate) state: &'a mut ReadState<'s>,
    pub(crate) read_ahead: ReadAhead<'f>,
    /// Every slot there is, oldest first.
    pub(crate) candidates: &'a [PlannedSlot],
    /// Place in the plan of the first slot that is read ahead.
    pub(crate) base: usize,
    /// Rows of that slot that have been given.
    pub(crate) skip: u32,
}

impl Session<'_, '_, '_> {
    /// Goes through all planned slots. `taken` says whether a recorder has begun to answer meanwhile.
    pub(crate) fn run(
        &mut self,
        load: &mut LoadPreamble<'_>,
        taken: &dyn Fn() -> bool,
    ) -> Result<(), Interrupt> {
        let mut at = self.base;
        loop {
            let skip = if at == self.base { self.skip } else { 0 };
            if self.state.suspicious && self.read_ahead.has_more() && taken() {
                return Err(Interrupt::Suspect(at, skip));
            }
            let Some((planned, settled)) = self.read_ahead.next_slot()? else { return Ok(()) };
            match settled {
                None => {
                    self.load_preambles(load)?;
                    self.slot(at, &planned, skip)?;
                }
                Some(PreparedSlot::Expired) => self.expired(&planned)?,
                Some(PreparedSlot::Defective(wrong)) => self.wrong(at, skip, &planned, &wrong)?,
                Some(PreparedSlot::Ready(_)) => {}
            }
            self.read_ahead.end_slot();
            self.state.done += planned.bytes;
            flow(self.state.out.item(Item::Progress { bytes: self.state.done }))?;
            at += 1;
        }
    }

    /// A slot that is gone, if anything of it was wanted.
    fn expired(&mut self, planned: &PlannedSlot) -> Result<(), Interrupt> {
        self.state.expired = Some(planned.age);
        if self.state.filter.may_want(planned) { flow(self.state.out.expired(planned)) } else { Ok(()) }
    }

    /// A slot whose head is not what it should be.
    fn wrong(
        &mut self,
        at: usize,
        row: u32,
        planned: &PlannedSlot,
        wrong: &SlotDefect,
    ) -> Result<(), Interrupt> {
        let place = match wrong {
            SlotDefect::Damaged(text) => text.clone(),
            SlotDefect::OtherSequence(sequence) => format!("part header: it holds sequence {sequence}"),
        };
        self.damaged(at, row, planned, &place)
    }

    /// Tells of damage, once it is known to be that.
    fn damaged(&mut self, at: usize, row: u32, planned: &PlannedSlot, place: &str) -> Result<(), Interrupt> {
        if self.state.suspicious && self.state.confirmed != Some(at) {
            return Err(Interrupt::Suspect(at, row));
        }
        self.state.damage = true;
        flow(self.state.out.damaged(planned, place))
    }

    /// Makes sure that the preambles of a slot's streams are at hand.
    fn load_preambles(&mut self, load: &mut LoadPreamble<'_>) -> Result<(), Interrupt> {
        let Some(work) = &self.read_ahead.work else { return Ok(()) };
        let entries = work.head.summary.entries.iter().map(|entry| (entry.stream, entry.preamble));
        self.state.out.begin_slot(entries);
        let wanted = work.head.summary.entries.iter().zip(&work.wanted);
        let missing: Vec<(StreamId, u32)> = wanted
            .filter(|(entry, wanted)| wanted.is_some() && entry.preamble != 0)
            .map(|(entry, _)| (entry.stream, entry.preamble))
            .filter(|key| !self.state.preambles.contains_key(key))
            .collect();
        for (stream, version) in missing {
            if let Some(bytes) = load(&mut self.read_ahead.queue.access, stream, version)? {
                self.state.preambles.insert((stream, version), bytes);
            }
        }
        Ok(())
    }

    /// One sound slot.
    fn slot(&mut self, at: usize, planned: &PlannedSlot, skip: u32) -> Result<(), Interrupt> {
        let chunks =
            self.read_ahead.work.as_mut().map(|work| std::mem::take(&mut work.chunks)).unwrap_or_default();
        for number in chunks {
            let Some(work) = &self.read_ahead.work else { return Ok(()) };
            let first_row = work.index.directory[number].first_row;
            let result = match self.read_ahead.chunk(number) {
                Ok(Ok(chunk)) => self.rows(at, planned, number, &chunk, skip.saturating_sub(first_row)),
                Ok(Err(text)) => {
                    let place = format!("chunk {number}: {text}");
                    self.damaged(at, first_row.max(skip), planned, &place).map_err(SlotInterrupt::Stop)
                }
                Err(stop) => Err(stop.into()),
            };
            match result {
                Ok(()) => {}
                Err(SlotInterrupt::Expired) => return self.expired(planned),
                Err(SlotInterrupt::Stop(interrupt)) => return Err(interrupt),
            }
        }
        Ok(())
    }

    fn rows(
        &mut self,
        at: usize,
        planned: &PlannedSlot,
        number: usize,
        chunk: &Chunk,
        skip: u32,
    ) -> Result<(), SlotInterrupt> {
        let first_row = chunk.first_row();
        for (count, (row, place)) in chunk.rows().enumerate().skip(skip as usize) {
            let Some(work) = &self.read_ahead.work else { return Ok(()) };
            let Some(stream) = work.wanted.get(usize::from(row.stream)).copied().flatten() else { continue };
            let (start, end) = (place as usize, place as usize + row.payload());
            if row.kind == Kind::Element {
                if !self.state.filter.element(&row) {
                    continue;
                }
                if !work.payload_window.has(start, end) {
                    self.read_ahead.reach(start, end)?;
                }
                if self.is_bad(start, end) {
                    self.bad_element(at, first_row + count as u32, planned, stream, &row)?;
                    continue;
                }
                self.element(stream, &row, start, end)?;
            } else {
                let here = RowPosition {
                    at,
                    planned,
                    number,
                    row_number: first_row + count as u32,
                    stream,
                    start,
                    end,
                };
                self.other(&here, &row)?;
            }
        }
        Ok(())
    }

    #[inline]
    fn is_bad(&self, start: usize, end: usize) -> bool {
        self.read_ahead
            .work
            .as_ref()
            .is_some_and(|work| !work.bad.is_empty() && work.damage_in(start, end).is_some())
    }

    #[inline]
    fn element(
        &mut self,
        stream: StreamId,
        row: &Row,
        start: usize,
        end: usize,
    ) -> Result<(), SlotInterrupt> {
        let ReadState { out, preambles, .. } = &mut *self.state;
        let Some(work) = &self.read_ahead.work else { return Ok(()) };
        enough(out.announce(row.stream, preambles))?;
        let payload = work.payload_window.view(start, end);
        let (meta, data) = payload.split_at(usize::from(row.meta).min(payload.len()));
        enough(out.element(Element {
            stream,
            ordinal: row.ordinal,
            first: row.first_arrival(),
            arrival: row.arrival,
            event: row.flags.has(Flags::EVENT).then_some(row.event),
            flags: row.flags,
            tag: row.tag,
            extra: row.extra,
            meta,
            data,
        }))
    }

    /// An element with damage in it.
    #[cold]
    fn bad_element(
        &mut self,
        at: usize,
        row_number: u32,
        planned: &PlannedSlot,
        stream: StreamId,
        row: &Row,
    ) -> Result<(), SlotInterrupt> {
        self.tell_bad(at, row_number, planned)?;
        enough(self.state.out.partial(stream, row.ordinal, Missing::Damaged))
    }

    /// Tells of damaged payload that has not been told of.
    fn tell_bad(&mut self, at: usize, row_number: u32, planned: &PlannedSlot) -> Result<(), SlotInterrupt> {
        loop {
            let Some(work) = &mut self.read_ahead.work else { return Ok(()) };
            let Some(bad) = work.bad.get(work.told).cloned() else { return Ok(()) };
            let place = format!("payload: bytes {} to {} do not match their checksum", bad.start, bad.end);
            self.damaged(at, row_number, planned, &place).map_err(SlotInterrupt::Stop)?;
            if let Some(work) = &mut self.read_ahead.work {
                work.told += 1;
            }
        }
    }

    /// Everything that is not a whole element in one piece.
    fn other(&mut self, here: &RowPosition<'_>, row: &Row) -> Result<(), SlotInterrupt> {
        match row.kind {
            Kind::Fragment => self.fragment(here, row),
            Kind::Abort => {
                self.state.assembler.abort(here.stream, row.ordinal);
                if self.state.filter.element(row) {
                    enough(self.state.out.partial(here.stream, row.ordinal, Missing::Aborted))?;
                }
                Ok(())
            }
            Kind::Gap => self.gap(here, row),
            Kind::Note => self.note(here, row),
            Kind::Element => Ok(()),
        }
    }

    fn gap(&mut self, here: &RowPosition<'_>, row: &Row) -> Result<(), SlotInterrupt> {
        self.read_ahead.reach(here.start, here.end)?;
        if self.is_bad(here.start, here.end) {
            return self.bad_element(here.at, here.row_number, here.planned, here.stream, row);
        }
        let Some(work) = &self.read_ahead.work else { return Ok(()) };
        let data = work.payload_window.view(here.start + usize::from(row.meta), here.end);
        match Gap::decode(data) {
            Ok(gap) => {
                if gap.cause == Cause::Crash {
                    let ordinals = row.ordinal.0..row.ordinal.0.saturating_add(gap.ordinals);
                    self.state.assembler.cut_off(here.stream, ordinals);
                }
                if self.state.filter.gap(row.ordinal, &gap) {
                    enough(self.state.out.gap(here.stream, row.ordinal, gap))?;
                }
                Ok(())
            }
            Err(error) => {
                let place = format!("row {}: {error}", here.row_number);
                self.damaged(here.at, here.row_number, here.planned, &place).map_err(SlotInterrupt::Stop)
            }
        }
    }

    fn note(&mut self, here: &RowPosition<'_>, row: &Row) -> Result<(), SlotInterrupt> {
        if !self.state.filter.note(row) {
            return Ok(());
        }
        self.read_ahead.reach(here.start, here.end)?;
        if self.is_bad(here.start, here.end) {
            return self.tell_bad(here.at, here.row_number, here.planned);
        }
        let ReadState { out, preambles, .. } = &mut *self.state;
        enough(out.announce(row.stream, preambles))?;
        let Some(work) = &self.read_ahead.work else { return Ok(()) };
        let meta = work.payload_window.view(here.start, here.end);
        let (stream, arrival, tag, flags) = (here.stream, row.arrival, row.tag, row.flags);
        enough(out.item(Item::Note { stream, arrival, tag, flags, meta }))
    }

    fn fragment(&mut self, here: &RowPosition<'_>, row: &Row) -> Result<(), SlotInterrupt> {
        let last = row.flags.has(Flags::LAST);
        if !self.state.filter.fragment(row) {
            self.state.assembler.abort(here.stream, row.ordinal);
            return Ok(());
        }
        let mut step = self.state.assembler.step(here.stream, row);
        if step == FragmentStep::Orphan {
            let open = self.beginning(here, row)?;
            self.state.assembler.insert(open);
            step = self.state.assembler.step(here.stream, row);
        }
        let at = match step {
            FragmentStep::Append(at) => {
                self.append(here, row, at)?;
                at
            }
            FragmentStep::Hole(at) => {
                let why = self.state.hole(self.candidates, self.state.assembler.age(at), here.planned.age);
                self.state.assembler.spoil(at, why.unwrap_or(Missing::Lost));
                at
            }
            FragmentStep::Skip(Some(at)) => at,
            FragmentStep::Skip(None) | FragmentStep::Orphan => return Ok(()),
        };
        if !last {
            return Ok(());
        }
        let open = self.state.assembler.take(at);
        if !self.state.filter.whole(&open) {
            return Ok(());
        }
        if let Some(why) = open.spoiled {
            return enough(self.state.out.partial(open.stream, open.ordinal, why));
        }
        let ReadState { out, preambles, .. } = &mut *self.state;
        enough(out.announce(row.stream, preambles))?;
        enough(out.collected(&open))
    }

    fn append(&mut self, here: &RowPosition<'_>, row: &Row, at: usize) -> Result<(), SlotInterrupt> {
        let data_at = here.start + usize::from(row.meta);
        if row.meta > 0 {
            self.read_ahead.reach(here.start, data_at)?;
            if let Some(work) = &self.read_ahead.work {
                let meta = work.payload_window.view(here.start, data_at);
                self.state.assembler.open(at).meta.extend_from_slice(meta);
            }
        }
        let data = &mut self.state.assembler.open(at).data;
        let before = data.len();
        self.read_ahead.append(data_at, here.end, data)?;
        let whole = data.len() - before == row.len as usize;
        if self.is_bad(here.start, here.end) || !whole {
            // As it was before, in case the same row comes again from a recorder.
            let open = self.state.assembler.open(at);
            open.data.truncate(before);
            let meta = open.meta.len().saturating_sub(usize::from(row.meta));
            open.meta.truncate(meta);
            self.tell_bad(here.at, here.row_number, here.planned)?;
            self.state.assembler.spoil(at, Missing::Damaged);
            return Ok(());
        }
        self.state.assembler.appended(at, row, here.planned.age);
        Ok(())
    }

    /// The beginning of an element that was not among what has been read; spoiled where it cannot be had.
    fn beginning(&mut self, here: &RowPosition<'_>, row: &Row) -> Result<PartialElement, SlotInterrupt> {
        let found = backfill::beginning(
            self.read_ahead.queue,
            self.read_ahead.superblock,
            self.candidates,
            here,
            row,
        )?;
        Ok(found.unwrap_or_else(|why| {
            let mut open = PartialElement::begin(here.stream, row);
            open.spoiled =
                Some(if self.state.damage && why == Missing::Expired { Missing::Damaged } else { why });
            open
        }))
    }
}
