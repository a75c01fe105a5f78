//! Integration tests of the file system: its core against a naive model, and its mount with real programs.
#![allow(missing_docs, clippy::unwrap_used, clippy::expect_used)]

mod model;
mod mounted;
mod reading;
mod refusals;
mod shell;
mod world;
mod writing;
