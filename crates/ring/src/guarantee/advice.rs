//! What would do instead of what was refused: the nearest rate, gather, slot size, memory or region.

use super::{Figures, Guarantee, Load, Refused, Shape, admit, figures};
use holdfast_base::{ByteSize, MAX_SLOT, Rate};
use holdfast_format::Measured;

/// One change that would make a refused load admissible, everything else being as asked for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Advice {
    /// A lower rate on the medium.
    Rate(Rate),
    /// Fewer elements a second.
    Elements(u64),
    /// Larger slots.
    Slot(ByteSize),
    /// Memory for so many slot buffers.
    Buffers(u32, ByteSize),
    /// Only the first so many hundredths of the lane.
    Region(u8),
}

/// The single changes that would each do. `region` tells what was measured of the first so many hundredths of the lane,
/// where it is known.
pub fn advise(
    measured: &Measured,
    load: &Load,
    shape: &Shape,
    region: impl Fn(u8) -> Option<Measured>,
) -> Vec<Advice> {
    let Err(refused) = admit(measured, load, shape) else {
        return Vec::new();
    };
    let mut advice = Vec::new();
    let Figures { with_reads, .. } = figures(measured, load, shape);
    let slower = Load { rate: with_reads.min(load.rate), ..*load };
    if slower.rate.0 > 0 && admit(measured, &slower, shape).is_ok() {
        advice.push(Advice::Rate(slower.rate));
    }
    if let Refused::Elements { most, .. } = refused
        && most > 0
        && admit(measured, &Load { elements: most, ..*load }, shape).is_ok()
    {
        advice.push(Advice::Elements(most));
    }
    // The same memory in larger pieces.
    let memory = u64::from(shape.buffers) * shape.slot.0;
    let larger = std::iter::successors(Some(shape.slot.0 * 2), |slot| Some(slot * 2));
    for slot in larger.take_while(|slot| *slot <= MAX_SLOT) {
        let buffers = u32::try_from(memory / slot).unwrap_or(u32::MAX);
        let larger = Shape { slot: ByteSize(slot), buffers, ..*shape };
        if admit(measured, load, &larger).is_ok() {
            advice.push(Advice::Slot(ByteSize(slot)));
            break;
        }
    }
    if let Ok(Guarantee { buffers, .. }) = admit(measured, load, &Shape { buffers: u32::MAX, ..*shape }) {
        advice.push(Advice::Buffers(buffers, ByteSize(u64::from(buffers) * shape.slot.0)));
    }
    let smaller = (1..20).rev().map(|twentieth| twentieth * 5);
    for percent in smaller {
        if region(percent).is_some_and(|measured| admit(&measured, load, shape).is_ok()) {
            advice.push(Advice::Region(percent));
            break;
        }
    }
    advice
}

#[cfg(test)]
mod tests {
    use super::super::tests::{drive, load, shape};
    use super::*;

    #[test]
    fn every_change_that_is_offered_would_do() {
        let slow = Measured { write: Rate(50 << 20), ..drive() };
        let region = |percent| Some(if percent <= 80 { drive() } else { slow });
        let advice = advise(&slow, &load(60), &shape(), region);
        assert!(matches!(advice[..], [Advice::Rate(_), Advice::Region(80)]), "{advice:?}");
        let few = Shape { slot: ByteSize::mib(64), buffers: 12, ..shape() };
        let advice = advise(&drive(), &load(60), &few, |_| None);
        assert!(advice.contains(&Advice::Buffers(13, ByteSize::mib(832))), "{advice:?}");
        assert!(advise(&drive(), &load(60), &shape(), |_| None).is_empty(), "nothing was refused");
    }
}
