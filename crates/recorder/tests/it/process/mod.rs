//! Tests of the real program: started, fed, signalled, killed, refused.
#![allow(clippy::unwrap_used, clippy::expect_used)] // helpers of tests are tests too

mod absent;
mod attributes;
mod birds_eye;
mod common;
mod device;
mod distilling;
mod disturbers;
mod ends;
mod given;
mod kills;
#[allow(dead_code)] // the other tests of packets use it all
#[path = "../../../../ingest/tests/it/packet_live/link.rs"]
mod link;
mod live;
mod packets;
mod pins;
mod privileges;
mod promises;
mod purges;
mod rates;
mod refusals;
mod resources;
mod shared;
mod sources;
mod thread_placement;
mod upstream;
mod watch;
