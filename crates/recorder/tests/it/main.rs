//! Tests of `recorder` through its public interface; one module a subject.
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test fails by panicking")]

mod capture;
mod control;
mod guarantee;
mod no_allocation;
mod patience;
mod process;
mod rates;
mod slow_drive;
