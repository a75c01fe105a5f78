//! Reads ahead of a slot's turn are used when the turn comes, and are requested once (promise 5).
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use holdfast_format::SectionKind;
use holdfast_reader::{PlannedSlot, RingReader, Selection, SlotError};
use holdfast_sim::fixture::{Behaviour, FakeRecorder, TestRing, bytes};

fn test_ring() -> TestRing {
    let mut test_ring = TestRing::new(64 << 10, 30, 1);
    for number in 0..3000 {
        test_ring.element(0, 1000 + number, None, b"", &bytes(number as u64, 300), 1);
    }
    test_ring
}

fn slots(reader: &mut RingReader) -> Vec<PlannedSlot> {
    let mut slots = reader.plan(&Selection::ALL).unwrap().slots;
    slots.retain(|slot| slot.slot.is_some());
    slots
}

/// The chunks of a slot, and their number.
fn read(reader: &mut RingReader, slot: &PlannedSlot) -> Result<(Vec<u8>, usize), SlotError> {
    let mut view = reader.look_into(slot)?;
    let section = *view.summary().section(SectionKind::Chunks).unwrap();
    let bytes = view.section(&section)?;
    Ok((bytes, view.directory()?.len()))
}

/// Asks for it ahead.
fn ask(reader: &mut RingReader, slot: &PlannedSlot) {
    let mut view = reader.foresee(slot).unwrap();
    let section = *view.summary().section(SectionKind::Chunks).unwrap();
    view.ahead(&section).unwrap();
    view.directory_ahead().unwrap();
}

#[test]
fn what_was_asked_for_ahead_is_read_once_and_as_it_is() {
    let wanted: Vec<_> = {
        let mut direct = test_ring().direct();
        slots(&mut direct).iter().map(|slot| read(&mut direct, slot).unwrap()).collect()
    };
    let reads = |ahead: bool| {
        let recorder =
            FakeRecorder::start(test_ring(), Behaviour { view: Some(|_| {}), ..Behaviour::default() });
        let mut reader = RingReader::connect(recorder.socket()).unwrap();
        let slots = slots(&mut reader);
        for (at, slot) in slots.iter().enumerate() {
            if ahead && let Some(next) = slots.get(at + 1) {
                ask(&mut reader, next);
                while !recorder.reads.lock().unwrap().contains(&next.sequence.0) {
                    std::thread::yield_now();
                }
            }
            assert_eq!(read(&mut reader, slot).unwrap(), wanted[at]);
            reader.forget_ahead(slot.sequence);
        }
        let mut reads = recorder.reads.lock().unwrap().clone();
        reads.sort_unstable();
        reads
    };
    assert!(wanted.len() > 10);
    assert_eq!(reads(true), reads(false));
}

#[test]
fn what_is_not_taken_is_forgotten_and_what_expired_meanwhile_has_expired() {
    let behaviour = Behaviour { view: Some(|_| {}), expire: Some((8, 9)), ..Behaviour::default() };
    let recorder = FakeRecorder::start(test_ring(), behaviour);
    let mut reader = RingReader::connect(recorder.socket()).unwrap();
    let slots = slots(&mut reader);
    let expiring = slots.iter().find(|slot| slot.sequence.0 < 9).unwrap();
    let staying = slots.last().unwrap();
    for _ in 0..20 {
        ask(&mut reader, expiring);
        reader.forget_ahead(expiring.sequence);
        ask(&mut reader, staying);
    }
    ask(&mut reader, expiring);
    let expired = read(&mut reader, expiring);
    assert!(matches!(expired, Err(SlotError::Expired)), "{expired:?}");
    let mut direct = test_ring().direct();
    assert_eq!(read(&mut reader, staying).unwrap(), read(&mut direct, staying).unwrap());
    assert!(direct.foresee(staying).is_none(), "without a recorder it takes a read to know");
}

#[test]
fn a_slot_that_was_written_meanwhile_is_foreseen_where_it_is() {
    let behaviour = Behaviour { view: Some(|_| {}), awaited: 1, ..Behaviour::default() };
    let recorder = FakeRecorder::start(test_ring(), behaviour);
    let mut reader = RingReader::connect(recorder.socket()).unwrap();
    let slots = reader.plan(&Selection::ALL).unwrap().slots;
    let placed = |reader: &mut RingReader| -> Vec<PlannedSlot> {
        slots.iter().map(|slot| reader.placed(slot).unwrap()).collect()
    };
    assert_eq!(placed(&mut reader), slots);
    let awaited = slots.iter().filter(|slot| slot.slot.is_none()).min_by_key(|slot| slot.sequence).unwrap();
    assert!(reader.foresee(awaited).is_none());
    recorder.written.store(true, std::sync::atomic::Ordering::SeqCst);
    let written = placed(&mut reader);
    let differ: Vec<_> = slots.iter().zip(&written).filter(|(before, by_now)| before != by_now).collect();
    assert!(
        matches!(differ[..], [(before, by_now)] if before == awaited && by_now.slot.is_some()),
        "{differ:?}"
    );
    let by_now = differ[0].1;
    assert_eq!((by_now.sequence, by_now.age), (awaited.sequence, awaited.age));
    // Twice is once.
    ask(&mut reader, by_now);
    ask(&mut reader, by_now);
    let mut direct = test_ring().direct();
    assert_eq!(read(&mut reader, by_now).unwrap(), read(&mut direct, by_now).unwrap());
    let of_it = recorder.reads.lock().unwrap().iter().filter(|read| **read == by_now.sequence.0).count();
    assert_eq!(of_it, 2, "its chunks and its directory");
}
