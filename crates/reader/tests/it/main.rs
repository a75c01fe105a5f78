//! Tests of `reader` through its public interface; one module a subject.
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test fails by panicking")]

mod ahead;
mod batches;
mod expired;
mod pins;
mod reader;
mod seeks;
mod seen;
mod takeover;
mod unreadable;
