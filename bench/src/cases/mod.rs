//! The benches, one module each: `bench` measures (`cargo bench --bench NAME`) or, with every test run, does a tiny
//! amount to see that all still works. Parts that several benches share are in the modules beside this one.

pub mod attributes;
pub mod beside;
pub mod catalog;
pub mod disturbers;
pub mod drive;
pub mod elements;
pub mod hunt;
pub mod memory;
pub mod mount;
pub mod mount_peers;
pub mod needle;
pub mod packets;
pub mod packing;
pub mod producers;
pub mod readers;
pub mod reading;
pub mod scan;
pub mod search;
pub mod shares;
pub mod ship;
pub mod sites;
pub mod slots;
