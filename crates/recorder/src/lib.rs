//! Recorder: sources in, a ring on disk out, requests and orders answered on a socket.
//!
//! Here is what joins the crates below into one process: arguments, the memory plan, threads, the capture loop, the
//! control thread that answers clients, the end and its summary. Which slot is overwritten is the `ring` crate's, how rows become
//! bytes `format`'s and `ingest`'s, what a client may say `link`'s.
#![forbid(unsafe_code)]

pub mod args;
pub mod capture;
pub mod control;
pub mod plan;
pub mod run;
mod signals;
pub mod start;
pub mod summary;
mod voice;
