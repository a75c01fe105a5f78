//! A scene: the drive of an hour, a ring on it, streams at the admitted rate, readers, holds, disturbances.

use super::intake::Wild;
use super::readers::Reader;
use super::source::Stream;
use holdfast_base::{ByteSize, Rate, Timestamp};
use holdfast_format::Measured;
use holdfast_media::drive::{DriveKind, DriveModel, Flaw};
use holdfast_media::{Seed, Stall};
use holdfast_ring::{Load, Policy, Shape, admit};
use std::ops::Range;
use std::time::Duration;

/// Which slots are free to go; the others are held.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Places {
    /// All, in order.
    All,
    /// So many, scattered.
    Scattered(u64),
    /// Two, at opposite ends: the worst that there is (Bigelow et al., “Mahanaxar”, section IV.B).
    Ends,
    /// From both ends in turn, towards the middle.
    Torn,
    /// These two in turn.
    Two(u64, u64),
    /// So many, the last: where drives with a head are slowest.
    Last(u64),
    /// Holds come and go: after every so many slots it is another of those that are drawn.
    Changing {
        /// Slots from a change to the next.
        every: u64,
        /// What they are drawn from.
        seed: u64,
    },
}

impl Places {
    /// Any that stays as it is.
    pub(super) fn drawn(seed: &mut Seed) -> Self {
        match seed.below(5) {
            0 => Self::All,
            1 => Self::Scattered(2 + seed.below(30)),
            2 => Self::Ends,
            3 => Self::Torn,
            _ => Self::Last(2 + seed.below(4)),
        }
    }

    /// Where the slot goes that is written after `count` others.
    pub(super) fn nth(self, count: u64, slots: u64) -> u64 {
        match self {
            Self::All => count % slots,
            Self::Scattered(free) => {
                let one = count % free.min(slots);
                ((one.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 20) % slots).min(slots - 1)
            }
            Self::Ends => (count % 2) * (slots - 1),
            Self::Torn => {
                let step = count / 2 % (slots / 2);
                if count.is_multiple_of(2) { step } else { slots - 1 - step }
            }
            Self::Two(one, other) => {
                if count.is_multiple_of(2) {
                    one
                } else {
                    other
                }
            }
            Self::Last(free) => slots - 1 - count % free.min(slots),
            Self::Changing { every, seed } => {
                Self::drawn(&mut Seed::new(seed ^ (count / every))).nth(count, slots)
            }
        }
    }
}

/// An hour to be played.
#[derive(Clone, Debug)]
pub struct Scene {
    /// Where it came from.
    pub seed: u64,
    /// The drive.
    pub drive: DriveModel,
    /// The share of it that the ring uses.
    pub region: Range<f64>,
    /// What a profile of it says.
    pub measured: Measured,
    /// How the ring is laid out and run.
    pub shape: Shape,
    /// Where its journal begins; the slots follow it.
    pub base: u64,
    /// Bytes of a reader's turn.
    pub visit: u64,
    /// What arrives at most.
    pub load: Load,
    /// How that comes.
    pub streams: Vec<Stream>,
    /// Who of them breaks his word, and how.
    pub wild: Vec<(usize, Wild)>,
    /// Which slots are free to go.
    pub places: Places,
    /// Who reads.
    pub readers: Vec<Reader>,
    /// How long it lasts.
    pub lasts: Duration,
}

/// In a few lines, for whoever looks into an hour that went wrong.
impl std::fmt::Display for Scene {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { seed, drive, region, measured, shape, load, streams, wild, places, readers, .. } = self;
        let size = ByteSize(drive.bytes);
        writeln!(f, "hour {seed}: {} of {size} at {:?}, {region:?} used", drive.name, drive.stretch)?;
        writeln!(f, "  stalls {:?}, damage {:?}", drive.stalls, drive.damage)?;
        writeln!(f, "  {measured:?}\n  {shape:?}\n  {load:?}, {streams:?}, free places: {places:?}")?;
        for (stream, wild) in wild {
            writeln!(f, "  stream {stream} breaks its word: {wild:?}")?;
        }
        for reader in readers {
            writeln!(f, "  {:?} for {:?}", reader.habit, reader.class)?;
        }
        write!(f, "  {:?}", admit(measured, load, shape))
    }
}

impl Scene {
    /// What the ring's slots take of the drive.
    pub fn slots(&self) -> u64 {
        let used = (self.drive.bytes as f64 * self.region.end) as u64;
        (used.saturating_sub(self.base) / self.shape.slot.0).saturating_sub(4).max(4)
    }

    /// Where a slot begins.
    pub fn offset(&self, place: u64) -> u64 {
        self.base + (4 + place) * self.shape.slot.0
    }

    /// What admission gives it.
    pub fn policy(&self) -> Policy {
        Policy::new(Some((&self.measured, &self.load)), &self.shape)
    }

    /// The same with so many buffers as the load takes, if it is admitted.
    #[must_use]
    pub fn just_enough(mut self) -> Self {
        let ample = Shape { buffers: u32::MAX, ..self.shape };
        self.shape.buffers = admit(&self.measured, &self.load, &ample).map_or(0, |granted| granted.buffers);
        self
    }

    /// What a perfect profile of a drive would say of a region of it, for slots and reads of so many bytes at most.
    pub fn profiled(drive: &DriveModel, region: &Range<f64>, slot: u64, quantum: u32) -> Measured {
        let s = drive.worst_reposition();
        let share =
            |stall: &Stall| stall.every.map_or(0.0, |every| stall.length.as_secs_f64() / every.as_secs_f64());
        let mut stalled: f64 = drive.stalls.iter().map(share).sum();
        let mut sigma = drive.stalls.iter().map(|stall| stall.length).sum::<Duration>();
        let (mut write, mut parallel) = (drive.least_write(region.clone()).0 as f64, 1);
        if let DriveKind::Flash(flash) = &drive.kind {
            let fill = flash.pause_after as f64 / write;
            stalled += flash.pause.as_secs_f64() / (fill + flash.pause.as_secs_f64());
            sigma += flash.pause;
            // Reads and writes share the cells and the cable.
            write *= 0.5;
            parallel = 4;
        }
        // A remapped place is a way there and back, whenever its slot is written; and one that cannot be read is
        // remapped by the first write.
        let moved = |flaw: &Flaw| !matches!(flaw, Flaw::Weak { .. });
        let detours = most_within(drive, slot, |flaw| if moved(flaw) { s * 2 } else { Duration::ZERO });
        let turn = drive.mechanics().map_or(s, |mechanics| mechanics.revolution);
        let tries = most_within(drive, quantum.into(), |flaw| match flaw {
            Flaw::Weak { revolutions } => turn * *revolutions,
            Flaw::Remapped | Flaw::Unreadable => s * 2,
        });
        let fails = drive.damage.iter().any(|damage| damage.flaw == Flaw::Unreadable);
        let limit = if fails { drive.read_error_limit } else { Duration::ZERO };
        Measured {
            at: Timestamp(0),
            write: Rate(write as u64),
            read: drive.least_read(region.clone()),
            reposition: s,
            commit: detours,
            read_error: limit + tries,
            stall: sigma,
            stalled: (stalled * 1e6).ceil() as u32,
            parallel,
            elements: 100_000_000,
            cells: 0,
        }
    }
}

/// The most that the flaws of a drive cost within so many bytes.
fn most_within(drive: &DriveModel, bytes: u64, cost: impl Fn(&Flaw) -> Duration) -> Duration {
    let of = |from: u64| {
        let inside = drive.damage.iter().filter(|d| (from..from.saturating_add(bytes)).contains(&d.offset));
        inside.map(|damage| cost(&damage.flaw)).sum::<Duration>()
    };
    drive.damage.iter().map(|damage| of(damage.offset)).max().unwrap_or_default()
}
