//! Tests of `sim` through its public interface; one module a subject.
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test fails by panicking")]

mod birds_eye;
mod crash;
mod distil;
mod distilling;
mod faults;
mod forged;
mod grow;
mod held;
mod hours;
mod model;
mod outages;
mod overtaken;
mod pins;
mod profile;
mod purge;
mod race;
mod restart;
mod shares;
mod start;
mod stuck;
mod terms;
