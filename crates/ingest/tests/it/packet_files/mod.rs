//! Tests of capture files: packets round-trip (promise 5), and damage is reported with its position (promise 8).
#![allow(clippy::unwrap_used)]

mod builder;
mod conversions;
mod damage;
mod filters;
mod formats;
mod round_trip;
mod snapshot_lengths;
