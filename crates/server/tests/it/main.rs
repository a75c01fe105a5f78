//! Tests of the server over real connections: protocol, durability, access, limits, and other programs' clients.
#![allow(missing_docs, clippy::unwrap_used, clippy::expect_used)]

mod access;
mod accounts;
mod attribute_batches;
mod catalog;
mod checksums;
mod client;
mod compression;
mod concatenation;
mod conformance;
mod copies;
mod damage;
mod databases;
mod delivery;
mod disk_full;
mod drivers;
mod foreign_clients;
mod kill;
mod limits;
mod names;
mod properties;
mod reads;
mod replication;
mod segments;
mod settlement;
mod site;
mod status;
mod tls;
mod tree;
mod versions;
mod world;
