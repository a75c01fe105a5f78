//! What there is in an hour: a drive, a ring on it, a load at what is admitted, readers, holds, trouble. Drawn from a seed.

use super::readers::{Habit, Reader};
use super::source::Burst;
use holdfast_base::{ByteSize, Rate, Timestamp};
use holdfast_format::Measured;
use holdfast_media::drive::{DriveKind, DriveModel, Flaw};
use holdfast_media::{Seed, Stall};
use holdfast_ring::{Class, Load, Shape, admit, figures, least_slot};
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
    /// What arrives at most.
    pub load: Load,
    /// How that comes.
    pub burst: Option<Burst>,
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
        let Self { seed, drive, region, measured, shape, load, burst, places, readers, .. } = self;
        writeln!(
            f,
            "hour {seed}: {} of {} at {:?}, {region:?} used",
            drive.name,
            ByteSize(drive.bytes),
            drive.stretch
        )?;
        writeln!(f, "  stalls {:?}, damage {:?}", drive.stalls, drive.damage)?;
        writeln!(f, "  {measured:?}\n  {shape:?}\n  {load:?}, {burst:?}, free places: {places:?}")?;
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
        (used / self.shape.slot.0).saturating_sub(5).max(4)
    }

    /// What a perfect profile of a drive would say of a region of it.
    pub fn profiled(drive: &DriveModel, region: &Range<f64>) -> Measured {
        let s = drive.worst_reposition();
        let stall = drive.stalls.iter().map(|stall| stall.length).sum::<Duration>();
        let share =
            |stall: &Stall| stall.every.map_or(0.0, |every| stall.length.as_secs_f64() / every.as_secs_f64());
        let mut stalled: f64 = drive.stalls.iter().map(share).sum();
        let mut sigma = stall;
        let (mut write, mut parallel) = (drive.least_write(region.clone()).0 as f64, 1);
        if let DriveKind::Flash(flash) = &drive.kind {
            let fill = flash.pause_after as f64 / write;
            stalled += flash.pause.as_secs_f64() / (fill + flash.pause.as_secs_f64());
            sigma += flash.pause;
            // Reads and writes share the cells and the cable.
            write *= 0.5;
            parallel = 4;
        }
        let flaw = |flaw: fn(&Flaw) -> bool| drive.damage.iter().filter(|d| flaw(&d.flaw)).count() as u32;
        let remapped = flaw(|flaw| matches!(flaw, Flaw::Remapped));
        let broken = flaw(|flaw| !matches!(flaw, Flaw::Remapped)) > 0;
        Measured {
            at: Timestamp(0),
            write: Rate(write as u64),
            read: drive.least_read(region.clone()),
            reposition: s,
            // A remapped place is a way there and back, whenever its slot is written.
            commit: s * 2 * remapped,
            read_error: if broken { drive.read_error_limit } else { s * 2 * remapped },
            stall: sigma,
            stalled: (stalled * 1e6).ceil() as u32,
            parallel,
            elements: 100_000_000,
        }
    }

    /// The hour of a seed.
    pub fn from_seed(number: u64) -> Self {
        let mut seed = Seed::new(number);
        let whole = match seed.below(6) {
            0..3 => DriveModel::paper(),
            3..5 => DriveModel::rpm7200(),
            _ => DriveModel::flash(),
        };
        let bytes = ByteSize::gib(16 + seed.below(240)).0;
        let begin = seed.below(1000) as f64 / 1000.0;
        let mut drive = if seed.happens(0.5) { whole.squeezed(bytes) } else { whole.part(begin, bytes) };
        drive.read_error_limit = Duration::from_millis([100, 1000, 7000][seed.below(3) as usize]);
        for _ in 0..seed.below(3) {
            let length = Duration::from_millis(20 + seed.below(3000));
            let every = seed.happens(0.7).then(|| length * (15 + seed.below(60) as u32));
            let first = Duration::from_millis(seed.below(600_000));
            drive = drive.stalling(Stall { first, length, every });
        }
        let flaws = [
            (Flaw::Remapped, seed.below(3)),
            (Flaw::Weak { revolutions: 3 }, seed.below(20)),
            (Flaw::Unreadable, seed.below(20)),
        ];
        if seed.happens(0.5) {
            for (flaw, places) in flaws {
                drive = drive.damaged(flaw, places as usize, seed.bits());
            }
        }
        let region = 0.0..[0.5, 0.8, 1.0][seed.below(3) as usize];
        let measured = Self::profiled(&drive, &region);
        let slot = (least_slot(&measured).0 << seed.below(3)).min(256 << 20);
        let shape = Shape {
            slot: ByteSize(slot),
            flush: Duration::from_millis(200 + seed.below(2000)),
            gather: [1, 2, 4, 8][seed.below(4) as usize],
            quantum: 1 << (20 + seed.below(4)),
            buffers: u32::MAX,
        };
        let burst = if seed.happens(0.4) { slot * (1 + seed.below(4)) } else { 0 };
        let wanted = Load { rate: Rate(1), elements: 1000, burst: ByteSize(burst) };
        // At what is admitted, and mostly just there.
        let most = figures(&measured, &wanted, &shape).with_reads.0 as f64;
        let part = if seed.happens(0.7) { 1.0 } else { 0.05 + seed.below(95) as f64 / 100.0 };
        let load = Load { rate: Rate(((most * part) as u64).max(1)), ..wanted };
        // No more memory than it takes.
        let buffers = admit(&measured, &load, &shape).map_or(0, |granted| granted.buffers);
        let shape = Shape { buffers, ..shape };
        let every = Duration::from_secs(20 + seed.below(600)).as_secs_f64();
        let places = match seed.below(4) {
            0 => Places::All,
            1 => Places::Scattered(2 + seed.below(30)),
            2 => Places::Ends,
            _ => Places::Torn,
        };
        let broken = drive.damage.iter().find(|damage| damage.flaw == Flaw::Unreadable).map(|d| d.offset);
        let readers = (0..seed.below(6)).map(|client| Self::reader(client, broken, &mut seed)).collect();
        Self {
            seed: number,
            drive,
            region,
            measured,
            shape,
            load,
            burst: (burst > 0).then_some(Burst { bytes: burst as f64, every }),
            places,
            readers,
            lasts: Duration::from_hours(1),
        }
    }

    fn reader(client: u64, broken: Option<u64>, seed: &mut Seed) -> Reader {
        let class = [Class::Rebuild, Class::Evacuation, Class::Search, Class::Export, Class::Scrub];
        let habit = match (seed.below(5), broken) {
            (4, Some(offset)) => Habit::Stubborn(offset),
            (4, None) | (0, _) => Habit::Sequential,
            (1, _) => Habit::Scattered,
            (2, _) => Habit::Torn,
            _ => Habit::Paced((1 + seed.below(60)) as f64 * 1e6),
        };
        Reader::new(client, class[seed.below(5) as usize], habit, seed.bits())
    }
}
