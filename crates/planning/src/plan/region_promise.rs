//! Promise of a region: the rates that the first part of a measured device can be relied on for.

use super::region::{self, Region};
use super::{Ask, Packs, slots};
use holdfast_base::{ByteSize, MAX_SLOT, MIN_GUARANTEED_SLOT, Rate};
use holdfast_format::Measured;
use holdfast_media::Profile;
use holdfast_ring::{admit, preferred_slot};
use serde::Serialize;

/// Slots for which the guarantee is shown: larger ones gain little.
const SLOT: u64 = 128 << 20;

/// Slots that are written in one go there.
const GATHER: u16 = 4;

/// What a part of the device is good for.
#[expect(missing_docs, reason = "docs/commands.md lists the fields")]
#[derive(Serialize)]
pub struct RegionPromise {
    pub region_percent: u8,
    pub region_bytes: u64,
    pub worst_write_bytes_per_second: u64,
    /// Of the largest slots that there could be, up to 128 MiB; `null` where none are large enough for a guarantee.
    pub slot_bytes: Option<u64>,
    pub capture_only_bytes_per_second: Option<u64>,
    pub with_reads_bytes_per_second: Option<u64>,
    /// The second, of payload.
    pub rate_bytes_per_second: Option<u64>,
    /// Of the slot buffers that it takes.
    pub memory_bytes: Option<u64>,
}

/// The guarantee for the first so many hundredths.
pub fn region_promise(profile: &Profile, total: u64, percent: u8) -> Option<RegionPromise> {
    let bytes = region::bytes(profile, total, Region(percent));
    let known = region::known(profile, total, Region(percent))?;
    let found = slot_for(&known, bytes).map(|(slot, slots)| {
        // Of elements of the size that is taken for granted.
        let ask = Ask::of(Rate(1));
        let shape = ask.candidate(slot, GATHER).shape.among(slots);
        let packs = Packs::profiled(&known, profile);
        let (alone, most) = (ask.most_alone(&shape, packs), ask.most(&shape, packs));
        let granted = admit(&known, &ask.at(most.payload).load(slot), &shape);
        (slot.0, alone, most, granted.ok().map(|granted| u64::from(granted.buffers) * slot.0))
    });
    Some(RegionPromise {
        region_percent: percent,
        region_bytes: bytes,
        worst_write_bytes_per_second: known.write.0,
        slot_bytes: found.map(|(slot, ..)| slot),
        capture_only_bytes_per_second: found.map(|(_, alone, ..)| alone.medium.0),
        with_reads_bytes_per_second: found.map(|(_, _, most, _)| most.medium.0),
        rate_bytes_per_second: found.map(|(_, _, most, _)| most.payload.0),
        memory_bytes: found.and_then(|(.., memory)| memory),
    })
}

/// Slots of 128 MiB, larger ones where the device repositions slowly for its rate, or the largest of which the region has
/// enough; and how many.
fn slot_for(known: &Measured, bytes: u64) -> Option<(ByteSize, u32)> {
    let most = preferred_slot(known).0.clamp(SLOT, MAX_SLOT);
    let halves = std::iter::successors(Some(most), |slot| Some(slot / 2));
    let mut sizes = halves.take_while(|slot| *slot >= MIN_GUARANTEED_SLOT).map(ByteSize);
    sizes.find_map(|slot| slots(bytes, slot, GATHER).map(|slots| (slot, slots)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::tests::ask;
    use crate::plan::{Site, choose};
    use crate::profile_file::tests::paper;
    use holdfast_media::Zone;
    use std::time::Duration;

    // Promise 8: what a small device is said to be good for, `plan` does not refuse for want of slots.
    #[test]
    fn a_small_fast_device_is_good_for_what_its_slots_can_be_named_for() {
        let mut found = paper();
        (found.device.bytes, found.reposition.worst) = (ByteSize::gib(8), Duration::from_micros(270));
        found.zones.truncate(1);
        let rate = Rate(1600 << 20);
        found.zones[0] = Zone { bytes: 8 << 30, write_worst: rate, read_worst: rate, ..found.zones[0] };
        let all = region_promise(&found, 8 << 30, 100).unwrap();
        let (told, memory) = (all.with_reads_bytes_per_second.unwrap(), all.memory_bytes.unwrap());
        assert!(
            told < 600 << 20 && memory < 4 << 30,
            "half of the ring has to last for 7 s: {told} {memory}"
        );
        let asked = |rate| Ask { slot: all.slot_bytes.map(ByteSize), gather: Some(4), ..ask(rate) };
        let known = region::known(&found, 8 << 30, Region(100)).unwrap();
        assert!(choose(&known, 8 << 30, &asked((told >> 20) * 98 / 100)).is_ok());
        assert!(choose(&known, 8 << 30, &asked((told >> 20) + 2)).is_err());
    }

    // Nor for want of a processor.
    #[test]
    fn a_fast_device_is_good_for_what_the_packer_manages() {
        let mut found = paper();
        (found.packer_bytes, found.reposition.worst) = (Rate(50 << 20), Duration::from_millis(5));
        for percent in [100, 80] {
            let total = found.device.bytes.0;
            let told = region_promise(&found, total, percent).unwrap();
            let rate = Rate(told.rate_bytes_per_second.unwrap());
            assert_eq!(rate, Rate(40 << 20), "four fifths of what it manages");
            assert!(told.capture_only_bytes_per_second.unwrap() < 41 << 20);
            let region = Region(percent);
            let measured = region::known(&found, total, region).unwrap();
            let site = Site { profile: &found, measured, total, region };
            let ask = Ask { slot: told.slot_bytes.map(ByteSize), gather: Some(GATHER), ..Ask::of(rate) };
            assert!(site.admit(&ask).is_ok(), "{}", site.admit(&ask).unwrap_err());
        }
    }
}
