//! Tests of runs against the same rows one by one: the slots are equal (promise 5).

use crate::world::{Item, Slot, buffers, classes, items};
use holdfast_base::{Ordinal, Timestamp};
use holdfast_format::{CellsAt, Flags, Kind, Row, RunRoom};
use proptest::prelude::*;

/// What is done to the items of a run.
#[derive(Clone, Copy, Debug)]
enum Like {
    /// They stay as they are.
    Nothing,
    /// They become whole elements of one stream.
    Elements,
    /// They differ from the one before only as elements of a steady stream do, but for one of them.
    Steady { tag: u16, step: i64, odd: usize, how: u8 },
}

fn like() -> impl Strategy<Value = Like> {
    let steady = (0..3u16, 0..2i64, 0..400usize, 0..12u8);
    let steady = steady.prop_map(|(tag, step, odd, how)| Like::Steady { tag, step, odd, how });
    prop_oneof![1 => Just(Like::Nothing), 2 => Just(Like::Elements), 3 => steady]
}

fn make(run: &mut [Item], like: Like) {
    let Some(first) = run.first().map(|item| item.row) else { return };
    for (number, Item { row, bytes }) in run.iter_mut().enumerate() {
        match like {
            Like::Nothing => {}
            Like::Elements => (row.kind, row.stream) = (Kind::Element, first.stream),
            Like::Steady { tag, step, odd, how } => {
                let ordinal = Ordinal(first.ordinal.0.wrapping_add(number as u64));
                let arrival = Timestamp(first.arrival.0.wrapping_add(step * number as i64));
                *row = Row { stream: first.stream, tag, ordinal, arrival, ..Row::default() };
                row.len = bytes.len() as u32;
                if number == odd {
                    match how {
                        0 => row.ordinal.0 = row.ordinal.0.wrapping_add(2),
                        1 => row.arrival.0 = row.arrival.0.wrapping_sub(2),
                        2 => row.span = 7,
                        3 => (row.flags, row.event) = (Flags::EVENT, Timestamp(5)),
                        4 => row.flags = Flags::PCAPNG_OPTIONS,
                        5 => row.tag += 1,
                        6 => row.extra = 9,
                        7 => row.number = 1,
                        8 => row.offset = 3,
                        9 if row.len > 0 => (row.len, row.meta) = (row.len - 1, 1),
                        _ => {}
                    }
                }
            }
        }
    }
}

/// Runs of up to so many items, and whether their bytes are given with them.
fn runs(count: usize, largest: u32) -> impl Strategy<Value = Vec<(Vec<Item>, bool)>> {
    let cuts = proptest::collection::vec((1..300usize, like(), any::<bool>()), 1..40);
    (items(count, largest), cuts).prop_map(|(mut items, cuts)| {
        let mut runs = Vec::new();
        for (len, like, with_bytes) in cuts {
            let rest = items.split_off(len.min(items.len()));
            let mut run = std::mem::replace(&mut items, rest);
            make(&mut run, like);
            runs.push((run, with_bytes));
        }
        runs
    })
}

/// Takes a run in one go; as much of it as has room for certain.
fn at_once(slot: &mut Slot, run: &[Item], with_bytes: bool) {
    let stream = run.first().map_or(0, |item| item.row.stream);
    // Cells go with rows of one stream.
    let has_columns = run.iter().any(|item| !slot.classes(item.row.stream).is_empty());
    if has_columns && run.iter().any(|item| item.row.stream != stream) {
        for item in run {
            slot.builder.write(&mut slot.buffer, &item.bytes);
        }
        for item in run {
            slot.row(item);
        }
        return;
    }
    let buffers = buffers(run, slot.classes(stream), 5);
    let cells = CellsAt { columns: &buffers, first: 5 };
    if with_bytes {
        let bytes: Vec<u8> = run.iter().flat_map(|item| item.bytes.iter().copied()).collect();
        slot.builder.write_elements(&mut slot.buffer, &bytes, run, |item| item.row, cells);
        return;
    }
    for item in run {
        slot.builder.write(&mut slot.buffer, &item.bytes);
    }
    slot.builder.elements(&mut slot.buffer, run, |item| item.row, cells);
}

fn bytes(run: &[Item]) -> usize {
    run.iter().map(|item| item.bytes.len()).sum()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    /// To the last row, beyond what a run's room promises: all bytes of the run first, then its rows.
    #[test]
    fn a_run_is_what_its_rows_are(runs in runs(3000, 500), log2 in 16..19u32, classes in classes()) {
        let [mut one, mut all] = [(), ()].map(|()| Slot::open_with(1 << log2, 9, classes));
        for (run, with_bytes) in &runs {
            // A row takes 60 bytes at most, its cells half of what they count for certain, and all is rounded to a block.
            let row = |item: &Item| 60 + (all.builder.row_room(item.row.stream) - RunRoom::ROW) / 2;
            let rows = |n: usize| run[..n].iter().map(row).sum::<usize>();
            // What is beside the cells in their blocks.
            let beside: usize = classes.iter().map(|classes| 80 * classes.len()).sum();
            let fits = |n: &usize| {
                let all_bytes = bytes(&run[..*n]) + rows(*n);
                // Blocks have a place of their own beside the slot, whose end only a run's room knows.
                let fits_beside = beside == 0 || all_bytes <= all.builder.run_room().bytes;
                fits_beside && all_bytes + beside + 4200 <= all.builder.room()
            };
            let run = &run[..(0..=run.len()).rev().find(fits).unwrap_or(0)];
            at_once(&mut all, run, *with_bytes);
            for item in run {
                one.builder.write(&mut one.buffer, &item.bytes);
            }
            for item in run {
                one.row(item);
            }
            prop_assert_eq!(one.builder.room(), all.builder.room());
        }
        one.seal();
        all.seal();
        prop_assert!(one.buffer == all.buffer);
    }

    /// Where there is room for a run, it does not matter when its bytes were written.
    #[test]
    fn a_run_with_room_is_what_its_elements_are(
        runs in runs(3000, 3000),
        log2 in 16..19u32,
        classes in classes(),
    ) {
        let [mut one, mut all] = [(), ()].map(|()| Slot::open_with(1 << log2, 9, classes));
        for (run, with_bytes) in &runs {
            let mut run = run.as_slice();
            while !run.is_empty() {
                let room = all.builder.run_room();
                let rows = |n: usize| run[..n].iter().map(|item| all.builder.row_room(item.row.stream)).sum::<usize>();
                let fits = |n: &usize| bytes(&run[..*n]) + rows(*n) <= room.bytes;
                let len = (0..=run.len().min(room.rows)).rev().find(fits).unwrap_or(0);
                if len == 0 {
                    // As far as it goes.
                    prop_assert_eq!(one.pack(&run[0]), all.pack(&run[0]));
                    run = &run[1..];
                    continue;
                }
                at_once(&mut all, &run[..len], *with_bytes);
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
