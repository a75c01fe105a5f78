//! Packets: capture files read and written, filters, and the live receiver.
//!
//! Pure components over bytes and iterators. What belongs here knows how packets look in files and in the
//! kernel's ring; it knows nothing of streams, queues, ordinals, gaps or overload.
//!
//! The parser is our own and small. `pcap-parser` (on `nom`) was looked at: it reports remaining bytes of a
//! window instead of positions in the file, leaves options in the byte order of their section, and would bring
//! a parser framework into the recorder. Here a cut or damaged file must be told by the byte, options must
//! come out canonical, and every length has a limit; that is most of the work either way.

pub mod af_packet;
pub mod bpf;
pub mod filter;
mod input;
mod interface;
mod libpcap;
pub mod pcap;
pub mod pcapng;
mod preamble;
mod reader;

pub use interface::{Interface, LinkType};
pub use preamble::{
    LiveInterface, Preamble, PreambleError, RaisedSnaplen, ScanError, ScanReport, scan, scan_within,
};
pub use reader::{Item, OtherBlock, ReadError, ReadNotes, Reader};

use holdfast_base::{FileKind, Timestamp};

/// Largest packet that is taken from a file: aggregated frames of any offload fit a hundred times over.
pub const MAX_PACKET: usize = 64 << 20;

/// Largest pcapng block: the largest packet with room for its options.
pub const MAX_BLOCK: usize = MAX_PACKET + (256 << 10);

/// Interfaces of one file over all its sections: packets carry the number in 16 bits.
pub const MAX_INTERFACES: usize = 65_535;

/// Bytes of the options of one interface; real ones have a few hundred.
pub const MAX_INTERFACE_OPTIONS: usize = holdfast_base::MAX_META;

/// Bytes of the options of all interfaces together: they stay in memory as long as the file is open.
pub const MAX_ALL_INTERFACE_OPTIONS: usize = 16 << 20;

/// One packet of a capture file, or on its way into one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Packet<'a> {
    /// Index in the list of interfaces over all sections of the file.
    pub interface: u16,
    /// When it was captured; what is finer than nanoseconds is rounded down. `None` where the file says nothing
    /// (simple packet blocks) or something that nanoseconds since 1970 in 63 bits cannot say.
    pub time: Option<Timestamp>,
    /// Bytes on the wire; more than `data` when the capture cut it short.
    pub original_len: u32,
    /// Which way it went and how it was addressed.
    pub flags: Flags,
    /// Its pcapng options as canonical TLVs: little-endian, padded to four bytes with zeros, no end marker.
    pub options: &'a [u8],
    /// What was captured.
    pub data: &'a [u8],
}

/// The flags word of pcapng's `epb_flags` option; 0 says nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default)]
pub struct Flags(pub u32);

impl Flags {
    /// Puts the two together.
    pub fn new(direction: Direction, reception: Reception) -> Self {
        let direction = match direction {
            Direction::Unknown => 0,
            Direction::Inbound => 1,
            Direction::Outbound => 2,
        };
        let reception = match reception {
            Reception::Unknown => 0,
            Reception::Unicast => 1,
            Reception::Multicast => 2,
            Reception::Broadcast => 3,
            Reception::Promiscuous => 4,
        };
        Self(direction | reception << 2)
    }

    /// From the packet type of a `sockaddr_ll`, as the kernel and modified pcap files give it.
    pub fn from_packet_type(packet_type: u8) -> Self {
        match packet_type {
            libc::PACKET_HOST => Self::new(Direction::Inbound, Reception::Unicast),
            libc::PACKET_BROADCAST => Self::new(Direction::Inbound, Reception::Broadcast),
            libc::PACKET_MULTICAST => Self::new(Direction::Inbound, Reception::Multicast),
            libc::PACKET_OTHERHOST => Self::new(Direction::Inbound, Reception::Promiscuous),
            libc::PACKET_OUTGOING => Self::new(Direction::Outbound, Reception::Unknown),
            _ => Self::default(),
        }
    }

    /// Which way the packet went.
    pub fn direction(self) -> Direction {
        match self.0 & 3 {
            1 => Direction::Inbound,
            2 => Direction::Outbound,
            _ => Direction::Unknown,
        }
    }

    /// How it was addressed.
    pub fn reception(self) -> Reception {
        match (self.0 >> 2) & 7 {
            1 => Reception::Unicast,
            2 => Reception::Multicast,
            3 => Reception::Broadcast,
            4 => Reception::Promiscuous,
            _ => Reception::Unknown,
        }
    }
}

/// Which way a packet went, seen from the capturing machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default)]
pub enum Direction {
    /// Not told.
    #[default]
    Unknown,
    /// It came in.
    Inbound,
    /// It went out.
    Outbound,
}

/// How a packet that came in was addressed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default)]
pub enum Reception {
    /// Not told.
    #[default]
    Unknown,
    /// To this machine.
    Unicast,
    /// To a group.
    Multicast,
    /// To all.
    Broadcast,
    /// To another machine.
    Promiscuous,
}

/// Where a capture file stops being readable.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the capture file is damaged at byte {at_byte}: {damage}")]
pub struct Broken {
    /// First byte of the block, record or header that is not whole: all before it was delivered.
    pub at_byte: u64,
    /// What is wrong there.
    pub damage: Damage,
}

/// The beginning of a file for people: as text if it is text, or else in hexadecimal.
fn shown(bytes: &[u8]) -> String {
    if !bytes.is_empty() && bytes.iter().all(|byte| matches!(byte, b' '..=b'~')) {
        return format!("\"{}\"", String::from_utf8_lossy(bytes));
    }
    let bytes: Vec<String> = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
    bytes.join(" ")
}

/// Kind of a file that is no capture, with what to do about it.
fn not_a_capture(first: &[u8]) -> String {
    match FileKind::of_bytes(first) {
        Some(kind @ (FileKind::Gzip | FileKind::Zstd)) => format!(
            "this is {}, not a capture: `holdfast dataset convert FILE -o NEW.pcapng` unpacks a capture in it",
            kind.name()
        ),
        Some(kind @ FileKind::Bag) => format!(
            "this is {}, not a capture: `holdfast dataset convert FILE -o NEW.mcap` makes an MCAP file of it",
            kind.name()
        ),
        Some(kind) => format!("this is {}, not a pcap, pcapng or MCAP file", kind.name()),
        None => format!("this is not a pcap, pcapng or MCAP file (it starts with {})", shown(first)),
    }
}

/// What can be wrong with a capture file.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Damage {
    /// The first bytes are those of no known format.
    #[error("{}", not_a_capture(.0))]
    NotACapture(Vec<u8>),
    /// The file ends inside something.
    #[error("the file ends at byte {end}, inside a {what} of {wanted} bytes")]
    Truncated {
        /// What was begun.
        what: &'static str,
        /// Length of the file.
        end: u64,
        /// Bytes that the thing should have.
        wanted: u64,
    },
    /// A length that no block can have.
    #[error("a block of type {kind:#010x} claims {len} bytes, which is {why}")]
    BlockLength {
        /// Type of the block.
        kind: u32,
        /// Its length as told.
        len: u32,
        /// What is wrong with it.
        why: &'static str,
    },
    /// The length at the end of a block differs from that at its start.
    #[error(
        "a block of type {kind:#010x} says {len} bytes at its start and {trailer} at its end (byte {at})"
    )]
    Trailer {
        /// Type of the block.
        kind: u32,
        /// Length at the start.
        len: u32,
        /// Length at the end.
        trailer: u32,
        /// Where the second length stands.
        at: u64,
    },
    /// A field inside a block that makes no sense.
    #[error("{what} (byte {at})")]
    Field {
        /// What is wrong.
        what: &'static str,
        /// Where the field stands.
        at: u64,
    },
    /// A packet that is larger than any can be.
    #[error("a packet claims {len} bytes; at most {MAX_PACKET} are allowed")]
    PacketLength {
        /// Its length as told.
        len: u32,
    },
    /// A packet of an interface that was not described.
    #[error("a packet refers to interface {interface}, but its section describes {known}")]
    UnknownInterface {
        /// The number in the packet.
        interface: u32,
        /// How many there are.
        known: usize,
    },
}

/// Byte order of a file or section.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Order {
    /// Least significant byte first.
    Little,
    /// Most significant byte first.
    Big,
}

impl Order {
    /// That of this machine.
    pub(crate) const NATIVE: Self = if cfg!(target_endian = "big") { Self::Big } else { Self::Little };

    /// Two bytes at `at`; 0 where the slice ends before.
    pub(crate) fn u16(self, bytes: &[u8], at: usize) -> u16 {
        let bytes = array(bytes, at);
        match self {
            Order::Little => u16::from_le_bytes(bytes),
            Order::Big => u16::from_be_bytes(bytes),
        }
    }

    /// Four bytes at `at`; 0 where the slice ends before.
    pub(crate) fn u32(self, bytes: &[u8], at: usize) -> u32 {
        let bytes = array(bytes, at);
        match self {
            Order::Little => u32::from_le_bytes(bytes),
            Order::Big => u32::from_be_bytes(bytes),
        }
    }
}

/// `N` bytes at `at`, or zeros: callers have checked lengths, this only spares them a panic path.
fn array<const N: usize>(bytes: &[u8], at: usize) -> [u8; N] {
    bytes.get(at..).and_then(|rest| rest.first_chunk::<N>()).copied().unwrap_or([0; N])
}
