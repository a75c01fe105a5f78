//! Scans: contents of rings, datasets, vaults and folders pass through bounded buffers to modules that run on all cores.
//!
//! Here belong the sources, the silos between readers and workers, the modules (search, hash, statistics), and the
//! report that names the bottleneck. Not here: arguments and printing (`cli`), and the program that hosts WebAssembly.
//! `scan` in `engine.rs` is the entry.
#![forbid(unsafe_code)]

mod batch;
pub mod cipher;
mod engine;
mod feeder;
mod item;
mod lane;
mod line_cut;
mod module;
mod report;
mod silo;
mod source;

pub use holdfast_module_wire::{Fuel, Limits as ModuleLimits};

pub use engine::{Options, Sink, Trouble, scan};
pub use item::{Container, Item, ItemId};
pub use module::approximate::{Approximate, ApproximateHit, ApproximateOptions, Metric};
pub use module::biology::{Alphabet, Biology, BiologyHit, BiologyOptions, Strand};
pub use module::crypt::{Crypt, CryptOutput, Direction};
pub use module::hash::{Algorithm, Hash, HashValue, Hashes};
pub use module::search::{Hit, Line, Search, SearchOptions, Syntax, Wanted};
pub use module::statistics::{Statistics, StatisticsRow};
pub use module::wasm::{Wasm, WasmOutput};
pub use module::{Block, Division, Flow, Module, ModuleError, Outputs, Piece};
pub use report::{Bottleneck, Report, SiloReport};
pub use source::{Globs, Pick, Sources};
