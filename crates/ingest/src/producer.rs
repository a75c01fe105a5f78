//! Producer: a source's handle, which timestamps and numbers its elements, cuts them into rows, and applies the
//! overload policy.
//!
//! Two ways in. Streams read straight into [`Producer::space`] and let a [`Cutter`] say where elements begin and
//! end ([`Producer::feed`]); datagrams, packets and replayed elements are copied in one by one
//! ([`Producer::element`]). Nothing is allocated after the start. How bytes become elements is `framing`'s.

mod channel;
mod rows;

pub use channel::{Inlet, Overload, ProducerSettings, channel};

use crate::Cause;
use crate::auto_schema::AutoSchema;
use crate::batch::{Batch, BatchRow};
use crate::counters::{Pressure, SourceCounters, add};
use crate::extraction::Extraction;
use crate::framing::{Cutter, Framing, Step};
use crate::loss::{GAP_BYTES, Loss, Losses};
use crate::queue::{Closed, SourceQueue};
use crate::upstream::Upstream;
use holdfast_base::{Clock, MAX_META, Ordinal, Timestamp};
use holdfast_format::Flags;
use std::sync::Arc;
use std::time::Duration;

/// How old a partly filled batch may become before it is sent.
pub const FLUSH_AGE: Duration = Duration::from_millis(4);

/// Bytes at the head of every batch for the gaps in it.
const GAP_AREA: usize = 16 * GAP_BYTES;

/// Least bytes that `space` offers: a read of less costs more than it brings.
const LEAST_SPACE: usize = 4096;

/// Rows kept free: the one of the element that is open, and an abort.
const SPARE_ROWS: usize = 2;

/// What a source knows of an element beside its bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Marks {
    /// Direction and kind of metadata; that there is an event time is seen by itself.
    pub flags: Flags,
    /// The packet's interface.
    pub tag: u16,
    /// Bytes that the element had beyond what is given.
    pub extra: u32,
    /// When it happened, where the source knows better than we.
    pub event: Option<Timestamp>,
}

impl Marks {
    /// Those of an element that begins with this step of its framing.
    fn of(step: &Step) -> Self {
        let flags = if step.header.is_some() { Flags::HEADER } else { Flags::default() };
        Self { flags, tag: step.tag, ..Self::default() }
    }
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
    marks: Marks,
    /// Where the bytes without a row start in the batch.
    at: usize,
    /// How many they are, metadata included.
    here: usize,
    /// Bytes of metadata among them.
    meta: usize,
    /// Bytes of metadata that are still to come: all of it is in front of the data.
    meta_lacks: usize,
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

impl Open {
    /// So many more bytes of it came: of its metadata first. How many of them those are.
    fn came(&mut self, n: usize) -> usize {
        let meta = n.min(self.meta_lacks);
        self.meta_lacks -= meta;
        self.arrived += (n - meta) as u64;
        meta
    }
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
    end: SourceQueue<Batch>,
    clock: Arc<dyn Clock>,
    pressure: Arc<Pressure>,
    counters: Arc<SourceCounters>,
    /// Batches there are, the current one left out, and the bytes of each.
    batches: usize,
    batch_bytes: usize,
    batch_rows: usize,
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
    /// Whether it is known outside that something may not have been handed over.
    keeps: bool,
    next: Ordinal,
    open: Option<Open>,
    losses: Losses,
    /// An abort that waits for a batch.
    abort_due: Option<BatchRow>,
    extraction: Option<Extraction>,
    inference: Option<AutoSchema>,
    upstream: Option<Upstream>,
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
        if !self.keeps {
            self.keeps = true;
            self.counters.keep_from(self.now);
        }
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
            if step.begins && step.ends && !step.malformed && self.takes_whole() {
                let meta = step.header.unwrap_or(0);
                self.whole(meta, step.take - meta, &Marks::of(&step));
            } else {
                if step.begins {
                    self.begin(step.total, Marks::of(&step), step.header.unwrap_or(0), 0)?;
                }
                self.claim(step.take);
                if step.ends && step.malformed {
                    self.abort_element(Cause::Aborted);
                } else if step.ends {
                    self.finish_element(step.tag)?;
                }
            }
            self.claimed += step.trail;
        }
        Ok(())
    }

    /// Sends the batch if it is old and the capture thread has nothing else of this source to do: while it is
    /// behind, a batch that is not full had better be filled. Stream sources call it after [`Producer::feed`].
    pub fn settle(&mut self) -> Result<(), Closed> {
        if self.now.since(self.since) < FLUSH_AGE {
            return Ok(());
        }
        if self.end.all_taken() {
            return self.flush();
        }
        self.since = self.now;
        Ok(())
    }

    /// Ends the element that is open; `tag` marks how. Without an open element nothing happens.
    pub fn end_element(&mut self, tag: u16) -> Result<(), Closed> {
        self.finish_element(tag)
    }

    /// True while the last bytes are the beginning of an element.
    pub fn in_element(&self) -> bool {
        self.open.is_some()
    }

    /// Gives the open element up: what was sent of it ends with an abort, and a gap counts it, with all of its bytes
    /// that came.
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
            self.lose_open(&open, cause);
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
        self.begin(aside.total, aside.marks, aside.meta_lacks, aside.here)?;
        let now_dropped = self.batch.is_none();
        if let Some(open) = &mut self.open {
            open.first = aside.first;
            open.arrived = aside.arrived;
            if let Fate::Dropped(_) = aside.fate {
                open.fate = aside.fate;
            } else if !now_dropped && open.fate == Fate::Kept {
                (open.here, open.meta) = (aside.here, aside.meta);
                let batch = self.batch.as_mut().unwrap_or(&mut self.spill);
                batch.free()[..aside.here].copy_from_slice(&carry.bytes[..aside.here]);
                batch.fill(aside.here);
                self.claimed += aside.here;
            }
        }
        Ok(())
    }

    /// Hands over the preamble that led the input, and waits until the ring has it, durably: no element is older than
    /// it. What the ring says against it comes back. Once, and before any element.
    pub fn lead(&mut self, preamble: Vec<u8>) -> Result<Result<(), String>, Closed> {
        self.end.offer(preamble)
    }

    // ---- elements one by one ----

    /// One whole element, with its metadata; it arrived at the last [`Producer::stamp`].
    pub fn element(&mut self, meta: &[u8], data: &[u8], marks: Marks) -> Result<(), Closed> {
        let meta = meta.get(..meta.len().min(MAX_META)).unwrap_or(meta);
        let whole = meta.len() + data.len();
        let most = self.spill.capacity() - GAP_AREA;
        self.tidy();
        match &self.batch {
            Some(batch) if batch.rows_left() > SPARE_ROWS && batch.room() >= whole.min(most) => {}
            Some(_) => self.roll()?,
            None => self.acquire()?,
        }
        if self.takes_whole()
            && let Some(batch) = &mut self.batch
            && batch.room() >= whole
        {
            let (first, second) = batch.free()[..whole].split_at_mut(meta.len());
            first.copy_from_slice(meta);
            second.copy_from_slice(data);
            batch.fill(whole);
            self.whole(meta.len(), data.len(), &marks);
            return self.settle();
        }
        self.begin(Some(data.len() as u64), marks, meta.len(), meta.len())?;
        self.put(meta)?;
        self.put(data)?;
        self.finish_element(marks.tag)?;
        self.settle()
    }

    fn put(&mut self, mut bytes: &[u8]) -> Result<(), Closed> {
        while !bytes.is_empty() {
            if !matches!(&self.open, Some(open) if open.fate == Fate::Kept) {
                if let Some(open) = &mut self.open {
                    open.came(bytes.len());
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
            if let Some(upstream) = &mut self.upstream {
                upstream.lost_here(elements, from.min(now), now);
            }
        }
    }

    /// Whoever feeds this source gave up `elements` before the next one, for want of room here; `from` is when it was last
    /// asked. Not while an element is open.
    pub fn given_up(&mut self, elements: u64, bytes: Option<u64>, from: Timestamp) {
        let to = self.stamp();
        let (first, from, cause) = (self.next, from.min(to), self.counters.cause(&self.pressure));
        self.next = Ordinal(first.0 + elements);
        add(&self.counters.elements, elements);
        add(&self.counters.bytes, bytes.unwrap_or(0));
        self.counters.drop_more(cause, elements, bytes.unwrap_or(0));
        if let Some(upstream) = &mut self.upstream {
            upstream.lost_here(elements, from, to);
        }
        self.losses.add(Loss { first, skipped: elements, elements: Some(elements), bytes, from, to, cause });
    }

    /// Something was lost between two times, nobody knows how much.
    pub fn unknown_loss(&mut self, cause: Cause, from: Timestamp, to: Timestamp) {
        let first = self.next;
        self.losses.add(Loss { first, skipped: 0, elements: None, bytes: None, from, to, cause });
        add(&self.counters.unknown, 1);
    }

    /// Records that the source was away between two times, in which an unknown number of elements was lost.
    pub fn was_interrupted(&mut self, from: Timestamp, to: Timestamp) {
        add(&self.counters.interrupted, 1);
        self.unknown_loss(Cause::Upstream, from, to);
    }

    /// An element that cannot be recorded, whatever room there is.
    pub fn refuse_element(&mut self, bytes: u64, cause: Cause) {
        let first = self.next;
        self.next = Ordinal(first.0 + 1);
        self.lose(first, bytes, bytes, self.now, cause);
    }

    /// What comes from here on is numbered anew.
    pub fn count_anew(&mut self) -> Result<(), Closed> {
        if self.upstream.is_some() {
            // What came before is looked at when it is sent.
            self.flush()?;
        }
        if let Some(upstream) = &mut self.upstream {
            upstream.begin_anew();
        }
        Ok(())
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

    /// Whether `bytes` more fit into batches that are there now; if not, waits for one to come back, at most so long.
    /// For sources whose kernel side can keep things for a while.
    pub fn await_room(&mut self, bytes: usize, at_most: Duration) -> Result<bool, Closed> {
        let needed = (bytes / self.batch_bytes + 1).min(self.batches / 2);
        if self.end.spare()? >= needed {
            return Ok(true);
        }
        self.end.wait(at_most);
        Ok(self.end.spare()? >= needed)
    }

    /// The same of one element of so many bytes, for which the batch that is being filled counts, too.
    pub fn await_place(&mut self, bytes: usize, at_most: Duration) -> Result<bool, Closed> {
        let fits = |batch: &Batch| batch.rows_left() > SPARE_ROWS && batch.room() >= bytes;
        if self.batch.as_ref().is_some_and(fits) { Ok(true) } else { self.await_room(bytes, at_most) }
    }

    /// The source is about to wait for input: sends what is there if the capture thread has nothing else to do.
    /// Returns how long the source may wait before it calls again; `None`: as long as it likes.
    pub fn idle(&mut self) -> Result<Option<Duration>, Closed> {
        if self.upstream.is_some() {
            let now = self.clock.now();
            if self.upstream_due_in(now).is_some_and(|soon| soon.is_zero()) {
                self.stamp();
            }
        }
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
        if waits && !self.end.all_taken() {
            return Ok(Some(FLUSH_AGE));
        }
        if waits {
            self.flush()?;
        }
        let now = self.clock.now();
        let inferring = self.inference.as_ref().and_then(|inference| inference.due_in(now));
        if inferring.is_some_and(|soon| soon.is_zero()) {
            self.end_inference(now)?;
        }
        if self.keeps {
            self.keeps = false;
            self.counters.keep_nothing();
        }
        let inferring = inferring
            .filter(|_| self.inference.is_some() && self.open.is_none_or(|open| open.here == 0))
            .map(|soon| soon.max(FLUSH_AGE));
        Ok(self.upstream_due_in(now).into_iter().chain(inferring).min())
    }

    /// Sends all that is left, waiting for room for the last gaps, whatever the policy. Call once, at the end;
    /// an element that is still open is given up.
    pub fn finish(&mut self) -> Result<(), Closed> {
        self.abort_element(Cause::Aborted);
        self.finish_losses()?;
        self.tell_upstream(Timestamp::MAX);
        self.finish_losses()?;
        if let Some(inference) = &mut self.inference {
            inference.end();
            if self.batch.is_none() {
                let batch = self.end.wait_empty()?;
                self.install(batch);
            }
            self.end_inference(self.now)?;
        }
        Ok(())
    }

    fn finish_losses(&mut self) -> Result<(), Closed> {
        while !self.losses.is_empty() || self.abort_due.is_some() {
            if self.batch.is_none() {
                let batch = self.end.wait_empty()?;
                self.install(batch);
            }
            self.flush()?;
        }
        self.flush()
    }
}
