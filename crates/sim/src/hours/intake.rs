//! Simulated intake: streams one by one, in pieces, through the product's own rate limits; some keep to their
//! declarations and some do not. What finds no room in its stream's own memory is that stream's loss.

use super::capture::Capture;
use super::scene::Scene;
use super::source::Stream;
use holdfast_base::{ByteSize, Rate, Timestamp};
use holdfast_ring::{Declared, Piece, RateVerdict, Rates, Schedule};
use std::collections::VecDeque;

/// Pieces of a slot. Batches are smaller, but this is what an hour is made of.
const PIECES: u64 = 32;

/// Pieces of a stream that may wait: what a source has batches for.
const WAITING: usize = 16;

/// How a stream breaks its word.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Wild {
    /// So many times its rate.
    pub times: f64,
    /// For so many seconds.
    pub lasts: f64,
    /// Seconds from one time to the next.
    pub every: f64,
    /// When it begins.
    pub first: f64,
    /// Bytes that come at once whenever it does.
    pub lump: f64,
}

impl Wild {
    fn is_on(&self, now: f64) -> bool {
        now >= self.first && (now - self.first) % self.every < self.lasts
    }
}

#[derive(Clone, Debug)]
struct StreamIntake {
    stream: Stream,
    wild: Option<Wild>,
    /// When the next piece comes.
    next: f64,
    /// When the next burst does, or what comes at once of a wild one.
    burst: f64,
    lump: f64,
    waiting: VecDeque<f64>,
    lost: f64,
    passed: f64,
}

impl StreamIntake {
    fn new(stream: Stream, wild: Option<Wild>, piece: f64) -> Self {
        let burst = stream.burst.filter(|burst| burst.bytes > 0.0 && wild.is_none());
        Self {
            stream,
            wild,
            next: piece / stream.rate,
            burst: burst.map(|burst| burst.first).or(wild.map(|wild| wild.first)).unwrap_or(f64::INFINITY),
            lump: 0.0,
            waiting: VecDeque::with_capacity(WAITING),
            lost: 0.0,
            passed: 0.0,
        }
    }

    fn next_event(&self) -> f64 {
        self.next.min(self.burst)
    }

    /// Whether a piece has come by `now`; once for each.
    fn comes(&mut self, now: f64, piece: f64) -> bool {
        if self.burst <= now {
            let (bytes, every) = match (self.wild, self.stream.burst) {
                (Some(wild), _) => (wild.lump, wild.every),
                (None, Some(burst)) => (burst.bytes, burst.every.max(2.0 * burst.bytes / self.stream.rate)),
                (None, None) => (0.0, f64::INFINITY),
            };
            self.lump += bytes;
            self.burst += every;
        }
        if self.lump >= piece {
            self.lump -= piece;
            return true;
        }
        if self.next > now {
            return false;
        }
        let times = self.wild.filter(|wild| wild.is_on(self.next)).map_or(1.0, |wild| wild.times);
        self.next += piece / (self.stream.rate * times);
        // Silent before a burst, for as long as its rate takes to pay for it.
        if let Some(burst) = self.stream.burst.filter(|_| self.wild.is_none()) {
            let silent = self.burst - burst.bytes / self.stream.rate;
            if self.next > silent && self.burst.is_finite() {
                self.next = self.next.max(self.burst + piece / self.stream.rate);
            }
        }
        true
    }
}

/// All streams of an hour, and what holds them to their rates.
#[derive(Clone, Debug)]
pub(super) struct Intake {
    rates: Rates,
    flows: Vec<StreamIntake>,
    piece: f64,
    turn: usize,
    /// When something that is held will be within its rate.
    due: f64,
}

impl Intake {
    /// Of a scene in which somebody breaks his word.
    pub(super) fn new(scene: &Scene) -> Option<Self> {
        if scene.wild.is_empty() {
            return None;
        }
        let piece = (scene.shape.slot.0 / PIECES) as f64;
        let declared = scene.streams.iter().map(|stream| {
            let burst = stream.burst.map_or(0.0, |burst| burst.bytes);
            Some(Declared {
                rate: Rate(stream.rate.ceil() as u64),
                elements: 1 << 40,
                burst: ByteSize(burst as u64),
                ..Declared::NOTHING
            })
        });
        let declared: Vec<Option<Declared>> = declared.collect();
        let rates = Rates::new(&declared, &Declared::NOTHING, Timestamp(0));
        let wild = |at: usize| scene.wild.iter().find(|(stream, _)| *stream == at).map(|(_, wild)| *wild);
        let flow = |(at, stream): (usize, &Stream)| StreamIntake::new(*stream, wild(at), piece);
        let flows = scene.streams.iter().enumerate().map(flow).collect();
        Some(Self { rates, flows, piece, turn: 0, due: f64::INFINITY })
    }

    pub(super) fn next_event(&self) -> f64 {
        self.flows.iter().map(StreamIntake::next_event).fold(self.due, f64::min)
    }

    /// Takes in what has come by `now`, and packs what may be.
    pub(super) fn advance(&mut self, now: f64, capture: &mut Capture, schedule: &Schedule, reading: u32) {
        for at in 0..self.flows.len() {
            while self.flows[at].comes(now, self.piece) {
                let flow = &mut self.flows[at];
                if flow.waiting.len() == WAITING {
                    flow.lost += self.piece;
                } else {
                    flow.waiting.push_back(now);
                }
                self.pack(now, capture, schedule, reading);
            }
        }
        self.pack(now, capture, schedule, reading);
    }

    /// Packs what may be.
    pub(super) fn pack(&mut self, now: f64, capture: &mut Capture, schedule: &Schedule, reading: u32) {
        self.due = f64::INFINITY;
        let mut idle = 0;
        while idle < self.flows.len() {
            let at = self.turn;
            let Some(came) = self.flows[at].waiting.front().copied() else {
                (self.turn, idle) = ((at + 1) % self.flows.len(), idle + 1);
                continue;
            };
            let stamp = Timestamp((now * 1e9) as i64);
            let piece =
                Piece { arrived: Timestamp((came * 1e9) as i64), bytes: self.piece as u64, elements: 0 };
            let room = capture.open_room().map(|room| room as u64);
            if capture.free == 0 && room.is_none_or(|room| room < piece.bytes) {
                return;
            }
            let spare = schedule.spare(stamp, capture.free, room, reading);
            if let RateVerdict::Held(until) = self.rates.pass(at, &piece, spare, stamp) {
                let until = until.0 as f64 / 1e9;
                if until > now {
                    self.due = self.due.min(until);
                }
            } else {
                let flow = &mut self.flows[at];
                flow.waiting.pop_front();
                flow.passed += self.piece;
                // The age of what waited because its own stream was too fast is that stream's affair.
                let first = if flow.wild.is_none() { came } else { now };
                capture.arrive(self.piece, first, now);
                idle = 0;
                self.turn = (at + 1) % self.flows.len();
                continue;
            }
            (self.turn, idle) = ((at + 1) % self.flows.len(), idle + 1);
        }
    }

    /// Bytes that were lost: of streams that kept their word, and of the others.
    pub(super) fn lost(&self) -> (f64, f64) {
        let of = |wild: bool| {
            self.flows.iter().filter(|flow| flow.wild.is_some() == wild).map(|flow| flow.lost).sum()
        };
        (of(false), of(true))
    }

    /// What a stream that broke its word is short of: within the rate it is kept, too.
    pub(super) fn withheld(&self, seconds: f64) -> f64 {
        let within = |flow: &StreamIntake| {
            flow.stream.rate * seconds - (WAITING + 1) as f64 * self.piece - flow.passed
        };
        self.flows.iter().filter(|flow| flow.wild.is_some()).map(within).fold(0.0, f64::max)
    }
}
