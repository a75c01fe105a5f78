//! Targets: functions that take any bytes and must neither panic nor hang, and that check what they can of the
//! answer. One module a parser.
//!
//! They run in two ways: by libFuzzer (`fuzz_targets/`, `make fuzz`), which needs a nightly compiler, and in every
//! test run (`tests/short.rs`) on their seeds, on what once broke them (`found/`), and on a fixed number of
//! mutations. A new parser gets a module here, a row in [`TARGETS`], and a file of three lines in `fuzz_targets/`.
#![forbid(unsafe_code)]
// A panic is how a target says that something is wrong.
#![allow(clippy::missing_panics_doc)]

mod mutate;
pub mod sizes;

pub use mutate::Mutator;

/// One parser under attack.
pub struct Target {
    /// Its name, that of its module and of its file in `fuzz_targets/`.
    pub name: &'static str,
    /// Parses `data` and checks the answer.
    pub run: fn(data: &[u8]),
    /// Inputs that reach far into the parser: mostly valid ones, made by the writer of the same format.
    pub seeds: fn() -> Vec<Vec<u8>>,
}

/// Every target.
pub const TARGETS: &[Target] = &[Target { name: "sizes", run: sizes::run, seeds: sizes::seeds }];
