//! The program as a person meets it: started, fed, signalled, killed, refused.
#![allow(clippy::unwrap_used, clippy::expect_used)] // helpers of tests are tests too

mod common;
mod ends;
mod kills;
mod live;
mod refusals;
mod resources;
