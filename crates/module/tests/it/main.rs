//! Tests of the program `holdfast-module` through the scan's end of its protocol.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod conversation;
mod examples;
mod fixtures;
mod hostile;
mod interface;
mod isolation;
mod misbehaviour;
mod sdk_modules;
