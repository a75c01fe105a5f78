//! The packet socket and its mapped ring: all the unsafe code of this crate.
//!
//! Nothing is decided here. What the bytes of a block mean is `block`'s, what to ask of the kernel `open`'s.
#![allow(unsafe_code)]

mod ring;
mod socket;

pub(super) use ring::Ring;
pub(super) use socket::{Device, PacketSocket};
