//! Protocol of a recorder's socket: wire types, both ends, the search for the socket, and the mapped read area.
//!
//! Here belong messages as bytes, the paths of sockets, a server without policy, a blocking client, the search for the
//! recorder of a ring, pins, and the mapping of memory that a recorder hands out. Not here: the recorder's answers (crate
//! `recorder`), and the reading of slots (crate `reader`).
#![deny(unsafe_code)]

pub mod client;
mod error;
mod find;
pub mod path;
mod pins;
pub mod server;
mod shared;
pub mod wire;

pub use error::LinkError;
pub use find::{answering, awaited_sockets, place, recorder};
pub use pins::Pins;
pub use shared::SharedArea;
