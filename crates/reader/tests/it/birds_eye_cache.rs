//! Checks of the bird's-eye view: a place that fails them is read from the medium (promise 5).
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use holdfast_base::{Ordinal, Timestamp};
use holdfast_format::{Cause, Gap, SlotState};
use holdfast_reader::{Item, RingReader, Selection};
use holdfast_ring::Range;
use holdfast_sim::fixture::{Behaviour, FakeRecorder, OwnedItem, Spoil, TestRing, bytes, read};
use std::ops::ControlFlow;

/// A ring with elements of three streams, large ones among them, and gaps; arrivals rise by ten.
fn mixed() -> TestRing {
    let mut test_ring = TestRing::new(64 << 10, 200, 3);
    for number in 0..300 {
        let at = 1000 + number as i64 * 10;
        let (first, last) = (Timestamp(at), Timestamp(at + 1));
        let gap =
            Gap { ordinals: 3, elements: Some(3), bytes: None, first, last, cause: Cause::NoBuffer, note: 0 };
        match number % 16 {
            5 => test_ring.element(1, at, None, b"", &bytes(number, 32 << 10), 1),
            9 => test_ring.gap(0, at, gap),
            _ => test_ring.element((number % 3) as usize, at, None, b"", &bytes(number, 20), 1),
        }
    }
    test_ring
}

#[test]
fn what_the_view_tells_is_not_read_and_what_it_tells_wrongly_is() {
    let make = || mixed();
    let test_ring = make();
    let slots = test_ring.table.iter().filter(|entry| entry.state == SlotState::Data).count();
    let gaps = |reader: &mut RingReader| {
        let mut given = Vec::new();
        let mut sink = |item: Item<'_>| {
            given.extend(OwnedItem::of(&item));
            ControlFlow::Continue(())
        };
        let report = reader.gaps(&Selection::ALL, &mut sink).unwrap();
        (given, report)
    };
    let selection = |first, end| Selection {
        range: Range { ordinals: Some((Ordinal(first), Ordinal(end))), ..Range::ALL },
        ..Selection::ALL
    };
    let wanted = (gaps(&mut test_ring.direct()), read(&mut test_ring.direct(), &Selection::ALL).unwrap());
    let nowhere = test_ring.direct().sequences(&selection(1 << 40, 1 << 41)).unwrap();
    let mut reads = Vec::new();
    let spoils: [Option<Spoil>; 6] = [
        None,
        Some(|_| {}),
        Some(|place| place[200] ^= 1),
        Some(|place| place[15] ^= 1),
        // Of a slot that was there before.
        Some(|place| place[0] ^= 1),
        Some(|place| place[8..12].fill(0xff)),
    ];
    for view in spoils {
        let recorder = FakeRecorder::start(make(), Behaviour { view, ..Behaviour::default() });
        let mut live = RingReader::connect(recorder.socket()).unwrap();
        assert_eq!(live.sequences(&selection(1 << 40, 1 << 41)).unwrap(), nowhere);
        let looked = recorder.reads.lock().unwrap().len();
        reads.push(looked);
        assert_eq!(gaps(&mut live), wanted.0);
        assert_eq!(read(&mut live, &Selection::ALL).unwrap(), wanted.1);
    }
    assert!(reads[0] >= slots.min(15) && reads[1] == 0, "{reads:?}");
    assert!(reads[2..].iter().all(|count| *count == reads[0]), "{reads:?}");
}
