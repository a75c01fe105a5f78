//! Parts of the bench of metadata: objects with the triples of a science archive, questions about them, and the databases
//! that hold them. Not here: the tables of the case (`cases/catalog.rs`), and sites (`sites`).

pub mod database;
pub mod irods;
pub mod objects;
pub mod postgres_server;
pub mod questions;
