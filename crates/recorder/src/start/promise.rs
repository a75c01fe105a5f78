//! What a run promises: the load that was declared, weighed against what the superblock keeps of the lane and against the
//! memory that there is. The arithmetic is the ring's.

use super::StartError;
use crate::args::Settings;
use holdfast_base::{ByteSize, Rate};
use holdfast_format::{Measured, Superblock};
use holdfast_media::Disk;
use holdfast_ring::{
    Advice, Declared, Driver, Guarantee, Load, OWN_QUANTUM, Refused, Shape, admit, advise, least_slots, load,
};

/// Without `--elements` they are taken to be so long.
const ELEMENT: u64 = 64 << 10;

/// What a run is to promise.
#[derive(Clone, Copy, Debug)]
pub(super) struct Promise {
    measured: Measured,
    /// Payload.
    payload: Rate,
    load: Load,
    /// With as many buffers as it takes.
    shape: Shape,
}

impl Promise {
    /// Weighs what was declared here, or else when the ring was made; `None` where nothing was.
    pub(super) fn weigh(settings: &Settings, superblock: &Superblock) -> Result<Option<Self>, StartError> {
        let ring = || settings.ring.clone();
        let declared = declared(settings)?;
        let Some(terms) = &superblock.terms else {
            return if declared.is_empty() { Ok(None) } else { Err(StartError::Unmeasured { path: ring() }) };
        };
        let streams = if declared.is_empty() {
            vec![Declared { rate: terms.rate, elements: terms.elements, burst: terms.burst }]
        } else {
            declared
        };
        let slot = ByteSize(superblock.geometry.slot_bytes);
        let (measured, load) = (terms.measured, load(&streams, slot));
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
        let (slots, least) = (superblock.geometry.slots, least_slots(shape.gather));
        if slots < least {
            return Err(StartError::TooFewSlots { path: ring(), slots, least });
        }
        // The memory that was weighed when the ring was made rides out the bursts that are published.
        let kept = u32::try_from(terms.memory.0 / slot.0.max(1)).unwrap_or(u32::MAX);
        let buffers = if settings.memory.is_some() { granted.buffers } else { granted.buffers.max(kept) };
        let payload = Rate(streams.iter().map(|stream| stream.rate.0).fold(0, u64::saturating_add));
        Ok(Some(Self { measured, payload, load, shape: Shape { buffers, ..shape } }))
    }

    /// Slot buffers that it takes.
    pub(super) fn buffers(&self) -> u32 {
        self.shape.buffers
    }

    /// Payload and elements a second that it is for.
    pub(super) fn comes(&self) -> (Rate, u64) {
        (self.payload, self.load.elements)
    }

    /// The term that fails with so many buffers.
    pub(super) fn with_only(&self, buffers: u32) -> Option<Refused> {
        admit(&self.measured, &self.load, &Shape { buffers, ..self.shape }).err()
    }

    /// Bytes of the largest read.
    pub(super) fn quantum(&self) -> usize {
        self.shape.quantum as usize
    }

    /// From here on the driver goes by it, with the buffers that there are; what is promised, in a line.
    pub(super) fn give<D: Disk>(&self, driver: &mut Driver<D>) -> Result<String, Refused> {
        let buffers = driver.buffers().0 as u32;
        let granted = driver.promise(&self.measured, &self.load, &Shape { buffers, ..self.shape })?;
        Ok(self.line(&granted, buffers))
    }

    fn line(&self, granted: &Guarantee, buffers: u32) -> String {
        format!(
            "guaranteed {} of payload ({} on the medium), whoever reads; durable after {:.1} s; {buffers} slot buffers, of which it takes {}",
            self.payload,
            self.load.rate,
            granted.durable_after.as_secs_f64(),
            granted.buffers
        )
    }
}

/// What the sources declare: all of them, or none.
fn declared(settings: &Settings) -> Result<Vec<Declared>, StartError> {
    let mut all = Vec::new();
    let some = settings.sources.iter().any(|source| source.rate.is_some());
    for source in settings.sources.iter().filter(|_| some) {
        let Some(rate) = source.rate else {
            return Err(StartError::Undeclared { stream: source.name.clone() });
        };
        let elements = source.elements.unwrap_or_else(|| rate.0.div_ceil(ELEMENT));
        all.push(Declared { rate, elements, burst: source.burst.unwrap_or_default() });
    }
    Ok(all)
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
