//! Admission of a run: the declared load, checked against the lane's profile in the superblock and against the memory
//! available. The arithmetic is the ring's.

use super::StartError;
use crate::args::{Settings, SourceSettings};
use holdfast_base::{ByteSize, MAX_SLOT, MIN_GUARANTEED_SLOT, Rate, Timestamp, typed};
use holdfast_format::{ElementLoad, Geometry, Measured, Superblock, Terms};
use holdfast_media::{Disk, Footing};
use holdfast_ring::{
    Declared, Driver, Guarantee, Lack, Load, OWN_QUANTUM, Rates, Refused, Shape, admit, each_would_do,
    least_named, least_slots, load, most_below, most_rate, other_slots, standing,
};

/// What a run is to promise.
#[derive(Clone, Debug)]
pub(super) struct Promise {
    measured: Measured,
    declared: Declarations,
    load: Load,
    /// With as many buffers as it takes.
    shape: Shape,
    /// Slots that are named to be overwritten.
    named: u32,
}

impl Promise {
    /// Weighs what was declared here, with what elements take by source, and for streams that declare nothing what was
    /// when the ring was made; `None` where nothing was.
    pub(super) fn weigh(
        settings: &Settings,
        superblock: &Superblock,
        each: &[ElementLoad],
    ) -> Result<Option<Self>, StartError> {
        let ring = || settings.ring.clone();
        let Some(terms) = &superblock.terms else {
            let some = settings.sources.iter().any(|source| source.rate.is_some());
            return if some { Err(StartError::Unmeasured { path: ring() }) } else { Ok(None) };
        };
        let declared = Declarations::of(&settings.sources, each, terms);
        let scale = Scale { settings, each, terms, geometry: &superblock.geometry };
        let slot = ByteSize(superblock.geometry.slot_bytes);
        let weighed = scale.weigh(&declared, slot, superblock.geometry.slots);
        let granted = weighed.map_err(|no| match no {
            PromiseRefusal::Refused(refused) => {
                let also = scale.also(&declared, &refused);
                let (refused, advice) = (Box::new(refused), scale.advice(None));
                StartError::NotAdmitted { path: ring(), refused, also, advice }
            }
            PromiseRefusal::TooFew { slots, least } => {
                StartError::TooFewSlots { path: ring(), slots, least, advice: scale.advice(Some(least)) }
            }
        })?;
        let (load, shape) = (load(&declared.all(), slot), scale.shape(slot));
        let measured = terms.measured;
        // The memory that was weighed when the ring was made rides out the bursts that are published.
        let kept = u32::try_from(terms.memory.0 / slot.0.max(1)).unwrap_or(u32::MAX);
        // One more is for what purging and distilling copy, where memory is not scarce.
        let more = granted.buffers.saturating_add(1).max(kept);
        let buffers = if settings.memory.is_some() { granted.buffers } else { more };
        let named = least_named(&granted, shape.gather);
        let shape = Shape { buffers, ..shape };
        Ok(Some(Self { measured, declared, load, shape, named }))
    }

    /// Slot buffers that it takes, and one for copies.
    pub(super) fn buffers(&self) -> u32 {
        self.shape.buffers
    }

    /// Payload and elements a second that it is for.
    pub(super) fn comes(&self) -> (Rate, u64) {
        (self.declared.payload(), self.load.elements)
    }

    /// Slots that are named to be overwritten, at least.
    pub(super) fn named(&self) -> u32 {
        self.named
    }

    /// The term that fails with so many buffers.
    pub(super) fn with_only(&self, buffers: u32) -> Option<Refused> {
        admit(&self.measured, &self.load, &Shape { buffers, ..self.shape }).err()
    }

    /// Bytes of the largest read.
    pub(super) fn quantum(&self) -> usize {
        self.shape.quantum as usize
    }

    /// From here on the driver goes by it, with the buffers that there are; what is promised, and whether that holds on such
    /// a footing, in a line.
    pub(super) fn give<D: Disk>(&self, driver: &mut Driver<D>, footing: &Footing) -> Result<String, Refused> {
        let buffers = driver.buffers().0 as u32;
        let granted = driver.promise(&self.measured, &self.load, &Shape { buffers, ..self.shape })?;
        let lacks = Lack::of(footing, driver.ring().status("").slots.unwritten);
        Ok(self.line(&granted, buffers, &lacks))
    }

    /// What holds the streams to it from then on, in the order of the sources.
    pub(super) fn rates(&self, begin: Timestamp) -> Rates {
        Rates::new(&self.declared.streams, &self.declared.rest, begin)
    }

    fn line(&self, granted: &Guarantee, buffers: u32, lacks: &[Lack]) -> String {
        let left = match &self.declared.unpromised[..] {
            [] => String::new(),
            [one] => format!("; {one} gets what is left"),
            some => format!("; {} get what is left", some.join(", ")),
        };
        format!(
            "{}{left}; durable after {:.1} s; {buffers} slot buffers, of which it takes {}",
            standing(self.declared.payload(), self.load.rate, lacks),
            // No less is said than it is.
            (granted.durable_after.as_secs_f64() * 10.0).ceil() / 10.0,
            granted.buffers
        )
    }
}

/// What the sources declare.
#[derive(Clone, Debug)]
struct Declarations {
    /// By source; `None` where nothing was said of it.
    streams: Vec<Option<Declared>>,
    /// What the ring was made for beyond that, for those of which nothing was said.
    rest: Declared,
    /// Streams that are promised nothing.
    unpromised: Vec<String>,
}

impl Declarations {
    fn of(sources: &[SourceSettings], each: &[ElementLoad], terms: &Terms) -> Self {
        let of_source = |(source, each): (&SourceSettings, &ElementLoad)| {
            let rate = source.rate?;
            let elements = source.elements_at(rate);
            let burst = source.burst.unwrap_or_default();
            Some(Declared { rate, elements, burst, each: *each })
        };
        let streams: Vec<Option<Declared>> = sources.iter().zip(each).map(of_source).collect();
        let others = streams.iter().zip(each).filter(|(declared, _)| declared.is_none());
        let others = others.map(|(_, each)| *each).reduce(ElementLoad::beside).unwrap_or_default();
        let Terms { rate, elements, burst, .. } = *terms;
        let mut rest = Declared { rate, elements, burst, each: others };
        for Declared { rate, elements, burst, .. } in streams.iter().flatten() {
            rest.rate.0 = rest.rate.0.saturating_sub(rate.0);
            rest.elements = rest.elements.saturating_sub(*elements);
            rest.burst.0 = rest.burst.0.saturating_sub(burst.0);
        }
        let nothing = rest.rate.0 == 0 || rest.elements == 0;
        let unsaid = streams.iter().any(Option::is_none);
        if nothing || !unsaid {
            rest = Declared { each: others, ..Declared::NOTHING };
        }
        let without = sources.iter().filter(|source| nothing && source.rate.is_none());
        let unpromised = without.map(|source| source.name.clone()).collect();
        Self { streams, rest, unpromised }
    }

    /// All of them, and the rest if there is one.
    fn all(&self) -> Vec<Declared> {
        let rest = Some(self.rest).filter(|rest| rest.rate.0 > 0 || rest.each.columns > 0);
        self.streams.iter().copied().flatten().chain(rest).collect()
    }

    /// The same rates in fewer elements.
    fn with_elements(&self, most: u64) -> Self {
        let all = self.all().iter().map(|stream| u128::from(stream.elements)).sum::<u128>().max(1);
        let fewer = |declared: Declared| {
            let elements = u128::from(declared.elements) * u128::from(most) / all;
            Declared { elements: u64::try_from(elements).unwrap_or(u64::MAX), ..declared }
        };
        let streams = self.streams.iter().map(|stream| stream.map(fewer)).collect();
        Self { streams, rest: fewer(self.rest), unpromised: self.unpromised.clone() }
    }

    fn payload(&self) -> Rate {
        Rate(self.all().iter().map(|stream| stream.rate.0).fold(0, u64::saturating_add))
    }
}

/// What a run's load is weighed on.
struct Scale<'a> {
    settings: &'a Settings,
    each: &'a [ElementLoad],
    terms: &'a Terms,
    geometry: &'a Geometry,
}

/// Why a load is not admitted.
enum PromiseRefusal {
    /// The inequality says no.
    Refused(Refused),
    /// The journal would have to name places more often than admission counts on.
    TooFew { slots: u32, least: u32 },
}

impl Scale<'_> {
    /// With as many buffers as it takes.
    fn shape(&self, slot: ByteSize) -> Shape {
        Shape {
            slot,
            flush: self.settings.flush,
            gather: self.terms.gather,
            // Reads of our own are no longer than that.
            quantum: self.terms.quantum.max(OWN_QUANTUM as u32),
            buffers: u32::MAX,
        }
    }

    /// In so many slots of such a size.
    fn weigh(
        &self,
        declared: &Declarations,
        slot: ByteSize,
        slots: u32,
    ) -> Result<Guarantee, PromiseRefusal> {
        let shape = self.shape(slot);
        let granted = admit(&self.terms.measured, &load(&declared.all(), slot), &shape)
            .map_err(PromiseRefusal::Refused)?;
        let least = least_slots(&granted, shape.gather);
        if slots < least { Err(PromiseRefusal::TooFew { slots, least }) } else { Ok(granted) }
    }

    /// What would refuse as many elements as the packer manages, where these are too many for it.
    fn also(&self, declared: &Declarations, refused: &Refused) -> Option<String> {
        let Refused::Elements { most, .. } = *refused else { return None };
        let Geometry { slot_bytes, slots, .. } = *self.geometry;
        match self.weigh(&declared.with_elements(most), ByteSize(slot_bytes), slots).err()? {
            PromiseRefusal::Refused(refused) => Some(refused.to_string()),
            PromiseRefusal::TooFew { slots, least } => {
                Some(format!("{slots} slots are too few: a guarantee of that load needs {least}"))
            }
        }
    }

    /// What would do instead, each alone: as options to be typed, or as another ring here. It may be one of `least` slots.
    fn advice(&self, least: Option<u32>) -> String {
        let mut ways = self.options();
        ways.extend(self.fewer());
        ways.extend(self.slots().map(|slot| format!("a ring with slots of {slot}")));
        let lane =
            |least: u32| ByteSize(Geometry::lane_for(self.geometry.slot_bytes, least.into())).shown_up();
        // What is skipped of a lane holds no slots.
        let ring = if self.geometry.skipped.is_empty() { "a ring of" } else { "a ring with a region of" };
        ways.extend(least.map(|least| format!("{ring} {}", lane(least))));
        let nothing = || "no single change is admissible: record to a faster device".to_owned();
        each_would_do(&ways).unwrap_or_else(nothing)
    }

    /// Less of any one of the sources.
    fn options(&self) -> Vec<String> {
        let (slot, slots) = (ByteSize(self.geometry.slot_bytes), self.geometry.slots);
        less(&self.settings.sources, self.terms.rate, &|sources| {
            self.weigh(&Declarations::of(sources, self.each, self.terms), slot, slots).is_ok()
        })
    }

    /// The alternative without attributes, if there are any and it would be admitted.
    fn fewer(&self) -> Option<String> {
        let none: Vec<ElementLoad> = self.each.iter().map(|each| each.plain()).collect();
        let declared = Declarations::of(&self.settings.sources, &none, self.terms);
        let Geometry { slot_bytes, slots, .. } = *self.geometry;
        let would = || self.weigh(&declared, ByteSize(slot_bytes), slots).is_ok();
        let some = self.each != none && would();
        some.then(|| "--attr none".to_owned())
    }

    /// Other slots on this lane.
    fn slots(&self) -> Option<ByteSize> {
        let declared = Declarations::of(&self.settings.sources, self.each, self.terms);
        let Geometry { lane_bytes, slot_bytes, skipped, .. } = self.geometry;
        let would = |slot: &u64| {
            let geometry = Geometry::for_lane(*lane_bytes, *slot, skipped.clone());
            geometry.is_ok_and(|other| self.weigh(&declared, ByteSize(*slot), other.slots).is_ok())
        };
        other_slots(*slot_bytes, MIN_GUARANTEED_SLOT, MAX_SLOT).find(would).map(ByteSize)
    }
}

/// Lower rates, fewer elements and smaller bursts of any one of the sources that would do, as options. `rate` is what the ring was
/// made for.
fn less(sources: &[SourceSettings], rate: Rate, would: &dyn Fn(&[SourceSettings]) -> bool) -> Vec<String> {
    let mut ways = Vec::new();
    for (at, source) in sources.iter().enumerate() {
        let whose = if sources.len() == 1 { String::new() } else { format!(" for {}", source.name) };
        let with = |other: SourceSettings| {
            let mut sources = sources.to_vec();
            sources[at] = other;
            would(&sources)
        };
        // Without one it has what is left of what the ring was made for.
        let most = most_rate(source.rate.unwrap_or(rate), |rate| {
            with(SourceSettings { rate: Some(rate), ..source.clone() })
        });
        ways.extend(most.map(|rate| format!("--rate {}{whose}", typed(rate))));
        let elements = source.elements.map_or(0, |elements| {
            most_below(elements, |elements| {
                with(SourceSettings { elements: Some(elements), ..source.clone() })
            })
        });
        ways.extend((elements > 0).then(|| format!("--elements {elements}{whose}")));
        let bursts = |burst| with(SourceSettings { burst: Some(ByteSize(burst)), ..source.clone() });
        let burst = source.burst.filter(|burst| burst.0 > 0);
        let burst = burst.map(|burst| ByteSize(most_below(burst.0, bursts)).shown_down());
        ways.extend(
            burst.filter(|burst| bursts(burst.0)).map(|burst| format!("--burst {}{whose}", typed(burst))),
        );
    }
    ways
}

/// What less would do that `fits` what there is of memory, as options.
pub(super) fn less_that_fits(
    settings: &Settings,
    superblock: &Superblock,
    each: &[ElementLoad],
    fits: &dyn Fn(&Promise) -> bool,
) -> Option<String> {
    let rate = superblock.terms.as_ref()?.rate;
    let ways = less(&settings.sources, rate, &|sources| {
        let settings = Settings { sources: sources.to_vec(), ..settings.clone() };
        Promise::weigh(&settings, superblock, each).is_ok_and(|promise| promise.as_ref().is_some_and(fits))
    });
    each_would_do(&ways)
}
