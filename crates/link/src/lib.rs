//! Between a recorder and everybody else: the socket's protocol, both of its ends, and the one reader of rings.
//!
//! Here belong wire types, the socket's path, a server without policy, a blocking client, the memory that a recorder
//! hands out, pins, and the reader that gives the same results with a recorder and without. What a recorder does with a
//! request is the `recorder` crate's; what a command does with elements is the `cli` crate's.
#![deny(unsafe_code)]

pub mod client;
mod error;
mod find;
mod index_drive;
pub mod path;
mod pins;
mod reader;
pub mod server;
mod shared;
pub mod wire;

pub use error::LinkError;
pub use find::{answering, place, recorder};
pub use index_drive::{IndexDrive, Owner};
pub use pins::Pins;
pub use reader::{
    Beside, Element, Item, Loss, Losses, Missing, NotThere, OpenSlots, Plan, PlannedSlot, ReadReport,
    RingReader, Selection, Since, SlotView, Torn,
};
pub use shared::SharedArea;
