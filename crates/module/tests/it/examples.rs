//! Both examples of the SDK against naive counts, over data that is cut into random blocks.

use crate::fixtures::{error, metered, start};
use crate::sdk_modules::{c_needle, rust_lines};
use holdfast_module_wire::{Limits, ModuleProcess, Output};
use proptest::prelude::*;
use proptest::test_runner::{Config, TestRunner};
use std::cell::RefCell;

/// Cases of a property: each is one item of a process that is used again.
const CASES: u32 = 64;

fn runner() -> TestRunner {
    TestRunner::new(Config { cases: CASES, failure_persistence: None, ..Config::default() })
}

/// Ends of blocks from random numbers, the last one at the end of the data.
fn borders(numbers: &[usize], length: usize) -> Vec<usize> {
    let mut borders: Vec<usize> = numbers.iter().map(|number| number % (length + 1)).collect();
    borders.push(length);
    borders.sort_unstable();
    borders
}

fn text(offset: Option<u64>, bytes: &[u8]) -> Output {
    Output { offset, bytes: bytes.to_vec() }
}

/// Results of the Rust example by the simplest means.
fn naive_lines(data: &[u8], longest: usize) -> Vec<Output> {
    let whole = data.strip_suffix(b"\n").unwrap_or(data);
    let lines: Vec<&[u8]> =
        if data.is_empty() { vec![] } else { whole.split(|byte| *byte == b'\n').collect() };
    let mut outputs = Vec::new();
    let mut offset = 0;
    for line in &lines {
        if line.len() > longest {
            outputs.push(text(Some(offset), &line[..line.len().min(200)]));
        }
        offset += line.len() as u64 + 1;
    }
    outputs.push(text(None, format!("{} lines", lines.len()).as_bytes()));
    outputs
}

/// Passes whole items in blocks; the last block ends the item or not.
fn whole(process: &mut ModuleProcess, data: &[u8], borders: &[usize], last: bool) -> Vec<Output> {
    process.item("data", Some(data.len() as u64)).unwrap();
    let mut outputs = Vec::new();
    let mut from = 0;
    for (at, to) in borders.iter().copied().enumerate() {
        let ends = last && at + 1 == borders.len();
        outputs.extend(process.block(from as u64, &data[from..to], ends).unwrap().outputs);
        from = to;
    }
    outputs.extend(process.end().unwrap().outputs);
    outputs
}

#[test]
fn the_rust_example_equals_a_naive_count() {
    let Some(wasm) = rust_lines() else { return };
    let process = start(&wasm, &["5"], metered()).unwrap();
    assert_eq!(process.overlap(), None);
    let process = RefCell::new((process, 0));
    let bytes = prop_oneof![1 => Just(b'\n'), 4 => b'a'..=b'z', 1 => any::<u8>()];
    let data = proptest::collection::vec(bytes, 0..2000);
    let cuts = proptest::collection::vec(any::<usize>(), 0..12);
    let outcome = runner().run(&(data, cuts, any::<bool>()), |(data, cuts, last)| {
        let (process, total) = &mut *process.borrow_mut();
        let expected = naive_lines(&data, 5);
        let count = String::from_utf8(expected.last().unwrap().bytes.clone()).unwrap();
        *total += count.trim_end_matches(" lines").parse::<u64>().unwrap();
        prop_assert_eq!(whole(process, &data, &borders(&cuts, data.len()), last), expected);
        Ok(())
    });
    outcome.unwrap();
    let (mut process, total) = process.into_inner();
    let totals = process.finish().unwrap().outputs;
    assert_eq!(totals, [text(None, format!("{total} lines in all").as_bytes())]);
    assert_eq!(
        error(start(&wasm, &["many"], metered())),
        "the module rust_lines.wasm does not accept its arguments (code -1): ended; \
         its last log line: give the length above which a line is emitted"
    );
}

#[test]
fn the_c_example_equals_a_naive_search() {
    let folder = tempfile::tempdir().unwrap();
    let Some(wasm) = c_needle(folder.path()) else { return };
    for needle in ["a", "ab", "aba", "bbbbb"] {
        let mut first = start(&wasm, &[needle], metered()).unwrap();
        let overlap = first.overlap().unwrap() as usize;
        assert_eq!(overlap, needle.len() - 1);
        first.item("empty", Some(0)).unwrap();
        assert!(first.block(0, b"", true).unwrap().outputs.is_empty());
        // Two processes take the blocks of one item in any order.
        let processes = RefCell::new([first, start(&wasm, &[needle], metered()).unwrap()]);
        let data = proptest::collection::vec(b'a'..=b'b', 0..500);
        let cuts = proptest::collection::vec(any::<usize>(), 0..8);
        let order = proptest::collection::vec((any::<u8>(), any::<bool>()), 9);
        let outcome = runner().run(&(data, cuts, order), |(data, cuts, order)| {
            let mut blocks = Vec::new();
            let mut from = 0;
            for (to, (rank, process)) in borders(&cuts, data.len()).into_iter().zip(order) {
                blocks.push((rank, process, from.max(overlap) - overlap..to));
                from = to;
            }
            blocks.sort_by_key(|(rank, ..)| *rank);
            let mut processes = processes.borrow_mut();
            let mut found = Vec::new();
            for process in processes.iter_mut() {
                process.item("data", None).unwrap();
            }
            for (_, process, range) in blocks {
                let process = &mut processes[usize::from(process)];
                let results = process.block(range.start as u64, &data[range], false).unwrap();
                found.extend(results.outputs.into_iter().filter_map(|output| output.offset));
            }
            for process in processes.iter_mut() {
                assert!(process.end().unwrap().outputs.is_empty());
            }
            found.sort_unstable();
            let naive = data.windows(needle.len()).enumerate();
            let naive: Vec<u64> =
                naive.filter(|(_, bytes)| *bytes == needle.as_bytes()).map(|(at, _)| at as u64).collect();
            prop_assert_eq!(found, naive);
            Ok(())
        });
        outcome.unwrap();
    }
    let refused = error(start(&wasm, &["a", "b"], metered()));
    assert!(refused.ends_with("its last log line: give one argument, the bytes to find"), "{refused}");
}

/// Lines of 1 MiB in all, of lengths up to 996.
fn mebibyte() -> Vec<u8> {
    let mut data = Vec::new();
    for number in 0u32.. {
        let length = (number * 7919 % 997) as usize;
        if data.len() + length + 1 >= 1 << 20 {
            data.resize((1 << 20) - 1, b'x');
            data.push(b'\n');
            return data;
        }
        data.resize(data.len() + length, b'a' + (number % 26) as u8);
        data.push(b'\n');
    }
    data
}

#[test]
fn a_large_item_passes_in_many_blocks_and_in_one() {
    let Some(wasm) = rust_lines() else { return };
    let part = mebibyte();
    let data = part.repeat(64);
    let lines = 64 * part.split(|byte| *byte == b'\n').skip(1).count();
    let expected = [text(None, format!("{lines} lines").as_bytes())];
    let mut process = start(&wasm, &["5000"], Limits::default()).unwrap();
    let many: Vec<usize> = (1..=16).map(|number| number << 22).collect();
    assert_eq!(whole(&mut process, &data, &many, true), expected);
    let large = Limits { block_bytes: 64 << 20, memory: 256 << 20, ..Limits::default() };
    let mut process = start(&wasm, &["5000"], large).unwrap();
    assert_eq!(whole(&mut process, &data, &[64 << 20], true), expected);
}

#[test]
fn a_block_that_does_not_fit_the_memory_is_named() {
    let Some(wasm) = rust_lines() else { return };
    let small = Limits { memory: 2 << 20, ..Limits::default() };
    let mut process = start(&wasm, &["5000"], small).unwrap();
    process.item("data", None).unwrap();
    process.block(0, b"short\n", false).unwrap();
    assert_eq!(
        error(process.block(6, &vec![b'x'; 4 << 20], false)),
        "the module rust_lines.wasm wants more than 2 MiB of memory on a block of data at offset 6: ended"
    );
}
