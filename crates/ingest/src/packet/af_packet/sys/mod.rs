//! The packet socket, its mapped ring and the interface's clock: all the unsafe code of this crate.
//!
//! Nothing is decided here. What the bytes of a block mean is `block`'s, what to ask of the kernel `open`'s.
#![allow(unsafe_code)]

mod ring;
mod socket;
mod stamps;

pub(super) use ring::Ring;
pub(super) use socket::{Device, PacketSocket};
pub(super) use stamps::{Stamps, stamp_all};
