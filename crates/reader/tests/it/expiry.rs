//! Exact reports of expired ordinals, of a range and since an earlier evaluation.
#![allow(missing_docs, clippy::unwrap_used)]

use holdfast_base::{Ordinal, Sequence, StreamId};
use holdfast_reader::Selection;
use holdfast_ring::Range;
use holdfast_sim::fixture::{OwnedItem, RecordedItem, TestRing, bytes};
use proptest::prelude::*;

/// Ordinals of a stream of which nothing is left.
fn gone(test_ring: &TestRing, stream: u32) -> std::collections::BTreeSet<u64> {
    let left: Vec<u64> = test_ring.table.iter().map(|entry| entry.sequence.0).collect();
    let is_left = |one: &RecordedItem| {
        (one.from..=one.to).any(|s| left.contains(&s) || (test_ring.is_open() && s == test_ring.sequence))
    };
    let gone = test_ring.recorded.iter().filter(|one| !is_left(one));
    gone.filter_map(|one| match one.given {
        OwnedItem::Element { stream: of, ordinal, .. } if of == stream => Some(ordinal),
        _ => None,
    })
    .collect()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(60))]

    #[test]
    fn a_range_of_ordinals_names_exactly_those_that_have_expired(
        elements in proptest::collection::vec((0..3_usize, 0..3_u8), 100..500),
        held in proptest::collection::btree_set(1..60_u64, 0..5),
        rare in 0..500_usize,
        (from, len) in (0..400_u64, 1..400_u64),
    ) {
        let mut test_ring = TestRing::new(64 << 10, 10, 3);
        test_ring.held = held;
        for (number, (stream, size)) in elements.iter().enumerate() {
            // One stream is rare, or ends early.
            let stream = if number > rare { *stream % 2 } else { *stream };
            let len = [20, 3_000, 20_000][usize::from(*size)];
            test_ring.element(stream, 1000 + number as i64, None, b"", &bytes(number as u64, len), 1);
        }
        let mut reader = test_ring.direct();
        for stream in 1..=3 {
            let range = Range { ordinals: Some((Ordinal(from), Ordinal(from + len))), ..Range::ALL };
            let plan = reader.plan(&Selection { streams: vec![StreamId(stream)], range }).unwrap();
            let told = plan.expired_ordinals.iter().flat_map(|(_, from, end)| from.0..end.0);
            let told: Vec<u64> = told.collect();
            let wanted: Vec<u64> = gone(&test_ring, stream).range(from..from + len).copied().collect();
            prop_assert_eq!(told, wanted, "stream {}, {}..{}: {:?}", stream, from, from + len, plan.expired_ordinals);
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(60))]

    // Promise 2: who looks again is told exactly what he has missed, however rare the stream is.
    #[test]
    fn what_expired_since_somebody_looked_is_told_exactly(
        elements in proptest::collection::vec((0..3_usize, 0..3_u8), 100..500),
        held in proptest::collection::btree_set(1..60_u64, 0..5),
        rare in 0..500_usize,
        looked in 0..500_usize,
    ) {
        let mut test_ring = TestRing::new(64 << 10, 10, 3);
        test_ring.held = held;
        let looked = looked.min(elements.len() - 1);
        let (mut slot, mut next) = (Sequence(0), [0; 3]);
        for (number, (stream, size)) in elements.iter().enumerate() {
            let stream = if number > rare { *stream % 2 } else { *stream };
            let len = [20, 3_000, 20_000][usize::from(*size)];
            test_ring.element(stream, 1000 + number as i64, None, b"", &bytes(number as u64, len), 1);
            if number < looked {
                next[stream] += 1;
                slot = Sequence(test_ring.sequence);
            }
        }
        let mut reader = test_ring.direct();
        let reached: Vec<u64> =
            reader.streams().unwrap().iter().map(|stream| stream.counters.next_ordinal.0).collect();
        let wanted: Vec<_> = (0..3)
            .filter(|stream| next[*stream] < reached[*stream])
            .map(|stream| (StreamId(stream as u32 + 1), Ordinal(next[stream]), Ordinal(reached[stream])))
            .collect();
        let since = reader.expired_since(slot, &wanted).unwrap();
        for (stream, from, end) in wanted {
            let told = since.expired.iter().filter(|(id, ..)| *id == stream);
            let told: Vec<u64> = told.flat_map(|(_, from, end)| from.0..end.0).collect();
            let gone: Vec<u64> = gone(&test_ring, stream.0).range(from.0..end.0).copied().collect();
            prop_assert_eq!(told, gone, "stream {}, from {} in {}", stream, from, slot);
        }
        prop_assert_eq!(reader.gone(&since.there).unwrap(), vec![]);
        prop_assert_eq!(reader.gone(&[Sequence(u64::MAX)]).unwrap(), vec![Sequence(u64::MAX)]);
    }
}
