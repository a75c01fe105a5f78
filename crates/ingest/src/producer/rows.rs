//! Internals of the producer: batches begun and sent, elements opened, claimed, cut and lost. Sources do not call them.

use super::{Fate, GAP_AREA, Marks, Open, Overload, Producer, SPARE_ROWS};
use crate::Cause;
use crate::auto_schema::NewAttributes;
use crate::batch::{Batch, BatchRow, Content};
use crate::counters::add;
use crate::framing::KEEP_TOGETHER;
use crate::loss::{GAP_BYTES, Loss};
use crate::queue::Closed;
use crate::upstream::Missing;
use holdfast_base::{MAX_ELEMENT, Ordinal, Timestamp};
use holdfast_format::Flags;
use std::time::Duration;

impl Producer {
    pub(super) fn current(&mut self) -> &mut Batch {
        self.batch.as_mut().unwrap_or(&mut self.spill)
    }

    /// Starts over in what holds only bytes that nobody wants.
    pub(super) fn tidy(&mut self) {
        self.tell_upstream(self.now);
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

    pub(super) fn install(&mut self, mut batch: Batch) {
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
    pub(super) fn acquire(&mut self) -> Result<(), Closed> {
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
    pub(super) fn spill_over(&mut self) {
        let cause = self.counters.cause(&self.pressure);
        if let Some(mut open) = self.open {
            if open.fate == Fate::Kept {
                self.abort_row(&open);
                open.fate = Fate::Dropped(cause);
            }
            self.open = Some(Open { at: 0, here: 0, meta: 0, ..open });
        }
    }

    /// Sends the current batch and gets another; bytes that nobody claimed yet move along, and so does the beginning of
    /// an element that is small: torn in two it would have to be aborted where no other batch is to be had.
    pub(super) fn roll(&mut self) -> Result<(), Closed> {
        let carried = self.carried();
        if carried == 0 {
            self.cut_piece();
        }
        let Some(mut batch) = self.batch.take() else { return self.acquire() };
        self.spill.clear();
        let from = self.claimed - carried;
        let rest = &batch.filled()[from..];
        let moved = rest.len();
        self.spill.free()[..moved].copy_from_slice(rest);
        self.spill.fill(moved);
        batch.truncate(from);
        self.claimed = 0;
        self.send(batch)?;
        self.acquire()?;
        self.claimed += carried;
        if let Some(batch) = &mut self.batch {
            batch.free()[..moved].copy_from_slice(self.spill.filled());
            batch.fill(moved);
            if let Some(open) = &mut self.open {
                open.here = carried;
            }
        }
        Ok(())
    }

    /// Bytes of the open element that go along to the next batch.
    fn carried(&self) -> usize {
        let most = KEEP_TOGETHER.min(self.spill.capacity() / 4);
        match &self.open {
            Some(open) if open.fate == Fate::Kept && !open.pieces && open.here <= most => open.here,
            _ => 0,
        }
    }

    pub(super) fn send(&mut self, mut batch: Batch) -> Result<(), Closed> {
        add(&self.counters.batches, 1);
        self.infer(&mut batch);
        if let Some(extraction) = &mut self.extraction {
            batch.set_columns(extraction.classes());
            extraction.fill(&mut batch, &self.counters);
        }
        if let Some(upstream) = &mut self.upstream {
            upstream.look(&batch);
        }
        self.end.send(batch)?;
        // What comes next of the same read has the same time.
        if self.keeps {
            self.counters.keep_from(self.now);
        }
        Ok(())
    }

    /// Opens an element that begins with so many bytes of metadata; so many bytes of it are to be in one batch.
    /// Infers attributes from a batch; once enough was seen, its cells are the first of the new schema.
    fn infer(&mut self, batch: &mut Batch) {
        let Some(inference) = &mut self.inference else { return };
        let undecodable = inference.look(batch);
        let inferred = if inference.is_over(self.now) {
            inference.conclude(self.batches + 1, self.batch_bytes, self.batch_rows)
        } else {
            None
        };
        if let Some((schema, extraction)) = inferred.zip(self.extraction.as_mut()) {
            batch.begin_attributes(NewAttributes { text: schema.text(), classes: schema.classes() });
            extraction.continue_with(&schema);
            if let Some(left_out) = inference.left_out(&schema) {
                let _ = self.counters.left_out.set(left_out);
            }
            self.inference = None;
        } else if undecodable > 0 {
            add(&self.counters.undecodable, undecodable);
        }
    }

    /// Ends an inference whose time is over, in a batch of its own, unless bytes of an element wait or no batch is free.
    pub(super) fn end_inference(&mut self, now: Timestamp) -> Result<(), Closed> {
        if self.open.is_some_and(|open| open.here > 0) {
            return Ok(());
        }
        if self.batch.is_none()
            && let Some(batch) = self.end.try_empty()?
        {
            self.install(batch);
        }
        self.now = self.now.max(now);
        match self.batch.take() {
            Some(batch) => self.send(batch),
            None => Ok(()),
        }
    }

    pub(super) fn begin(
        &mut self,
        total: Option<u64>,
        marks: Marks,
        meta: usize,
        need: usize,
    ) -> Result<(), Closed> {
        if self.batch.as_ref().is_some_and(|batch| batch.rows_left() <= SPARE_ROWS || batch.room() < need) {
            self.roll()?;
        }
        self.tell_upstream(self.now);
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
            None => Fate::Dropped(self.counters.cause(&self.pressure)),
        };
        self.open = Some(Open {
            ordinal,
            marks,
            at: self.claimed,
            here: 0,
            meta: 0,
            meta_lacks: meta,
            pieces: false,
            arrived: 0,
            sent: 0,
            total,
            first: self.now,
            fate,
        });
        Ok(())
    }

    /// Whether an element whose bytes are all in the batch needs just a row.
    #[inline]
    pub(super) fn takes_whole(&self) -> bool {
        self.batch.as_ref().is_some_and(|batch| batch.rows_left() > SPARE_ROWS)
            && self.losses.is_empty()
            && self.open.is_none()
    }

    /// The usual case, in as few steps as it can be: the next bytes are such an element.
    #[inline]
    pub(super) fn whole(&mut self, meta: usize, len: usize, marks: &Marks) {
        let Some(batch) = &mut self.batch else { return };
        if batch.is_empty() {
            self.since = self.now;
        }
        let event = marks.event;
        batch.push(BatchRow {
            content: Content::Whole,
            flags: if event.is_some() { marks.flags.with(Flags::EVENT) } else { marks.flags },
            meta: meta as u16,
            tag: marks.tag,
            at: self.claimed as u32,
            len: len as u32,
            extra: marks.extra,
            ordinal: self.next,
            arrival: self.now,
            span: 0,
            event: event.unwrap_or_default(),
        });
        self.claimed += meta + len;
        self.next = Ordinal(self.next.0 + 1);
        add(&self.counters.elements, 1);
        add(&self.counters.bytes, len as u64);
    }

    pub(super) fn claim(&mut self, n: usize) {
        self.claimed += n;
        let Some(open) = &mut self.open else { return };
        let meta = open.came(n);
        open.here += n;
        open.meta += meta;
        if open.arrived > MAX_ELEMENT && open.fate == Fate::Kept {
            open.fate = Fate::Dropped(Cause::Oversized);
            let open = *open;
            self.abort_row(&open);
        }
    }

    pub(super) fn row(&self, open: &Open, content: Content) -> BatchRow {
        let marks = &open.marks;
        BatchRow {
            content,
            flags: if marks.event.is_some() { marks.flags.with(Flags::EVENT) } else { marks.flags },
            meta: open.meta as u16,
            tag: marks.tag,
            at: open.at as u32,
            len: (open.here - open.meta) as u32,
            extra: marks.extra,
            ordinal: open.ordinal,
            arrival: self.now,
            span: self.now.since(open.first).as_nanos() as u64,
            event: marks.event.unwrap_or_default(),
        }
    }

    /// Makes a row of what is there of the open element; the rest will follow in another batch.
    pub(super) fn cut_piece(&mut self) {
        let Some(mut open) = self.open else { return };
        if open.fate == Fate::Kept && open.here > 0 && self.batch.is_some() {
            let content = if open.pieces { Content::Middle } else { Content::First { total: open.total } };
            let row = self.row(&open, content);
            self.current().push(row);
            let sent = u64::from(row.len);
            add(&self.counters.bytes, sent);
            open.sent += sent;
            open.pieces = true;
        }
        open.at += open.here;
        (open.here, open.meta) = (0, 0);
        self.open = Some(open);
    }

    pub(super) fn finish_element(&mut self, tag: u16) -> Result<(), Closed> {
        if self.batch.is_none() && self.open.is_some_and(|open| open.fate == Fate::Kept) {
            self.acquire()?;
        }
        let Some(mut open) = self.open.take() else { return Ok(()) };
        match open.fate {
            Fate::Kept => {
                open.marks.tag = tag;
                let row = self.row(&open, if open.pieces { Content::Last } else { Content::Whole });
                self.current().push(row);
                add(&self.counters.elements, 1);
                add(&self.counters.bytes, open.arrived - open.sent);
            }
            Fate::Dropped(cause) => self.lose_open(&open, cause),
        }
        Ok(())
    }

    /// Ends an element of which pieces were sent; without a batch, at the head of the next one.
    pub(super) fn abort_row(&mut self, open: &Open) {
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

    pub(super) fn drop_bytes(&mut self, open: &Open) {
        let at = open.at;
        if let Some(batch) = &mut self.batch
            && self.claimed == batch.filled().len()
        {
            batch.truncate(at);
            self.claimed = at;
        }
    }

    /// The open element is lost, with all of its bytes that came: those in rows belong to no element.
    pub(super) fn lose_open(&mut self, open: &Open, cause: Cause) {
        // These were counted when their rows were made.
        self.lose(open.ordinal, open.arrived, open.arrived - open.sent, open.first, cause);
    }

    /// An element is lost with `bytes` bytes, of which `fresh` are not counted as received yet.
    pub(super) fn lose(&mut self, first: Ordinal, bytes: u64, fresh: u64, from: Timestamp, cause: Cause) {
        add(&self.counters.elements, 1);
        add(&self.counters.bytes, fresh);
        self.counters.drop_more(cause, 1, bytes);
        if let Some(upstream) = &mut self.upstream {
            upstream.lost_here(1, from, self.now);
        }
        let (skipped, elements, bytes) = (1, Some(1), Some(bytes));
        self.losses.add(Loss { first, skipped, elements, bytes, from, to: self.now, cause });
    }

    /// After how long something is known to be missing upstream; `None`: not before something comes.
    pub(super) fn upstream_due_in(&self, now: Timestamp) -> Option<Duration> {
        // An element that is open comes first.
        self.upstream.as_ref().filter(|_| self.open.is_none())?.due_in(now)
    }

    /// Makes gaps of what is known to be missing upstream by now. They skip no ordinals: it never arrived. So they may not
    /// be taken together with other losses, and stand where nothing else waits.
    #[inline]
    pub(super) fn tell_upstream(&mut self, now: Timestamp) {
        if self.upstream.is_some()
            && self.losses.is_empty()
            && self.upstream_due_in(now).is_some_and(|soon| soon.is_zero())
        {
            self.lose_upstream(now);
        }
    }

    #[cold]
    fn lose_upstream(&mut self, now: Timestamp) {
        let Some(upstream) = &mut self.upstream else { return };
        for Missing { elements, from, to } in upstream.take(now).into_iter().flatten() {
            if let Some(elements) = elements {
                self.counters.drop_more(Cause::Upstream, elements, 0);
            } else {
                add(&self.counters.unknown, 1);
                add(&self.counters.interrupted, 1);
            }
            let (first, cause) = (self.next, Cause::Upstream);
            self.losses.add(Loss { first, skipped: 0, elements, bytes: None, from, to, cause });
        }
    }

    /// Writes the gaps that wait, as far as the batch has room for them.
    pub(super) fn place_losses(&mut self) {
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
