//! Feeder: packs items that arrive one after the other into the buffers of a silo.

use crate::batch::{Batch, Contents, Part, Span, Stamp, Ticket};
use crate::engine::Shared;
use crate::item::Container;
use crate::module::Division;
use holdfast_media::Buffer;
use std::sync::Arc;

/// Greatest number of whole items in a batch: their list stays small beside the buffer.
const MOST_SPANS: usize = 65_536;

/// The scan stops, because its output has seen enough.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Stopped;

/// Order of the results of a feeder.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Order {
    /// Results of all items come in the order of the items.
    AsFed,
    /// Results of one item stay together, items come in any order.
    Any,
}

/// Packs items into batches of one silo.
pub(crate) struct Feeder<'a, 's> {
    shared: &'a Shared<'s>,
    silo: usize,
    /// Lane of all batches; `None`: each item that exceeds a buffer has a lane of its own.
    lane: Option<Ticket>,
    buffer: Option<Buffer>,
    filled: usize,
    spans: Vec<Span>,
    open: Option<Open>,
}

/// Item that is being fed.
struct Open {
    container: Arc<Container>,
    stamp: Stamp,
    /// Place of its first byte in the buffer.
    start: usize,
    /// Offset of that byte in the item.
    offset: u64,
    /// Place in the buffer up to which earlier parts have answered.
    answered: usize,
    /// Lane and number of the next part, once the item is divided.
    parts: Option<Ticket>,
}

impl<'a, 's> Feeder<'a, 's> {
    pub(crate) fn new(shared: &'a Shared<'s>, silo: usize, order: Order) -> Self {
        let lane = (order == Order::AsFed).then(|| Ticket { lane: shared.lane(false), number: 0 });
        Self { shared, silo, lane, buffer: None, filled: 0, spans: Vec::new(), open: None }
    }

    /// Begins to feed an item.
    pub(crate) fn begin(&mut self, container: &Arc<Container>, stamp: Stamp) {
        if self.spans.len() >= MOST_SPANS {
            self.flush();
        }
        let container = Arc::clone(container);
        let start = self.filled;
        self.open = Some(Open { container, stamp, start, offset: 0, answered: start, parts: None });
    }

    /// Room for further bytes of the item, at least one.
    pub(crate) fn room(&mut self) -> Result<&mut [u8], Stopped> {
        if self.buffer.as_ref().is_some_and(|buffer| buffer.len() == self.filled) {
            self.make_room()?;
        }
        if self.buffer.is_none() {
            self.buffer = Some(self.shared.silos.buffer(self.silo).ok_or(Stopped)?);
        }
        let filled = self.filled;
        self.buffer.as_deref_mut().map(|bytes| &mut bytes[filled..]).ok_or(Stopped)
    }

    /// Counts bytes that were written into the room.
    pub(crate) fn fed(&mut self, bytes: usize) {
        self.filled += bytes;
    }

    /// Adds bytes to the item.
    pub(crate) fn feed(&mut self, mut bytes: &[u8]) -> Result<(), Stopped> {
        while !bytes.is_empty() {
            let room = self.room()?;
            let count = room.len().min(bytes.len());
            room[..count].copy_from_slice(&bytes[..count]);
            self.fed(count);
            bytes = &bytes[count..];
        }
        Ok(())
    }

    /// True if no more of the present item is wanted.
    pub(crate) fn is_skipped(&self) -> bool {
        let parts = self.open.as_ref().and_then(|open| open.parts.as_ref());
        parts.is_some_and(|ticket| ticket.lane.is_skipped())
    }

    /// Feeds one whole item.
    pub(crate) fn item(
        &mut self,
        container: &Arc<Container>,
        stamp: Stamp,
        bytes: &[u8],
    ) -> Result<(), Stopped> {
        self.begin(container, stamp);
        self.feed(bytes)?;
        self.end()
    }

    /// Ends the present item.
    pub(crate) fn end(&mut self) -> Result<(), Stopped> {
        self.end_with(None)
    }

    /// Gives the item up: nothing of it is reported but the reason.
    pub(crate) fn fail(&mut self, reason: String) -> Result<(), Stopped> {
        if self.open.as_ref().is_some_and(|open| open.parts.is_some()) {
            return self.end_with(Some(reason));
        }
        if let Some(open) = self.open.take() {
            self.filled = open.start;
            self.shared.trouble(&crate::batch::item(&open.container, open.stamp), reason);
        }
        Ok(())
    }

    fn end_with(&mut self, failed: Option<String>) -> Result<(), Stopped> {
        if self.buffer.is_none() {
            self.room()?;
        }
        let Some(open) = self.open.take() else { return Ok(()) };
        if open.parts.is_some() {
            return self.put_part(open, true, failed).map(drop);
        }
        let Open { container, stamp, start, .. } = open;
        self.spans.push(Span { container, stamp, bytes: start..self.filled });
        Ok(())
    }

    /// Hands on whatever the buffer has.
    pub(crate) fn flush(&mut self) {
        if self.spans.is_empty() {
            return;
        }
        let Some(buffer) = self.buffer.take() else { return };
        let spans = std::mem::take(&mut self.spans);
        let (items, bytes) = (spans.len() as u64, self.filled as u64);
        self.filled = 0;
        let ticket = self.lane.as_mut().map(Ticket::next);
        let batch = Batch { silo: self.silo, buffer, contents: Contents::Whole(spans), ticket };
        self.shared.silos.put(batch, items, bytes);
    }

    /// Makes room in a full buffer: hands on the items in front of the present one, or a part of it.
    fn make_room(&mut self) -> Result<(), Stopped> {
        let Some(mut open) = self.open.take() else {
            self.flush();
            return Ok(());
        };
        if self.spans.is_empty() {
            let open = self.put_part(open, false, None)?;
            self.open = open;
            return Ok(());
        }
        // The beginning of the item moves to the next buffer.
        let mut next = self.shared.silos.buffer(self.silo).ok_or(Stopped)?;
        let begun = self.filled - open.start;
        if let Some(buffer) = &self.buffer {
            next[..begun].copy_from_slice(&buffer[open.start..self.filled]);
        }
        self.filled = open.start;
        self.flush();
        self.buffer = Some(next);
        self.filled = begun;
        (open.start, open.answered) = (0, 0);
        self.open = Some(open);
        Ok(())
    }

    /// Hands on a part of the item; what the next part needs of it is copied.
    fn put_part(
        &mut self,
        mut open: Open,
        last: bool,
        failed: Option<String>,
    ) -> Result<Option<Open>, Stopped> {
        let (before, behind) = match self.shared.division {
            Division::Serial => (0, 0),
            Division::Blocks { before, behind } => (before, behind),
        };
        let first = open.parts.is_none();
        let parts = open.parts.get_or_insert_with(|| match &self.lane {
            Some(ticket) => ticket.clone(),
            None => Ticket { lane: self.shared.lane(true), number: 0 },
        });
        let ticket = match &mut self.lane {
            Some(lane) => lane.next(),
            None => parts.next(),
        };
        let Some(buffer) = self.buffer.take() else { return Ok(None) };
        let end = self.filled;
        self.filled = 0;
        let own_end = if last { end } else { end.saturating_sub(behind).max(open.answered) };
        let next = if last {
            None
        } else {
            let mut next = self.shared.silos.buffer(self.silo).ok_or(Stopped)?;
            let kept = own_end.saturating_sub(before).max(open.start);
            next[..end - kept].copy_from_slice(&buffer[kept..end]);
            self.filled = end - kept;
            self.buffer = Some(next);
            Some((kept, own_end - kept))
        };
        let part = Part {
            container: Arc::clone(&open.container),
            stamp: open.stamp,
            bytes: open.start..end,
            offset: open.offset,
            own: open.answered..own_end,
            first,
            last,
            failed,
        };
        let bytes = (own_end - open.answered) as u64;
        let batch = Batch { silo: self.silo, buffer, contents: Contents::Part(part), ticket: Some(ticket) };
        self.shared.silos.put(batch, u64::from(last), bytes);
        let Some((kept, answered)) = next else { return Ok(None) };
        open.offset += (kept - open.start) as u64;
        open.start = 0;
        open.answered = answered;
        Ok(Some(open))
    }
}

impl Ticket {
    /// This ticket; the next one is kept.
    pub(crate) fn next(&mut self) -> Self {
        let ticket = self.clone();
        self.number += 1;
        ticket
    }
}
