//! Modules that do not have the interface are refused by name; both SDK headers quote the definition.

use crate::fixtures::{ModuleFile, PROGRAM, error, metered, sdk_text, start};
use std::path::Path;
use std::process::Command;

fn refused(replaced: &[(&str, &str)]) -> String {
    error(ModuleFile::with(replaced).start(&[], metered()))
}

#[test]
fn missing_exports_are_named() {
    for name in ["hf_abi", "hf_buffer", "hf_start", "hf_block", "hf_end", "memory"] {
        let replaced: &[(&str, &str)] =
            if name == "memory" { &[("memory", "(memory 2)")] } else { &[(name, "")] };
        assert_eq!(refused(replaced), format!("the module my.wasm does not export {name}: ended"));
    }
    let module = ModuleFile::with(&[]);
    assert_eq!(
        error(module.start(&["x"], metered())),
        "the module my.wasm does not export hf_args, but arguments are given: ended"
    );
}

#[test]
fn wrong_types_versions_and_imports_are_named() {
    for (part, text, reason) in [
        ("hf_end", r#"(func (export "hf_end"))"#, "exports hf_end, which is not a function () -> i32"),
        (
            "more",
            r#"(global (export "hf_finish") i32 (i32.const 0))"#,
            "exports hf_finish, which is not a function ()",
        ),
        ("memory", r#"(memory 2) (func (export "memory"))"#, "exports memory, which is not a memory"),
        (
            "hf_abi",
            r#"(func (export "hf_abi") (result i32) i32.const 2)"#,
            "has version 2 of the interface, not 1; build it again",
        ),
        (
            "hf_args",
            r#"(func (export "hf_args") (param i32 i32) (result i32) i32.const -5)"#,
            "does not accept its arguments (code -5)",
        ),
        (
            "imports",
            r#"(import "wasi_snapshot_preview1" "fd_write" (func (param i32 i32 i32 i32) (result i32)))"#,
            "imports wasi_snapshot_preview1.fd_write, which is not offered",
        ),
    ] {
        assert_eq!(refused(&[(part, text)]), format!("the module my.wasm {reason}: ended"));
    }
    for import in [r#"(import "hf" "log" (func (param i64)))"#, r#"(import "hf" "log" (memory 1))"#] {
        assert_eq!(
            refused(&[("imports", import), ("memory", "")]),
            "the module my.wasm imports hf.log, which is a function (i32, i32): ended"
        );
    }
}

#[test]
fn files_that_are_no_modules_are_named() {
    for bytes in [&b""[..], b"\0as", b"(module)", b"#!/bin/sh"] {
        assert_eq!(
            error(ModuleFile::of(bytes).start(&[], metered())),
            "the module my.wasm is not a WebAssembly module: its first bytes are not \"\\0asm\": ended"
        );
    }
    for bytes in [&b"\0asm"[..], b"\0asm\x01\0\0\0\x01\xff\xff\xff\xff\xff", b"\0asm\x0d\0\x01\0"] {
        let text = error(ModuleFile::of(bytes).start(&[], metered()));
        assert!(text.starts_with("the module my.wasm is not a WebAssembly module: "), "{text}");
    }
    let text = error(start(Path::new("/nowhere/no.wasm"), &[], metered()));
    assert_eq!(text, "the module no.wasm cannot be read: No such file or directory (os error 2): ended");
    let text = error(start(Path::new("/tmp"), &[], metered()));
    assert_eq!(text, "the module tmp cannot be read: it is not a regular file: ended");
}

#[test]
fn a_description_tells_the_properties() {
    let describe = |module: &ModuleFile, arguments: &[&str]| {
        let output =
            Command::new(PROGRAM).arg("--describe").arg(module.path()).args(arguments).output().unwrap();
        (output.status.success(), String::from_utf8(output.stdout).unwrap())
    };
    let overlap = r#"(func (export "hf_overlap") (result i32) i32.const 9)"#;
    let (good, json) = describe(&ModuleFile::with(&[("more", overlap)]), &[]);
    assert!(good && json.contains(r#""exports_ok":true,"abi":1,"overlap":9,"error":null"#), "{json}");
    let (good, json) = describe(&ModuleFile::with(&[]), &["--", "x"]);
    assert!(!good && json.contains(r#""exports_ok":true,"abi":1,"overlap":null,"error":"does"#), "{json}");
    let (good, json) = describe(&ModuleFile::with(&[("hf_end", "")]), &[]);
    assert!(!good && json.contains(r#""exports_ok":false,"abi":null"#), "{json}");
}

#[test]
fn both_headers_quote_the_definition() {
    let definition = sdk_text("ABI.md");
    let (_, rest) = definition.split_once("```text\n").unwrap();
    let (table, _) = rest.split_once("```").unwrap();
    assert!(table.lines().count() > 10);
    for (file, mark) in [("rust/src/lib.rs", "//! "), ("c/holdfast_module.h", " * ")] {
        let quoted: Vec<String> = table.lines().map(|line| format!("{mark}{line}")).collect();
        assert!(sdk_text(file).contains(&quoted.join("\n")), "{file} differs from ABI.md");
    }
}
