//! Unsafe code of this crate: the packet socket, its mapped ring, the interface's clock, and datagram sockets.
//!
//! Nothing is decided here. What the bytes of a block mean is `block`'s, what to ask of the kernel `open`'s.
#![allow(unsafe_code)]

mod ring;
mod socket;
mod stamps;

pub(super) use ring::Ring;
pub(crate) use socket::set_number;
pub(super) use socket::{Device, PacketSocket};
pub(super) use stamps::{Stamps, stamp_all};
