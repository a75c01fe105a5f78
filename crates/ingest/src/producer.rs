//! A source's handle: it stamps what arrives, numbers it, cuts it into rows, and applies the overload policy.
//!
//! Two ways in. Streams read straight into [`Producer::space`] and let a [`Cutter`] say where elements begin and
//! end ([`Producer::feed`]); datagrams, packets and replayed elements are copied in one by one
//! ([`Producer::element`]). Nothing is allocated after the start. How bytes become elements is `framing`'s.

use crate::Cause;
use crate::batch::{BATCH_BYTES, BATCH_ROWS, Batch, BatchRow, Content};
use crate::counters::{Pressure, SourceCounters, add};
use crate::framing::{Cutter, Framing};
use crate::loss::{GAP_BYTES, Loss, Losses};
use crate::queue::{CaptureEnd, Closed, SourceEnd, Waker, exchange};
use holdfast_base::{ByteSize, Clock, MAX_ELEMENT, MAX_META, Ordinal, Timestamp};
use holdfast_format::Flags;
use std::sync::Arc;
use std::time::Duration;

/// What a source does when there is no empty batch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Overload {
    /// It waits, and so does whoever feeds it.
    Block,
    /// It drops what arrives, counts it, and puts a gap in front of the next element that finds room.
    DropNewest,
}

/// How old a partly filled batch may become before it is sent.
pub const FLUSH_AGE: Duration = Duration::from_millis(4);

/// Bytes at the head of every batch for the gaps in it.
const GAP_AREA: usize = 16 * GAP_BYTES;

/// Least bytes that `space` offers: a read of less costs more than it brings.
const LEAST_SPACE: usize = 4096;

/// Rows kept free: the one of the element that is open, and an abort.
const SPARE_ROWS: usize = 2;

/// How a source's batches are laid out, and where its ordinals start.
#[derive(Clone, Debug)]
pub struct ProducerSettings {
    /// Batches in the pool; at least 4.
    pub batches: usize,
    /// Bytes of each.
    pub batch_bytes: ByteSize,
    /// Rows of each.
    pub batch_rows: usize,
    /// What happens when all of them are full.
    pub overload: Overload,
    /// The ordinal of the next element to arrive.
    pub next: Ordinal,
}

impl ProducerSettings {
    /// 16 batches of the usual size, starting at `next`.
    pub fn new(overload: Overload, next: Ordinal) -> Self {
        Self { batches: 16, batch_bytes: BATCH_BYTES, batch_rows: BATCH_ROWS, overload, next }
    }
}

/// The capture thread's end of one source.
#[derive(Debug)]
pub struct Inlet {
    end: CaptureEnd<Batch>,
    counters: Arc<SourceCounters>,
}

impl Inlet {
    /// The next batch, in the order they were sent.
    pub fn take(&mut self) -> Option<Batch> {
        self.end.take()
    }

    /// Gives a batch back, done with.
    pub fn give_back(&mut self, mut batch: Batch) {
        batch.clear();
        self.end.give_back(batch);
    }

    /// Batches that wait to be taken.
    pub fn waiting(&self) -> usize {
        self.end.waiting()
    }

    /// True once the source has ended and all it sent was taken. To be asked behind the last [`Inlet::take`] and
    /// before waiting: the end wakes once.
    pub fn is_finished(&self) -> bool {
        self.end.is_finished()
    }

    /// The source's counters.
    pub fn counters(&self) -> &Arc<SourceCounters> {
        &self.counters
    }
}

/// Allocates a source's batches and joins its thread to the capture thread, which `capture` wakes.
pub fn channel(
    settings: &ProducerSettings,
    clock: Arc<dyn Clock>,
    pressure: Arc<Pressure>,
    capture: Waker,
) -> (Producer, Inlet) {
    let batch = || Batch::new(settings.batch_bytes, settings.batch_rows);
    let (end, capture) = exchange((0..settings.batches.max(4)).map(|_| batch()).collect(), capture);
    let counters = Arc::new(SourceCounters::default());
    let now = clock.now();
    let producer = Producer {
        end,
        clock,
        pressure,
        counters: Arc::clone(&counters),
        overload: settings.overload,
        batch: None,
        spill: batch(),
        claimed: 0,
        gaps: 0,
        since: now,
        now,
        next: settings.next,
        open: None,
        losses: Losses::new(),
        abort_due: None,
    };
    (producer, Inlet { end: capture, counters })
}

/// What a source knows of an element beside its bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Attributes {
    /// Direction and kind of metadata; that there is an event time is seen by itself.
    pub flags: Flags,
    /// The packet's interface.
    pub tag: u16,
    /// Bytes that the element had beyond what is given.
    pub extra: u32,
    /// When it happened, where the source knows better than we.
    pub event: Option<Timestamp>,
}

/// What becomes of the element that is open.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Fate {
    Kept,
    Dropped(Cause),
}

#[derive(Clone, Copy, Debug)]
struct Open {
    ordinal: Ordinal,
    attributes: Attributes,
    /// Where the bytes without a row start in the batch.
    at: usize,
    /// How many they are, metadata included.
    here: usize,
    /// Bytes of metadata among them.
    meta: usize,
    /// Rows of it were made before.
    pieces: bool,
    /// All bytes of data that arrived.
    arrived: u64,
    /// Those of them that are in rows already.
    sent: u64,
    total: Option<u64>,
    first: Timestamp,
    fate: Fate,
}

/// The beginning of an element that was taken out of the batch again, to be continued later.
#[derive(Debug)]
pub struct Carry {
    bytes: Box<[u8]>,
    open: Option<Open>,
}

impl Carry {
    /// Room for the first `limit` bytes of an element.
    pub fn new(limit: usize) -> Self {
        Self { bytes: vec![0; limit].into_boxed_slice(), open: None }
    }

    /// True when there is nothing to continue.
    pub fn is_empty(&self) -> bool {
        self.open.is_none()
    }

    /// Forgets what it has.
    pub fn clear(&mut self) {
        self.open = None;
    }
}

/// The handle through which a source delivers. One thread's.
pub struct Producer {
    end: SourceEnd<Batch>,
    clock: Arc<dyn Clock>,
    pressure: Arc<Pressure>,
    counters: Arc<SourceCounters>,
    overload: Overload,
    /// The batch being filled; none: what arrives goes to the spill and is dropped.
    batch: Option<Batch>,
    spill: Batch,
    /// Bytes of the current batch that are spoken for.
    claimed: usize,
    /// Gaps in the current batch.
    gaps: usize,
    /// When the current batch was begun.
    since: Timestamp,
    /// When the last bytes arrived.
    now: Timestamp,
    next: Ordinal,
    open: Option<Open>,
    losses: Losses,
    /// An abort that waits for a batch.
    abort_due: Option<BatchRow>,
}

impl std::fmt::Debug for Producer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Producer").field("next", &self.next).field("open", &self.open).finish_non_exhaustive()
    }
}

impl Producer {
    /// The counters, for what only the source knows.
    pub fn counters(&self) -> &SourceCounters {
        &self.counters
    }

    /// The ordinal of the next element.
    pub fn next_ordinal(&self) -> Ordinal {
        self.next
    }

    /// The arrival time in force.
    pub fn now(&self) -> Timestamp {
        self.now
    }

    /// Takes a new arrival time: what is delivered from here on arrived now.
    pub fn stamp(&mut self) -> Timestamp {
        self.now = self.clock.now().max(self.now);
        self.now
    }

    // ---- streams ----

    /// Room to read into, never nothing, sized so that `cutter`'s elements stay in one piece where they can. Waits
    /// or drops by the policy.
    pub fn space(&mut self, cutter: &Cutter) -> Result<&mut [u8], Closed> {
        self.tidy();
        let least = cutter.least().max(LEAST_SPACE);
        match &self.batch {
            Some(batch) if batch.room() >= least && batch.rows_left() > SPARE_ROWS => {}
            Some(_) => self.roll()?,
            None => self.acquire()?,
        }
        let current = self.current();
        let most = cutter.most(current.room(), current.rows_left().saturating_sub(SPARE_ROWS));
        Ok(&mut current.free()[..most.max(1)])
    }

    /// `n` bytes were read into the space; `cutter` says what they are.
    pub fn feed(&mut self, n: usize, cutter: &mut Cutter) -> Result<(), Closed> {
        self.stamp();
        self.current().fill(n);
        // What is left unclaimed moves along when a row finds no place and another batch is begun.
        loop {
            let step = {
                let batch = self.batch.as_ref().unwrap_or(&self.spill);
                let bytes = &batch.filled()[self.claimed..];
                if bytes.is_empty() {
                    break;
                }
                cutter.step(bytes)
            };
            self.claimed += step.lead;
            if step.begins {
                self.begin(step.total, Attributes::default(), 0)?;
            }
            self.claim(step.take);
            if step.ends {
                self.finish_element(0)?;
            }
            self.claimed += step.trail;
        }
        Ok(())
    }

    /// Sends the batch if it is old. Stream sources call it after [`Producer::feed`].
    pub fn settle(&mut self) -> Result<(), Closed> {
        if self.now.since(self.since) >= FLUSH_AGE { self.flush() } else { Ok(()) }
    }

    /// Ends the element that is open; `tag` marks how. Without an open element nothing happens.
    pub fn end_element(&mut self, tag: u16) -> Result<(), Closed> {
        self.finish_element(tag)
    }

    /// True while the last bytes are the beginning of an element.
    pub fn in_element(&self) -> bool {
        self.open.is_some()
    }

    /// Gives the open element up: what was sent of it ends with an abort, and a gap counts it, with those of its
    /// bytes that are in no row.
    pub fn abort_element(&mut self, cause: Cause) {
        if let Some(open) = self.open.take() {
            self.drop_bytes(&open);
            let cause = match open.fate {
                Fate::Dropped(earlier) => earlier,
                Fate::Kept => {
                    self.abort_row(&open);
                    cause
                }
            };
            self.lose(open.ordinal, open.arrived - open.sent, open.first, cause);
        }
    }

    /// Takes the open element out of the batch into `carry`, so that another connection can deliver. False when
    /// that is not possible, because it is too large or was sent in part.
    pub fn set_aside(&mut self, carry: &mut Carry) -> bool {
        let Some(open) = self.open else { return true };
        let kept = open.fate == Fate::Kept;
        if open.pieces || (kept && open.here > carry.bytes.len()) {
            return false;
        }
        if kept && let Some(batch) = &self.batch {
            carry.bytes[..open.here].copy_from_slice(&batch.filled()[open.at..open.at + open.here]);
        }
        self.drop_bytes(&open);
        self.open = None;
        self.next = open.ordinal;
        carry.open = Some(open);
        true
    }

    /// Continues what `set_aside` took out.
    pub fn resume(&mut self, carry: &mut Carry) -> Result<(), Closed> {
        let Some(aside) = carry.open.take() else { return Ok(()) };
        self.space(&Cutter::new(Framing::Whole))?;
        self.begin(aside.total, aside.attributes, aside.here)?;
        let now_dropped = self.batch.is_none();
        if let Some(open) = &mut self.open {
            open.first = aside.first;
            open.arrived = aside.arrived;
            if let Fate::Dropped(_) = aside.fate {
                open.fate = aside.fate;
            } else if !now_dropped && open.fate == Fate::Kept {
                open.here = aside.here;
                let batch = self.batch.as_mut().unwrap_or(&mut self.spill);
                batch.free()[..aside.here].copy_from_slice(&carry.bytes[..aside.here]);
                batch.fill(aside.here);
                self.claimed += aside.here;
            }
        }
        Ok(())
    }

    // ---- elements one by one ----

    /// One whole element, with its metadata; it arrived at the last [`Producer::stamp`].
    pub fn element(&mut self, meta: &[u8], data: &[u8], attributes: Attributes) -> Result<(), Closed> {
        let meta = meta.get(..meta.len().min(MAX_META)).unwrap_or(meta);
        let whole = meta.len() + data.len();
        let most = self.spill.capacity() - GAP_AREA;
        self.tidy();
        match &self.batch {
            Some(batch) if batch.rows_left() > SPARE_ROWS && batch.room() >= whole.min(most) => {}
            Some(_) => self.roll()?,
            None => self.acquire()?,
        }
        self.begin(Some(data.len() as u64), attributes, meta.len())?;
        self.put(meta)?;
        if let Some(open) = &mut self.open {
            open.meta = open.here;
            open.arrived = 0;
        }
        self.put(data)?;
        self.finish_element(attributes.tag)?;
        self.settle()
    }

    fn put(&mut self, mut bytes: &[u8]) -> Result<(), Closed> {
        while !bytes.is_empty() {
            if !matches!(&self.open, Some(open) if open.fate == Fate::Kept) {
                if let Some(open) = &mut self.open {
                    open.arrived += bytes.len() as u64;
                }
                return Ok(());
            }
            if self.batch.as_ref().is_some_and(|batch| batch.room() == 0) {
                self.roll()?;
                continue;
            }
            let batch = self.batch.as_mut().unwrap_or(&mut self.spill);
            let n = bytes.len().min(batch.room());
            batch.free()[..n].copy_from_slice(&bytes[..n]);
            batch.fill(n);
            self.claim(n);
            bytes = &bytes[n..];
        }
        Ok(())
    }

    // ---- losses ----

    /// The kernel dropped `elements` before the next element; `from` is when it was last asked.
    pub fn lost_before(&mut self, elements: u64, from: Timestamp) {
        if elements > 0 {
            let now = self.stamp();
            self.losses.add_kernel(elements, from.min(now), now);
            self.counters.drop_more(Cause::Kernel, elements, 0);
        }
    }

    /// Something was lost between two times, nobody knows how much.
    pub fn unknown_loss(&mut self, cause: Cause, from: Timestamp, to: Timestamp) {
        let first = self.next;
        self.losses.add(Loss { first, skipped: 0, elements: None, bytes: None, from, to, cause });
        add(&self.counters.unknown, 1);
    }

    /// An element that cannot be recorded, whatever room there is.
    pub fn refuse_element(&mut self, bytes: u64, cause: Cause) {
        let first = self.next;
        self.next = Ordinal(first.0 + 1);
        self.lose(first, bytes, self.now, cause);
    }

    // ---- sending ----

    /// Sends what is there, the beginning of an open element included.
    pub fn flush(&mut self) -> Result<(), Closed> {
        self.place_losses();
        self.cut_piece();
        match self.batch.take() {
            Some(batch) if batch.is_empty() => self.batch = Some(batch),
            Some(batch) => self.send(batch)?,
            None => {}
        }
        Ok(())
    }

    /// The source is about to wait for input: sends what is there if the capture thread has nothing else to do.
    /// Returns how long the source may wait before it calls again; `None`: as long as it likes.
    pub fn idle(&mut self) -> Result<Option<Duration>, Closed> {
        self.tidy();
        if self.batch.is_none() && !self.losses.is_empty() {
            if let Some(batch) = self.end.try_empty()? {
                self.install(batch);
            } else {
                return Ok(Some(FLUSH_AGE));
            }
        }
        let waits = self.batch.as_ref().is_some_and(|batch| {
            !batch.is_empty() || self.open.is_some_and(|open| open.here > 0) || !self.losses.is_empty()
        });
        if !waits {
            return Ok(None);
        }
        let old = self.clock.now().since(self.since) >= FLUSH_AGE;
        if old || self.end.all_taken() {
            self.flush()?;
            return Ok(None);
        }
        Ok(Some(FLUSH_AGE))
    }

    /// Sends all that is left, waiting for room for the last gaps, whatever the policy. Call once, at the end;
    /// an element that is still open is given up.
    pub fn finish(&mut self) -> Result<(), Closed> {
        self.abort_element(Cause::Aborted);
        while !self.losses.is_empty() || self.abort_due.is_some() {
            if self.batch.is_none() {
                let batch = self.end.wait_empty()?;
                self.install(batch);
            }
            self.flush()?;
        }
        self.flush()
    }

    // ---- inside ----

    fn current(&mut self) -> &mut Batch {
        self.batch.as_mut().unwrap_or(&mut self.spill)
    }

    /// Starts over in what holds only bytes that nobody wants.
    fn tidy(&mut self) {
        if self.batch.is_none() {
            self.spill.clear();
            self.claimed = 0;
        } else if let Some(Open { fate: Fate::Dropped(_), at, .. }) = self.open
            && let Some(batch) = &mut self.batch
        {
            batch.truncate(at);
            self.claimed = at.min(self.claimed);
        }
    }

    fn install(&mut self, mut batch: Batch) {
        batch.clear();
        batch.fill(GAP_AREA);
        self.claimed = GAP_AREA;
        self.gaps = 0;
        self.since = self.now;
        if let Some(open) = &mut self.open {
            open.at = GAP_AREA;
            open.here = 0;
        }
        if let Some(row) = self.abort_due.take() {
            batch.push(row);
        }
        self.batch = Some(batch);
        self.place_losses();
    }

    /// Gets an empty batch, by the policy; without one, what comes is dropped.
    fn acquire(&mut self) -> Result<(), Closed> {
        let mut empty = self.end.try_empty()?;
        if empty.is_none() && self.overload == Overload::Block {
            add(&self.counters.waits, 1);
            let start = self.clock.now();
            empty = Some(self.end.wait_empty()?);
            add(&self.counters.waited, self.clock.now().since(start).as_nanos() as u64);
        }
        match empty {
            Some(batch) => self.install(batch),
            None => self.spill_over(),
        }
        Ok(())
    }

    /// From here on what arrives is dropped, the rest of an open element too.
    fn spill_over(&mut self) {
        let cause = self.pressure.cause();
        if let Some(mut open) = self.open {
            if open.fate == Fate::Kept {
                self.abort_row(&open);
                open.fate = Fate::Dropped(cause);
            }
            self.open = Some(Open { at: 0, here: 0, ..open });
        }
    }

    /// Sends the current batch and gets another; bytes that nobody claimed yet move along.
    fn roll(&mut self) -> Result<(), Closed> {
        self.cut_piece();
        let Some(batch) = self.batch.take() else { return self.acquire() };
        self.spill.clear();
        let rest = &batch.filled()[self.claimed..];
        let moved = rest.len();
        self.spill.free()[..moved].copy_from_slice(rest);
        self.spill.fill(moved);
        self.claimed = 0;
        self.send(batch)?;
        self.acquire()?;
        if let Some(batch) = &mut self.batch {
            batch.free()[..moved].copy_from_slice(self.spill.filled());
            batch.fill(moved);
        }
        Ok(())
    }

    fn send(&mut self, batch: Batch) -> Result<(), Closed> {
        add(&self.counters.batches, 1);
        self.end.send(batch)
    }

    fn begin(&mut self, total: Option<u64>, attributes: Attributes, need: usize) -> Result<(), Closed> {
        if self.batch.as_ref().is_some_and(|batch| batch.rows_left() <= SPARE_ROWS || batch.room() < need) {
            self.roll()?;
        }
        while self.batch.is_some() && !self.losses.is_empty() {
            self.place_losses();
            if !self.losses.is_empty() {
                self.roll()?;
            }
        }
        if self.batch.as_ref().is_some_and(Batch::is_empty) {
            self.since = self.now;
        }
        let ordinal = self.next;
        self.next = Ordinal(ordinal.0 + 1);
        let fate = match &self.batch {
            _ if total.is_some_and(|total| total > MAX_ELEMENT) => Fate::Dropped(Cause::Oversized),
            Some(_) => Fate::Kept,
            None => Fate::Dropped(self.pressure.cause()),
        };
        self.open = Some(Open {
            ordinal,
            attributes,
            at: self.claimed,
            here: 0,
            meta: 0,
            pieces: false,
            arrived: 0,
            sent: 0,
            total,
            first: self.now,
            fate,
        });
        Ok(())
    }

    fn claim(&mut self, n: usize) {
        self.claimed += n;
        let Some(open) = &mut self.open else { return };
        open.here += n;
        open.arrived += n as u64;
        if open.arrived > MAX_ELEMENT && open.fate == Fate::Kept {
            open.fate = Fate::Dropped(Cause::Oversized);
            let open = *open;
            self.abort_row(&open);
        }
    }

    fn row(&self, open: &Open, content: Content) -> BatchRow {
        let attributes = &open.attributes;
        BatchRow {
            content,
            flags: if attributes.event.is_some() {
                attributes.flags.with(Flags::EVENT)
            } else {
                attributes.flags
            },
            meta: open.meta as u16,
            tag: attributes.tag,
            at: open.at as u32,
            len: (open.here - open.meta) as u32,
            extra: attributes.extra,
            ordinal: open.ordinal,
            arrival: self.now,
            span: self.now.since(open.first).as_nanos() as u64,
            event: attributes.event.unwrap_or_default(),
        }
    }

    /// Makes a row of what is there of the open element; the rest will follow in another batch.
    fn cut_piece(&mut self) {
        let Some(mut open) = self.open else { return };
        if open.fate == Fate::Kept && open.here > 0 && self.batch.is_some() {
            let content = if open.pieces { Content::Middle } else { Content::First { total: open.total } };
            let row = self.row(&open, content);
            self.current().push(row);
            let sent = u64::from(row.len);
            add(&self.counters.bytes, sent);
            open.sent += sent;
            open.pieces = true;
            open.meta = 0;
        }
        open.at += open.here;
        open.here = 0;
        self.open = Some(open);
    }

    fn finish_element(&mut self, tag: u16) -> Result<(), Closed> {
        if self.batch.is_none() && self.open.is_some_and(|open| open.fate == Fate::Kept) {
            self.acquire()?;
        }
        let Some(mut open) = self.open.take() else { return Ok(()) };
        match open.fate {
            Fate::Kept => {
                open.attributes.tag = tag;
                let row = self.row(&open, if open.pieces { Content::Last } else { Content::Whole });
                self.current().push(row);
                add(&self.counters.elements, 1);
                add(&self.counters.bytes, open.arrived - open.sent);
            }
            Fate::Dropped(cause) => self.lose(open.ordinal, open.arrived - open.sent, open.first, cause),
        }
        Ok(())
    }

    /// Ends an element of which pieces were sent; without a batch, at the head of the next one.
    fn abort_row(&mut self, open: &Open) {
        if open.pieces {
            let row = BatchRow { at: 0, ..self.row(&Open { here: 0, meta: 0, ..*open }, Content::Abort) };
            match &mut self.batch {
                Some(batch) => {
                    batch.push(row);
                }
                None => self.abort_due = Some(row),
            }
        }
    }

    fn drop_bytes(&mut self, open: &Open) {
        let at = open.at;
        if let Some(batch) = &mut self.batch
            && self.claimed == batch.filled().len()
        {
            batch.truncate(at);
            self.claimed = at;
        }
    }

    fn lose(&mut self, first: Ordinal, bytes: u64, from: Timestamp, cause: Cause) {
        add(&self.counters.elements, 1);
        add(&self.counters.bytes, bytes);
        self.counters.drop_more(cause, 1, bytes);
        let (skipped, elements, bytes) = (1, Some(1), Some(bytes));
        self.losses.add(Loss { first, skipped, elements, bytes, from, to: self.now, cause });
    }

    /// Writes the gaps that wait, as far as the batch has room for them.
    fn place_losses(&mut self) {
        while let Some(batch) = &mut self.batch
            && let Some(loss) = self.losses.peek(self.next)
            // The kernel's losses come behind the element that is open.
            && (self.open.is_none() || loss.first < self.next)
            && self.gaps * GAP_BYTES < GAP_AREA
            && batch.rows_left() > SPARE_ROWS
        {
            let at = self.gaps * GAP_BYTES;
            batch.put_gap(at, &loss.encode());
            batch.push(BatchRow {
                content: Content::Gap,
                flags: Flags::default(),
                meta: 0,
                tag: 0,
                at: at as u32,
                len: GAP_BYTES as u32,
                extra: 0,
                ordinal: loss.first,
                arrival: self.now,
                span: 0,
                event: Timestamp::default(),
            });
            self.gaps += 1;
            self.next = self.next.max(Ordinal(loss.first.0 + loss.skipped));
            self.losses.pop();
        }
    }
}
