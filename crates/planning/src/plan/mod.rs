//! Plan of a ring on a measured device: what it would be admitted for, and in which shape. The arithmetic is the ring's
//! (`holdfast_ring::admit`); here sensible sizes are chosen for what nobody chose. Pure.

#[cfg(test)]
mod admission_tests;
pub(crate) mod answer;
mod load_options;
mod promise;
mod refusal;
pub(crate) mod region;
mod region_promise;
pub mod text;

pub use answer::{Answer, GatherRow, RegionRow};
pub use load_options::LoadOptions;
pub use promise::{Kept, Promise};
pub(crate) use refusal::Site;
pub use region::Region;
pub use region_promise::{RegionPromise, region_promise};

use crate::profile_file;
use holdfast_base::failure::Failure;
use holdfast_base::{ByteSize, MAX_SLOT, MIN_GUARANTEED_SLOT, Rate};
use holdfast_format::{ElementLoad, Geometry, Measured, Terms};
use holdfast_media::Profile;
use holdfast_ring::{
    Declared, Figures, Guarantee, Load, PACKED, Refused, Shape, admit, fewest_slots, figures, least_named,
    least_slots, load, most_below, preferred_slot, too_small_to_hold,
};
use std::path::Path;
use std::time::Duration;

/// Without `--elements` they are taken to be so long.
pub const ELEMENT: u64 = 64 << 10;

/// Without `--quantum` reads are cut into pieces of this size: on a drive with a head, moving there is then a small part of
/// a read.
const QUANTUM: u64 = 8 << 20;

/// Without `--gather`: the first that is admitted. Beyond 4 there is little to gain, and memory to lose.
const GATHERS: [u16; 4] = [4, 2, 1, 8];

/// Slot sizes that take more buffers are chosen only if no other is admitted: the runway, which no data lives in, is twice
/// as long.
const MANY_BUFFERS: u32 = 64;

/// The flush interval that a recorder has unless it is told.
pub const FLUSH: Duration = Duration::from_secs(1);

/// What is wanted of a ring; `None` where nothing was said.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ask {
    /// Payload of all streams.
    pub rate: Rate,
    /// Elements a second of all streams.
    pub elements: Option<u64>,
    /// Bytes of an element, where that is known.
    pub size: Option<u64>,
    /// Payload that may come at once beyond the rate.
    pub burst: ByteSize,
    /// Streams.
    pub streams: usize,
    /// What an element takes beside its payload.
    pub each: ElementLoad,
    /// Slot size.
    pub slot: Option<ByteSize>,
    /// Slots written in one go.
    pub gather: Option<u16>,
    /// Largest read.
    pub quantum: Option<ByteSize>,
    /// Memory for slot buffers.
    pub memory: Option<ByteSize>,
    /// The flush interval.
    pub flush: Duration,
}

/// What the packer may be relied on for, in a second.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Packs {
    /// What was measured of it, elements and cells.
    measured: Measured,
    /// Of payload; known only where there is a profile.
    pub(crate) bytes: Rate,
}

impl Packs {
    /// As far as a ring's terms tell.
    pub(crate) fn of(measured: &Measured) -> Self {
        Self { measured: *measured, bytes: Rate(u64::MAX) }
    }

    /// As the profile tells.
    pub(crate) fn profiled(measured: &Measured, profile: &Profile) -> Self {
        Self { bytes: Rate((profile.packer_bytes.0 as f64 * PACKED) as u64), ..Self::of(measured) }
    }
}

/// The most that may be asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Most {
    /// On the medium.
    pub(crate) medium: Rate,
    /// Of payload.
    pub(crate) payload: Rate,
}

/// A shape, and what it is to carry.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Candidate {
    pub(crate) load: Load,
    pub(crate) shape: Shape,
}

/// A shape that was admitted.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Admitted {
    /// The load on the medium.
    pub load: Load,
    /// The shape of the ring.
    pub shape: Shape,
    /// What follows from both.
    pub guarantee: Guarantee,
}

/// Nothing was admitted: the shape that comes nearest, and why not.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Refusal {
    /// The inequality says no.
    Refused(Shape, Refused),
    /// Slots as large as a guarantee takes do not fit on the lane.
    TooSmall {
        /// The least slot.
        slot: ByteSize,
        /// The least lane for such slots.
        lane: ByteSize,
        /// What the load takes of them; nothing where any would take as many slots.
        takes: Option<Guarantee>,
    },
}

impl Ask {
    /// So much payload, and nothing else said.
    pub(crate) fn of(rate: Rate) -> Self {
        Self {
            rate,
            elements: None,
            size: None,
            burst: ByteSize(0),
            streams: 1,
            each: ElementLoad::NONE,
            slot: None,
            gather: None,
            quantum: None,
            memory: None,
            flush: FLUSH,
        }
    }

    /// Elements a second, declared or taken for granted.
    pub(crate) fn elements(&self) -> u64 {
        self.elements.unwrap_or_else(|| self.rate.0.div_ceil(self.size.unwrap_or(ELEMENT).max(1)))
    }

    /// What it comes to on the medium.
    pub(crate) fn load(&self, slot: ByteSize) -> Load {
        let each = self.each;
        let mut streams = vec![Declared { each, ..Declared::NOTHING }; self.streams.max(1)];
        // Only the sum of what they declare counts, and how many they are.
        streams[0] = Declared { rate: self.rate, elements: self.elements(), burst: self.burst, each };
        load(&streams, slot)
    }

    /// The same at another rate, in elements of the same size.
    pub(crate) fn at(&self, rate: Rate) -> Self {
        let scaled = |elements: u64| {
            let elements = u128::from(elements) * u128::from(rate.0);
            u64::try_from(elements.div_ceil(u128::from(self.rate.0.max(1)))).unwrap_or(u64::MAX)
        };
        Self { rate, elements: self.elements.map(scaled), ..*self }
    }

    /// The most that is published for a shape: what is admitted, and so is what it is shown as.
    pub(crate) fn most(&self, shape: &Shape, packs: Packs) -> Most {
        let load = |rate| self.at(rate).load(shape.slot);
        let admitted = |rate| rate <= packs.bytes && admit(&packs.measured, &load(rate), shape).is_ok();
        let fits = |rate| admitted(Rate(rate)) && admitted(Rate(rate).shown_down());
        let payload = Rate(most_below(packs.measured.write.min(packs.bytes).0.saturating_add(1), fits));
        Most { medium: if payload.0 == 0 { Rate(0) } else { load(payload).rate }, payload }
    }

    /// The same while nobody reads.
    pub(crate) fn most_alone(&self, shape: &Shape, packs: Packs) -> Most {
        self.most(&Shape { quantum: 0, ..*shape }, packs)
    }

    pub(crate) fn candidate(&self, slot: ByteSize, gather: u16) -> Candidate {
        let quantum = self.quantum.map_or(QUANTUM, |quantum| quantum.0).min(slot.0);
        let buffers = self.memory.map_or(u64::from(u32::MAX), |memory| memory.0 / slot.0);
        let shape = Shape {
            slot,
            flush: self.flush,
            gather,
            quantum: u32::try_from(quantum).unwrap_or(u32::MAX),
            buffers: u32::try_from(buffers).unwrap_or(u32::MAX),
        };
        Candidate { load: self.load(slot), shape }
    }
}

impl Candidate {
    /// Whether it is admitted. Where nobody limited the memory, it has the buffers that it takes.
    pub(crate) fn admit(&self, measured: &Measured) -> Result<Admitted, Refused> {
        let Self { load, mut shape } = *self;
        let guarantee = admit(measured, &load, &shape)?;
        if shape.buffers == u32::MAX {
            shape.buffers = guarantee.buffers;
        }
        Ok(Admitted { load, shape, guarantee })
    }
}

impl Admitted {
    /// Memory of the slot buffers.
    pub(crate) fn memory(&self) -> ByteSize {
        ByteSize(u64::from(self.shape.buffers).saturating_mul(self.shape.slot.0))
    }

    /// The smallest lane with the slots that it takes.
    pub(crate) fn lane(&self) -> ByteSize {
        smallest(self.shape.slot, least_slots(&self.guarantee, self.shape.gather))
    }

    /// What the lane and the memory of a ring of so many slots are enough for.
    pub(crate) fn figures(&self, measured: &Measured, slots: u32) -> Figures {
        figures(measured, &self.load, &self.shape.among(slots))
    }

    /// What the superblock keeps.
    pub(crate) fn terms(&self, measured: &Measured, ask: &Ask) -> Terms {
        Terms {
            measured: *measured,
            rate: ask.rate,
            elements: ask.elements(),
            burst: ask.burst,
            gather: self.shape.gather,
            quantum: self.shape.quantum,
            memory: self.memory(),
            each: ask.each,
        }
    }
}

/// Slot sizes to try: first those in which the device's whole rate is counted on, the smallest first; then smaller ones, the
/// largest first. Which sizes there are depends on nothing that was measured: else a better device could be refused.
fn sizes(measured: &Measured, ask: &Ask) -> [Vec<ByteSize>; 2] {
    if let Some(slot) = ask.slot {
        return [vec![slot], Vec::new()];
    }
    let all = std::iter::successors(Some(MIN_GUARANTEED_SLOT), |slot| slot.checked_mul(2));
    let all = all.take_while(|slot| *slot <= MAX_SLOT).map(ByteSize);
    let (mut small, large): (Vec<_>, Vec<_>) = all.partition(|slot| *slot < preferred_slot(measured));
    small.reverse();
    [large, small]
}

/// The smallest slots of the preferred sizes that are admitted, else the largest of the others, gathered by four where that
/// can be; what was asked for is left as it is.
pub(crate) fn choose(measured: &Measured, lane: u64, ask: &Ask) -> Result<Admitted, Refusal> {
    let least = ByteSize(MIN_GUARANTEED_SLOT);
    let gathers = ask.gather.map_or(GATHERS.to_vec(), |gather| vec![gather]);
    let fitting: Vec<(ByteSize, u16)> = sizes(measured, ask)
        .iter()
        .flat_map(|sizes| gathers.iter().flat_map(|gather| sizes.iter().map(|slot| (*slot, *gather))))
        .filter(|(slot, gather)| *slot < least || slots(lane, *slot, *gather).is_some())
        .collect();
    if fitting.is_empty() {
        let slot = ask.slot.unwrap_or(least);
        let fewest = fewest_slots(ask.gather.unwrap_or(GATHERS[0]));
        return Err(Refusal::TooSmall { slot, lane: smallest(slot, fewest), takes: None });
    }
    let all = || fitting.iter().map(|(slot, gather)| ask.candidate(*slot, *gather));
    let whole = || all().filter_map(|candidate| candidate.admit(measured).ok());
    let mut admitted = whole().filter(|admitted| lane >= admitted.lane().0);
    let modest = |admitted: &Admitted| {
        let Shape { slot, buffers, gather, .. } = admitted.shape;
        let geometry = Geometry::for_lane(lane, slot.0, Vec::new());
        let named = least_named(&admitted.guarantee, gather);
        buffers <= MANY_BUFFERS
            && geometry.is_ok_and(|geometry| too_small_to_hold(&geometry, buffers, named).is_none())
    };
    if let Some(admitted) = admitted.clone().find(modest).or_else(|| admitted.next()) {
        return Ok(admitted);
    }
    if let Some(nearest) = whole().min_by_key(Admitted::lane) {
        let (slot, lane) = (nearest.shape.slot, nearest.lane());
        return Err(Refusal::TooSmall { slot, lane, takes: Some(nearest.guarantee) });
    }
    // Where memory alone is short, that is the shape which takes least.
    let frugal = all().filter_map(|candidate| {
        let ample = Candidate { shape: Shape { buffers: u32::MAX, ..candidate.shape }, ..candidate };
        let admitted = ample.admit(measured).ok().filter(|admitted| lane >= admitted.lane().0)?;
        Some((admitted.memory(), candidate))
    });
    if let Some((_, frugal)) = frugal.reduce(|least, other| if other.0 < least.0 { other } else { least })
        && let Err(refused) = frugal.admit(measured)
    {
        return Err(Refusal::Refused(frugal.shape, refused));
    }
    let rate = |candidate: &Candidate| figures(measured, &candidate.load, &candidate.shape).with_reads;
    // Of equals the first.
    let nearest = all().reduce(|best, other| if rate(&other) > rate(&best) { other } else { best });
    let nearest = nearest.unwrap_or_else(|| ask.candidate(least, GATHERS[0]));
    match nearest.admit(measured) {
        Err(refused) => Err(Refusal::Refused(nearest.shape, refused)),
        // Every candidate was asked above.
        Ok(admitted) => Ok(admitted),
    }
}

/// Slots of a lane, if they are as many as any guarantee takes.
pub(crate) fn slots(lane: u64, slot: ByteSize, gather: u16) -> Option<u32> {
    let geometry = Geometry::for_lane(lane, slot.0, Vec::new()).ok()?;
    (geometry.slots >= fewest_slots(gather)).then_some(geometry.slots)
}

/// The smallest lane with so many slots.
fn smallest(slot: ByteSize, slots: u32) -> ByteSize {
    ByteSize(Geometry::lane_for(slot.0, slots.into()))
}

/// Plan of a ring on the device that a profile is of.
pub struct Plan {
    /// The profile of the device.
    pub profile: Profile,
    /// The request as it is planned.
    pub ask: Ask,
    /// What follows from it.
    pub answer: Answer,
}

impl Plan {
    /// Plans a ring of `bytes`, or of the whole device; `endurance` is what may be written to the device over its life.
    pub fn of_profile(
        file: &Path,
        options: &LoadOptions,
        bytes: Option<ByteSize>,
        endurance: Option<ByteSize>,
    ) -> holdfast_base::failure::Result<Self> {
        let ask = options.ask()?;
        let profile = profile_file::read(file)?;
        let total = bytes.unwrap_or(profile.device.bytes).0;
        let at = |failure: Failure| failure.at_path(file);
        let measured = region::covered(&profile, total, options.region).map_err(at)?;
        let site = Site { profile: &profile, measured, total, region: options.region };
        // What of smaller slots is wrong, the inequality says.
        if let Some(slot) = options.slot.filter(|slot| slot.0 >= MIN_GUARANTEED_SLOT) {
            Geometry::for_lane(site.lane(), slot.0, Vec::new())
                .map_err(|error| Failure::usage(error).at("--slot"))?;
        }
        let admitted = site.admit(&ask).map_err(at)?;
        let answer = Answer::new(&site, &ask, &admitted, endurance);
        Ok(Self { profile, ask, answer })
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::Site;
    use super::answer::Answer;
    use super::region::Region;
    use super::*;
    use crate::profile_file::tests::paper;
    use holdfast_media::{Profile, ReadError, Reposition, Stalls, Zone};
    use proptest::prelude::*;

    pub(crate) fn ask(mib: u64) -> Ask {
        Ask::of(Rate(mib << 20))
    }

    fn outer() -> (Measured, u64) {
        let paper = paper();
        let (total, region) = (paper.device.bytes.0, Region(80));
        (region::known(&paper, total, region).unwrap(), region::bytes(&paper, total, region))
    }

    // Promise 1: what is chosen is admitted, and nothing smaller would be.
    #[test]
    fn the_smallest_slots_that_do_are_chosen() {
        let (measured, lane) = outer();
        let chosen =
            |ask: &Ask| choose(&measured, lane, ask).map(|a| (a.shape.slot, a.shape.gather, a.shape.buffers));
        let mib = ByteSize::mib;
        assert_eq!(chosen(&ask(20)), Ok((mib(64), 4, 8)));
        assert_eq!(chosen(&ask(60)).unwrap().0, mib(64));
        // 64 MiB a slot would leave 60.9 MiB/s.
        assert_eq!(chosen(&ask(61)).unwrap().0, mib(128));
        assert_eq!(chosen(&Ask { rate: Rate(251 << 18), ..ask(1) }).unwrap().0, mib(256), "62.75 MiB/s");
        let large = Ask { slot: Some(mib(256)), ..ask(20) };
        assert_eq!(chosen(&large).unwrap().0, mib(256), "what was asked for stays");
        // Where memory is scarce, less is gathered.
        let scarce = Ask { memory: Some(mib(64 * 7)), ..ask(20) };
        assert_eq!(chosen(&scarce), Ok((mib(64), 2, 7)));
        assert_eq!(chosen(&Ask { gather: Some(1), ..ask(20) }), Ok((mib(64), 1, 5)));
    }

    #[test]
    fn what_is_not_admitted_is_refused_in_the_shape_that_comes_nearest() {
        let (measured, lane) = outer();
        let refused = |ask: &Ask| match choose(&measured, lane, ask) {
            Err(Refusal::Refused(shape, refused)) => (shape.slot, refused),
            other => panic!("{other:?}"),
        };
        let (slot, why) = refused(&ask(65));
        assert!(slot == ByteSize::mib(256) && matches!(why, Refused::Rate { .. }), "{slot} {why}");
        let (_, why) = refused(&Ask { elements: Some(1_000_000_000), ..ask(1) });
        assert!(matches!(why, Refused::Elements { .. }), "{why}");
        let (slot, why) = refused(&Ask { slot: Some(ByteSize::mib(4)), ..ask(1) });
        assert!(slot == ByteSize::mib(4) && matches!(why, Refused::Slot { .. }), "{why}");
        let (_, why) = refused(&Ask { memory: Some(ByteSize::mib(256)), ..ask(60) });
        assert!(matches!(why, Refused::Memory { .. }), "{why}");
        let small = choose(&measured, 300 << 20, &ask(1)).unwrap_err();
        let (slot, lane) = (ByteSize::mib(8), ByteSize::mib(44 * 8 + 1));
        assert_eq!(small, Refusal::TooSmall { slot, lane, takes: None });
        // Smaller slots do for a small load if larger ones would be too few.
        let chosen = |mib| choose(&measured, 2 << 30, &ask(mib)).map(|admitted| admitted.shape.slot);
        assert_eq!((chosen(1), chosen(20)), (Ok(ByteSize::mib(32)), Ok(ByteSize::mib(32))));
        assert!(chosen(40).is_err());
    }

    proptest! {
        // Promise 8: whatever stands in a profile that is taken, and whatever is asked, there is an answer or a refusal.
        #[test]
        fn no_profile_that_is_taken_is_too_strange(
            rates in prop::array::uniform4(prop_oneof![1u64..10, 1u64 << 20..1 << 34, Just(u64::MAX)]),
            spans in prop::array::uniform4(prop_oneof![Just(0u64), 0u64..100_000_000, Just(86_400_000_000_000)]),
            (rho, parallel) in (prop_oneof![Just(0), 0u32..1_000_000], prop_oneof![Just(1), 1u16..=u16::MAX]),
            elements in prop_oneof![1u64..1000, Just(u64::MAX)],
            bytes in prop_oneof![1u64..1 << 20, 1 << 30..1u64 << 50, Just(u64::MAX)],
            asked in prop::array::uniform2(prop_oneof![1u64..10, 1u64 << 20..1 << 34, Just(u64::MAX)]),
            (gather, region) in (prop::option::of(1u16..=64), 1u8..=100),
        ) {
            let span = |at: usize| Duration::from_nanos(spans[at]);
            let zone = Zone {
                offset: 0, bytes, write_worst: Rate(rates[0]), write_mean: Rate(rates[1]), read_worst: Rate(rates[2]),
                read_mean: Rate(rates[2]),
            };
            let mut profile = Profile {
                zones: vec![zone],
                reposition: Reposition { worst: span(0), ..Reposition::default() },
                commit: span(1),
                read_error: ReadError::Assumed(span(2)),
                stalls: Stalls { sigma: span(3), rho, ..Stalls::default() },
                parallel,
                write_beside_reads: Rate(rates[3]),
                packer_elements: elements,
                ..paper()
            };
            profile.device.bytes = ByteSize(bytes);
            let region = Region(region);
            if let Ok(measured) = region::covered(&profile, bytes, region) {
                let site = Site { profile: &profile, measured, total: bytes, region };
                let ask = Ask { rate: Rate(asked[0]), burst: ByteSize(asked[1] - 1), gather, ..ask(1) };
                if let Ok(admitted) = site.admit(&ask) {
                    let answer = Answer::new(&site, &ask, &admitted, Some(ByteSize(1)));
                    prop_assert!(!text::lines(&answer, &ask).is_empty());
                }
            }
        }
    }

    /// One stretch, as fast as it is told.
    fn fast(write: u64, packer_elements: u64, packer_bytes: u64) -> Profile {
        let rate = Rate(write << 20);
        let bytes = ByteSize::gib(64);
        let zone = Zone {
            offset: 0,
            bytes: bytes.0,
            write_worst: rate,
            write_mean: rate,
            read_worst: rate,
            read_mean: rate,
        };
        let mut profile = Profile {
            zones: vec![zone, Zone { offset: bytes.0, write_worst: Rate(rate.0 / 2), ..zone }],
            reposition: Reposition { worst: Duration::from_micros(200), ..Reposition::default() },
            read_error: ReadError::Assumed(Duration::from_millis(300)),
            packer_elements,
            packer_cells: 4 * packer_elements,
            packer_bytes: Rate(packer_bytes << 20),
            ..paper()
        };
        profile.device.bytes = ByteSize(2 * bytes.0);
        profile
    }

    /// A device and its packer; what is asked of it, and how.
    type Case = ((u64, u64, u64), (u64, Option<u64>, u64), (usize, u8, bool), [Option<u64>; 3]);

    fn whatever_is_published_is_admitted(case: Case) -> Result<(), TestCaseError> {
        let ((write, packer_elements, packer_bytes), (rate, elements, burst), more, shape) = case;
        let ((streams, region, columned), [slot, gather, memory]) = (more, shape);
        let profile = fast(write, packer_elements, packer_bytes);
        let total = profile.device.bytes.0;
        let on = |percent| {
            let region = Region(percent);
            Site {
                profile: &profile,
                measured: region::known(&profile, total, region).unwrap(),
                total,
                region,
            }
        };
        let attribute = ElementLoad { columns: 1, bytes: 9, ..ElementLoad::NONE };
        let ask = Ask {
            each: if columned { attribute } else { ElementLoad::NONE },
            elements,
            burst: ByteSize::mib(burst),
            streams,
            slot: slot.map(|log2| ByteSize(1 << log2)),
            gather: gather.map(|gather| gather as u16),
            memory: memory.map(ByteSize::mib),
            ..ask(rate)
        };
        let site = on(region);
        let Ok(admitted) = site.admit(&ask) else { return Ok(()) };
        let answer = Answer::new(&site, &ask, &admitted, None);
        let shape = admitted.shape;
        let same = Ask { slot: Some(shape.slot), gather: Some(shape.gather), ..ask };
        // As it is shown, to be typed.
        let shown = |rate| Rate(rate).shown_down();
        let with_reads = shown(answer.with_reads_payload_bytes_per_second);
        let memory = Some(admitted.memory());
        let asked = Ask { memory, ..same.at(with_reads) };
        prop_assert!(
            site.admit(&asked).is_ok(),
            "with reads {with_reads}: {}",
            site.admit(&asked).unwrap_err()
        );
        prop_assert!(with_reads.0 + with_reads.0 / 8 + 2 > ask.rate.0, "{with_reads} of {}", ask.rate);
        let alone = shown(answer.capture_only_payload_bytes_per_second);
        prop_assert!(alone >= with_reads && alone <= site.packs().bytes);
        let without = Shape { quantum: 0, ..shape };
        let granted = admit(&site.measured, &same.at(alone).load(shape.slot), &without);
        prop_assert!(granted.is_ok(), "capture only {alone}: {granted:?}");
        for row in &answer.by_region {
            let (site, rate) = (on(row.region_percent), shown(row.rate_bytes_per_second));
            let slot = Some(shape.slot);
            let asked = Ask { slot, memory: None, ..same.at(rate) };
            let admitted = rate.0 == 0 || site.admit(&asked).is_ok();
            prop_assert!(admitted, "{}: {rate}: {}", row.region_percent, site.admit(&asked).unwrap_err());
        }
        Ok(())
    }

    proptest! {
        // Promise 8: whatever is published as the most can be asked for, on drives that are faster than the packer, too.
        #[test]
        fn every_rate_that_is_published_is_admitted(
            device in (20u64..8000, 1000u64..10_000_000, 20u64..4000),
            asked in (1u64..1000, prop::option::of(1u64..1_000_000), 0u64..500),
            more in (1usize..10, 1u8..=100, any::<bool>()),
            slot in prop::option::of(23u64..28), gather in prop::option::of(1u64..9),
            memory in prop::option::of(1u64..8000),
        ) {
            whatever_is_published_is_admitted((device, asked, more, [slot, gather, memory]))?;
        }
    }

    // Elements a second are whole: at a lower rate a burst may have one more.
    #[test]
    fn a_burst_is_counted_at_the_rate_that_is_published() -> Result<(), TestCaseError> {
        let (device, asked) = ((278, 467_833, 172), (126, Some(275_171), 433));
        whatever_is_published_is_admitted((device, asked, (7, 2, true), [None; 3]))
    }

    #[test]
    fn a_ring_on_which_nothing_could_be_held_is_not_chosen_without_need() {
        let (measured, _) = outer();
        let admitted =
            choose(&Measured { read_error: Duration::ZERO, ..measured }, 45 * (64 << 20), &ask(20)).unwrap();
        assert_eq!(admitted.shape.slot, ByteSize::mib(64));
    }
}
