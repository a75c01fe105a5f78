//! Targets: functions that take any bytes and must neither panic nor hang, and that check what they can of the
//! answer. One module a parser.
//!
//! They run in two ways: by libFuzzer (`fuzz_targets/`, `make fuzz`), which needs a nightly compiler, and in every
//! test run (`tests/short.rs`) on their seeds, on what once broke them (`found/`), and on a fixed number of
//! mutations. A new parser gets a module here, a row in [`TARGETS`], and a file of three lines in `fuzz_targets/`.
#![forbid(unsafe_code)]
// A panic is how a target says that something is wrong.
#![allow(clippy::missing_panics_doc)]

mod attributes;
pub mod birds_eye;
pub mod capture_file;
pub mod chunk;
pub mod commit;
pub mod dataset;
pub mod filter_program;
pub mod framing;
pub mod index_copy;
pub mod index_directory;
pub mod json;
pub mod layout;
pub mod mcap_file;
mod mutate;
pub mod open_index;
pub mod packet;
pub mod recover;
pub mod recovery_string;
pub mod schema;
pub mod sizes;
pub mod slot;
pub mod socket_frame;
pub mod source_text;
mod sparse;
pub mod superblock;
mod world;

pub use mutate::Mutator;

/// One parser under attack.
pub struct Target {
    /// Its name, that of its module and of its file in `fuzz_targets/`.
    pub name: &'static str,
    /// Parses `data` and checks the answer.
    pub run: fn(data: &[u8]),
    /// Inputs that reach far into the parser: mostly valid ones, made by the writer of the same format.
    pub seeds: fn() -> Vec<Vec<u8>>,
    /// How many mutations a test run tries: fewer where one takes longer.
    pub mutations: usize,
}

const fn target(name: &'static str, run: fn(&[u8]), seeds: fn() -> Vec<Vec<u8>>, mutations: usize) -> Target {
    Target { name, run, seeds, mutations }
}

/// Every target.
pub const TARGETS: &[Target] = &[
    target("sizes", sizes::run, sizes::seeds, 4000),
    target("superblock", superblock::run, superblock::seeds, 4000),
    target("recovery_string", recovery_string::run, recovery_string::seeds, 4000),
    target("commit", commit::run, commit::seeds, 3000),
    target("slot", slot::run, slot::seeds, 3000),
    target("birds_eye", birds_eye::run, birds_eye::seeds, 3000),
    target("index_copy", index_copy::run, index_copy::seeds, 4000),
    target("index_directory", index_directory::run, index_directory::seeds, 4000),
    target("chunk", chunk::run, chunk::seeds, 4000),
    target("open_index", open_index::run, open_index::seeds, 3000),
    target("recover", recover::run, recover::seeds, 600),
    target("capture_file", capture_file::run, capture_file::seeds, 800),
    target("mcap_file", mcap_file::run, mcap_file::seeds, 4000),
    target("dataset", dataset::run, dataset::seeds, 1500),
    target("filter_program", filter_program::run, filter_program::seeds, 4000),
    target("framing", framing::run, framing::seeds, 4000),
    target("source_text", source_text::run, source_text::seeds, 4000),
    target("socket_frame", socket_frame::run, socket_frame::seeds, 4000),
    target("schema", schema::run, schema::seeds, 4000),
    target("packet", packet::run, packet::seeds, 4000),
    target("json", json::run, json::seeds, 2000),
    target("layout", layout::run, layout::seeds, 2000),
];
