//! What a run promises: the load that was declared, weighed against what the superblock keeps of the lane and against the
//! memory that there is. The arithmetic is the ring's.

use super::StartError;
use crate::args::{Settings, SourceSettings};
use holdfast_base::{ByteSize, Rate, Timestamp};
use holdfast_format::{Measured, Superblock, Terms};
use holdfast_media::{Disk, Footing};
use holdfast_ring::{
    Advice, Declared, Driver, Guarantee, Lack, Load, OWN_QUANTUM, Rates, Refused, Shape, admit, advise,
    least_named, least_slots, load, standing,
};

/// Without `--elements` they are taken to be so long.
const ELEMENT: u64 = 64 << 10;

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
    /// Weighs what was declared here, and for streams that declare nothing what was when the ring was made; `None` where
    /// nothing was.
    pub(super) fn weigh(settings: &Settings, superblock: &Superblock) -> Result<Option<Self>, StartError> {
        let ring = || settings.ring.clone();
        let Some(terms) = &superblock.terms else {
            let some = settings.sources.iter().any(|source| source.rate.is_some());
            return if some { Err(StartError::Unmeasured { path: ring() }) } else { Ok(None) };
        };
        let declared = Declarations::of(settings, terms);
        let slot = ByteSize(superblock.geometry.slot_bytes);
        let (measured, load) = (terms.measured, load(&declared.all(), slot));
        let shape = Shape {
            slot,
            flush: settings.flush,
            gather: terms.gather,
            // Reads of our own are no longer than that.
            quantum: terms.quantum.max(OWN_QUANTUM as u32),
            buffers: u32::MAX,
        };
        let granted = admit(&measured, &load, &shape).map_err(|refused| StartError::NotAdmitted {
            path: ring(),
            refused,
            advice: advice(&measured, &load, &shape),
        })?;
        let (slots, least) = (superblock.geometry.slots, least_slots(&granted, shape.gather));
        if slots < least {
            return Err(StartError::TooFewSlots { path: ring(), slots, least });
        }
        // The memory that was weighed when the ring was made rides out the bursts that are published.
        let kept = u32::try_from(terms.memory.0 / slot.0.max(1)).unwrap_or(u32::MAX);
        let buffers = if settings.memory.is_some() { granted.buffers } else { granted.buffers.max(kept) };
        let named = least_named(&granted, shape.gather);
        let shape = Shape { buffers, ..shape };
        Ok(Some(Self { measured, declared, load, shape, named }))
    }

    /// Slot buffers that it takes.
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
    pub(super) fn give<D: Disk>(
        &self,
        driver: &mut Driver<D>,
        footing: &Footing,
    ) -> Result<String, Refused> {
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
            granted.durable_after.as_secs_f64(),
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
    fn of(settings: &Settings, terms: &Terms) -> Self {
        let of_source = |source: &SourceSettings| {
            let rate = source.rate?;
            let elements = source.elements.unwrap_or_else(|| rate.0.div_ceil(ELEMENT));
            Some(Declared { rate, elements, burst: source.burst.unwrap_or_default() })
        };
        let streams: Vec<Option<Declared>> = settings.sources.iter().map(of_source).collect();
        let mut rest = Declared { rate: terms.rate, elements: terms.elements, burst: terms.burst };
        for Declared { rate, elements, burst } in streams.iter().flatten() {
            rest.rate.0 = rest.rate.0.saturating_sub(rate.0);
            rest.elements = rest.elements.saturating_sub(*elements);
            rest.burst.0 = rest.burst.0.saturating_sub(burst.0);
        }
        let nothing = rest.rate.0 == 0 || rest.elements == 0;
        let unsaid = streams.iter().any(Option::is_none);
        if nothing || !unsaid {
            rest = Declared { rate: Rate(0), elements: 0, burst: ByteSize(0) };
        }
        let without = settings.sources.iter().filter(|source| nothing && source.rate.is_none());
        let unpromised = without.map(|source| source.name.clone()).collect();
        Self { streams, rest, unpromised }
    }

    /// All of them, and the rest if there is one.
    fn all(&self) -> Vec<Declared> {
        let rest = Some(self.rest).filter(|rest| rest.rate.0 > 0);
        self.streams.iter().copied().flatten().chain(rest).collect()
    }

    fn payload(&self) -> Rate {
        Rate(self.all().iter().map(|stream| stream.rate.0).fold(0, u64::saturating_add))
    }
}

/// What would do instead, as far as it can be changed here.
fn advice(measured: &Measured, load: &Load, shape: &Shape) -> String {
    let ways = advise(measured, load, shape, |_| None);
    let ways = ways.iter().filter_map(|way| match way {
        Advice::Rate(rate) => Some(format!("declare {rate} on the medium or less")),
        Advice::Elements(elements) => Some(format!("declare {elements} elements a second or fewer")),
        Advice::Slot(slot) => Some(format!("make the ring with slots of {slot}")),
        Advice::Buffers(..) | Advice::Region(_) => None,
    });
    let ways: Vec<String> = ways.collect();
    if ways.is_empty() { "no other rate would do on this lane".to_owned() } else { ways.join(", or ") }
}
