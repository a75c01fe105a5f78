//! Tests of `ingest` through its public interface; one module a subject.
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test fails by panicking")]

mod attributes;
mod common;
mod examples;
mod failing_source;
mod files;
mod mcap;
mod no_allocation;
mod packer;
mod packer_full;
mod packer_runs;
mod packet_files;
mod packet_live;
mod packet_sources;
mod producer;
mod queue_shuttle;
mod shared;
mod sockets;
mod upstream;
