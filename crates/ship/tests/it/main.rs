//! Integration tests of the shipper: seeded simulation, and its parts on real folders.
#![allow(missing_docs, clippy::unwrap_used, clippy::expect_used)]

mod ends;
mod folder_watch;
mod foreign;
mod kill;
mod ledger;
mod names;
mod network;
mod proxy;
mod refusals;
mod settings;
mod shipping;
mod simulation;
mod state;
