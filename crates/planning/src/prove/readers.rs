//! Readers that take all they get, as clients of the recorder like any other: in order, at random places, and a held range
//! again and again. They check every element.

use super::stages::Readers;
use super::tally::{Begins, Sent, Tally, wrong};
use super::verdict::ReaderResult;
use holdfast_base::{Ordinal, StreamId, Timestamp};
use holdfast_client::Notices;
use holdfast_client::orders;
use holdfast_reader::ReaderError;
use holdfast_reader::{Item, RingReader, Selection};
use holdfast_ring::{HoldRequest, Order, Outcome, Range};
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::{Builder, JoinHandle};
use std::time::{Duration, Instant};

/// Before anything is on the ring, and when a hold is refused.
const PAUSE: Duration = Duration::from_millis(20);

/// Faults of a reader that are told one by one.
const MOST_TOLD: usize = 4;

/// What all readers know.
#[derive(Clone, Debug)]
pub(crate) struct Known {
    pub(crate) ring: PathBuf,
    /// `from` and `to` are not looked at: any element may be there.
    pub(crate) sent: Sent,
    /// A slot fills in this time.
    pub(crate) period: Duration,
    /// Makes different runs read at different places.
    pub(crate) seed: u64,
    pub(crate) notices: Notices,
}

/// What a reader does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Habit {
    InOrder,
    AtRandom,
    Held,
}

impl Habit {
    fn name(self) -> &'static str {
        match self {
            Self::InOrder => "in order",
            Self::AtRandom => "at random places",
            Self::Held => "a held range, again and again",
        }
    }
}

/// Who reads in a stage: two in order, or these, two at random places and the export of a held range.
fn habits(readers: Readers) -> &'static [Habit] {
    match readers {
        Readers::Nobody => &[],
        Readers::InOrder => &[Habit::InOrder, Habit::InOrder],
        Readers::All => &[Habit::InOrder, Habit::InOrder, Habit::AtRandom, Habit::AtRandom, Habit::Held],
    }
}

/// What a reader found.
#[derive(Clone, Debug, Default)]
pub(crate) struct Found {
    pub(crate) result: ReaderResult,
    pub(crate) wrong: u64,
    pub(crate) faults: Vec<String>,
    /// Ordinals that it held: the first, and the one behind the last.
    pub(crate) held: Option<(u64, u64)>,
}

impl Found {
    fn fault(&mut self, text: &str) {
        self.wrong += 1;
        if self.faults.len() < MOST_TOLD {
            self.faults.push(format!("read beside capture, {}: {text}", self.result.reads));
        }
    }
}

/// Readers at work.
pub(crate) struct Crowd {
    stop: Arc<AtomicBool>,
    threads: Vec<JoinHandle<Found>>,
}

impl Crowd {
    /// Begins to read.
    pub(crate) fn start(readers: Readers, known: &Known) -> std::io::Result<Self> {
        let mut crowd = Self { stop: Arc::default(), threads: Vec::new() };
        for (number, habit) in habits(readers).iter().enumerate() {
            let reader = Reader {
                known: known.clone(),
                habit: *habit,
                stop: Arc::clone(&crowd.stop),
                random: known.seed ^ (number as u64 + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1,
                checked: AtomicU64::new(0),
                found: Found {
                    result: ReaderResult { reads: habit.name(), ..ReaderResult::default() },
                    ..Found::default()
                },
            };
            let thread = Builder::new().name("prove reader".to_owned()).spawn(move || reader.run())?;
            crowd.threads.push(thread);
        }
        Ok(crowd)
    }

    /// Tells them to end: they do with what they have next, or when the recorder ends.
    pub(crate) fn stop(&self) {
        self.stop.store(true, Ordering::Relaxed);
    }

    /// What they found.
    pub(crate) fn end(self) -> Vec<Found> {
        self.stop();
        let failed =
            || Found { wrong: 1, faults: vec!["a reader failed inside".to_owned()], ..Found::default() };
        self.threads.into_iter().map(|thread| thread.join().unwrap_or_else(|_| failed())).collect()
    }
}

struct Reader {
    known: Known,
    habit: Habit,
    stop: Arc<AtomicBool>,
    random: u64,
    /// Nanoseconds in which what was read was checked.
    checked: AtomicU64,
    found: Found,
}

/// What of a ring a habit looks at next.
enum Turn {
    Read(Selection),
    Wait,
}

impl Reader {
    fn stopped(&self) -> bool {
        self.stop.load(Ordering::Relaxed)
    }

    /// A number below `end`.
    fn below(&mut self, end: u64) -> u64 {
        self.random ^= self.random << 13;
        self.random ^= self.random >> 7;
        self.random ^= self.random << 17;
        if end == 0 { 0 } else { self.random % end }
    }

    fn run(mut self) -> Found {
        let started = Instant::now();
        if let Err(error) = self.read_on()
            && !self.stopped()
        {
            self.found.fault(&error.to_string());
        }
        let checked = Duration::from_nanos(self.checked.load(Ordering::Relaxed));
        self.found.result.checking_share = checked.as_secs_f64() / started.elapsed().as_secs_f64().max(1e-3);
        self.found
    }

    fn read_on(&mut self) -> Result<(), ReaderError> {
        let ring = self.known.ring.clone();
        let mut reader = RingReader::open(&ring)?;
        let mut held = None;
        while !self.stopped() {
            let turn = match self.habit {
                Habit::InOrder => self.in_order(&mut reader)?,
                Habit::AtRandom => self.at_random(&mut reader)?,
                Habit::Held => self.held(&mut reader, &ring, &mut held)?,
            };
            match turn {
                Turn::Read(selection) => self.read(&mut reader, &selection)?,
                Turn::Wait => std::thread::sleep(PAUSE),
            }
        }
        Ok(())
    }

    /// What is on the ring now.
    fn span(reader: &mut RingReader) -> Result<Option<(Timestamp, Timestamp)>, ReaderError> {
        let ring = reader.status()?.ring;
        Ok(ring.oldest.zip(ring.newest).filter(|(oldest, newest)| oldest < newest))
    }

    /// From some place to the end.
    fn in_order(&mut self, reader: &mut RingReader) -> Result<Turn, ReaderError> {
        let Some((oldest, newest)) = Self::span(reader)? else { return Ok(Turn::Wait) };
        let skip = self.below(newest.since(oldest).as_nanos() as u64 / 2);
        let from = oldest + Duration::from_nanos(skip);
        Ok(Turn::Read(Selection { range: Range { from, ..Range::ALL }, ..Selection::ALL }))
    }

    /// A few elements somewhere.
    fn at_random(&mut self, reader: &mut RingReader) -> Result<Turn, ReaderError> {
        let Some((oldest, newest)) = Self::span(reader)? else { return Ok(Turn::Wait) };
        let skip = self.below(newest.since(oldest).as_nanos() as u64);
        let from = oldest + Duration::from_nanos(skip);
        let range = Range { from, to: from + self.known.period / 64, ..Range::ALL };
        Ok(Turn::Read(Selection { range, ..Selection::ALL }))
    }

    /// Holds what came in the last few slots, then reads it whole each time.
    fn held(
        &mut self,
        reader: &mut RingReader,
        ring: &Path,
        held: &mut Option<Selection>,
    ) -> Result<Turn, ReaderError> {
        if let Some(selection) = held {
            return Ok(Turn::Read(selection.clone()));
        }
        let status = reader.status()?.ring;
        let slots = (status.slots.holdable / 4).min(4);
        let Some((oldest, newest)) = Self::span(reader)?.filter(|_| slots > 0) else { return Ok(Turn::Wait) };
        // A range touches a slot more than it fills.
        let span = (self.known.period * slots).min(newest.since(oldest)) * 3 / 4;
        let range = Range { from: newest - span, to: newest, ..Range::ALL };
        let order = Order::Hold(HoldRequest {
            streams: Vec::new(),
            range: range.clone(),
            sequences: None,
            reason: "holdfast prove".to_owned(),
            owner: "holdfast prove".to_owned(),
            until: Timestamp::MAX,
            condition_hold: None,
            order: None,
        });
        match orders::give(ring, &order, &self.known.notices) {
            Ok(Outcome::Held { .. }) => *held = Some(Selection { range, ..Selection::ALL }),
            // Too much for a small ring, or nothing there yet.
            _ => return Ok(Turn::Wait),
        }
        Ok(Turn::Wait)
    }

    fn read(&mut self, reader: &mut RingReader, selection: &Selection) -> Result<(), ReaderError> {
        let plan = reader.plan(selection)?;
        let (stop, checked, sent) = (Arc::clone(&self.stop), &self.checked, self.known.sent);
        let whole = self.habit == Habit::Held;
        let mut tally = self
            .found
            .held
            .filter(|_| whole)
            .map(|(from, to)| Tally::new(Sent { from, to, ..sent }, Begins::AtFirst));
        let expected = self.found.held;
        let (mut first, mut last) = (None, None);
        let (mut elements, mut bytes, mut faults) = (0, 0, Vec::new());
        let (mut waited, mut longest) = (Instant::now(), Duration::ZERO);
        let ended = reader.read(&plan, &mut |item: Item<'_>| {
            let came = Instant::now();
            longest = longest.max(came.duration_since(waited));
            if let Some(tally) = &mut tally
                && expected.is_some_and(|range| concerns(range, &item))
            {
                tally.take(&item);
            }
            match &item {
                Item::Element(element) => {
                    first.get_or_insert(element.ordinal.0);
                    last = Some(element.ordinal.0);
                    elements += 1;
                    bytes += element.data.len() as u64;
                    if tally.is_none()
                        && let Some(fault) = wrong(&sent, element.ordinal.0, element.data)
                    {
                        faults.push(fault);
                    }
                }
                Item::Damaged { slot, sequence, place } if tally.is_none() => {
                    faults.push(format!("slot {slot} (sequence {sequence}) is damaged: {place}"));
                }
                Item::Expired { .. } if whole && tally.is_none() => {
                    faults.push("what is held has expired".to_owned());
                }
                _ => {}
            }
            waited = Instant::now();
            checked.fetch_add(waited.duration_since(came).as_nanos() as u64, Ordering::Relaxed);
            if stop.load(Ordering::Relaxed) { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
        });
        // What it has read counts, however it ends.
        let result = &mut self.found.result;
        result.elements += elements;
        result.bytes += bytes;
        result.longest_wait_seconds = result.longest_wait_seconds.max(longest.as_secs_f64());
        for fault in faults {
            self.found.fault(&fault);
        }
        if !ended?.stopped && whole {
            if let Some(tally) = tally {
                for fault in tally.finish().faults {
                    self.found.fault(&format!("what is held: {fault}"));
                }
            } else if let (Some(first), Some(last)) = (first, last) {
                // A hold keeps slots by when they were filled: what lies across its ends may lose a part.
                self.found.held = Some((first + 1, last)).filter(|(from, to)| from < to);
            }
        }
        Ok(())
    }
}

/// Whether something that was read is of those ordinals; that slots expired which have none of them is no matter.
fn concerns((from, to): (u64, u64), item: &Item<'_>) -> bool {
    match item {
        Item::Element(element) => (from..to).contains(&element.ordinal.0),
        Item::Partial { ordinal, .. } | Item::Gap { ordinal, .. } => (from..to).contains(&ordinal.0),
        Item::Expired { .. } => false,
        _ => true,
    }
}

/// A range of ordinals of the only stream.
pub(crate) fn ordinals(stream: StreamId, from: u64, to: u64) -> Selection {
    let range = Range { ordinals: Some((Ordinal(from), Ordinal(to))), ..Range::ALL };
    Selection { streams: vec![stream], range }
}
