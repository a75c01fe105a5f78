//! Modules for tests: WebAssembly text with some functions replaced, and the examples of the SDK.

use crate::sdk_modules::sdk;
use holdfast_module_wire::{Fuel, Limits, ModuleError, ModuleProcess, Results};
use std::path::{Path, PathBuf};
use tempfile::TempDir;

/// Path of the program under test.
pub(crate) const PROGRAM: &str = env!("CARGO_BIN_EXE_holdfast-module");

/// Parts of a module that does nothing, each replaceable by its name.
const PARTS: [(&str, &str); 10] = [
    (
        "imports",
        r#"(import "hf" "emit" (func $emit (param i64 i32 i32))) (import "hf" "log" (func $log (param i32 i32)))"#,
    ),
    ("memory", r#"(memory (export "memory") 2)"#),
    ("data", ""),
    ("hf_abi", r#"(func (export "hf_abi") (result i32) i32.const 1)"#),
    ("hf_buffer", r#"(func (export "hf_buffer") (param i32) (result i32) i32.const 1024)"#),
    ("hf_start", r#"(func (export "hf_start") (param i32 i32 i64))"#),
    ("hf_block", r#"(func (export "hf_block") (param i32 i32 i64) (result i32) i32.const 0)"#),
    ("hf_end", r#"(func (export "hf_end") (result i32) i32.const 0)"#),
    ("hf_args", ""),
    ("more", ""),
];

/// File of a module, which is removed with its folder.
pub(crate) struct ModuleFile {
    folder: TempDir,
}

impl ModuleFile {
    /// Makes a file of these bytes.
    pub(crate) fn of(bytes: &[u8]) -> Self {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("my.wasm"), bytes).unwrap();
        Self { folder }
    }

    /// Makes a module with some parts replaced.
    pub(crate) fn with(replaced: &[(&str, &str)]) -> Self {
        for (name, _) in replaced {
            assert!(PARTS.iter().any(|(part, _)| part == name), "{name}");
        }
        let part = |(name, text)| {
            replaced.iter().find(|(other, _)| *other == name).map_or(text, |(_, replacement)| *replacement)
        };
        let text = PARTS.map(part).join("\n");
        Self::of(&wat::parse_str(format!("(module {text})")).unwrap())
    }

    pub(crate) fn path(&self) -> PathBuf {
        self.folder.path().join("my.wasm")
    }

    /// Starts a process with this module.
    pub(crate) fn start(&self, arguments: &[&str], limits: Limits) -> Result<ModuleProcess, ModuleError> {
        start(&self.path(), arguments, limits)
    }
}

/// Starts a process with the module in a file.
pub(crate) fn start(wasm: &Path, arguments: &[&str], limits: Limits) -> Result<ModuleProcess, ModuleError> {
    let arguments: Vec<String> = arguments.iter().map(|argument| (*argument).to_owned()).collect();
    ModuleProcess::start(Path::new(PROGRAM), wasm, &arguments, limits)
}

/// Limits whose instructions end a module sooner than its time.
pub(crate) fn metered() -> Limits {
    Limits { fuel: Some(Fuel { per_call: 10_000_000, per_byte: 1000 }), ..Limits::default() }
}

/// Runs an item of one block and takes the totals; returns all results in order.
pub(crate) fn scan(process: &mut ModuleProcess) -> Result<Vec<Results>, ModuleError> {
    process.item("a.log", Some(3))?;
    Ok(vec![process.block(0, b"abc", false)?, process.end()?, process.finish()?])
}

/// Error of an operation that must fail, as text.
pub(crate) fn error<T>(result: Result<T, ModuleError>) -> String {
    match result {
        Ok(_) => panic!("the module must fail"),
        Err(error) => error.to_string(),
    }
}

/// The process with this identifier exists, perhaps as a zombie.
pub(crate) fn exists(id: u32) -> bool {
    Path::new(&format!("/proc/{id}")).exists()
}

/// Text of a file in the SDK.
pub(crate) fn sdk_text(file: &str) -> String {
    std::fs::read_to_string(sdk().join(file)).unwrap()
}
