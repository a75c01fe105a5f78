//! Promises 2 and 5 of the reader: everything that is there comes back, byte for byte and in order, with a recorder and
//! without; what is not there is told of; nothing wrong is ever given.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use holdfast_base::{Ordinal, Sequence, StreamId, Timestamp};
use holdfast_format::{Cause, Gap};
use holdfast_media::MemoryDisk;
use holdfast_protocol::ProtocolError;
use holdfast_protocol::wire::Purpose;
use holdfast_reader::ReaderError;
use holdfast_reader::{Item, Missing, RingReader, Selection};
use holdfast_ring::Range;
use holdfast_sim::fixture::{Behaviour, FakeRecorder, OwnedItem, TestRing, bytes, follow, read};
use proptest::prelude::*;
use std::sync::atomic::Ordering;

fn lost(ordinals: u64, first: i64) -> Gap {
    Gap {
        ordinals,
        elements: Some(ordinals),
        bytes: None,
        first: Timestamp(first),
        last: Timestamp(first + 1),
        cause: Cause::NoBuffer,
        note: 0,
    }
}

/// A ring with a bit of everything; arrivals rise by ten.
fn mixed(slot_bytes: u64, slots: u64, elements: u64) -> TestRing {
    let mut test_ring = TestRing::new(slot_bytes, slots, 3);
    test_ring.preamble(1, b"a preamble for stream 2");
    let large = slot_bytes as usize / 2;
    for number in 0..elements {
        let at = 1000 + number as i64 * 10;
        match number % 16 {
            3 => test_ring.element(0, at, Some(at - 500), b"options", &bytes(number, 1500), 1),
            5 => test_ring.element(1, at, None, b"", &bytes(number, large), 1),
            7 => test_ring.element(2, at, None, b"m", &bytes(number, 900), 4),
            9 => test_ring.gap(0, at, lost(3, at)),
            11 => test_ring.note(2, at, b"note"),
            13 => test_ring.aborted(1, at, b"half of it"),
            15 => test_ring.element(2, at, None, b"", b"", 1),
            _ => test_ring.element((number % 3) as usize, at, None, b"", &bytes(number, 20), 1),
        }
    }
    test_ring
}

fn without_preambles(given: Vec<OwnedItem>) -> Vec<OwnedItem> {
    given.into_iter().filter(|one| !matches!(one, OwnedItem::Preamble(..))).collect()
}

/// Elements in the order of streams and ordinals, the rest behind: what a read gives, whatever ends first.
fn sorted(mut given: Vec<OwnedItem>) -> Vec<OwnedItem> {
    given.sort_by_key(|one| format!("{one:?}"));
    given
}

#[test]
fn everything_comes_back_with_a_recorder_and_without() {
    let small = [(64 << 10, 200, 300), (256 << 10, 64, 120), (4 << 20, 6, 150)];
    let small = small.map(|(slot_bytes, slots, elements)| (slot_bytes, slots, elements, None));
    // Of pieces of 8 MiB, few are under way at once.
    for (slot_bytes, slots, elements, quantum) in small.into_iter().chain([(16 << 20, 8, 60, Some(8 << 20))])
    {
        let test_ring = mixed(slot_bytes, slots, elements);
        assert!(test_ring.is_open(), "the open slot is a part of the test");
        let wanted = test_ring.all(1);
        let (given, report) = read(&mut test_ring.direct(), &Selection::ALL).unwrap();
        assert_eq!(given[..].iter().filter(|one| matches!(one, OwnedItem::Preamble(..))).count(), 1);
        assert_eq!(without_preambles(given.clone()), wanted, "{slot_bytes}");
        assert_eq!(report.elements, wanted.iter().filter(|one| one.is_element()).count() as u64);
        let recorder = FakeRecorder::start(test_ring, Behaviour { quantum, ..Behaviour::default() });
        let mut live = RingReader::connect(recorder.socket()).unwrap();
        assert!(live.is_live() && live.pid() == Some(std::process::id()));
        assert_eq!(read(&mut live, &Selection::ALL).unwrap(), (given, report), "{slot_bytes}");
    }
}

#[test]
fn many_small_elements_come_back_from_many_chunks() {
    for (slot_bytes, slots) in [(64 << 10, 64), (256 << 10, 64), (4 << 20, 4)] {
        let mut test_ring = TestRing::new(slot_bytes, slots, 2);
        for number in 0..24_000u64 {
            test_ring.element((number % 2) as usize, number as i64, None, b"", &number.to_le_bytes(), 1);
        }
        let wanted = test_ring.all(1);
        assert_eq!(read(&mut test_ring.direct(), &Selection::ALL).unwrap().0, wanted, "{slot_bytes}");
        let range = Range { from: Timestamp(9000), to: Timestamp(9100), ..Range::ALL };
        let few = Selection { streams: vec![StreamId(2)], range };
        let some: Vec<OwnedItem> = wanted[9000..=9100].iter().skip(1).step_by(2).cloned().collect();
        assert_eq!(read(&mut test_ring.direct(), &few).unwrap().0, some, "{slot_bytes}");
        let recorder = FakeRecorder::start(test_ring, Behaviour::default());
        let mut live = RingReader::connect(recorder.socket()).unwrap();
        assert_eq!(read(&mut live, &Selection::ALL).unwrap().0, wanted, "{slot_bytes}");
        assert_eq!(read(&mut live, &few).unwrap().0, some, "{slot_bytes}");
    }
}

#[test]
fn what_waited_while_others_were_packed_is_found_by_its_time() {
    let mut test_ring = TestRing::new(64 << 10, 300, 2);
    // Of the second stream what came at some time is packed when the first is far on, and goes on when that has ended.
    let (many, behind) = (600, 300);
    for number in 0..many + behind {
        let at = 1000 + number as i64 * 10;
        if number < many {
            test_ring.element(0, at, None, b"", &bytes(number, 1500), 1);
        }
        if number >= behind {
            test_ring.element(1, at - behind as i64 * 10, None, b"", &bytes(number, 900), 1);
        }
    }
    let all = test_ring.all(1);
    let wanted = |from: i64, to: i64| -> Vec<OwnedItem> {
        let is_there = |one: &&OwnedItem| matches!(one, OwnedItem::Element { arrival, .. } if (from..=to).contains(arrival));
        all.iter().filter(is_there).cloned().collect()
    };
    let spans = [(1000, 1500), (3000, 3100), (5000, 6500), (6900, 7100), (9000, 9990)];
    let check = |reader: &mut RingReader, who: &str| {
        for (from, to) in spans {
            let range = Range { from: Timestamp(from), to: Timestamp(to), ..Range::ALL };
            let found = read(reader, &Selection { streams: Vec::new(), range }).unwrap().0;
            assert_eq!(found, wanted(from, to), "{who}: {from} to {to}");
        }
    };
    check(&mut test_ring.direct(), "without a recorder");
    let recorder = FakeRecorder::start(test_ring, Behaviour::default());
    check(&mut RingReader::connect(recorder.socket()).unwrap(), "with one");
}

#[test]
fn schemas_are_told_with_a_recorder_and_without() {
    let mut test_ring = TestRing::new(64 << 10, 100, 2);
    let text = "beam:uint=at:4:u16be\nsnr:float=at:8:f32le,unit=dB\n";
    test_ring.schemas[1] = text.to_owned();
    test_ring.element(1, 1, None, b"", b"x", 1);
    let check = |reader: &mut RingReader| {
        let versions: Vec<u32> = reader.streams().unwrap().iter().map(|stream| stream.schema).collect();
        assert_eq!(versions, [0, 2]);
        for (stream, wanted) in [(1, ""), (2, text), (77, "")] {
            assert_eq!(reader.schema(StreamId(stream)).unwrap(), wanted, "{stream}");
        }
    };
    check(&mut test_ring.direct());
    let recorder = FakeRecorder::start(test_ring, Behaviour::default());
    check(&mut RingReader::connect(recorder.socket()).unwrap());
}

#[test]
fn a_preamble_leads_its_stream_and_comes_again_only_when_it_changes() {
    let mut test_ring = TestRing::new(64 << 10, 100, 2);
    test_ring.preamble(0, &bytes(1, 1000));
    for number in 0..50 {
        test_ring.element(0, number, None, b"", &bytes(7, 4000), 1);
        test_ring.element(1, number, None, b"", b"x", 1);
    }
    test_ring.preamble(0, b"second");
    test_ring.element(0, 60, None, b"", b"last", 1);
    let check = |given: &[OwnedItem]| {
        assert_eq!(given[0], OwnedItem::Preamble(1, 1, bytes(1, 1000)));
        let at = given.iter().rposition(|one| matches!(one, OwnedItem::Preamble(..))).unwrap();
        assert_eq!(given[at], OwnedItem::Preamble(1, 2, b"second".to_vec()));
        assert!(given[at + 1].is_element() && at + 2 == given.len());
        assert_eq!(given.iter().filter(|one| matches!(one, OwnedItem::Preamble(..))).count(), 2);
    };
    check(&read(&mut test_ring.direct(), &Selection::ALL).unwrap().0);
    let recorder = FakeRecorder::start(test_ring, Behaviour::default());
    check(&read(&mut RingReader::connect(recorder.socket()).unwrap(), &Selection::ALL).unwrap().0);
}

#[test]
fn an_element_whose_beginning_expired_is_told_of_and_not_given() {
    let mut test_ring = TestRing::new(64 << 10, 8, 1);
    for number in 0..60 {
        test_ring.element(0, number, None, b"", &bytes(number as u64, 20_000), 1);
    }
    let oldest = test_ring.oldest();
    let wanted = test_ring.all(oldest);
    assert!(matches!(wanted[0], OwnedItem::Partial(1, _, Missing::Expired)), "{:?}", wanted[0]);
    assert_eq!(read(&mut test_ring.direct(), &Selection::ALL).unwrap().0, wanted);
    let recorder = FakeRecorder::start(test_ring, Behaviour::default());
    assert_eq!(
        read(&mut RingReader::connect(recorder.socket()).unwrap(), &Selection::ALL).unwrap().0,
        wanted
    );
}

#[test]
fn the_beginning_of_an_element_is_found_before_the_range() {
    let mut test_ring = TestRing::new(64 << 10, 64, 2);
    for number in 0..40 {
        test_ring.element(1, number * 10, None, b"", &bytes(9, 3000), 1);
    }
    // Over ten slots, its first bytes long before the last: only the last slot is in the range.
    test_ring.slow = 500;
    test_ring.element(0, 1000, None, b"meta", &bytes(5, 600_000), 1);
    let (from, to) = test_ring.recorded.last().map(|one| (one.from, one.to)).unwrap();
    assert!(to - from >= 9);
    test_ring.element(0, 2000, None, b"", b"later", 1);
    let only = test_ring.recorded[40].given.clone();
    let range = Range { ordinals: Some((Ordinal(0), Ordinal(1))), ..Range::ALL };
    let by_ordinal = Selection { streams: vec![StreamId(1)], range };
    assert_eq!(read(&mut test_ring.direct(), &by_ordinal).unwrap().0, std::slice::from_ref(&only));
    let range = Range { from: Timestamp(1000), to: Timestamp(1500), ..Range::ALL };
    let by_time = Selection { streams: Vec::new(), range };
    assert_eq!(read(&mut test_ring.direct(), &by_time).unwrap().0, std::slice::from_ref(&only));
    let recorder = FakeRecorder::start(test_ring, Behaviour::default());
    let mut live = RingReader::connect(recorder.socket()).unwrap();
    assert_eq!(read(&mut live, &by_time).unwrap().0, [only]);
    assert_eq!(live.sequences(&by_ordinal).unwrap(), [(Sequence(from), Sequence(to))]);
}

#[test]
fn an_element_is_in_a_range_by_its_last_byte() {
    let mut test_ring = TestRing::new(256 << 10, 16, 1);
    for number in 0..6 {
        test_ring.element(0, 100 + number * 10, Some(5000 - number), b"", &bytes(number as u64, 40_000), 5);
    }
    let ordinals = |range: Range| -> Vec<u64> {
        let (given, _) = read(&mut test_ring.direct(), &Selection { streams: Vec::new(), range }).unwrap();
        given
            .into_iter()
            .map(|one| if let OwnedItem::Element { ordinal, .. } = one { ordinal } else { panic!("{one:?}") })
            .collect()
    };
    let times =
        |from, to, by_event| Range { from: Timestamp(from), to: Timestamp(to), by_event, ordinals: None };
    assert_eq!(ordinals(times(110, 130, false)), [1, 2, 3]);
    assert_eq!(ordinals(times(111, 129, false)), [2]);
    assert_eq!(ordinals(times(4997, 4999, true)), [1, 2, 3]);
    assert_eq!(ordinals(Range { ordinals: Some((Ordinal(4), Ordinal(9))), ..Range::ALL }), [4, 5]);
    assert!(ordinals(times(200, 300, false)).is_empty());
}

#[test]
fn what_expires_while_it_is_read_is_told_of_once_and_the_rest_comes() {
    let mut test_ring = TestRing::new(256 << 10, 64, 1);
    for number in 0..400 {
        test_ring.element(0, number, None, b"", &bytes(number as u64, 9000), 1);
    }
    let last = test_ring.sequence;
    let wanted = test_ring.all(10);
    let recorder =
        FakeRecorder::start(test_ring, Behaviour { expire: Some((12, 10)), ..Behaviour::default() });
    let mut live = RingReader::connect(recorder.socket()).unwrap();
    let (given, report) = read(&mut live, &Selection::ALL).unwrap();
    let expired: Vec<&OwnedItem> = given.iter().filter(|one| matches!(one, OwnedItem::Expired(..))).collect();
    assert!(matches!(expired[..], [OwnedItem::Expired(from, 9)] if *from < 9), "{expired:?}");
    assert!(report.expired > 0 && last > 10);
    let rest = given.iter().position(|one| matches!(one, OwnedItem::Expired(..))).unwrap();
    assert_eq!(given[rest + 1..], wanted[..]);
}

#[test]
fn slots_that_are_being_written_are_waited_for_and_lost_tickets_are_asked_for_again() {
    let test_ring = mixed(256 << 10, 64, 200);
    let wanted = test_ring.all(1);
    let recorder = FakeRecorder::start(test_ring, Behaviour { pending: 3, hasty: 5, ..Behaviour::default() });
    let mut live = RingReader::connect(recorder.socket()).unwrap();
    assert_eq!(without_preambles(read(&mut live, &Selection::ALL).unwrap().0), wanted);
}

/// Ordinals of a stream from the first to before the second.
fn of_stream(stream: u32, from: u64, to: u64) -> Selection {
    let range = Range { ordinals: Some((Ordinal(from), Ordinal(to))), ..Range::ALL };
    Selection { streams: vec![StreamId(stream)], range }
}

// Promise 1: while a recorder writes what has piled up, a plan is made of what is on the medium; what is not may have all
// that was asked for, unless what is before it goes beyond that.
#[test]
fn a_plan_waits_for_nothing_that_is_being_written() {
    let last = |test_ring: &TestRing| {
        let ordinals = test_ring.recorded.iter().filter_map(|one| match one.given {
            OwnedItem::Element { stream: 1, ordinal, .. } if one.to + 3 < test_ring.sequence => Some(ordinal),
            _ => None,
        });
        ordinals.max().unwrap()
    };
    let make = || mixed(256 << 10, 64, 400);
    let test_ring = make();
    assert!(test_ring.is_open());
    let (sequence, last) = (test_ring.sequence, last(&test_ring));
    let timed = |from, to| Selection {
        range: Range { from: Timestamp(from), to: Timestamp(to), ..Range::ALL },
        ..Selection::ALL
    };
    let recorder = FakeRecorder::start(make(), Behaviour { awaited: 3, ..Behaviour::default() });
    let selections = [
        (of_stream(1, last / 2, u64::MAX), true),
        (of_stream(1, last + 1, last + 4), true),
        (of_stream(1, u64::MAX - 1, u64::MAX), true),
        (of_stream(1, last / 2, last), false),
        (of_stream(1, 3, last / 2), false),
        (timed(3000, i64::MAX), true),
        (timed(4990, 4995), true),
        (timed(1000, 2000), false),
    ];
    for (selection, is_among) in selections {
        let mut reader = RingReader::connect(recorder.socket()).unwrap();
        recorder.written.store(false, Ordering::SeqCst);
        recorder.reads.lock().unwrap().clear();
        let plan = reader.plan(&selection).unwrap();
        let asked: Vec<u64> = recorder.reads.lock().unwrap().clone();
        assert!(asked.iter().all(|asked| *asked < sequence - 3), "{selection:?}: {asked:?}");
        let newest = plan.slots.iter().map(|slot| slot.sequence.0).max();
        assert_eq!(newest == Some(sequence), is_among, "{selection:?}: {newest:?} of {sequence}");
        recorder.written.store(true, Ordering::SeqCst);
        let given = follow(&mut reader, &plan).unwrap().0;
        let wanted = read(&mut make().direct(), &selection).unwrap().0;
        assert_eq!(given, wanted, "{selection:?}");
    }
}

// Promise 1: the drive goes on to a slot that was not on the medium when it was planned like to any other: it is asked for
// while the one before it is read, and not first for what it had in memory, which comes when nothing is under way.
#[test]
fn a_slot_that_was_written_meanwhile_is_read_ahead() {
    let test_ring = mixed(256 << 10, 64, 400);
    let sequence = test_ring.sequence;
    let wanted = test_ring.all(1);
    let recorder = FakeRecorder::start(test_ring, Behaviour { awaited: 3, ..Behaviour::default() });
    let mut reader = RingReader::connect(recorder.socket()).unwrap();
    let plan = reader.plan(&Selection::ALL).unwrap();
    assert!(plan.slots.iter().filter(|slot| slot.slot.is_none()).count() == 4);
    recorder.written.store(true, Ordering::SeqCst);
    recorder.gains.lock().unwrap().clear();
    assert_eq!(without_preambles(follow(&mut reader, &plan).unwrap().0), wanted);
    assert_eq!(*recorder.gains.lock().unwrap(), [sequence].into(), "of these it was asked what is in memory");
}

// Promise 1: the drive's time is for what was asked for. What lies before and behind it in its slot is not read, nor other
// streams' payload; and a little index comes in one go.
#[test]
fn of_a_slot_only_what_is_wanted_is_read() {
    let make = || {
        let mut test_ring = TestRing::new(4 << 20, 8, 2);
        for number in 0..1000 {
            let stream = usize::from((280..290).contains(&number));
            test_ring.element(stream, number, None, b"", &bytes(number as u64, 10_000), 1);
        }
        test_ring
    };
    let test_ring = make();
    let range = |part: Range| Selection { range: part, ..Selection::ALL };
    let ordinals = Range { ordinals: Some((Ordinal(290), Ordinal(300))), ..Range::ALL };
    let times = Range { from: Timestamp(300), to: Timestamp(309), ..Range::ALL };
    // Most of the first slot is before them; in times, neighbours of the range are looked at, too.
    let selections = [
        (Selection { streams: vec![test_ring.entries[0].stream], ..range(ordinals) }, 300..310, 5..10),
        (range(times), 300..310, 5..20),
        (Selection { streams: vec![test_ring.entries[1].stream], ..Selection::ALL }, 280..290, 5..20),
    ];
    let recorder = FakeRecorder::start(make(), Behaviour::default());
    for (selection, wanted, pieces) in selections {
        let wanted = &test_ring.recorded[wanted];
        assert!(wanted.iter().all(|one| (one.from, one.to) == (1, 1)), "late in the first slot");
        let mut reader = RingReader::connect(recorder.socket()).unwrap();
        let plan = reader.plan(&selection).unwrap();
        recorder.reads.lock().unwrap().clear();
        let given = follow(&mut reader, &plan).unwrap().0;
        assert!(given.iter().eq(wanted.iter().map(|one| &one.given)), "{selection:?}");
        let count = recorder.reads.lock().unwrap().len();
        // Of more than sixty: those of heads and indexes, and the two that are wanted.
        assert!(pieces.contains(&count), "{count} pieces: {selection:?}");
    }
}

// Promise 1: nor is a fragment of the element before the first that is wanted.
#[test]
fn of_large_elements_only_those_that_are_wanted_are_read() {
    let make = || {
        let mut test_ring = TestRing::new(4 << 20, 8, 1);
        for number in 0..6 {
            test_ring.element(0, number, None, b"", &bytes(number as u64, 3 << 20), 1);
        }
        test_ring
    };
    let test_ring = make();
    let second = &test_ring.recorded[1];
    assert_eq!((second.from, second.to), (1, 2), "its beginning lies behind another's in the first slot");
    let recorder = FakeRecorder::start(make(), Behaviour::default());
    let mut reader = RingReader::connect(recorder.socket()).unwrap();
    let range = Range { ordinals: Some((Ordinal(1), Ordinal(2))), ..Range::ALL };
    let plan = reader.plan(&Selection { range, ..Selection::ALL }).unwrap();
    recorder.reads.lock().unwrap().clear();
    assert_eq!(follow(&mut reader, &plan).unwrap().0, std::slice::from_ref(&second.given));
    let count = recorder.reads.lock().unwrap().len();
    // It takes 48 pieces, as did the one before it.
    assert!((48..60).contains(&count), "{count} pieces");
}

#[test]
fn a_sink_that_has_had_enough_ends_the_read() {
    let test_ring = mixed(256 << 10, 64, 200);
    let recorder = FakeRecorder::start(mixed(256 << 10, 64, 200), Behaviour::default());
    for mut reader in [test_ring.direct(), RingReader::connect(recorder.socket()).unwrap()] {
        let plan = reader.plan(&Selection::ALL).unwrap();
        let mut count = 0;
        let report = reader.read(&plan, &mut |_| {
            count += 1;
            if count == 5 { std::ops::ControlFlow::Break(()) } else { std::ops::ControlFlow::Continue(()) }
        });
        assert!(report.unwrap().stopped && count == 5);
        // The same reader goes on as if nothing had been.
        assert_eq!(without_preambles(read(&mut reader, &Selection::ALL).unwrap().0), test_ring.all(1));
    }
}

#[test]
fn gaps_are_found_without_reading_the_rest() {
    let test_ring = mixed(64 << 10, 200, 300);
    let wanted: Vec<OwnedItem> =
        test_ring.all(1).into_iter().filter(|one| matches!(one, OwnedItem::Gap(..))).collect();
    let recorder = FakeRecorder::start(mixed(64 << 10, 200, 300), Behaviour::default());
    for mut reader in [test_ring.direct(), RingReader::connect(recorder.socket()).unwrap()] {
        let mut given = Vec::new();
        let report = reader.gaps(&Selection::ALL, &mut |item| {
            given.extend(OwnedItem::of(&item));
            std::ops::ControlFlow::Continue(())
        });
        assert_eq!(report.unwrap().gaps, wanted.len() as u64);
        assert_eq!(given, wanted);
    }
    // Promise 1: and a recorder is told what reads are for, so that it can share out what it has left for them.
    let told = |purposes: &[Purpose]| {
        let asked = std::mem::take(&mut *recorder.asked.lock().unwrap());
        assert!(asked.iter().copied().eq(purposes.iter().map(|purpose| *purpose as u8)), "{asked:?}");
    };
    let mut reader = RingReader::connect(recorder.socket()).unwrap();
    told(&[Purpose::Search]);
    read(&mut reader, &Selection::ALL).unwrap();
    told(&[Purpose::Export]);
    reader.reads_for(Purpose::Scrub);
    read(&mut reader, &Selection::ALL).unwrap();
    told(&[Purpose::Scrub]);
}

// Promise 2: a stream's counters leave out losses of some causes; a recorder that runs hides none of them.
#[test]
fn gaps_of_every_cause_are_found_beside_a_recorder() {
    let make = |cause| {
        let mut test_ring = TestRing::new(64 << 10, 200, 1);
        for number in 0..100 {
            test_ring.element(0, 100 + number, None, b"", &bytes(3, 4000), 1);
        }
        let (first, last) = (Timestamp(200), Timestamp(201));
        let gap = Gap { ordinals: 0, elements: Some(3), bytes: None, first, last, cause, note: 0 };
        test_ring.gap(0, 201, gap);
        test_ring
    };
    for cause in (1..=u8::MAX).map_while(Cause::from_byte) {
        let recorder = FakeRecorder::start(make(cause), Behaviour::default());
        for mut reader in [make(cause).direct(), RingReader::connect(recorder.socket()).unwrap()] {
            let mut found = Vec::new();
            let report = reader.gaps(&Selection::ALL, &mut |item| {
                if let Item::Gap { gap, .. } = item {
                    found.push(gap.cause);
                }
                std::ops::ControlFlow::Continue(())
            });
            assert_eq!((report.unwrap().gaps, &found[..]), (1, &[cause][..]), "live: {}", reader.is_live());
        }
    }
}

#[test]
fn a_range_that_begins_before_the_oldest_data_says_so() {
    let mut test_ring = TestRing::new(64 << 10, 8, 1);
    for number in 0..400 {
        test_ring.element(0, 100 + number, None, b"", &bytes(3, 4000), 1);
    }
    let mut reader = test_ring.direct();
    let range = Range { from: Timestamp(100), ..Range::ALL };
    let plan = reader.plan(&Selection { streams: Vec::new(), range }).unwrap();
    assert!(plan.expired_before.is_some_and(|oldest| oldest > Timestamp(100)), "{:?}", plan.expired_before);
    let range = Range { ordinals: Some((Ordinal(0), Ordinal(399))), ..Range::ALL };
    let plan = reader.plan(&Selection { streams: vec![StreamId(1)], range }).unwrap();
    assert!(matches!(plan.expired_ordinals[..], [(StreamId(1), Ordinal(0), oldest)] if oldest > Ordinal(0)));
    let status = reader.status().unwrap();
    assert!(status.recorder.is_none() && status.ring.oldest < status.ring.newest);
    reader.learn_times().unwrap();
    assert!(
        reader.slots().unwrap().iter().filter(|slot| slot.sequence.0 > 0).all(|slot| slot.first.is_some())
    );
}

#[test]
fn a_recorder_of_another_version_is_refused() {
    let recorder =
        FakeRecorder::start(mixed(64 << 10, 200, 3), Behaviour { version: Some(9), ..Behaviour::default() });
    let error = RingReader::connect(recorder.socket()).unwrap_err();
    assert!(matches!(error, ReaderError::Protocol(ProtocolError::Version { theirs: 9, .. })), "{error}");
    assert!(matches!(
        RingReader::connect(&recorder.socket().join("x")),
        Err(ReaderError::Protocol(ProtocolError::Socket { .. }))
    ));
    let nobody = recorder.socket().with_file_name("nobody.sock");
    assert!(matches!(
        RingReader::connect(&nobody),
        Err(ReaderError::Protocol(ProtocolError::NoRecorder { .. }))
    ));
}

/// Whatever is damaged: what is given is what was recorded, and what is missing is told of.
fn check_damage(test_ring: &TestRing, lane: holdfast_media::Image) -> Result<(), TestCaseError> {
    let Ok(mut reader) = RingReader::over(Box::new(MemoryDisk::from_image(lane))) else { return Ok(()) };
    let (given, report) = read(&mut reader, &Selection::ALL).unwrap();
    let all = test_ring.all(1);
    let wanted: std::collections::HashSet<String> = all.iter().map(|one| format!("{one:?}")).collect();
    let mut known = 0;
    for one in without_preambles(given.clone()) {
        match one {
            OwnedItem::Damaged(..) | OwnedItem::Partial(_, _, Missing::Damaged | Missing::Lost) => {}
            // Ends at a damaged place are not known to be ends.
            OwnedItem::Partial(_, _, Missing::Unfinished | Missing::Expired) if report.damaged > 0 => {}
            other => {
                prop_assert!(wanted.contains(&format!("{other:?}")), "{:?}", other);
                known += 1;
            }
        }
    }
    prop_assert!(report.damaged > 0 || known == all.len(), "something is missing and nothing was said");
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 48, ..ProptestConfig::default() })]

    #[test]
    fn damage_anywhere_in_the_slots_is_told_and_never_given(
        large in any::<bool>(),
        flips in prop::collection::vec((any::<prop::sample::Index>(), 1u8..=255), 1..4),
    ) {
        let test_ring = if large { mixed(4 << 20, 4, 24) } else { mixed(64 << 10, 60, 48) };
        let mut test_ring = test_ring;
        test_ring.seal();
        let mut lane = test_ring.lane();
        let start = test_ring.superblock.geometry.first_slot();
        let written = test_ring.sequence * test_ring.superblock.geometry.slot_bytes;
        for (at, mask) in flips {
            lane.flip(start + at.index(written as usize) as u64, mask);
        }
        check_damage(&test_ring, lane)?;
    }

    #[test]
    fn any_range_gives_what_lies_in_it(
        from in 900i64..2300,
        len in 0i64..600,
        first in 0u64..40,
        count in 0u64..20,
        timed in any::<bool>(),
        ordinal in any::<bool>(),
        stream in prop::option::of(1u32..4),
        live in any::<bool>(),
    ) {
        let test_ring = mixed(64 << 10, 64, 112);
        let to = from + len;
        let range = Range {
            from: if timed { Timestamp(from) } else { Timestamp::MIN },
            to: if timed { Timestamp(to) } else { Timestamp::MAX },
            by_event: false,
            ordinals: ordinal.then_some((Ordinal(first), Ordinal(first + count))),
        };
        let in_ordinals = |at: u64| !ordinal || (first..first + count).contains(&at);
        let in_times = |at: i64| !timed || (from..=to).contains(&at);
        let mut arrival = 990;
        let wanted: Vec<OwnedItem> = test_ring.all(1).into_iter().filter(|one| {
            arrival += 10;
            let (id, fits) = match one {
                OwnedItem::Element { stream, ordinal, .. } | OwnedItem::Partial(stream, ordinal, _) =>
                    (*stream, in_ordinals(*ordinal) && in_times(arrival)),
                OwnedItem::Gap(stream, at, gap) => (
                    *stream,
                    (0..gap.ordinals.max(1)).any(|lost| in_ordinals(at + lost))
                        && (in_times(arrival) || in_times(arrival + 1)),
                ),
                OwnedItem::Note(stream, ..) => (*stream, !ordinal && in_times(arrival)),
                other => panic!("{other:?}"),
            };
            fits && stream.is_none_or(|wanted| wanted == id)
        }).collect();
        let selection = Selection { streams: stream.map(StreamId).into_iter().collect(), range };
        let (given, _) = if live {
            let recorder = FakeRecorder::start(test_ring, Behaviour::default());
            read(&mut RingReader::connect(recorder.socket()).unwrap(), &selection).unwrap()
        } else {
            read(&mut test_ring.direct(), &selection).unwrap()
        };
        prop_assert_eq!(sorted(without_preambles(given)), sorted(wanted));
    }
}
