//! Promises 5 and 8 of the reader on a drive with sectors that it cannot read.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use holdfast_base::{BLOCK, ManualClock, SlotNo};
use holdfast_media::{FaultPlan, FaultyDisk};
use holdfast_reader::{RingReader, Selection};
use holdfast_sim::fixture::{OwnedItem, RecordedItem, TestRing, bytes, read};

// Promise 5: sectors that the drive cannot read cost what lies in their check block, and their place is told.
#[test]
fn what_the_drive_cannot_read_is_told_of_and_all_else_is_given() {
    const SLOT: u64 = 256 << 10;
    const HIT: u64 = 6;
    // Header and summary are in front of it.
    const PAYLOAD: u64 = 2 * BLOCK as u64;
    let mut test_ring = TestRing::new(SLOT, 64, 3);
    for number in 0..700u64 {
        let (stream, at) = ((number % 3) as usize, 1000 + number as i64 * 10);
        let (len, pieces) = [(20, 1), (1500, 1), (SLOT as usize / 16, 1), (900, 4)][number as usize % 4];
        test_ring.element(stream, at, None, b"m", &bytes(number, len), pieces);
    }
    test_ring.seal();
    assert!(test_ring.sequence > HIT + 3);
    let place = test_ring.table.iter().position(|entry| entry.sequence.0 == HIT).unwrap();
    let start = test_ring.superblock.geometry.slot_offset(SlotNo(place as u32));
    let all = test_ring.recorded.len();
    let beside = |one: &&RecordedItem| one.to < HIT || one.from > HIT;
    let beside: Vec<&OwnedItem> = test_ring.recorded.iter().filter(beside).map(|one| &one.given).collect();
    let (mut in_head, mut in_payload) = (0, 0);
    for at in (0..SLOT).step_by(BLOCK) {
        let sector = start + at..start + at + 512;
        let unreadable = std::iter::once(sector).collect();
        let plan = FaultPlan { unreadable, ..FaultPlan::default() };
        let disk = FaultyDisk::new(test_ring.lane(), plan, 1, ManualClock::default());
        let (given, report) = read(&mut RingReader::over(Box::new(disk)).unwrap(), &Selection::ALL).unwrap();
        assert!(beside.iter().all(|one| given.contains(one)), "sectors at {at}");
        let left = test_ring.recorded.iter().filter(|one| given.contains(&one.given)).count();
        let told: Vec<_> = given.iter().filter(|one| matches!(one, OwnedItem::Damaged(..))).collect();
        assert_eq!(report.damaged, told.len() as u64);
        let place = match told[..] {
            [] => {
                // Behind its end, where the next element had no room.
                assert!(left == all && at + SLOT / 16 + 4 * BLOCK as u64 >= SLOT, "nothing stands at {at}");
                continue;
            }
            [OwnedItem::Damaged(HIT, place)] => place,
            _ => panic!("sectors at {at}: {told:?}"),
        };
        if let Some(bytes) = place.strip_prefix("payload: bytes ") {
            let bytes: Vec<u64> = bytes.split(' ').filter_map(|word| word.parse().ok()).collect();
            assert!((bytes[0]..bytes[1]).contains(&(at - PAYLOAD)), "sectors at {at}: {place}");
            assert!(left > beside.len() && left < all, "sectors at {at}: {left} of {all}");
            in_payload += 1;
        } else {
            // Nobody knows what was in it.
            assert!(
                place.ends_with("failed: input/output error (the medium may be damaged there)"),
                "{place}"
            );
            assert_eq!(left, beside.len(), "sectors at {at}");
            in_head += 1;
        }
    }
    // Header, summary and index.
    assert!(in_head == 3 && in_payload > 50, "{in_head} {in_payload}");
}
