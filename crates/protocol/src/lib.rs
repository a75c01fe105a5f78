//! Protocol of a recorder's socket: wire types, both ends, the search for the socket, and the mapped read area.
//!
//! Here belong messages as bytes, the paths of sockets, a server without policy, a blocking client, the search for the
//! recorder of a ring, pins, and the mapping of memory that a recorder hands out. Not here: the recorder's answers (crate
//! `recorder`), and the reading of slots (crate `reader`).
#![deny(unsafe_code)]

pub mod client;
mod discovery;
mod error;
mod pins;
mod ring_location;
pub mod server;
mod shared;
pub mod socket_path;
mod start_mark;
pub mod wire;

pub use discovery::{awaited_sockets, find_recorder, find_recorder_now, is_recorder, locate, runs_recorder};
pub use error::ProtocolError;
pub use pins::Pins;
pub use ring_location::{RingLocation, lane_file};
pub use shared::SharedArea;
pub use start_mark::{StartMark, recorder_starts};
