//! Feeder: packs items that arrive one after the other into the buffers of a silo.

use crate::batch::{Batch, Contents, Held, Part, Span, Stamp, Ticket};
use crate::engine::Shared;
use crate::item::Container;
use crate::line_cut::{BEFORE, own_of_piece};
use crate::module::{Division, Piece};
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
    buffer: Option<Held>,
    filled: usize,
    /// Bytes of the buffer that may be filled before it is looked for a line end.
    limit: usize,
    /// Bytes of a buffer of the silo, by which a long line grows.
    chunk: usize,
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
    /// True once a part was handed on.
    is_begun: bool,
    /// True inside of a line that is divided into pieces.
    in_line: bool,
}

/// Own range of a part within the buffer, and the bytes behind it.
struct Own {
    end: usize,
    /// Place of the first byte that the next part shows.
    kept: usize,
    piece: Option<Piece>,
}

impl<'a, 's> Feeder<'a, 's> {
    pub(crate) fn new(shared: &'a Shared<'s>, silo: usize, order: Order) -> Self {
        let lane = (order == Order::AsFed).then(|| Ticket { lane: shared.lane(false), number: 0 });
        Self {
            shared,
            silo,
            lane,
            buffer: None,
            filled: 0,
            limit: 0,
            chunk: 0,
            spans: Vec::new(),
            open: None,
        }
    }

    /// Begins to feed an item.
    pub(crate) fn begin(&mut self, container: &Arc<Container>, stamp: Stamp) {
        if self.spans.len() >= MOST_SPANS {
            self.flush();
        }
        let container = Arc::clone(container);
        let start = self.filled;
        self.open = Some(Open {
            container,
            stamp,
            start,
            offset: 0,
            answered: start,
            parts: None,
            is_begun: false,
            in_line: false,
        });
    }

    /// Room for further bytes of the item, at least one.
    pub(crate) fn room(&mut self) -> Result<&mut [u8], Stopped> {
        while self.buffer.is_some() && self.limit == self.filled {
            self.make_room()?;
        }
        if self.buffer.is_none() {
            let buffer = self.shared.silos.buffer(self.silo).ok_or(Stopped)?;
            self.hold(buffer);
        }
        let room = self.filled..self.limit;
        self.buffer.as_deref_mut().map(|bytes| &mut bytes[room]).ok_or(Stopped)
    }

    /// Takes a buffer of the silo as the present one.
    fn hold(&mut self, buffer: Held) {
        self.limit = buffer.len();
        self.buffer = Some(buffer);
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
        let Some(mut open) = self.open.take() else { return Ok(()) };
        if open.in_line {
            open = self.end_long_line(open)?;
        }
        if open.parts.is_some() {
            let end = self.filled;
            let piece = open.in_line.then_some(self.piece(false, true));
            self.put_part(&mut open, &Own { end, kept: end, piece }, true, failed);
            return Ok(());
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
            let open = match self.shared.division {
                Division::Lines => self.cut_lines(open)?,
                Division::Serial | Division::Blocks { .. } => self.cut_block(open)?,
            };
            self.open = Some(open);
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
        self.hold(next);
        self.filled = begun;
        (open.start, open.answered) = (0, 0);
        self.open = Some(open);
        Ok(())
    }

    /// Hands on all of a full buffer but the margins of its successor.
    fn cut_block(&mut self, open: Open) -> Result<Open, Stopped> {
        let (before, behind) = self.shared.division.margins();
        let end = self.filled.saturating_sub(behind).max(open.answered);
        let kept = end.saturating_sub(before).max(open.start);
        self.put_and_go_on(open, &Own { end, kept, piece: None })
    }

    /// Hands on the whole lines of a full buffer. A line that fills it moves to a buffer for long lines.
    fn cut_lines(&mut self, open: Open) -> Result<Open, Stopped> {
        if open.in_line {
            let open = self.end_long_line(open)?;
            return if open.in_line { self.grow(open) } else { Ok(open) };
        }
        if let Some(at) = memchr::memrchr(b'\n', self.unseen(&open)) {
            let end = self.unseen_from(&open) + at + 1;
            return self.put_and_go_on(open, &Own { end, kept: end, piece: None });
        }
        self.grow(open)
    }

    /// Hands on the end of a line that is divided into pieces, if the buffer has it.
    fn end_long_line(&mut self, mut open: Open) -> Result<Open, Stopped> {
        let Some(at) = memchr::memchr(b'\n', self.unseen(&open)) else { return Ok(open) };
        let end = self.unseen_from(&open) + at + 1;
        open.in_line = false;
        let piece = Some(self.piece(false, true));
        self.put_and_go_on(open, &Own { end, kept: end, piece })
    }

    fn piece(&self, begins: bool, ends: bool) -> Piece {
        Piece { begins, ends, overlap: self.shared.options.longest_line / 4 }
    }

    /// Place in the buffer up to which it was looked for a line end.
    fn unseen_from(&self, open: &Open) -> usize {
        match self.buffer {
            Some(Held::Long(_)) => self.filled.saturating_sub(self.chunk).max(open.answered),
            _ => open.answered,
        }
    }

    fn unseen(&self, open: &Open) -> &[u8] {
        let from = self.unseen_from(open);
        self.buffer.as_ref().map_or(&[], |buffer| &buffer[from..self.filled])
    }

    /// Makes room for more of a line that has no end yet. Of a line that exceeds the longest one, a piece is handed on.
    fn grow(&mut self, mut open: Open) -> Result<Open, Stopped> {
        let longest = self.shared.options.longest_line;
        if let Some(Held::Pooled(_)) = self.buffer {
            let mut long = self.shared.silos.long_buffer(longest + BEFORE).ok_or(Stopped)?;
            if let Some(buffer) = self.buffer.take() {
                let begun = &buffer[open.start..self.filled];
                long[..begun.len()].copy_from_slice(begun);
                self.filled = begun.len();
                self.chunk = buffer.len();
                self.shared.silos.give(self.silo, buffer);
            }
            open.answered -= open.start;
            open.start = 0;
            self.divide(&mut open);
            self.buffer = Some(long);
        }
        if self.filled >= open.answered + longest {
            let end = open.answered + own_of_piece(longest);
            let kept = end.saturating_sub(BEFORE).max(open.start);
            // The buffer is handed on before the next one is taken: a reader never has two of them.
            let tail =
                self.buffer.as_ref().map(|buffer| buffer[kept..self.filled].to_vec()).unwrap_or_default();
            let own = Own { end, kept, piece: Some(self.piece(!open.in_line, false)) };
            self.put_part(&mut open, &own, false, None);
            open.in_line = true;
            let mut long = self.shared.silos.long_buffer(longest + BEFORE).ok_or(Stopped)?;
            long[..tail.len()].copy_from_slice(&tail);
            self.filled = tail.len();
            self.buffer = Some(long);
        }
        self.limit = (open.answered + longest).min(self.filled + self.chunk);
        Ok(open)
    }

    /// Hands on a part of the item; what the next part needs of it moves to the next buffer.
    fn put_and_go_on(&mut self, mut open: Open, own: &Own) -> Result<Open, Stopped> {
        let mut next = self.shared.silos.buffer(self.silo).ok_or(Stopped)?;
        let moved = self.filled - own.kept;
        if let Some(buffer) = &self.buffer {
            next[..moved].copy_from_slice(&buffer[own.kept..self.filled]);
        }
        self.put_part(&mut open, own, false, None);
        self.hold(next);
        self.filled = moved;
        Ok(open)
    }

    /// Gives an item that is divided its place in a lane.
    fn divide(&self, open: &mut Open) {
        open.parts.get_or_insert_with(|| match &self.lane {
            Some(ticket) => ticket.clone(),
            None => Ticket { lane: self.shared.lane(true), number: 0 },
        });
    }

    /// Hands on a part of the item, with the buffer.
    fn put_part(&mut self, open: &mut Open, own: &Own, last: bool, failed: Option<String>) {
        self.divide(open);
        let ticket = self.lane.as_mut().or(open.parts.as_mut()).map(Ticket::next);
        let Some(buffer) = self.buffer.take() else { return };
        let part = Part {
            container: Arc::clone(&open.container),
            stamp: open.stamp,
            bytes: open.start..std::mem::take(&mut self.filled),
            offset: open.offset,
            own: open.answered..own.end,
            first: !std::mem::replace(&mut open.is_begun, true),
            last,
            piece: own.piece,
            failed,
        };
        open.offset += (own.kept - open.start) as u64;
        (open.start, open.answered) = (0, own.end - own.kept);
        let bytes = part.own.len() as u64;
        let batch = Batch { silo: self.silo, buffer, contents: Contents::Part(part), ticket };
        self.shared.silos.put(batch, u64::from(last), bytes);
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
