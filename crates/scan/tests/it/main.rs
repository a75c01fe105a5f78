//! Tests of scans: modules beside naive references over generated files, divided in all ways, and odd files.
#![allow(missing_docs, clippy::unwrap_used)]

mod cipher;
mod common;
mod hash;
mod matching;
mod odd;
mod ripgrep;
mod search;
