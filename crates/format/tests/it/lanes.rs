//! Geometry, superblocks and recovery strings: a lane is found again (promise 6), bad input is explained (promise 8).

use crate::world::{RING, key};
use holdfast_base::{LaneNo, RingId, SlotNo, Timestamp};
use holdfast_format::{Codec, FormatError, Geometry, Region, Superblock};
use proptest::prelude::*;

const MIB: u64 = 1 << 20;

pub(crate) fn superblock(geometry: Geometry) -> Superblock {
    Superblock {
        version: Superblock::VERSION,
        generation: 4,
        ring: RING,
        group: RING,
        key: key(),
        created: Timestamp(1_795_000_000_000_000_000),
        geometry,
        lane: LaneNo(0),
        lanes: 1,
        n: 1,
        k: 0,
        codec: Codec::None,
        prefilled: true,
        reserve: 5,
        name: "antenna \u{e4}".into(),
        lane_ids: vec![RingId(*b"id of lane no. 0")],
        terms: None,
    }
}

fn geometry() -> impl Strategy<Value = Geometry> {
    (16..24u32, 0..900u64, proptest::collection::vec((0..40u64, 1..30u64), 0..6)).prop_map(
        |(log2, extra, gaps)| {
            let slot_bytes = 1u64 << log2;
            let mut at = MIB + 4 * slot_bytes;
            let mut skipped = Vec::new();
            for (before, len) in gaps {
                // Quarters of the smallest slot, so that slots have to move past regions.
                let region = Region { offset: at + before * 16384, bytes: len * 16384 };
                at = region.offset + region.bytes;
                skipped.push(region);
            }
            let lane_bytes = at + 4 * slot_bytes + extra * slot_bytes / 10;
            Geometry::for_lane(lane_bytes, slot_bytes, skipped).unwrap()
        },
    )
}

proptest! {
    #[test]
    fn slots_lie_behind_each_other_touch_nothing_and_leave_no_place_for_another(geometry in geometry()) {
        let c = geometry.slot_bytes;
        let mut end = geometry.extent_offset(1) + geometry.extent_bytes();
        for slot in 0..geometry.slots {
            let offset = geometry.slot_offset(SlotNo(slot));
            prop_assert!(offset >= end);
            // Either directly behind the last one, or there is a region that it would have touched.
            let pushed = geometry.skipped.iter().any(|r| r.offset < end + c && r.offset + r.bytes > end);
            prop_assert!(offset == end || pushed);
            for region in &geometry.skipped {
                prop_assert!(offset + c <= region.offset || offset >= region.offset + region.bytes);
            }
            end = offset + c;
        }
        prop_assert!(end <= geometry.lane_bytes);
        prop_assert!(geometry.slot_offset(SlotNo(geometry.slots)) + c > geometry.lane_bytes);
        let grown = geometry.grown(geometry.lane_bytes + 3 * c).unwrap();
        prop_assert_eq!(grown.slots, geometry.slots + 3);
        prop_assert_eq!(grown.slot_offset(SlotNo(geometry.slots - 1)), end - c);
    }

    #[test]
    fn a_superblock_is_read_back(geometry in geometry(), name in ".{0,16}", ids in 0..4usize, many in any::<bool>()) {
        let name = name.replace('\0', "");
        let lanes = if many { 4 } else { 1 };
        let block = Superblock {
            name,
            lanes,
            lane: LaneNo(lanes - 1),
            group: if many { RingId([9; 16]) } else { RING },
            n: if many { 3 } else { 1 },
            k: u8::from(many),
            codec: if many { Codec::Xor } else { Codec::None },
            lane_ids: vec![RingId([7; 16]); ids.min(lanes.into())],
            terms: many.then(super::golden::terms),
            ..superblock(geometry)
        };
        let bytes = block.encode();
        prop_assert_eq!(bytes.len(), 4096);
        prop_assert_eq!(Superblock::decode(&bytes), Ok(block.clone()));
        let line = block.to_recovery_string();
        let found = Superblock::from_recovery_string(&line).unwrap();
        prop_assert_eq!(found, Superblock { generation: 1, created: Timestamp(0), lane_ids: vec![], terms: None, ..block.clone() });
        let wrapped = format!(" {}\n{} ", &line[..40], line[40..].to_uppercase());
        prop_assert!(Superblock::from_recovery_string(&wrapped).is_ok());
    }

    #[test]
    fn a_mistyped_recovery_string_is_refused(geometry in geometry(), at in any::<prop::sample::Index>(), c in "[a-z0-9 ]") {
        let line = superblock(geometry).to_recovery_string();
        let at = at.index(line.len());
        let typed = format!("{}{c}{}", &line[..at], &line[at + 1..]);
        if typed != line {
            prop_assert!(Superblock::from_recovery_string(&typed).is_err());
        }
        prop_assert!(Superblock::from_recovery_string(&line[..at]).is_err());
    }
}

#[test]
fn the_default_slot_is_a_64th_within_bounds() {
    for (lane, slot) in [
        (0, MIB),
        (8 * MIB, MIB),
        (127 * MIB, MIB),
        (128 * MIB, 2 * MIB),
        (10 << 30, 128 * MIB),
        (1 << 50, 256 * MIB),
        (u64::MAX, 256 * MIB),
    ] {
        assert_eq!(Geometry::default_slot(lane), slot, "{lane}");
    }
}

#[test]
fn a_lane_that_does_not_do_says_what_would() {
    let smallest = Geometry::smallest_lane(MIB);
    assert_eq!(smallest, 9 * MIB);
    assert_eq!(Geometry::for_lane(smallest, MIB, vec![]).unwrap().slots, 4);
    let error = Geometry::for_lane(smallest - 1, MIB, vec![]).unwrap_err();
    assert_eq!(error, FormatError::TooSmall { lane_bytes: smallest - 1, slot_bytes: MIB, least: smallest });
    let error = Geometry::for_lane(1 << 40, MIB, vec![]).unwrap_err();
    assert!(
        matches!(error, FormatError::TooManySlots { limit: 16384, enough, .. } if enough == Some(8 * MIB)),
        "{error}"
    );
    assert!(Geometry::for_lane(1 << 40, 8 * MIB, vec![]).is_ok());
    let error = Geometry::for_lane(u64::MAX, 256 * MIB, vec![]).unwrap_err();
    assert!(error.to_string().ends_with("and 4194304 is the most: give at most 1 PiB"), "{error}");
    assert!(Geometry::for_lane(1 << 50, 256 * MIB, vec![]).is_ok());
    // No other slots would do, or may be had: neither is advised.
    let error = Geometry::for_lane(1 << 52, MIB, vec![]).unwrap_err();
    assert!(error.to_string().ends_with("give at most 16 GiB"), "{error}");
    let error = Geometry::for_lane(1 << 30, MIB, vec![]).unwrap().grown(1 << 40).unwrap_err();
    assert!(error.to_string().ends_with("give at most 16 GiB"), "{error}");
    assert!(Geometry::for_lane(1 << 30, MIB, vec![]).unwrap().grown(16 << 30).is_ok());
    // What is advised would do, though it is shown to a tenth.
    let said = Geometry::for_lane(1 << 30, 256 * MIB, vec![]).unwrap_err().to_string();
    let least = said.split("at least ").nth(1).unwrap().split(',').next().unwrap();
    let least: holdfast_base::ByteSize = least.parse().unwrap();
    assert!(Geometry::for_lane(least.0, 256 * MIB, vec![]).is_ok(), "{said}");
    for wrong in [0, 1, 4096, 3 * MIB, 512 * MIB, u64::MAX] {
        let error = Geometry::for_lane(1 << 40, wrong, vec![]).unwrap_err();
        assert_eq!(error, FormatError::SlotSize { slot_bytes: wrong });
    }
    let geometry = Geometry::for_lane(64 * MIB, MIB, vec![]).unwrap();
    assert!(matches!(geometry.grown(63 * MIB), Err(FormatError::Shrink { .. })));
    let said = Geometry::for_lane(5 * MIB, MIB, vec![]).unwrap_err().to_string();
    assert_eq!(
        said,
        "a lane of 5 MiB is too small for slots of 1 MiB: give at least 9 MiB, or smaller slots"
    );
}

#[test]
fn skipped_regions_must_make_sense() {
    let lane = |skipped| Geometry::for_lane(64 * MIB, MIB, skipped);
    let region = |offset, bytes| Region { offset, bytes };
    assert_eq!(lane(vec![region(10 * MIB, 2 * MIB)]).unwrap().slots, 57);
    for wrong in [
        vec![region(0, MIB)],
        vec![region(10 * MIB, 0)],
        vec![region(10 * MIB + 1, MIB)],
        vec![region(10 * MIB, MIB), region(10 * MIB, MIB)],
        vec![region(20 * MIB, MIB), region(10 * MIB, MIB)],
        vec![region(u64::MAX - 4095, 4096)],
        vec![region(63 * MIB, 2 * MIB)],
    ] {
        assert!(matches!(lane(wrong.clone()), Err(FormatError::Malformed { .. })), "{wrong:?}");
    }
    let many: Vec<_> = (0..129).map(|n| region(10 * MIB + 8192 * n, 4096)).collect();
    assert!(matches!(lane(many), Err(FormatError::TooMany { limit: 128, .. })));
}

#[test]
fn the_newest_valid_copy_wins() {
    let geometry = Geometry::for_lane(64 * MIB, MIB, vec![]).unwrap();
    let copy =
        |generation| Superblock::decode(&Superblock { generation, ..superblock(geometry.clone()) }.encode());
    let empty = || Superblock::decode(&[0; 4096]);
    let mut torn = superblock(geometry.clone()).encode();
    torn[3000] ^= 1;
    let torn = || Superblock::decode(&torn);
    let newest = |copies: &[_]| Superblock::newest(copies).map(|block| block.generation);
    assert_eq!(newest(&[copy(7), copy(8), copy(6), copy(6)]), Ok(8));
    assert_eq!(newest(&[torn(), empty(), copy(6), copy(6)]), Ok(6));
    assert_eq!(newest(&[empty(), torn()]), Err(FormatError::BadChecksum { structure: "superblock", at: 0 }));
    assert_eq!(newest(&[empty(), empty()]), Err(FormatError::BadMagic { structure: "superblock" }));
    assert_eq!(newest(&[]), Err(FormatError::BadMagic { structure: "superblock" }));
}

#[test]
fn a_superblock_of_a_later_version_says_so() {
    let mut bytes = superblock(Geometry::for_lane(64 * MIB, MIB, vec![]).unwrap()).encode();
    bytes[8] = 3;
    let error = Superblock::decode(&bytes).unwrap_err();
    assert_eq!(error, FormatError::Version { structure: "superblock", version: 3 });
    assert!(error.to_string().contains("version 3"));
}

#[test]
fn a_snapshot_always_fits_an_extent() {
    for log2 in 16..=28 {
        let c = 1u64 << log2;
        let geometry = Geometry::for_lane(Geometry::smallest_lane(c) + c * (c / 64 - 4), c, vec![]).unwrap();
        let table = u64::from(geometry.slots) * 16;
        assert!(table + geometry.control_budget() + c + c / 2 <= geometry.extent_bytes(), "{c}");
        assert!(geometry.commit_bytes() as u64 <= c);
        assert_eq!(geometry.chunk_rows() as u64, (c / 1024).min(4096));
    }
}
