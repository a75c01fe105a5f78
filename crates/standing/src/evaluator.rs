//! Evaluator of a condition hold: it searches turn by turn in what has come since the turn before, and around what was found
//! until its roll has ended.

use crate::distil_groups::within;
use crate::fit::Fit;
use crate::tolerant_search::{self, Failing};
use holdfast_base::counted;
use holdfast_base::failure::{Failure, Result};
use holdfast_base::{Ordinal, Sequence, StreamId, Timestamp};
use holdfast_client::session::{self, ring_failure};
use holdfast_client::sql::Sql;
use holdfast_client::sql_errors;
use holdfast_query::Limits;
use holdfast_query::condition_search::{Roll, Sample, Search, SearchScope, SlotMatches, Span, merged};
use holdfast_query::stream::SkippedData;
use holdfast_reader::{Expiry, RingReader};
use holdfast_ring::StreamStatus;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::path::PathBuf;
use std::time::Duration;

/// An element is known at most so long after it has arrived.
const LATE: Duration = Duration::from_secs(2);

/// A window looks back at what may be distilled meanwhile: so often it is looked at again, for then its copies are there.
const AGAIN: u32 = 3;

/// The watermark of a stream in which nothing is looked for any more.
pub(crate) const OVER: Ordinal = Ordinal(u64::MAX);

/// What a hold wants.
#[derive(Clone, Debug)]
pub(crate) enum Wanted {
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
    /// Whether the hold stands for all from there on: what of it expires before it is looked at is told.
    is_due: bool,
}

/// What was found, until what is to be held after it has arrived, too.
#[derive(Clone, Copy, Debug)]
struct Rolling {
    /// Where it was found first; none for a sample.
    at: Option<(StreamId, Ordinal, Sequence)>,
    span: Span,
    /// Whether the hold has what there was of it.
    is_held: bool,
}

impl Rolling {
    /// Whether it was found in one of these slots.
    fn is_in(&self, slots: &[(Sequence, Sequence)]) -> bool {
        self.at.is_none_or(|(.., slot)| within(slots, slot))
    }
}

/// What expired before anybody looked at it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Unseen {
    pub(crate) stream: String,
    /// The first, and the one behind the last.
    pub(crate) ordinals: (Ordinal, Ordinal),
}

impl fmt::Display for Unseen {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (from, end) = self.ordinals;
        let elements = counted(end.0 - from.0, "element");
        let stream = &self.stream;
        write!(f, "{elements} of {stream} expired before they were looked at ({from} up to {end})")
    }
}

/// What a turn found.
#[derive(Debug, Default)]
pub(crate) struct Turn {
    /// Elements.
    pub(crate) elements: u64,
    /// The slots that are to be held, of all that is not finished with.
    pub(crate) sequences: Vec<(Sequence, Sequence)>,
    /// What could not be looked into, and slots with something that was found that expired before they were held.
    pub(crate) missed: SkippedData,
    /// What has come since the turn before and was not there any more.
    pub(crate) unseen: Vec<Unseen>,
    /// Of what the condition fails.
    pub(crate) failing: Vec<Failing>,
    /// Why not all could be asked.
    pub(crate) trouble: Option<Failure>,
}

/// Looks for it.
pub(crate) struct Evaluator {
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
    /// Before these another has told of what he found; before these he has looked.
    told: Vec<(StreamId, Ordinal)>,
    looked: Vec<(StreamId, Ordinal)>,
    /// Up to where all that was sampled is held.
    settled: Vec<(StreamId, Ordinal)>,
    rolling: Vec<Rolling>,
    /// Up to when a sample has been taken.
    sampled: Timestamp,
    /// When the last turn was, and a slot before which nothing of what came since is.
    turned: Timestamp,
    slot: Sequence,
    /// What no turn has told yet.
    elements: u64,
    unseen: Vec<Unseen>,
    failing: Vec<Failing>,
    /// Whether what the condition fails of is passed over.
    passes: bool,
}

impl Evaluator {
    pub(crate) fn new(
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
            told: Vec::new(),
            looked: Vec::new(),
            settled: begin.clone(),
            begin,
            rolling: Vec::new(),
            turned: Timestamp::MIN,
            slot: Sequence(0),
            elements: 0,
            unseen: Vec::new(),
            failing: Vec::new(),
            passes: false,
        }
    }

    /// From here on a condition that fails of some elements finds others all the same: nobody may be there to mend it.
    pub(crate) fn pass_failing(&mut self) {
        self.passes = true;
    }

    /// Goes on in the place of another, who has told of what he found before these, and has looked further: what he had held by a
    /// recorder that has ended since is looked for again, and counts where it was not told.
    pub(crate) fn follow(&mut self, told: &[(StreamId, Ordinal)], other: &Self) {
        if let Wanted::Sample(_) = self.wanted {
            return;
        }
        for (stream, at) in &mut self.begin {
            let told = told.iter().find(|(id, _)| id == stream);
            *at = told.map_or(Ordinal(0), |(_, told)| (*told).min(*at));
        }
        (self.told, self.looked) = (told.to_vec(), other.looked());
    }

    /// How far streams have been looked through.
    pub(crate) fn looked(&self) -> Vec<(StreamId, Ordinal)> {
        let watched = self.watches.iter().map(|watch| (watch.id, watch.next));
        let others = self.begin.iter().filter(|(id, _)| self.watches.iter().all(|watch| watch.id != *id));
        watched.chain(others.copied()).collect()
    }

    /// Looks at what has come up to `now`.
    pub(crate) fn turn(&mut self, now: Timestamp) -> Result<Turn> {
        let mut reader = RingReader::open(&self.path).map_err(|error| ring_failure(&error))?;
        // Asked for before anything is looked at: what is counted can be seen by then, and what is not ends in no slot before
        // the one that was open first.
        let open = reader.status().map_err(|error| ring_failure(&error))?.ring.sequence;
        let known = reader.streams().map_err(|error| ring_failure(&error))?;
        self.learn(&known)?;
        let (mut turn, mut there) = (Turn::default(), Vec::new());
        match self.wanted.clone() {
            Wanted::Found(search) => self.look(&search, &known, open, &mut reader, &mut turn)?,
            Wanted::Sample(sample) => there = self.sample(sample, &known, &mut reader, now)?,
        }
        if !self.rolling.is_empty() {
            let (known, spans) = self.around();
            turn.sequences = reader
                .sequences_around(&self.streams, &known, &spans)
                .map_err(|error| ring_failure(&error))?;
        }
        turn.missed.expired += reader.gone(&there).map_err(|error| ring_failure(&error))?.len() as u64;
        turn.missed.expired += self.lost(&turn.sequences);
        turn.elements = std::mem::take(&mut self.elements);
        turn.unseen = std::mem::take(&mut self.unseen);
        turn.failing = std::mem::take(&mut self.failing);
        (self.turned, self.slot) = (now, open);
        Ok(turn)
    }

    /// Of what was found and is not held yet so many slots are not among these any more: they are not waited for again.
    fn lost(&mut self, there: &[(Sequence, Sequence)]) -> u64 {
        let mut lost = BTreeSet::new();
        for rolling in self.rolling.iter_mut().filter(|rolling| !rolling.is_held) {
            if let Some((.., slot)) = rolling.at.filter(|(.., slot)| !within(there, *slot)) {
                lost.insert(slot);
                rolling.at = None;
            }
        }
        lost.len() as u64
    }

    /// What the last turn found is held: what has come to its end can be forgotten.
    pub(crate) fn is_held(&mut self) {
        let (roll, now) = (self.roll, self.turned);
        self.rolling.retain(|rolling| roll.around(rolling.span).1 + LATE >= now);
        self.rolling.iter_mut().for_each(|rolling| rolling.is_held = true);
        self.settled.clone_from(&self.begin);
    }

    /// The same of these slots: what else was found waits.
    pub(crate) fn are_held(&mut self, slots: &[(Sequence, Sequence)]) {
        if self.is_alone() {
            self.rolling.retain(|rolling| !rolling.is_in(slots));
        }
    }

    /// Whether what was found is held as it is, without what is around it.
    fn is_alone(&self) -> bool {
        matches!(&self.wanted, Wanted::Found(search) if search.when.is_none()) && self.roll.is_none()
    }

    /// What was found, by slot and stream the first of it, and when what is wanted around it arrived. What was found alone is in
    /// its slots and nowhere else, whatever else arrived at the same time.
    fn around(&self) -> (BTreeMap<(Sequence, StreamId), Ordinal>, Vec<Span>) {
        let mut known = BTreeMap::new();
        for (stream, ordinal, slot) in self.rolling.iter().filter_map(|rolling| rolling.at) {
            let first = known.entry((slot, stream)).or_insert(ordinal);
            *first = ordinal.min(*first);
        }
        let spans = self.rolling.iter().filter(|_| !self.is_alone());
        (known, merged(spans.map(|rolling| self.roll.around(rolling.span)).collect()))
    }

    /// Whether all that was to be held after what was found has arrived.
    pub(crate) fn is_done(&self) -> bool {
        self.rolling.is_empty()
    }

    /// Looks for no more than it has found by now.
    pub(crate) fn stop_looking(&mut self) {
        self.times = (Timestamp::MAX, Timestamp::MIN);
    }

    /// A slot before which all has been looked at.
    pub(crate) fn looked_before(&self) -> Sequence {
        let all = self.watches.iter().map(|watch| watch.slot);
        all.min().unwrap_or(self.slot)
    }

    /// Up to where each stream has been looked through and finished with once so much is held: from there on another evaluator
    /// may go on.
    pub(crate) fn watermarks(&self, fit: &Fit) -> Vec<(StreamId, Ordinal)> {
        let is_held = |rolling: &&Rolling| self.is_alone() && (rolling.is_held || rolling.is_in(&fit.wanted));
        let open = || self.rolling.iter().filter(|rolling| !is_held(rolling));
        let first = |id: StreamId| {
            let of_stream = open().filter_map(|rolling| rolling.at);
            of_stream.filter(|(stream, ..)| *stream == id).map(|(_, ordinal, _)| ordinal).min()
        };
        let is_over = self.times.1 == Timestamp::MIN && open().next().is_none();
        let watched = self.watches.iter().map(|watch| {
            let next = if is_over { OVER } else { watch.next };
            (watch.id, first(watch.id).map_or(next, |first| first.min(next)))
        });
        let not_seen = |(id, _): &&(StreamId, Ordinal)| self.watches.iter().all(|watch| watch.id != *id);
        let settled =
            |id| self.settled.iter().find(|(stream, _)| *stream == id).map_or(Ordinal(0), |(_, at)| *at);
        let others = self.begin.iter().filter(not_seen).map(|(id, at)| {
            let at = if fit.full.is_some() { settled(*id) } else { *at };
            (*id, if is_over { OVER } else { at })
        });
        watched.chain(others).collect()
    }

    /// Sets the engine up anew where streams or their attributes have changed.
    fn learn(&mut self, known: &[StreamStatus]) -> Result<()> {
        if self.sql.is_some() && tolerant_search::is_the_same(known, &self.known) {
            return Ok(());
        }
        let sql = tolerant_search::engine(&self.path, &self.limits)?;
        if let Wanted::Found(search) = &self.wanted {
            let held = |id| self.streams.is_empty() || self.streams.contains(&id);
            let mut refused = None;
            for stream in known.iter().filter(|stream| held(stream.id)) {
                if self.watches.iter().any(|watch| watch.id == stream.id) {
                    continue;
                }
                let context = &sql.engine.context;
                let checked = sql.runtime.block_on(search.check(context, &stream.name));
                let checked = checked.map_err(|error| (error, &search.condition)).and_then(|()| {
                    let checked = sql.runtime.block_on(search.check_when(context, &stream.name));
                    let when = search.when.as_ref().map_or(&search.condition, |(when, _)| when);
                    checked.map_err(|error| (error, when))
                });
                match checked {
                    Ok(()) => {
                        let begin = self.begin.iter().find(|(id, _)| *id == stream.id);
                        // One that is new, or that somebody has begun with before.
                        let was_known = self.known.iter().any(|known| known.id == stream.id);
                        let goes_on = self.sql.is_some() || !self.begin.is_empty();
                        self.watches.push(Watch {
                            id: stream.id,
                            name: stream.name.clone(),
                            next: begin.map_or(Ordinal(0), |(_, at)| *at),
                            slot: Sequence(0),
                            is_due: goes_on && !was_known,
                        });
                    }
                    Err(error) => refused = refused.or(Some(error)),
                }
            }
            if let Some((error, asked)) = refused.filter(|_| self.watches.is_empty()) {
                return Err(sql_errors::failure(&error, asked, &[]));
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
        reader: &mut RingReader,
        turn: &mut Turn,
    ) -> Result<()> {
        let (Some(sql), true) = (&self.sql, self.times.0 <= self.times.1) else { return Ok(()) };
        for watch in &mut self.watches {
            let reached = known.iter().find(|stream| stream.id == watch.id);
            let reached = reached.map_or(watch.next, |stream| stream.counters.next_ordinal);
            if reached <= watch.next {
                (watch.slot, watch.is_due) = (open, true);
                continue;
            }
            let told = self.told.iter().find(|(id, at)| *id == watch.id && watch.next < *at);
            let reached = told.map_or(reached, |(_, told)| reached.min(*told));
            let mut since = Expiry::default();
            let looked = self.looked.iter().find(|(id, _)| *id == watch.id);
            let first = looked.map_or(watch.next, |(_, looked)| watch.next.max(*looked));
            if watch.is_due && first < reached {
                let wanted = [(watch.id, first, reached)];
                since = reader.expired_since(watch.slot, &wanted).map_err(|error| ring_failure(&error))?;
            }
            let among = SearchScope { times: self.times, ordinals: (watch.next, reached), slots: watch.slot };
            let mut tries = 0;
            let asked = loop {
                sql.engine.diagnostics.expect(since.there.clone());
                let asked = tolerant_search::ask(sql, search, &watch.name, &among, self.passes);
                sql.engine.diagnostics.expect(Vec::new());
                let missed = sql.engine.diagnostics.take();
                if missed.expired == 0 || search.when.is_none() || tries == AGAIN {
                    turn.missed.with(missed);
                    break asked;
                }
                tries += 1;
            };
            let (found, failing) = match asked {
                Ok(asked) => asked,
                // Later again; what was found in other streams is held all the same.
                Err(failure) => {
                    turn.trouble.get_or_insert(failure);
                    continue;
                }
            };
            let elements = found.iter().map(|found| found.elements).sum::<u64>();
            self.elements += if told.is_none() { elements } else { 0 };
            let at = |found: &SlotMatches| Some((watch.id, found.first, found.slot));
            // Before the next stream, which may not be within reach: what was found stays found.
            let rolling = |found: &SlotMatches| Rolling { at: at(found), span: found.span, is_held: false };
            self.rolling.extend(found.iter().map(rolling));
            self.unseen.extend(unseen(known, since.expired));
            self.failing.extend(failing);
            watch.next = reached;
            // What comes behind what was told may be in any slot.
            if told.is_none() {
                (watch.slot, watch.is_due) = (open, true);
            }
        }
        Ok(())
    }

    /// Takes samples of what has come; which slots it lies in.
    fn sample(
        &mut self,
        sample: Sample,
        known: &[StreamStatus],
        reader: &mut RingReader,
        now: Timestamp,
    ) -> Result<Vec<Sequence>> {
        let held = known.iter().filter(|s| self.streams.is_empty() || self.streams.contains(&s.id));
        let reached: Vec<(StreamId, Ordinal)> = held.map(|s| (s.id, s.counters.next_ordinal)).collect();
        let goes_on = !self.begin.is_empty() || self.turned > Timestamp::MIN;
        let mut since = Expiry::default();
        if goes_on && self.times.0 <= self.times.1 {
            let before = |id| self.begin.iter().find(|(stream, _)| *stream == id);
            let wanted =
                reached.iter().map(|(id, end)| (*id, before(*id).map_or(Ordinal(0), |(_, at)| *at), *end));
            let wanted: Vec<_> = wanted.filter(|(_, first, end)| first < end).collect();
            since = reader.expired_since(self.slot, &wanted).map_err(|error| ring_failure(&error))?;
        }
        self.unseen.extend(unseen(known, since.expired));
        self.begin = reached;
        let end = now.min(self.times.1);
        if self.sampled == Timestamp::MIN {
            let oldest = reader.status().map_err(|error| ring_failure(&error))?.ring.oldest;
            self.sampled = oldest.unwrap_or(end).min(end);
        }
        let range = (self.sampled, end);
        self.sampled = self.sampled.max(end + Duration::from_nanos(1));
        let known = self.rolling.len();
        for span in sample.spans(range).filter(|_| range.0 <= range.1) {
            if self.rolling[..known].iter().all(|rolling| rolling.span != span) {
                self.rolling.push(Rolling { at: None, span, is_held: false });
            }
        }
        Ok(since.there)
    }
}

/// What has expired of streams, by their names.
fn unseen(
    known: &[StreamStatus],
    expired: Vec<(StreamId, Ordinal, Ordinal)>,
) -> impl Iterator<Item = Unseen> + '_ {
    expired.into_iter().map(|(stream, from, end)| Unseen {
        stream: session::stream_name(known, stream),
        ordinals: (from, end),
    })
}
