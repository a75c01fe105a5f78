//! Integration tests of the benches, in one executable: each bench runs tiny, and interrupted ones leave nothing behind.
#![allow(clippy::unwrap_used)]

mod interrupted;
mod tiny;
