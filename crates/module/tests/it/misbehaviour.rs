//! Every misbehaving module is ended and named, and the next process and the next item continue.

use crate::fixtures::{ModuleFile, error, exists, metered, scan};
use holdfast_module_wire::{Cause, Failure, Fuel, Limits};
use std::time::Duration;

/// Runs a scan with a module that must fail, and returns its error; its process must be gone.
fn failed(replaced: &[(&str, &str)], limits: Limits) -> String {
    let module = ModuleFile::with(replaced);
    let text = match module.start(&[], limits) {
        Err(failure) => failure.to_string(),
        Ok(mut process) => {
            let id = process.id();
            let text = error(scan(&mut process));
            assert!(process.is_ended() && !exists(id), "{text}");
            let again = error(process.item("b", None));
            assert_eq!(again, "cannot pass a request to the module my.wasm: the process was ended");
            text
        }
    };
    let mut next = ModuleFile::with(&[]).start(&[], metered()).unwrap();
    scan(&mut next).unwrap();
    text
}

fn check(cases: &[(&[(&str, &str)], &str)]) {
    for (replaced, expected) in cases {
        assert_eq!(&failed(replaced, metered()), expected, "{replaced:?}");
    }
}

const LOOP: &str = "(loop $again (br $again))";

fn block(body: &str) -> String {
    format!(r#"(func (export "hf_block") (param i32 i32 i64) (result i32) {body} i32.const 0)"#)
}

#[test]
fn endless_loops_run_out_of_instructions() {
    let limits = || Limits { fuel: Some(Fuel { per_call: 5000, per_byte: 10 }), ..Limits::default() };
    let start = format!(r#"(func (export "hf_start") (param i32 i32 i64) {LOOP})"#);
    let end = format!(r#"(func (export "hf_end") (result i32) {LOOP} i32.const 0)"#);
    let buffer = format!(r#"(func (export "hf_buffer") (param i32) (result i32) {LOOP} i32.const 0)"#);
    let args = format!(r#"(func (export "hf_args") (param i32 i32) (result i32) {LOOP} i32.const 0)"#);
    let finish = format!(r#"(func (export "hf_finish") {LOOP})"#);
    let first = format!("(func $first {LOOP}) (start $first)");
    for (part, text, place, fuel) in [
        ("hf_start", start, "at the start of a.log", 5000),
        ("hf_block", block(LOOP), "on a block of a.log at offset 0", 5030),
        ("hf_buffer", buffer, "at the start of a.log", 5000),
        ("hf_end", end, "at the end of a.log", 5000),
        ("hf_args", args, "on its arguments", 5000),
        ("more", finish, "at the end of the scan", 5000),
        ("more", first, "while it was loaded", 5000),
    ] {
        let expected = format!("the module my.wasm executed more than {fuel} instructions {place}: ended");
        assert_eq!(failed(&[(part, &text)], limits()), expected);
    }
}

#[test]
fn endless_loops_run_out_of_time() {
    let time = Duration::from_millis(250);
    let limits = || Limits { call_time: time, ..Limits::default() };
    let expected = "the module my.wasm ran longer than 250 ms on a block of a.log at offset 0: ended";
    assert_eq!(failed(&[("hf_block", &block(LOOP))], limits()), expected);
    let first = format!("(func $first {LOOP}) (start $first)");
    let limits = Limits { load_time: time, grace: Duration::from_mins(1), ..Limits::default() };
    let expected = "the module my.wasm ran longer than 250 ms while it was loaded: ended";
    assert_eq!(failed(&[("more", &first)], limits), expected);
}

#[test]
fn a_huge_start_function_is_bounded_by_its_instructions() {
    let body = "(global.set $g (i64.mul (global.get $g) (i64.const 3)))".repeat(20_000);
    let more =
        |body: &str| format!("(global $g (mut i64) (i64.const 1)) (func $first {body}) (start $first)");
    let endless = more(&format!("(loop $again {body} (br $again))"));
    let limits = |per_call| Limits { fuel: Some(Fuel { per_call, per_byte: 0 }), ..Limits::default() };
    let expected = "the module my.wasm executed more than 10000 instructions while it was loaded: ended";
    assert_eq!(failed(&[("more", &endless)], limits(10_000)), expected);
    ModuleFile::with(&[("more", &more(&body))]).start(&[], limits(1_000_000)).unwrap();
}

#[test]
fn memory_is_bounded() {
    let grow = block("(loop $again (drop (memory.grow (i32.const 16))) (br $again))");
    let table = "(table 5000000 funcref)";
    let table_grow = block("(drop (table.grow (ref.null func) (i32.const 5000000)))");
    check(&[
        (
            &[("hf_block", &grow)],
            "the module my.wasm wants more than 64 MiB of memory on a block of a.log at offset 0: ended",
        ),
        (
            &[("memory", r#"(memory (export "memory") 2000)"#)],
            "the module my.wasm wants more than 64 MiB of memory while it was loaded: ended",
        ),
        (
            &[("more", table)],
            "the module my.wasm wants more than 64 MiB of memory while it was loaded: ended",
        ),
        (
            &[("more", "(table 1 funcref)"), ("hf_block", &table_grow)],
            "the module my.wasm wants more than 64 MiB of memory on a block of a.log at offset 0: ended",
        ),
    ]);
}

#[test]
fn traps_are_named() {
    for (body, more, reason) in [
        ("unreachable", "", "unreachable"),
        ("(drop (i32.div_u (i32.const 1) (i32.const 0)))", "", "integer divide by zero"),
        ("(drop (i32.load (i32.const -4)))", "", "out of bounds memory access"),
        ("(call $deep)", "(func $deep (call $deep))", "call stack exhausted"),
        ("(call_indirect (i32.const 0))", "(table 1 funcref)", "uninitialized element"),
    ] {
        let expected = format!("the module my.wasm trapped: {reason} on a block of a.log at offset 0: ended");
        assert_eq!(failed(&[("hf_block", &block(body)), ("more", more)], metered()), expected);
    }
}

#[test]
fn garbage_is_named() {
    let buffer =
        |value: &str| format!(r#"(func (export "hf_buffer") (param i32) (result i32) i32.const {value})"#);
    let emit = |values: &str| block(&format!("(call $emit {values})"));
    let on_block = "on a block of a.log at offset 0: ended";
    for (part, text, reason, place) in [
        (
            "hf_buffer",
            buffer("-1"),
            "hf_buffer returned room for 5 bytes at 4294967295, outside of its memory of 131072 bytes",
            "at the start of a.log: ended",
        ),
        (
            "hf_buffer",
            buffer("131069"),
            "hf_buffer returned room for 5 bytes at 131069, outside of its memory of 131072 bytes",
            "at the start of a.log: ended",
        ),
        ("hf_buffer", buffer("0"), "hf_buffer has no room for 5 bytes", "at the start of a.log: ended"),
        (
            "hf_block",
            emit("(i64.const 0) (i32.const 131071) (i32.const 2)"),
            "it called emit with 2 bytes at 131071, outside of its memory of 131072 bytes",
            on_block,
        ),
        (
            "hf_block",
            emit("(i64.const 0) (i32.const 0) (i32.const -1)"),
            "it called emit with 4294967295 bytes at 0, outside of its memory of 131072 bytes",
            on_block,
        ),
        (
            "hf_block",
            block("(call $log (i32.const -1) (i32.const -1))"),
            "it called log with 4294967295 bytes at 4294967295, outside of its memory of 131072 bytes",
            on_block,
        ),
        (
            "hf_block",
            emit("(i64.const -2) (i32.const 0) (i32.const 1)"),
            "it called emit with the offset -2",
            on_block,
        ),
        (
            "hf_block",
            r#"(func (export "hf_block") (param i32 i32 i64) (result i32) i32.const 7)"#.to_owned(),
            "hf_block returned 7",
            on_block,
        ),
        (
            "hf_end",
            r#"(func (export "hf_end") (result i32) i32.const 1)"#.to_owned(),
            "hf_end returned 1",
            "at the end of a.log: ended",
        ),
        (
            "more",
            r#"(func (export "hf_overlap") (result i32) i32.const 4194304)"#.to_owned(),
            "hf_overlap returned 4194304, but blocks have 4194304 bytes",
            "on its arguments: ended",
        ),
        (
            "more",
            "(func $f (call $emit (i64.const 0) (i32.const 0) (i32.const 0))) (start $f)".to_owned(),
            "it called emit before its first item",
            "while it was loaded: ended",
        ),
    ] {
        let expected = format!("the module my.wasm returned garbage: {reason} {place}");
        assert_eq!(failed(&[(part, &text)], metered()), expected);
    }
}

#[test]
fn results_are_bounded() {
    let emit = |length: u32| {
        block(&format!(
            "(loop $again (call $emit (i64.const 0) (i32.const 0) (i32.const {length})) (br $again))"
        ))
    };
    let limits = || Limits { outputs: 200_000, output_bytes: 4 << 20, ..metered() };
    for (length, most) in [(0, "200000 results"), (1000, "4 MiB of results")] {
        let text = failed(&[("hf_block", &emit(length))], limits());
        assert_eq!(
            text,
            format!("the module my.wasm emitted more than {most} on a block of a.log at offset 0: ended")
        );
    }
    // As many as the limits allow are passed on, with their order, in as many frames as they need.
    let body = "(local $i i64) (loop $again
        (call $emit (local.get $i) (i32.const 0) (i32.const 16))
        (local.set $i (i64.add (local.get $i) (i64.const 1)))
        (br_if $again (i64.lt_u (local.get $i) (i64.const 200000))))";
    let mut process = ModuleFile::with(&[("hf_block", &block(body))]).start(&[], limits()).unwrap();
    let outputs = scan(&mut process).unwrap().remove(0).outputs;
    assert!(outputs.len() == 200_000 && outputs.iter().all(|output| output.bytes.len() == 16));
    assert!(outputs.iter().enumerate().all(|(at, output)| output.offset == Some(at as u64)));
}

#[test]
fn a_log_line_precedes_the_failure() {
    let text = failed(
        &[
            ("data", r#"(data (i32.const 8) "bad header")"#),
            ("hf_block", &block("(call $log (i32.const 8) (i32.const 10)) unreachable")),
        ],
        metered(),
    );
    let expected = "the module my.wasm trapped: unreachable on a block of a.log at offset 0: ended; its last log line: bad header";
    assert_eq!(text, expected);
}

#[test]
fn a_modules_own_error_ends_the_item_alone() {
    let third = r#"(func (export "hf_block") (param i32 i32 i64) (result i32)
        (select (i32.const -3) (i32.const 0) (i64.eq (local.get 2) (i64.const 9))))"#;
    let mut process = ModuleFile::with(&[("hf_block", third)]).start(&[], metered()).unwrap();
    let id = process.id();
    process.item("a", None).unwrap();
    process.block(0, b"x", false).unwrap();
    let failure = process.block(9, b"x", true).unwrap_err();
    assert!(matches!(failure.cause, Cause::Failure(Failure::Code(-3))) && !failure.ended);
    assert_eq!(failure.to_string(), "the module my.wasm reported its error -3 on a block of a at offset 9");
    process.item("b", None).unwrap();
    process.block(0, b"x", true).unwrap();
    assert_eq!(process.id(), id);
    process.finish().unwrap();
}
