//! Output of a read to its sink: preambles before elements, counts, neighbouring expired slots as one item.

use super::assembler::PartialElement;
use super::item::{Element, Item, Missing, PlannedSlot, ReadReport};
use holdfast_base::{Ordinal, Sequence, SlotNo, StreamId, Timestamp};
use holdfast_format::Gap;
use std::collections::HashMap;
use std::ops::ControlFlow;

/// Preambles by stream and version.
pub(crate) type Preambles = HashMap<(StreamId, u32), Vec<u8>>;

/// The sink, and what it was given.
pub(crate) struct Output<'s> {
    sink: &'s mut dyn FnMut(Item<'_>) -> ControlFlow<()>,
    pub(crate) report: ReadReport,
    /// The preamble that each stream's reader has.
    announced: HashMap<StreamId, u32>,
    /// By dictionary entry of the slot at work: whether its preamble has still to be looked at.
    fresh: Vec<Option<(StreamId, u32)>>,
    expired: Option<(Sequence, Sequence, Option<Timestamp>, Option<Timestamp>)>,
}

impl<'s> Output<'s> {
    pub(crate) fn new(sink: &'s mut dyn FnMut(Item<'_>) -> ControlFlow<()>) -> Self {
        let (report, announced, fresh) = (ReadReport::default(), HashMap::new(), Vec::new());
        Self { sink, report, announced, fresh, expired: None }
    }

    #[inline]
    pub(crate) fn item(&mut self, item: Item<'_>) -> ControlFlow<()> {
        if self.expired.is_some() && !matches!(item, Item::Progress { .. }) {
            self.tell_expired()?;
        }
        let flow = (self.sink)(item);
        self.report.stopped |= flow.is_break();
        flow
    }

    /// A slot with these streams and preamble versions begins.
    pub(crate) fn begin_slot(&mut self, entries: impl Iterator<Item = (StreamId, u32)>) {
        self.fresh.clear();
        self.fresh.extend(entries.map(Some));
    }

    /// Gives the preamble of a dictionary entry, if the stream's reader does not have it.
    #[inline]
    pub(crate) fn announce(&mut self, entry: u16, preambles: &Preambles) -> ControlFlow<()> {
        match self.fresh.get_mut(usize::from(entry)).and_then(Option::take) {
            None => ControlFlow::Continue(()),
            Some((stream, version)) => self.preamble(stream, version, preambles),
        }
    }

    #[cold]
    fn preamble(&mut self, stream: StreamId, version: u32, preambles: &Preambles) -> ControlFlow<()> {
        if version == 0 || self.announced.insert(stream, version) == Some(version) {
            return ControlFlow::Continue(());
        }
        match preambles.get(&(stream, version)) {
            Some(bytes) => self.item(Item::Preamble { stream, version, bytes }),
            None => ControlFlow::Continue(()),
        }
    }

    #[inline]
    pub(crate) fn element(&mut self, element: Element<'_>) -> ControlFlow<()> {
        self.report.elements += 1;
        self.report.bytes += element.data.len() as u64;
        self.item(Item::Element(element))
    }

    /// A collected element.
    pub(crate) fn collected(&mut self, open: &PartialElement) -> ControlFlow<()> {
        self.element(Element {
            stream: open.stream,
            ordinal: open.ordinal,
            first: open.first,
            arrival: open.arrival,
            event: open.event,
            flags: open.flags,
            tag: open.tag,
            extra: open.extra,
            meta: &open.meta,
            data: &open.data,
        })
    }

    pub(crate) fn gap(&mut self, stream: StreamId, ordinal: Ordinal, gap: Gap) -> ControlFlow<()> {
        self.report.gaps += 1;
        self.item(Item::Gap { stream, ordinal, gap })
    }

    pub(crate) fn partial(&mut self, stream: StreamId, ordinal: Ordinal, why: Missing) -> ControlFlow<()> {
        self.report.partial += 1;
        self.item(Item::Partial { stream, ordinal, why })
    }

    pub(crate) fn damaged(&mut self, planned: &PlannedSlot, place: &str) -> ControlFlow<()> {
        self.report.damaged += 1;
        let slot = planned.slot.unwrap_or(SlotNo(u32::MAX));
        self.item(Item::Damaged { slot, sequence: planned.sequence, place })
    }

    /// Takes note of a slot that expired; neighbours are told of together.
    pub(crate) fn expired(&mut self, planned: &PlannedSlot) -> ControlFlow<()> {
        self.report.expired += 1;
        if let Some((_, to, _, last)) = &mut self.expired {
            if planned.sequence.0 == to.0 + 1 {
                *to = planned.sequence;
                *last = planned.last.or(*last);
                return ControlFlow::Continue(());
            }
            self.tell_expired()?;
        }
        self.expired = Some((planned.sequence, planned.sequence, planned.first, planned.last));
        ControlFlow::Continue(())
    }

    /// Tells of what has expired up to here.
    pub(crate) fn tell_expired(&mut self) -> ControlFlow<()> {
        match self.expired.take() {
            Some((from, to, first, last)) => self.item(Item::Expired { from, to, first, last }),
            None => ControlFlow::Continue(()),
        }
    }
}
