//! Integration tests: the client against a server in this process.
#![allow(missing_docs, clippy::unwrap_used, clippy::expect_used)]

mod catalog;
mod foreign;
mod objects;
mod offline;
mod tls;
mod tree;
mod uploads;
mod world;
