//! Tests of vaults over all stores: a folder, memory, S3 and HDFS, and stores that fail.
#![allow(missing_docs, clippy::unwrap_used)]

mod common;
mod contract;
mod faults;
mod servers;
