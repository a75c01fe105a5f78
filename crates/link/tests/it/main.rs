//! Tests of `link` through its public interface; one module a subject.
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test fails by panicking")]

mod ahead;
mod batches;
mod common;
mod descriptors;
mod expired;
mod pins;
mod reader;
mod seeks;
mod seen;
mod server;
mod takeover;
mod unreadable;
mod wire;
