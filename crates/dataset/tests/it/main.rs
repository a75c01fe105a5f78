//! Tests of `dataset` through its public interface; one module a subject.
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test fails by panicking")]

mod bag;
mod common;
mod damage;
mod golden;
mod pack;
mod pack_trees;
mod recovery;
mod round_trip;
mod sql;
