//! Capture files: what is read is what was written (promise 5), and damage is told by its place (promise 8).
#![allow(clippy::unwrap_used)]

mod builder;
mod conversions;
mod damage;
mod filters;
mod formats;
mod round_trip;
