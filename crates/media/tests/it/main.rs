//! Tests of `media` through its public interface; one module a subject.
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test fails by panicking")]

mod common;
mod device;
mod drive;
mod faulty;
mod lane;
mod limits;
mod no_allocation;
mod real;
