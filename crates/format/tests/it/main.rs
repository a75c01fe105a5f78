//! Tests of the format through its public interface: golden images, round trips, damage, forgery, the builder
//! against a naive list of elements, columns of attributes, and slots made again from the journal.
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test fails by panicking")]

mod birds_eye;
mod columns;
mod golden;
mod hostile;
mod index_copy;
mod index_directory;
mod lanes;
mod open_index;
mod rebuild;
mod records;
mod runs;
mod slots;
mod world;
