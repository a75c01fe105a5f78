//! Tests of `attributes` through its public interface; one module a subject.
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test fails by panicking")]

mod common;
mod given;
mod headers;
mod hostile;
mod json;
mod no_allocation;
mod packets;
mod schema;
mod tshark;
mod vdif;
