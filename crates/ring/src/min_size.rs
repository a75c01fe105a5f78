//! Minimum size of a ring: on a smaller one capture needs all slots and nothing can be held. Checked when a
//! ring is made or recorded to, with the sizes that suffice. Pure.

use crate::create::default_reserve;
use crate::runway::runway_of;
use holdfast_base::{ByteSize, MIN_SLOT};
use holdfast_format::Geometry;
use std::fmt;

/// Slots that are looked through for one more that could be held: above, other limits come first.
const MOST: u32 = 1 << 12;

/// Why nothing can be held on a ring, and what would do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TooSmallToHold {
    /// Slots of the ring.
    pub slots: u32,
    /// Slots that capture needs.
    pub needed: u32,
    /// Bytes of a ring with these slots on which something could be held.
    pub enough: ByteSize,
    /// The largest slots with which this ring would have room for a hold.
    pub smaller: Option<ByteSize>,
}

/// Slots that capture keeps from holds, of a ring with so many.
fn needed(slots: u32, buffers: u32, named: u32) -> u32 {
    default_reserve(slots).max(runway_of(slots, buffers).max(named) + buffers)
}

/// Looks whether a recorder with so many slot buffers leaves any slot of a ring to holds. A guarantee has `named` slots
/// named at least: see [`least_named`](crate::least_named).
pub fn too_small_to_hold(geometry: &Geometry, buffers: u32, named: u32) -> Option<TooSmallToHold> {
    let slots = geometry.slots;
    let leaves_some = |slots: u32| slots > needed(slots, buffers, named);
    if leaves_some(slots) {
        return None;
    }
    let more = (slots..slots + MOST).find(|slots| leaves_some(*slots)).unwrap_or(MOST) - slots;
    let smaller = std::iter::successors(Some(geometry.slot_bytes / 2), |size| Some(size / 2))
        .take_while(|size| *size >= MIN_SLOT)
        .filter_map(|size| Geometry::for_lane(geometry.lane_bytes, size, geometry.skipped.clone()).ok())
        .find(|other| leaves_some(other.slots));
    Some(TooSmallToHold {
        slots,
        needed: needed(slots, buffers, named),
        enough: ByteSize(geometry.lane_bytes + u64::from(more) * geometry.slot_bytes),
        smaller: smaller.map(|other| ByteSize(other.slot_bytes)),
    })
}

impl fmt::Display for TooSmallToHold {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { slots, needed, enough, smaller } = self;
        write!(
            f,
            "nothing can be held on this ring: it has {slots} slots, and capture needs {needed}; a size of {enough} would do"
        )?;
        smaller.map_or(Ok(()), |smaller| write!(f, ", or slots of {smaller}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MIB: u64 = 1 << 20;

    #[test]
    fn what_would_do_does() {
        for slot in [64 << 10, MIB, 8 * MIB] {
            for slots in 4..12 {
                for (buffers, named) in [(3, 0), (4, 0), (9, 0), (3, 5)] {
                    let geometry = Geometry::for_lane(MIB + (4 + slots) * slot, slot, Vec::new()).unwrap();
                    let Some(told) = too_small_to_hold(&geometry, buffers, named) else {
                        let least = u64::from(named.max(2) + buffers);
                        assert!(slots > least, "{slots} slots, {buffers} buffers, {named} named");
                        continue;
                    };
                    assert!(told.needed >= told.slots);
                    let grown = geometry.grown(told.enough.0).unwrap();
                    assert_eq!(too_small_to_hold(&grown, buffers, named), None, "{told}");
                    let less = geometry.grown(told.enough.0 - slot).unwrap();
                    assert!(too_small_to_hold(&less, buffers, named).is_some(), "{told}: less would do");
                    if let Some(smaller) = told.smaller {
                        let other = Geometry::for_lane(geometry.lane_bytes, smaller.0, Vec::new()).unwrap();
                        assert_eq!(too_small_to_hold(&other, buffers, named), None, "{told}");
                    }
                }
            }
        }
    }
}
