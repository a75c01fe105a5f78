//! Access through a recorder: a read is a ticket, answered in the shared area and copied out at once.

use super::item::PlannedSlot;
use super::open_slots::OpenSlots;
use super::read_request::{ReadOutcome, ReadRequest, buffer_of};
use crate::ReaderError;
use holdfast_base::{BLOCK, CHECK_BLOCK, Sequence, SlotNo};
use holdfast_format::{OpenImage, Superblock};
use holdfast_media::{Buffer, BufferPool, Lock};
use holdfast_protocol::client::Connection;
use holdfast_protocol::wire::{MAX_PENDING, OpenSlotProjection, Purpose, Reply, Request};
use holdfast_protocol::{ProtocolError, SharedArea};
use std::collections::{BTreeMap, VecDeque};
use std::ops::Range;
use std::sync::Arc;
use std::time::Duration;

/// Tickets asked for at once: enough to keep a drive busy while one piece is copied, little enough to be fair. Of large pieces
/// fewer, for no more than so many bytes: whoever is overtaken by what expires has them for nothing.
const DEPTH: usize = 6;
const UNDER_WAY: usize = 16 << 20;

/// Bytes of a slot that are asked for ahead of its turn.
pub(crate) const AHEAD: usize = 16 << 20;

/// While so many reads are under way none is asked for ahead. With [`DEPTH`] more they are fewer than a recorder lets wait: else the
/// word that gives a piece back would wait behind reads that wait for one.
pub(crate) const MOST_AHEAD: usize = 20;
const _: () = assert!(MOST_AHEAD + DEPTH < MAX_PENDING);

/// Largest quantum that is made use of, whatever a recorder offers.
const MOST: usize = 8 << 20;

/// How often a sealed slot is asked for again while it is not on the medium yet, and how long between.
const PATIENCE: (u32, Duration) = (15_000, Duration::from_millis(2));

/// Where a ticket is.
#[derive(Debug)]
enum TicketStage {
    /// Asked for.
    Asked,
    /// Copied; the recorder is to say whether it was ours until then.
    Copied,
}

#[derive(Debug)]
struct Ticket {
    tag: u64,
    want: ReadRequest,
    /// From when there is something to put into it: those that come one after the other make do with few.
    buffer: Option<Buffer>,
    /// Where in the buffer what is asked for belongs.
    at: usize,
    stage: TicketStage,
    tries: u32,
    /// Bytes that are there: what is larger than a quantum is asked for piece by piece.
    there: usize,
}

impl Ticket {
    /// Offset and length of the piece that comes next.
    fn piece(&self, quantum: usize) -> (usize, usize) {
        (self.want.offset + self.there, quantum.min(self.want.len - self.there))
    }
}

/// A recorder, as a way to slots.
#[derive(Debug)]
pub(crate) struct Live {
    connection: Connection,
    superblock: Superblock,
    pool: BufferPool,
    /// By the id of the request that is to be answered next.
    tickets: BTreeMap<u64, Ticket>,
    done: VecDeque<(u64, ReadOutcome)>,
    /// The open slot as it was when it was asked for.
    open: Option<Arc<OpenImage>>,
    /// Where what is known of it is kept, for others, too.
    pub(crate) known: OpenSlots,
    /// What reads are for from here on.
    pub(crate) purpose: Purpose,
}

impl Live {
    pub(crate) fn new(connection: Connection) -> Result<Self, ReaderError> {
        let welcome = connection.welcome();
        let superblock = Superblock::decode(&welcome.superblock)
            .map_err(|cause| ProtocolError::NotARing { path: connection.path().to_owned(), cause })?;
        let quantum = quantum(welcome.quantum);
        // Those of the slot that is looked through, and of the next one.
        let pool = BufferPool::new(DEPTH + 2 * (AHEAD / quantum), quantum, Lock::No)?;
        let (tickets, done) = (BTreeMap::new(), VecDeque::new());
        Ok(Self {
            connection,
            superblock,
            pool,
            tickets,
            done,
            open: None,
            known: OpenSlots::default(),
            purpose: Purpose::default(),
        })
    }

    pub(crate) fn connection(&mut self) -> &mut Connection {
        &mut self.connection
    }

    pub(crate) fn into_connection(self) -> Connection {
        self.connection
    }

    pub(crate) fn view(&self) -> Option<(&SharedArea, usize)> {
        self.connection.view()
    }

    pub(crate) fn pid(&self) -> u32 {
        self.connection.welcome().pid
    }

    pub(crate) fn superblock(&self) -> &Superblock {
        &self.superblock
    }

    pub(crate) fn quantum(&self) -> usize {
        self.pool.stride()
    }

    /// Reads that may be under way.
    pub(crate) fn at_once(&self) -> usize {
        at_once(self.quantum())
    }

    /// Reads that may be under way or waiting to be used: none is missing while one is used.
    pub(crate) fn depth(&self) -> usize {
        (self.at_once() + 1).min(DEPTH)
    }

    pub(crate) fn pool(&mut self) -> &mut BufferPool {
        &mut self.pool
    }

    /// Takes what the open slot has by now, of what is wanted, so that it can be read like any other.
    pub(crate) fn take_open(
        &mut self,
        sequence: Sequence,
        wanted: &OpenSlotProjection,
    ) -> Result<(), ReaderError> {
        // What was taken of it before is too little, if it is not open any more.
        self.open = None;
        self.open = self.known.take(&mut self.connection, &self.superblock, sequence, wanted)?;
        Ok(())
    }

    /// What was taken of the open slot; another is put in its place.
    pub(crate) fn swap_open(&mut self, open: Option<Arc<OpenImage>>) -> Option<Arc<OpenImage>> {
        std::mem::replace(&mut self.open, open)
    }

    /// Whether a slot that was not on the medium yet is there now.
    pub(crate) fn is_written(&mut self, sequence: Sequence) -> Result<bool, ReaderError> {
        let open = self.connection.open_slots()?;
        Ok(open.iter().all(|open| open.sequence != sequence))
    }

    /// What was taken of a slot while it was open. Once it has a place, that is too little, and says no place.
    fn taken(&self, sequence: Sequence, slot: Option<SlotNo>) -> Option<&OpenImage> {
        let open = self.open.as_deref()?;
        (slot.is_none() && open.sequence() == sequence).then_some(open)
    }

    /// Whether a slot was taken while it was open.
    pub(crate) fn is_taken(&self, planned: &PlannedSlot) -> bool {
        self.taken(planned.sequence, planned.slot).is_some()
    }

    pub(crate) fn head_at_hand(&self, planned: &PlannedSlot) -> Option<Vec<u8>> {
        let head = self.taken(planned.sequence, planned.slot)?.payload().start;
        self.at_hand(planned, 0..head)
    }

    pub(crate) fn at_hand(&self, planned: &PlannedSlot, range: Range<usize>) -> Option<Vec<u8>> {
        let image = self.taken(planned.sequence, planned.slot)?;
        let there = image.payload();
        if range.start < there.end && there.start < range.end {
            return None;
        }
        let mut bytes = holdfast_media::vector(range.len());
        image.append(range, &mut bytes);
        Some(bytes)
    }

    pub(crate) fn submit(&mut self, tag: u64, mut want: ReadRequest) -> Result<(), ReaderError> {
        let (mut at, mut copied) = (0, None);
        let open = self.open.clone();
        if let Some(image) = open.filter(|open| want.slot.is_none() && open.sequence() == want.sequence) {
            let mut buffer = buffer_of(&mut self.pool, want.len)?;
            image.copy(want.offset, &mut buffer[..want.len]);
            // Its payload lies where it will lie when it is sealed.
            let there = image.payload();
            let (start, end) = (want.offset.max(there.start), (want.offset + want.len).min(there.end));
            if start >= end {
                self.done.push_back((tag, ReadOutcome::Bytes(buffer)));
                return Ok(());
            }
            at = start - want.offset;
            want = ReadRequest { offset: start, len: end - start, ..want };
            copied = Some(buffer);
        }
        self.ask(Ticket { tag, want, buffer: copied, at, stage: TicketStage::Asked, tries: 0, there: 0 })
    }

    fn ask(&mut self, mut ticket: Ticket) -> Result<(), ReaderError> {
        ticket.stage = TicketStage::Asked;
        let sequence = ticket.want.sequence;
        let (offset, len) = ticket.piece(self.quantum());
        let (offset, len, purpose) = (offset as u32, len as u32, self.purpose);
        let id = self.connection.send(&Request::Read { sequence, offset, len, purpose })?;
        self.tickets.insert(id, ticket);
        Ok(())
    }

    pub(crate) fn complete(&mut self, wait: bool) -> Result<Option<(u64, ReadOutcome)>, ReaderError> {
        loop {
            if let Some(done) = self.done.pop_front() {
                return Ok(Some(done));
            }
            if self.tickets.is_empty() || !(wait || self.connection.has_reply()?) {
                return Ok(None);
            }
            let (id, reply) = self.connection.next_reply()?;
            // A reply to nothing is nothing to us.
            if let Some(ticket) = self.tickets.remove(&id) {
                self.answer(ticket, reply)?;
            }
        }
    }

    fn answer(&mut self, mut ticket: Ticket, reply: Reply) -> Result<(), ReaderError> {
        let (_, piece) = ticket.piece(self.quantum());
        match (reply, &ticket.stage) {
            (Reply::Ready { offset, len }, TicketStage::Asked) if len as usize == piece => {
                let mut buffer = match ticket.buffer.take() {
                    Some(buffer) => buffer,
                    None => buffer_of(&mut self.pool, ticket.want.len)?,
                };
                let start = ticket.at + ticket.there;
                let into = &mut buffer[start..start + piece];
                if !self.connection.area()?.copy(offset, into) {
                    return Err(
                        ProtocolError::Area(format!("a reply points outside of it, to {offset}")).into()
                    );
                }
                ticket.buffer = Some(buffer);
                ticket.stage = TicketStage::Copied;
                let id = self.connection.send(&Request::Done { offset })?;
                self.tickets.insert(id, ticket);
            }
            (Reply::Done { kept: true }, TicketStage::Copied) if ticket.there + piece < ticket.want.len => {
                ticket.there += piece;
                self.ask(ticket)?;
            }
            (Reply::Done { kept: true }, TicketStage::Copied) => {
                self.done.extend(ticket.buffer.map(|buffer| (ticket.tag, ReadOutcome::Bytes(buffer))));
            }
            // Our time was up before we had copied it: once more.
            (Reply::Done { kept: false }, TicketStage::Copied) => self.again(ticket, "a read")?,
            (Reply::Pending, TicketStage::Asked) => {
                std::thread::sleep(PATIENCE.1);
                self.again(ticket, "a slot that is being written")?;
            }
            (Reply::Expired, _) => {
                self.done.push_back((ticket.tag, ReadOutcome::Expired));
                ticket.buffer.into_iter().for_each(|buffer| self.give(buffer));
            }
            (Reply::Error { text }, _) => {
                self.done.push_back((ticket.tag, ReadOutcome::Unreadable(text)));
                ticket.buffer.into_iter().for_each(|buffer| self.give(buffer));
            }
            (Reply::Ending, _) => {
                let path = self.connection.path().to_owned();
                return Err(ProtocolError::Ending { path, during: "read" }.into());
            }
            (other, _) => {
                return Err(ProtocolError::Unexpected { request: "read", reply: other.name() }.into());
            }
        }
        Ok(())
    }

    fn give(&mut self, buffer: Buffer) {
        let _ = self.pool.give(buffer);
    }

    fn again(&mut self, mut ticket: Ticket, during: &'static str) -> Result<(), ReaderError> {
        ticket.tries += 1;
        if ticket.tries >= PATIENCE.0 {
            let seconds = (PATIENCE.1 * PATIENCE.0).as_secs();
            return Err(
                ProtocolError::Timeout { path: self.connection.path().to_owned(), during, seconds }.into()
            );
        }
        self.ask(ticket)
    }
}

/// Whole check blocks of what a recorder offers, within reason.
fn quantum(offered: u32) -> usize {
    let whole = offered as usize / CHECK_BLOCK * CHECK_BLOCK;
    whole.clamp(CHECK_BLOCK, MOST).max(BLOCK)
}

/// Reads of such a size that may be under way.
fn at_once(quantum: usize) -> usize {
    (UNDER_WAY / quantum).clamp(2, DEPTH)
}

#[cfg(test)]
mod tests {
    use super::*;

    // Promise 1: what a reader loses when it is overtaken is little, and the drive has work while it copies.
    #[test]
    fn no_more_is_under_way_than_may_be_lost() {
        for quantum in (1..=MOST / CHECK_BLOCK).map(|blocks| blocks * CHECK_BLOCK) {
            let at_once = at_once(quantum);
            assert!((2..=DEPTH).contains(&at_once) && at_once * quantum <= UNDER_WAY.max(2 * quantum));
            assert!(at_once == DEPTH || (at_once + 1) * quantum > UNDER_WAY, "{quantum}: more would do");
        }
        assert_eq!([1 << 20, 4 << 20, MOST].map(at_once), [6, 4, 2]);
    }
}
