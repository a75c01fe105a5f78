//! Tests of `reader` through its public interface; one module a subject.
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test fails by panicking")]

mod batches;
mod birds_eye_cache;
mod expiry;
mod pins;
mod read_ahead;
mod reader;
mod seeks;
mod takeover;
mod unreadable;
