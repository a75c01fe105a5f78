//! Drive models: plain numbers, and those of a few drives. `serve` combines them.

use super::Curve;
use crate::{Seed, Stall};
use holdfast_base::{BLOCK, ByteSize, Rate};
use std::ops::Range;
use std::time::Duration;

/// A drive's parameters. Its volatile write cache is off: a write is done when it is on the medium.
#[derive(Clone, Debug, PartialEq)]
pub struct DriveModel {
    /// What a person calls it.
    pub name: &'static str,
    /// Bytes that can be addressed.
    pub bytes: u64,
    /// The part of the whole drive that these bytes lie on: 0 is its outer edge, 1 its inner one.
    pub stretch: Range<f64>,
    /// Streaming writes over the position on the whole drive.
    pub write: Curve,
    /// Streaming reads likewise.
    pub read: Curve,
    /// Time to understand a command; hidden behind the predecessor's work when commands queue.
    pub overhead: Duration,
    /// The most that the cable carries.
    pub bus: Rate,
    /// Commands that may be in the drive at once.
    pub depth: usize,
    /// What turns, or does not, inside.
    pub kind: DriveKind,
    /// Times at which nothing is done, counted from the drive's start.
    pub stalls: Vec<Stall>,
    /// Places that are not as they should be, in any order.
    pub damage: Vec<Damage>,
    /// How long the drive tries to read an unreadable place before it says so.
    pub read_error_limit: Duration,
}

/// Kinds of drive.
#[derive(Clone, Debug, PartialEq)]
pub enum DriveKind {
    /// Platters and one arm; any place can be overwritten.
    Rotating(Mechanics),
    /// The same, but tracks overlap: zones are written from their start to their end.
    Shingled(Mechanics, Shingles),
    /// No moving parts, and pauses to collect garbage.
    Flash(Flash),
}

/// Platters and arm.
#[derive(Clone, Debug, PartialEq)]
pub struct Mechanics {
    /// Time of a revolution.
    pub revolution: Duration,
    /// Moving the arm.
    pub seek: SeekCurve,
    /// Extra time before a write that follows a read: the head must stand truer.
    pub to_write: Duration,
    /// Extra time before a read that follows a write.
    pub to_read: Duration,
    /// How far the drive reads on after a read, into its own memory.
    pub look_ahead: u64,
}

/// Time to move the arm over a share `d` of its whole way: `settle + root·√d + linear·d`.
#[derive(Clone, Debug, PartialEq)]
pub struct SeekCurve {
    /// The shortest.
    pub settle: Duration,
    /// What speeding up and braking cost.
    pub root: Duration,
    /// What the way costs.
    pub linear: Duration,
}

impl SeekCurve {
    /// Time for a share of the whole way.
    pub fn time(&self, share: f64) -> Duration {
        self.settle + self.root.mul_f64(share.max(0.0).sqrt()) + self.linear.mul_f64(share.max(0.0))
    }
}

/// Zones whose tracks overlap, managed by the drive.
///
/// A write at a zone's write pointer, or at its start, streams. One elsewhere goes to the media cache, a log at
/// the outer edge; where that is full (or too small for it) a zone is read and rewritten first. Idle drives clean.
#[derive(Clone, Debug, PartialEq)]
pub struct Shingles {
    /// Bytes of a zone.
    pub zone: u64,
    /// Bytes of the media cache; none where it is 0.
    pub cache: u64,
}

/// Cells and what they cost.
#[derive(Clone, Debug, PartialEq)]
pub struct Flash {
    /// From command to first byte, reading; many may wait for it side by side.
    pub read_latency: Duration,
    /// The same, writing.
    pub write_latency: Duration,
    /// Commands that are worked on at once, at most [`Flash::MOST_PARALLEL`].
    pub parallel: usize,
    /// After so many bytes written without idle time comes a pause.
    pub pause_after: u64,
    /// How long it is; nothing is served meanwhile.
    pub pause: Duration,
    /// Idle time takes so much off the bytes that count.
    pub tidies: Rate,
}

impl Flash {
    /// More are not told apart.
    pub const MOST_PARALLEL: usize = 32;
}

/// A place that is not as it should be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Damage {
    /// Where: the block of 4 KiB that holds this byte.
    pub offset: u64,
    /// What is wrong there.
    pub flaw: Flaw,
}

/// What may be wrong with a place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Flaw {
    /// It lies in the spare area at the inner edge: every access goes there and back.
    Remapped,
    /// A read takes so many revolutions more.
    Weak {
        /// How many.
        revolutions: u32,
    },
    /// A read fails after the read-error limit. A write mends it: it is remapped.
    Unreadable,
}

impl DriveModel {
    /// A 1.5 TB drive of 5400 rpm that writes 70 and reads 115 MiB/s outside, 65 and 70 at four fifths, and 50 inside:
    /// the Western Digital WD15EARS measured by Bigelow, Brandt, Bent and Chen, "Mahanaxar: quality of service
    /// guarantees in high-bandwidth, real-time streaming data storage", §IV.A, VII.
    pub fn paper() -> Self {
        let mechanics = Mechanics {
            revolution: Duration::from_nanos(11_111_111),
            seek: seek(1500, 8330, 7670),
            to_write: Duration::from_micros(800),
            to_read: Duration::from_micros(400),
            look_ahead: 4 << 20,
        };
        Self {
            name: "paper",
            bytes: 1_500_301_910_016,
            stretch: 0.0..1.0,
            write: Curve::through(&[(0.0, 70.0), (0.8, 65.0), (1.0, 50.0)]),
            read: Curve::through(&[(0.0, 115.0), (0.8, 70.0), (1.0, 50.0)]),
            overhead: Duration::from_micros(100),
            bus: Rate(ByteSize::mib(280).0),
            depth: 32,
            kind: DriveKind::Rotating(mechanics),
            stalls: Vec::new(),
            damage: Vec::new(),
            read_error_limit: Duration::from_secs(7),
        }
    }

    /// A 4 TB drive of 7200 rpm.
    pub fn rpm7200() -> Self {
        let mechanics = Mechanics {
            revolution: Duration::from_nanos(8_333_333),
            seek: seek(900, 7600, 6500),
            to_write: Duration::from_micros(600),
            to_read: Duration::from_micros(300),
            look_ahead: 8 << 20,
        };
        Self {
            name: "rpm7200",
            bytes: 4_000_787_030_016,
            write: Curve::through(&[(0.0, 195.0), (0.5, 165.0), (1.0, 95.0)]),
            read: Curve::through(&[(0.0, 200.0), (0.5, 170.0), (1.0, 98.0)]),
            bus: Rate(ByteSize::mib(540).0),
            kind: DriveKind::Rotating(mechanics),
            ..Self::paper()
        }
    }

    /// An 8 TB drive of 5900 rpm whose tracks overlap, in zones of 256 MiB, with 20 GiB of media cache.
    pub fn shingled() -> Self {
        let mechanics = Mechanics {
            revolution: Duration::from_nanos(10_169_492),
            seek: seek(1500, 8000, 8500),
            to_write: Duration::from_micros(800),
            to_read: Duration::from_micros(400),
            look_ahead: 8 << 20,
        };
        Self {
            name: "shingled",
            bytes: 8_001_563_222_016,
            write: Curve::through(&[(0.0, 180.0), (0.5, 155.0), (1.0, 85.0)]),
            read: Curve::through(&[(0.0, 190.0), (0.5, 160.0), (1.0, 90.0)]),
            bus: Rate(ByteSize::mib(540).0),
            kind: DriveKind::Shingled(mechanics, Shingles { zone: 256 << 20, cache: 20 << 30 }),
            ..Self::paper()
        }
    }

    /// A 1 TB solid-state drive behind a cable of 6 Gbit/s.
    pub fn flash() -> Self {
        let flash = Flash {
            read_latency: Duration::from_micros(90),
            write_latency: Duration::from_micros(60),
            parallel: 8,
            pause_after: 4 << 30,
            pause: Duration::from_millis(250),
            tidies: Rate(ByteSize::mib(200).0),
        };
        Self {
            name: "flash",
            bytes: 1_000_204_886_016,
            write: Curve::flat(Rate(ByteSize::mib(460).0)),
            read: Curve::flat(Rate(ByteSize::mib(520).0)),
            overhead: Duration::from_micros(10),
            bus: Rate(ByteSize::mib(540).0),
            kind: DriveKind::Flash(flash),
            ..Self::paper()
        }
    }

    /// A partition of `bytes` that begins at a share `begin` of these bytes: a stretch of the drive as it is, with
    /// short ways for the arm. Media caches shrink with it; places of damage are dropped.
    #[must_use]
    pub fn part(&self, begin: f64, bytes: u64) -> Self {
        let bytes = bytes.clamp(BLOCK as u64, self.bytes.max(BLOCK as u64));
        let share = bytes as f64 / self.bytes.max(1) as f64;
        let span = self.stretch.end - self.stretch.start;
        let start = self.stretch.start + span * begin.clamp(0.0, (1.0 - share).max(0.0));
        self.shrunk(bytes, start..start + span * share)
    }

    /// A drive of `bytes` that has all of this one's rates and ways of the arm, in the same order: a small file
    /// behaves like the whole.
    #[must_use]
    pub fn squeezed(&self, bytes: u64) -> Self {
        self.shrunk(bytes.max(BLOCK as u64), self.stretch.clone())
    }

    fn shrunk(&self, bytes: u64, stretch: Range<f64>) -> Self {
        let mut small = Self { bytes, stretch, damage: Vec::new(), ..self.clone() };
        if let DriveKind::Shingled(_, shingles) = &mut small.kind {
            shingles.cache = (shingles.cache as f64 * bytes as f64 / self.bytes.max(1) as f64) as u64;
        }
        small
    }

    /// The same with one more stall.
    #[must_use]
    pub fn stalling(mut self, stall: Stall) -> Self {
        self.stalls.push(stall);
        self
    }

    /// The same with so many places of a flaw, drawn from the seed.
    #[must_use]
    pub fn damaged(mut self, flaw: Flaw, places: usize, seed: u64) -> Self {
        let mut seed = Seed::new(seed);
        let blocks = self.bytes / BLOCK as u64;
        self.damage.extend((0..places).map(|_| Damage { offset: seed.below(blocks) * BLOCK as u64, flaw }));
        self
    }

    /// Platters and arm, of drives that have them.
    pub fn mechanics(&self) -> Option<&Mechanics> {
        match &self.kind {
            DriveKind::Rotating(mechanics) | DriveKind::Shingled(mechanics, _) => Some(mechanics),
            DriveKind::Flash(_) => None,
        }
    }

    /// The longest from a command to its first byte, between any two places of these bytes, in either direction,
    /// stalls, damage, media cache and garbage left aside.
    pub fn worst_reposition(&self) -> Duration {
        match &self.kind {
            DriveKind::Rotating(mechanics) | DriveKind::Shingled(mechanics, _) => {
                let way = mechanics.seek.time(self.stretch.end - self.stretch.start);
                self.overhead + way + mechanics.to_write.max(mechanics.to_read) + mechanics.revolution
            }
            DriveKind::Flash(flash) => self.overhead + flash.read_latency.max(flash.write_latency),
        }
    }

    /// The slowest streaming write within a share of these bytes (`0.0..0.8`: all but the last fifth).
    pub fn least_write(&self, region: Range<f64>) -> Rate {
        Rate(self.write.least(self.places(&region)) as u64)
    }

    /// The slowest streaming read likewise.
    pub fn least_read(&self, region: Range<f64>) -> Rate {
        Rate(self.read.least(self.places(&region)) as u64)
    }

    fn places(&self, region: &Range<f64>) -> Range<f64> {
        let place = |share: f64| self.stretch.start + (self.stretch.end - self.stretch.start) * share;
        place(region.start)..place(region.end)
    }
}

/// In microseconds.
fn seek(settle: u64, root: u64, linear: u64) -> SeekCurve {
    let micros = Duration::from_micros;
    SeekCurve { settle: micros(settle), root: micros(root), linear: micros(linear) }
}
