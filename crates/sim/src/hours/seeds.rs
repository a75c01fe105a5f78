//! Generator of scenes from seeds. Whatever a scene can be, some seed draws it, mostly just within what is
//! admitted.

use super::intake::Wild;
use super::readers::{Habit, Reader};
use super::scene::{Places, Scene};
use super::source::{Burst, Lull, Stream};
use holdfast_base::{ByteSize, MIN_GUARANTEED_SLOT, Rate};
use holdfast_media::drive::{DriveKind, DriveModel, Flaw};
use holdfast_media::{Seed, Stall};
use holdfast_ring::{Class, Load, Shape, admit, figures, preferred_slot, visit};
use std::ops::Range;
use std::time::Duration;

impl Scene {
    /// The hour of a seed, in slots for which the drive's whole rate is counted on.
    pub fn from_seed(number: u64) -> Self {
        Self::drawn(number, None)
    }

    /// The hour of a seed, in smaller slots: repositioning limits the rate that is counted on.
    pub fn small_from_seed(number: u64) -> Self {
        Self::drawn(number, Some(Seed::new(number ^ 0x0073_6d61_6c6c)))
    }

    fn drawn(number: u64, small: Option<Seed>) -> Self {
        let mut seed = Seed::new(number);
        let whole = match seed.below(8) {
            0..4 => DriveModel::paper(),
            4..6 => DriveModel::rpm7200(),
            6 => DriveModel::shingled(),
            _ => DriveModel::flash(),
        };
        let bytes = ByteSize::gib(16 + seed.below(240)).0;
        let begin = seed.below(1000) as f64 / 1000.0;
        let mut drive = if seed.happens(0.5) { whole.squeezed(bytes) } else { whole.part(begin, bytes) };
        drive.read_error_limit = Duration::from_millis([100, 1000, 7000][seed.below(3) as usize]);
        damage(&mut drive, &mut seed);
        let trouble = trouble(&mut seed);
        for stall in &trouble.stalls {
            drive = drive.stalling(*stall);
        }
        let region = 0.0..[0.5, 0.8, 1.0][seed.below(3) as usize];
        // Of small reads a device without a head serves more in an hour than there is something to be learnt from.
        let least = if matches!(drive.kind, DriveKind::Flash(_)) { 22 } else { 20 };
        let quantum = 1 << (least + seed.below(24 - least));
        let (mut base, mut slot) = (1 << 20, slot_of(&drive, &region, quantum, &mut seed));
        if let DriveKind::Shingled(_, shingles) = &drive.kind {
            // There is a guarantee only where slots are whole zones.
            (base, slot) = (shingles.zone, shingles.zone);
        } else if let Some(mut small) = small {
            slot = small_slot_of(&drive, &region, quantum, &mut small);
        }
        let measured = Self::profiled(&drive, &region, slot, quantum);
        let shape = Shape {
            slot: ByteSize(slot),
            flush: Duration::from_millis(200 + seed.below(2000)),
            gather: [1, 2, 4, 8][seed.below(4) as usize],
            quantum,
            buffers: u32::MAX,
        };
        let burst = if trouble.every > 0.0 { slot * (1 + seed.below(8)) } else { 0 };
        let wanted = Load { rate: Rate(1), elements: 1000, cells: 0, burst: ByteSize(burst) };
        // At what is admitted, and mostly just there.
        let most = figures(&measured, &wanted, &shape).with_reads.0 as f64;
        let part = if seed.happens(0.7) { 1.0 } else { 0.05 + seed.below(95) as f64 / 100.0 };
        let load = Load { rate: Rate(((most * part) as u64).max(1)), ..wanted };
        let mut streams = streams(&load, &trouble, &mut seed);
        lulls(&mut streams, number);
        let places = match seed.below(4) {
            0 => Places::Changing { every: 2 + seed.below(200), seed: seed.bits() },
            _ => Places::drawn(&mut seed),
        };
        let lasts = Duration::from_hours(1);
        let readers = Vec::new();
        let scene = Self {
            seed: number,
            drive,
            region,
            measured,
            shape,
            base,
            visit: visit(&measured, shape.quantum),
            load,
            streams,
            wild: Vec::new(),
            places,
            readers,
            lasts,
        };
        // No more memory than it takes.
        let mut scene = scene.just_enough();
        let stubborn = scene.unreadable(&mut seed);
        if let Some(worst) = scene.most_flawed().filter(|_| seed.happens(0.3)) {
            scene.places = Places::Two(worst, if seed.happens(0.5) { 0 } else { scene.slots() - 1 });
        }
        scene.readers = (0..seed.below(6)).map(|client| reader(client, stubborn, &mut seed)).collect();
        if scene.readers.is_empty() && seed.happens(0.5) {
            scene.readers.push(reader(0, stubborn, &mut seed));
        }
        debug_assert!(admit(&scene.measured, &scene.load, &scene.shape).is_ok(), "{scene}");
        scene
    }

    /// The hour of a seed in which some streams bring 1.5 to 10 times what they declared: all the time, or again and again,
    /// often just when the drive stands still or the others' bursts come. At least one keeps its word, or there is one alone.
    pub fn wild_from_seed(number: u64) -> Self {
        let mut scene = Self::from_seed(number);
        let mut seed = Seed::new(number ^ 0x7769_6c64);
        scene.lasts = Duration::from_mins(20);
        let alone = scene.streams.len() == 1 && seed.happens(0.4);
        if scene.streams.len() == 1 && !alone {
            // Half of it is somebody else's.
            let half = |stream: &Stream| Stream {
                rate: stream.rate / 2.0,
                burst: stream.burst.map(|burst| Burst { bytes: burst.bytes / 2.0, ..burst }),
                lull: None,
            };
            scene.streams = vec![half(&scene.streams[0]); 2];
        }
        let tame = if alone { usize::MAX } else { seed.below(scene.streams.len() as u64) as usize };
        let lasts = scene.lasts.as_secs_f64();
        for at in (0..scene.streams.len()).filter(|at| *at != tame) {
            if !seed.happens(0.7) && scene.wild.len() + 1 < at {
                continue;
            }
            let always = seed.happens(0.4);
            let every = if always { 2.0 * lasts } else { 5.0 + seed.below(300) as f64 };
            let stall = scene.drive.stalls.first().filter(|_| seed.happens(0.5));
            let first = stall.map_or(seed.below(60) as f64, |stall| stall.first.as_secs_f64());
            scene.wild.push((
                at,
                Wild {
                    times: 1.5 + seed.below(86) as f64 / 10.0,
                    lasts: if always { every } else { every * (1 + seed.below(9)) as f64 / 10.0 },
                    every,
                    first: if always { 0.0 } else { first % lasts },
                    lump: (seed.below(10) * scene.shape.slot.0) as f64,
                },
            ));
        }
        scene
    }

    /// The slot with the most places that writes go a long way round for.
    fn most_flawed(&self) -> Option<u64> {
        let slot = |offset: u64| Some(offset.checked_sub(self.offset(0))? / self.shape.slot.0);
        let flaws = self.drive.damage.iter().filter(|d| !matches!(d.flaw, Flaw::Weak { .. }));
        let slots: Vec<u64> =
            flaws.filter_map(|d| slot(d.offset)).filter(|slot| *slot < self.slots()).collect();
        slots.iter().copied().max_by_key(|one| slots.iter().filter(|other| *other == one).count())
    }

    /// A slot and a byte in it that cannot be read, where there is one that capture leaves alone.
    fn unreadable(&self, seed: &mut Seed) -> Option<(u64, u64)> {
        let (first, slots) = (self.offset(0), self.slots());
        let bad = self.drive.damage.iter().filter(|damage| damage.flaw == Flaw::Unreadable);
        let places = bad.filter_map(|damage| damage.offset.checked_sub(first));
        let inside: Vec<u64> = places.filter(|place| place / self.shape.slot.0 < slots).collect();
        let chosen = inside.get(seed.below(inside.len() as u64) as usize)?;
        Some((chosen / self.shape.slot.0, chosen % self.shape.slot.0))
    }
}

/// The smallest size for which the drive's whole rate is counted on. It does not depend on what flaws cost in a slot.
fn preferred(drive: &DriveModel, region: &Range<f64>, quantum: u32) -> u64 {
    preferred_slot(&Scene::profiled(drive, region, 0, quantum)).0
}

fn slot_of(drive: &DriveModel, region: &Range<f64>, quantum: u32, seed: &mut Seed) -> u64 {
    let least = preferred(drive, region, quantum);
    (least << seed.below(3)).min(256 << 20).max(least)
}

fn small_slot_of(drive: &DriveModel, region: &Range<f64>, quantum: u32, seed: &mut Seed) -> u64 {
    (preferred(drive, region, quantum) >> (1 + seed.below(4))).max(MIN_GUARANTEED_SLOT)
}

fn damage(drive: &mut DriveModel, seed: &mut Seed) {
    let flaws = [
        (Flaw::Remapped, seed.below(3)),
        (Flaw::Weak { revolutions: 3 }, seed.below(20)),
        (Flaw::Unreadable, 1 + seed.below(20)),
    ];
    if seed.happens(0.5) {
        for (flaw, places) in flaws {
            *drive = drive.clone().damaged(flaw, places as usize, seed.bits());
        }
    }
}

/// When things go wrong, and when the bursts come: often just then.
struct Disturbances {
    stalls: Vec<Stall>,
    /// Seconds from a burst to the next; 0 where there are none.
    every: f64,
    first: f64,
}

fn trouble(seed: &mut Seed) -> Disturbances {
    let every = Duration::from_millis(20_000 + seed.below(600_000));
    let bursts = seed.happens(0.5);
    let first = every / 2;
    let mut stalls: Vec<Stall> = Vec::new();
    for _ in 0..seed.below(3) {
        let length = match seed.below(4) {
            0 => Duration::from_millis(20 + seed.below(300)),
            1 => Duration::from_millis(500),
            2 => Duration::from_millis(300 + seed.below(3000)),
            _ => Duration::from_secs([1, 3, 10][seed.below(3) as usize]),
        };
        let again = seed.happens(0.7).then(|| length * (15 + seed.below(60) as u32));
        let at = Duration::from_millis(seed.below(600_000));
        // Together with a burst, or just before it.
        let with = bursts && seed.happens(0.5) && every > length * 15;
        let begins = (first + every).saturating_sub(length.mul_f64(seed.below(5) as f64 / 4.0));
        let stall = if with {
            Stall { first: begins, length, every: again.map(|_| every) }
        } else {
            Stall { first: at, length, every: again }
        };
        stalls.push(stall);
    }
    Disturbances { stalls, every: if bursts { every.as_secs_f64() } else { 0.0 }, first: first.as_secs_f64() }
}

/// The load as one to four streams. Their bursts come together, or each at its own time.
fn streams(load: &Load, trouble: &Disturbances, seed: &mut Seed) -> Vec<Stream> {
    let count = 1 + seed.below(4);
    let together = seed.happens(0.6);
    let total = (count * (count + 1) / 2) as f64;
    let stream = |one: u64, seed: &mut Seed| {
        // The second brings twice what the first does, and so on.
        let share = (one + 1) as f64 / total;
        let late = if together { 0.0 } else { seed.below(1000) as f64 / 1000.0 * trouble.every };
        let burst =
            Burst { bytes: load.burst.0 as f64 * share, every: trouble.every, first: trouble.first + late };
        let burst = (load.burst.0 > 0).then_some(burst);
        Stream { rate: load.rate.0 as f64 * share, burst, lull: None }
    };
    (0..count).map(|one| stream(one, seed)).collect()
}

/// In a third of the hours some streams bring less now and then, or nothing: for a moment, or for minutes.
fn lulls(streams: &mut [Stream], number: u64) {
    let mut seed = Seed::new(number ^ 0x6c75_6c6c);
    if !seed.happens(0.35) {
        return;
    }
    let together = seed.happens(0.5);
    let mut drawn = None;
    for stream in streams {
        if drawn.is_none() || !together {
            let lasts = 0.5 + (seed.below(1000) as f64 / 1000.0).powi(3) * 240.0;
            drawn = seed.happens(0.8).then(|| Lull {
                share: [0.0, 0.0, 0.01, 0.1, 0.3, 0.6][seed.below(6) as usize],
                lasts,
                every: lasts * (1.0 + (1 + seed.below(400)) as f64 / 100.0) + seed.below(10) as f64,
                first: seed.below(60_000) as f64 / 1000.0,
            });
        }
        stream.lull = drawn;
    }
}

fn reader(client: u64, unreadable: Option<(u64, u64)>, seed: &mut Seed) -> Reader {
    let class = [Class::Rebuild, Class::Evacuation, Class::Search, Class::Export, Class::Scrub];
    let habit = match (seed.below(6), unreadable) {
        (4..6, Some((slot, at))) => Habit::Stubborn(slot, at),
        (4, None) | (0, _) => Habit::Sequential,
        (1, _) => Habit::Scattered,
        (2 | 5, _) => Habit::Torn,
        _ => Habit::Paced((1 + seed.below(60)) as f64 * 1e6),
    };
    Reader::new(client, class[seed.below(5) as usize], habit, seed.bits())
}
