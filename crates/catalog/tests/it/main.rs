//! Tests of the catalog: merge rules, simulated histories of several sites, and both stores.
#![allow(missing_docs, unreachable_pub, clippy::unwrap_used, clippy::expect_used)]

mod encoding;
mod random;
mod rules;
mod simulation;
mod snapshots;
mod stores;
