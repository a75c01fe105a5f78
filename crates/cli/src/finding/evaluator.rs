//! Looks for what a hold wants, turn by turn: in what has come since the turn before, and around what was found until its
//! roll has ended.

use super::distil;
use crate::complaint;
use crate::failure::Result;
use crate::index::Index;
use crate::session::link;
use crate::sql::{self, Sql};
use holdfast_base::{Ordinal, Sequence, StreamId, Timestamp};
use holdfast_link::{OpenSlots, RingReader};
use holdfast_query::Limits;
use holdfast_query::find::{Among, Found, Roll, Sample, Search, Span, merged};
use holdfast_query::stream::Missed;
use holdfast_ring::{Original, SlotStatus, StreamStatus};
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

/// An element is known at most so long after it has arrived.
const LATE: Duration = Duration::from_secs(2);

/// What a hold wants.
#[derive(Clone, Debug)]
pub(super) enum Wanted {
    Found(Search),
    Sample(Sample),
}

/// A stream that is looked through.
#[derive(Clone, Debug)]
struct Watch {
    id: StreamId,
    name: String,
    /// The next element to look at, and a slot before which none of those to come is.
    next: Ordinal,
    slot: Sequence,
}

/// What was found, until what is to be held after it has arrived, too.
#[derive(Clone, Copy, Debug)]
struct Rolling {
    /// Where it was found first; none for a sample.
    at: Option<(StreamId, Ordinal, Sequence)>,
    span: Span,
}

/// What a turn found.
#[derive(Clone, Debug, Default)]
pub(super) struct Turn {
    /// Elements.
    pub(super) elements: u64,
    /// The slots that are to be held, of all that is not finished with.
    pub(super) sequences: Vec<(Sequence, Sequence)>,
    /// What could not be looked into.
    pub(super) missed: Missed,
}

/// Looks for it.
pub(super) struct Evaluator {
    path: PathBuf,
    limits: Limits,
    sql: Option<Sql>,
    known: Vec<StreamStatus>,
    wanted: Wanted,
    roll: Roll,
    /// The streams that are held; none means all.
    streams: Vec<StreamId>,
    /// In which time.
    times: Span,
    watches: Vec<Watch>,
    /// From where on streams are looked through that are not watched; up to where they are sampled.
    begin: Vec<(StreamId, Ordinal)>,
    rolling: Vec<Rolling>,
    /// Up to when a sample has been taken.
    sampled: Timestamp,
    /// When the last turn was.
    turned: Timestamp,
}

impl Evaluator {
    pub(super) fn new(
        path: PathBuf,
        limits: Limits,
        wanted: Wanted,
        roll: Roll,
        streams: Vec<StreamId>,
        times: Span,
        begin: Vec<(StreamId, Ordinal)>,
    ) -> Self {
        Self {
            path,
            limits,
            sql: None,
            known: Vec::new(),
            wanted,
            roll,
            streams,
            sampled: times.0,
            times,
            watches: Vec::new(),
            begin,
            rolling: Vec::new(),
            turned: Timestamp::MIN,
        }
    }

    /// Looks at what has come up to `now`.
    pub(super) fn turn(&mut self, now: Timestamp) -> Result<Turn> {
        let mut reader = RingReader::open(&self.path).map_err(|error| link(&error))?;
        // Asked for before anything is looked at: what is counted can be seen by then, and what is not ends in no slot before
        // the one that was open first.
        let open = reader.status().map_err(|error| link(&error))?.ring.sequence;
        let known = reader.streams().map_err(|error| link(&error))?;
        self.learn(&known)?;
        let mut turn = Turn::default();
        match self.wanted.clone() {
            Wanted::Found(search) => self.look(&search, &known, open, &mut turn)?,
            Wanted::Sample(sample) => {
                self.sample(sample, &mut reader, now)?;
                let held = |id| self.streams.is_empty() || self.streams.contains(&id);
                let known = known.iter().filter(|stream| held(stream.id));
                self.begin = known.map(|stream| (stream.id, stream.counters.next_ordinal)).collect();
            }
        }
        if !self.rolling.is_empty() {
            let (known, spans) = self.around();
            turn.sequences =
                reader.sequences_around(&self.streams, &known, &spans).map_err(|error| link(&error))?;
        }
        self.turned = now;
        Ok(turn)
    }

    /// What the last turn found is held: what has come to its end can be forgotten.
    pub(super) fn is_held(&mut self) {
        let (roll, now) = (self.roll, self.turned);
        self.rolling.retain(|rolling| roll.around(rolling.span).1 + LATE >= now);
    }

    /// What was found, by slot and stream the first of it, and when what is wanted around it arrived. What was found alone is in
    /// its slots and nowhere else, whatever else arrived at the same time.
    fn around(&self) -> (BTreeMap<(Sequence, StreamId), Ordinal>, Vec<Span>) {
        let mut known = BTreeMap::new();
        for (stream, ordinal, slot) in self.rolling.iter().filter_map(|rolling| rolling.at) {
            let first = known.entry((slot, stream)).or_insert(ordinal);
            *first = ordinal.min(*first);
        }
        let alone =
            matches!(&self.wanted, Wanted::Found(search) if search.when.is_none()) && self.roll.is_none();
        let spans = self.rolling.iter().filter(|_| !alone);
        (known, merged(spans.map(|rolling| self.roll.around(rolling.span)).collect()))
    }

    /// Whether all that was to be held after what was found has arrived.
    pub(super) fn is_done(&self) -> bool {
        self.rolling.is_empty()
    }

    /// Looks for no more than it has found by now.
    pub(super) fn stop_looking(&mut self) {
        self.times.1 = Timestamp::MIN;
    }

    /// What of these slots the hold keeps, and how many bytes that is about; `None` where not all of them could be looked into,
    /// so that nobody can tell.
    pub(super) fn keep(&self, group: &[SlotStatus]) -> Result<Option<(Vec<Original>, u64)>> {
        let Some(sql) = self.sql.as_ref().filter(|_| group.iter().all(|slot| slot.first.is_some())) else {
            return Ok(None);
        };
        let held = |stream: &&StreamStatus| self.streams.is_empty() || self.streams.contains(&stream.id);
        let searched = |id| self.watches.iter().any(|watch| watch.id == id);
        let streams: Vec<(StreamStatus, bool)> =
            self.known.iter().filter(held).map(|stream| (stream.clone(), searched(stream.id))).collect();
        sql.engine.trouble.take();
        let kept = distil::keep(sql, &self.wanted, self.roll, &streams, group)?;
        Ok(Some(kept).filter(|_| sql.engine.trouble.take() == Missed::default()))
    }

    /// Up to where each stream has been looked through and finished with: from there on another evaluator may go on.
    pub(super) fn watermarks(&self) -> Vec<(StreamId, Ordinal)> {
        let first = |id: StreamId| {
            let of_stream = self.rolling.iter().filter_map(|rolling| rolling.at);
            of_stream.filter(|(stream, ..)| *stream == id).map(|(_, ordinal, _)| ordinal).min()
        };
        self.marks(|watch| first(watch.id).unwrap_or(watch.next).min(watch.next))
    }

    /// Up to where each stream has been looked through.
    pub(super) fn reached(&self) -> Vec<(StreamId, Ordinal)> {
        self.marks(|watch| watch.next)
    }

    fn marks(&self, of: impl Fn(&Watch) -> Ordinal) -> Vec<(StreamId, Ordinal)> {
        let not_seen = |(id, _): &&(StreamId, Ordinal)| self.watches.iter().all(|watch| watch.id != *id);
        let marks = self.watches.iter().map(|watch| (watch.id, of(watch)));
        marks.chain(self.begin.iter().filter(not_seen).copied()).collect()
    }

    /// Sets the engine up anew where streams or their attributes have changed.
    fn learn(&mut self, known: &[StreamStatus]) -> Result<()> {
        let schemas = |all: &[StreamStatus]| -> Vec<(StreamId, u32)> {
            all.iter().map(|stream| (stream.id, stream.schema)).collect()
        };
        if self.sql.is_some() && schemas(known) == schemas(&self.known) {
            return Ok(());
        }
        // What it looks at is younger than any copy.
        let sql = sql::open(&self.path, &self.limits, &Index::default(), &OpenSlots::default())?;
        if let Wanted::Found(search) = &self.wanted {
            let held = |id| self.streams.is_empty() || self.streams.contains(&id);
            let mut refused = None;
            for stream in known.iter().filter(|stream| held(stream.id)) {
                if self.watches.iter().any(|watch| watch.id == stream.id) {
                    continue;
                }
                match sql.runtime.block_on(search.check(&sql.engine.context, &stream.name)) {
                    Ok(()) => self.watches.push(Watch {
                        id: stream.id,
                        name: stream.name.clone(),
                        next: self
                            .begin
                            .iter()
                            .find(|(id, _)| *id == stream.id)
                            .map_or(Ordinal(0), |(_, at)| *at),
                        slot: Sequence(0),
                    }),
                    Err(error) => refused = refused.or(Some(error)),
                }
            }
            if let Some(error) = refused.filter(|_| self.watches.is_empty()) {
                return Err(complaint::failure(&error, &search.condition, &[]));
            }
        }
        (self.sql, self.known) = (Some(sql), known.to_vec());
        Ok(())
    }

    fn look(
        &mut self,
        search: &Search,
        known: &[StreamStatus],
        open: Sequence,
        turn: &mut Turn,
    ) -> Result<()> {
        let (Some(sql), true) = (&self.sql, self.times.0 <= self.times.1) else { return Ok(()) };
        for watch in &mut self.watches {
            let reached = known.iter().find(|stream| stream.id == watch.id);
            let reached = reached.map_or(watch.next, |stream| stream.counters.next_ordinal);
            if reached <= watch.next {
                continue;
            }
            let among = Among { times: self.times, ordinals: (watch.next, reached), slots: watch.slot };
            let found = sql
                .runtime
                .block_on(search.found(&sql.engine.context, &watch.name, &among))
                .map_err(|error| complaint::failure(&error, &search.condition, &[]))?;
            turn.elements += found.iter().map(|found| found.elements).sum::<u64>();
            let at = |found: &Found| Some((watch.id, found.first, found.slot));
            // Before the next stream, which may not be within reach: what was found stays found.
            self.rolling.extend(found.iter().map(|found| Rolling { at: at(found), span: found.span }));
            (watch.next, watch.slot) = (reached, open);
        }
        turn.missed = sql.engine.trouble.take();
        Ok(())
    }

    fn sample(&mut self, sample: Sample, reader: &mut RingReader, now: Timestamp) -> Result<()> {
        let end = now.min(self.times.1);
        if self.sampled == Timestamp::MIN {
            let oldest = reader.status().map_err(|error| link(&error))?.ring.oldest;
            self.sampled = oldest.unwrap_or(end).min(end);
        }
        let range = (self.sampled, end);
        self.sampled = self.sampled.max(end + Duration::from_nanos(1));
        let known = self.rolling.len();
        for span in sample.spans(range).filter(|_| range.0 <= range.1) {
            if self.rolling[..known].iter().all(|rolling| rolling.span != span) {
                self.rolling.push(Rolling { at: None, span });
            }
        }
        Ok(())
    }
}
