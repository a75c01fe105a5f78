//! Many rows at once against the same rows one by one: the slot must not tell the difference (promise 5).

use crate::world::{Item, Slot, items};
use holdfast_format::{Kind, RunRoom};
use proptest::prelude::*;

/// Runs of up to so many items; those that are told to be alike are made whole elements of one stream.
fn runs(count: usize, largest: u32) -> impl Strategy<Value = Vec<Vec<Item>>> {
    let cuts = proptest::collection::vec((1..300usize, proptest::bool::weighted(0.8)), 1..40);
    (items(count, largest), cuts).prop_map(|(mut items, cuts)| {
        let mut runs = Vec::new();
        for (len, alike) in cuts {
            let rest = items.split_off(len.min(items.len()));
            let mut run = std::mem::replace(&mut items, rest);
            if let (true, Some(first)) = (alike, run.first().map(|item| item.row.stream)) {
                for item in &mut run {
                    (item.row.kind, item.row.stream) = (Kind::Element, first);
                }
            }
            runs.push(run);
        }
        runs
    })
}

/// Takes a run in one go; as much of it as has room for certain.
fn at_once(slot: &mut Slot, run: &[Item]) {
    for item in run {
        slot.builder.write(&mut slot.buffer, &item.bytes);
    }
    slot.builder.elements(&mut slot.buffer, run, |item| item.row);
}

fn bytes(run: &[Item]) -> usize {
    run.iter().map(|item| item.bytes.len()).sum()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    /// To the last row, beyond what a run's room promises: all bytes of the run first, then its rows.
    #[test]
    fn a_run_is_what_its_rows_are(runs in runs(3000, 500), log2 in 16..19u32) {
        let [mut one, mut all] = [(), ()].map(|()| Slot::open(1 << log2, 9));
        for run in &runs {
            // A row takes 60 bytes at most, and all is rounded to a block.
            let fits = |n: &usize| bytes(&run[..*n]) + 60 * n + 4200 <= all.builder.room();
            let run = &run[..(0..=run.len()).rev().find(fits).unwrap_or(0)];
            at_once(&mut all, run);
            for item in run {
                one.builder.write(&mut one.buffer, &item.bytes);
            }
            for item in run {
                one.builder.row(&mut one.buffer, &item.row);
            }
            prop_assert_eq!(one.builder.room(), all.builder.room());
        }
        one.seal();
        all.seal();
        prop_assert!(one.buffer == all.buffer);
    }

    /// Where there is room for a run, it does not matter when its bytes were written.
    #[test]
    fn a_run_with_room_is_what_its_elements_are(runs in runs(3000, 3000), log2 in 16..19u32) {
        let [mut one, mut all] = [(), ()].map(|()| Slot::open(1 << log2, 9));
        for mut run in runs.iter().map(Vec::as_slice) {
            while !run.is_empty() {
                let room = all.builder.run_room();
                let fits = |n: &usize| bytes(&run[..*n]) + n * RunRoom::ROW <= room.bytes;
                let len = (0..=run.len().min(room.rows)).rev().find(fits).unwrap_or(0);
                if len == 0 {
                    // As far as it goes.
                    prop_assert_eq!(one.pack(&run[0]), all.pack(&run[0]));
                    run = &run[1..];
                    continue;
                }
                at_once(&mut all, &run[..len]);
                for item in &run[..len] {
                    prop_assert!(one.pack(item), "a run's room is real");
                }
                run = &run[len..];
            }
        }
        one.seal();
        all.seal();
        prop_assert!(one.buffer == all.buffer);
    }
}
