//! Mapping from the kernel's hardware type of an interface to the link type of its packets.

use crate::packet::LinkType;

/// What has to be done to a frame before it is a packet of its link type.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum LinkFraming {
    /// Ethernet: a stripped VLAN tag is put back.
    Ethernet,
    /// A cooked header is made, since the link header is none that files know.
    Cooked,
    /// The identifier in front is turned into network order.
    Can,
    /// Nothing.
    AsIs,
}

/// The link type and framing of an interface with this `ARPHRD_` type.
pub(super) fn of(hardware: u16) -> (LinkType, LinkFraming) {
    match hardware {
        libc::ARPHRD_ETHER | libc::ARPHRD_LOOPBACK => (LinkType::ETHERNET, LinkFraming::Ethernet),
        libc::ARPHRD_TUNNEL | libc::ARPHRD_TUNNEL6 | libc::ARPHRD_SIT | ARPHRD_RAWIP | libc::ARPHRD_NONE => {
            (LinkType::RAW, LinkFraming::AsIs)
        }
        libc::ARPHRD_CAN => (LinkType::CAN, LinkFraming::Can),
        libc::ARPHRD_IEEE80211 => (LinkType::IEEE802_11, LinkFraming::AsIs),
        libc::ARPHRD_IEEE80211_PRISM => (LinkType::PRISM, LinkFraming::AsIs),
        libc::ARPHRD_IEEE80211_RADIOTAP => (LinkType::RADIOTAP, LinkFraming::AsIs),
        _ => (LinkType::LINUX_SLL, LinkFraming::Cooked),
    }
}

/// Mobile broadband modems.
const ARPHRD_RAWIP: u16 = 519;
