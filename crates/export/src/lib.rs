//! Exports: elements of a ring as files that other programs read.
//!
//! Here belong the output formats (raw, pcapng, MCAP, JSON lines), the choice of elements that go into an export, the output
//! that counts and hashes what passes, and files that appear only when they are whole. Not here: which range is read and by
//! whom (`client`), results of queries as rows (`query`), and what a command prints about an export (`cli`).
#![forbid(unsafe_code)]

mod access_list;
mod atomic_file;
mod export;
mod filter;
mod hashing;
pub mod json;
mod jsonl;
mod mcap;
mod output;
mod pcapng;
mod raw;
#[cfg(test)]
mod sample;
mod sink;
mod source_access;
mod thinning;

pub use atomic_file::{AtomicFile, handle_signals, note_complete};
pub use export::{Export, Format};
pub use filter::Filter;
pub use mcap::replayed_header;
pub use output::{Existing, Output, OutputFile, PipedBytes, Written};
pub use sink::{Counts, ElementFilter, Sink};
pub use source_access::{SourceAccess, make_folder_like, new_file_mode};
pub use thinning::Thinning;
