//! Order of results, items and blocks, and requests that are not possible.

use crate::fixtures::{ModuleFile, error, metered};
use holdfast_module_wire::{Limits, ModuleProcess, Output};

/// Module that emits every call with the bytes that it got.
const ECHO: [(&str, &str); 5] = [
    (
        "hf_start",
        r#"(func (export "hf_start") (param i32 i32 i64)
            (call $emit (i64.const -1) (local.get 0) (local.get 1)) (call $emit (local.get 2) (i32.const 0) (i32.const 0)))"#,
    ),
    (
        "hf_block",
        r#"(func (export "hf_block") (param i32 i32 i64) (result i32)
            (call $emit (local.get 2) (local.get 0) (local.get 1))
            (i32.eq (local.get 1) (i32.const 1)))"#,
    ),
    (
        "hf_end",
        r#"(func (export "hf_end") (result i32)
            (call $emit (i64.const -1) (i32.const 8) (i32.const 3)) (i32.const 0))"#,
    ),
    ("data", r#"(data (i32.const 8) "end")"#),
    ("more", r#"(func (export "hf_finish") (call $emit (i64.const -1) (i32.const 8) (i32.const 2)))"#),
];

fn echo(limits: Limits) -> ModuleProcess {
    ModuleFile::with(&ECHO).start(&[], limits).unwrap()
}

fn texts(outputs: &[Output]) -> Vec<(Option<u64>, &str)> {
    outputs.iter().map(|output| (output.offset, std::str::from_utf8(&output.bytes).unwrap())).collect()
}

#[test]
fn results_have_the_order_of_the_calls() {
    let mut process = echo(metered());
    assert_eq!(process.overlap(), None);
    process.item("näme", Some(7)).unwrap();
    let first = process.block(0, b"ab", false).unwrap();
    assert_eq!(texts(&first.outputs), [(None, "näme"), (Some(7), ""), (Some(0), "ab")]);
    let second = process.block(2, b"cd", true).unwrap();
    assert_eq!(texts(&second.outputs), [(Some(2), "cd"), (None, "end")]);
    assert_eq!(process.end().unwrap().outputs, [], "the last block ended the item");

    // An item without a block; one of unknown size whose last block is empty.
    process.item("", Some(0)).unwrap();
    assert_eq!(texts(&process.end().unwrap().outputs), [(None, ""), (Some(0), ""), (None, "end")]);
    process.item("b", Some(1 << 63)).unwrap();
    let all = process.block(0, b"", true).unwrap().outputs;
    assert_eq!(texts(&all), [(None, "b"), (None, ""), (None, "end")]);
    assert_eq!(texts(&process.finish().unwrap().outputs), [(None, "en")]);
    assert!(process.is_ended());
}

#[test]
fn a_module_can_have_seen_enough() {
    let mut process = echo(metered());
    process.item("a", None).unwrap();
    assert!(!process.block(0, b"ab", false).unwrap().enough);
    assert!(process.block(2, b"c", false).unwrap().enough);
    assert_eq!(texts(&process.end().unwrap().outputs), [(None, "end")]);
}

#[test]
fn blocks_can_stand_anywhere_in_the_shared_memory() {
    let mut process = echo(Limits { block_bytes: 100, ..metered() });
    process.item("a", None).unwrap();
    process.memory().write(90, b"0123456789").unwrap();
    let results = process.block_at(50, 97..100, false).unwrap();
    assert_eq!(texts(&results.outputs).last(), Some(&(Some(50), "789")));
    for range in [99..101, 101..101, u64::MAX - 1..u64::MAX] {
        let text = error(process.block_at(0, range, false));
        assert!(text.ends_with("is outside of the shared memory"), "{text}");
    }
    let text = error(process.block(0, &[0; 101], false));
    assert_eq!(
        text,
        "cannot pass a request to the module my.wasm: a block of 101 bytes is longer than the limit of 100"
    );
    assert!(error(process.block(u64::MAX, b"x", false)).contains("the offset 18446744073709551615"));
    process.block(0, &[b'x'; 100], true).unwrap();
}

#[test]
fn requests_out_of_order_are_refused_without_harm() {
    let mut process = echo(metered());
    assert!(error(process.block(0, b"x", true)).ends_with("no item is begun"));
    process.item("a", None).unwrap();
    assert!(error(process.item("b", None)).ends_with("the last item is not ended"));
    assert!(error(process.finish()).ends_with("the last item is not ended"));
    process.end().unwrap();
    process.finish().unwrap();
    assert!(error(process.item("b", None)).ends_with("its totals were taken already"));
}
