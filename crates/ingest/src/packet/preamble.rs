//! Preamble of a packet stream: everything in a capture file that packets need, in canonical pcapng.
//!
//! Little-endian; one section header, one interface description for each interface over all sections (with
//! nanosecond times), then name resolution, secrets, statistics and other blocks in the order of the file.
//! Packet blocks as `pcapng::write_packet` makes them may follow directly.

use super::pcapng::{self, options};
use super::{Broken, Damage, Interface, Item, LinkType, ReadError, ReadNotes, Reader};
use holdfast_base::{MAX_META, Timestamp};
use std::collections::BTreeMap;
use std::io::{self, Read};

/// A preamble that was made or checked here.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Preamble {
    bytes: Vec<u8>,
    interfaces: Vec<Interface>,
}

/// What is told of an interface that packets are taken from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LiveInterface<'a> {
    /// Its name, as the system has it.
    pub name: &'a str,
    /// What its packets start with.
    pub link_type: LinkType,
    /// Bytes kept of a packet; 0 for all.
    pub snaplen: u32,
    /// The filter, in tcpdump syntax.
    pub filter: Option<&'a str>,
    /// Its hardware address.
    pub mac: Option<[u8; 6]>,
    /// Its speed in bits a second.
    pub speed: Option<u64>,
}

/// What a look through a capture file found.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct ScanReport {
    /// Whole packets.
    pub packets: u64,
    /// Their captured bytes.
    pub bytes: u64,
    /// Captured bytes of the largest.
    pub largest: u64,
    /// Interfaces over all sections.
    pub interfaces: usize,
    /// Earliest and latest time of a packet.
    pub times: Option<(Timestamp, Timestamp)>,
    /// Blocks and section options that the preamble could not take over.
    pub left_out: u64,
    /// What packets and interfaces lost.
    pub notes: ReadNotes,
    /// Snapshot lengths that packets of their interfaces exceed.
    pub raised: Vec<RaisedSnaplen>,
    /// Packets whose original length is less than their captured one.
    pub originals_too_short: u64,
    /// Where the file stops being readable, if it does.
    pub broke: Option<Broken>,
    /// Bytes of memory in which the largest block has room.
    pub room: usize,
}

/// A snapshot length that the preamble raises to the longest packet, since libpcap refuses longer ones.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RaisedSnaplen {
    /// Length that the file declares.
    pub declared: u32,
    /// Length that the preamble declares.
    pub raised: u32,
}

/// Why a capture file cannot be used at all.
#[derive(Debug, thiserror::Error)]
pub enum ScanError {
    /// Nothing of it is readable.
    #[error(transparent)]
    NotACapture(Broken),
    /// Its preamble does not fit.
    #[error(
        "the interfaces and other blocks of this capture need more than {limit} bytes, the limit of a preamble"
    )]
    TooLarge {
        /// The limit given.
        limit: usize,
    },
    /// The source failed.
    #[error("cannot read the capture file after byte {after_byte}")]
    Io {
        /// All before this byte was read.
        after_byte: u64,
        /// What the source said.
        #[source]
        error: io::Error,
    },
}

/// Why bytes are no preamble.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PreambleError {
    /// They are damaged.
    #[error("the preamble is damaged: {0}")]
    Broken(#[from] Broken),
    /// They are something else.
    #[error("these bytes are not a packet preamble: {0}")]
    Wrong(&'static str),
    /// More interfaces were given than packets can name.
    #[error("a preamble has at most 65535 interfaces, not {0}")]
    TooMany(usize),
}

impl Preamble {
    /// The preamble of packets taken from these interfaces; a packet names them by their place here.
    pub fn live(interfaces: &[LiveInterface<'_>]) -> Result<Self, PreambleError> {
        if interfaces.len() > super::MAX_INTERFACES {
            return Err(PreambleError::TooMany(interfaces.len()));
        }
        let mut section = Vec::new();
        options::push(&mut section, options::SHB_HARDWARE, std::env::consts::ARCH.as_bytes());
        options::push(&mut section, options::SHB_OS, std::env::consts::OS.as_bytes());
        options::push(&mut section, options::SHB_APPLICATION, b"Holdfast");
        let mut builder = Builder::new();
        builder.section(&section);
        let interfaces: Vec<Interface> = interfaces.iter().map(LiveInterface::describe).collect();
        for interface in &interfaces {
            pcapng::push_interface(&mut builder.interfaces, interface);
        }
        Ok(Self { bytes: builder.finish(), interfaces })
    }

    /// Takes bytes that were a preamble before; see [`validate`](Self::validate).
    pub fn from_bytes(bytes: Vec<u8>) -> Result<Self, PreambleError> {
        let interfaces = Self::validate(&bytes)?;
        Ok(Self { bytes, interfaces })
    }

    /// Checks that `bytes` are a preamble: one little-endian section, nanosecond times, no packets. Gives the
    /// interfaces.
    pub fn validate(bytes: &[u8]) -> Result<Vec<Interface>, PreambleError> {
        // A pcap header or a big-endian section is a capture file, but no preamble.
        if !bytes.starts_with(&[0x0a, 0x0d, 0x0d, 0x0a]) || bytes.get(8) != Some(&0x4d) {
            return Err(PreambleError::Wrong("they do not start with a little-endian pcapng section header"));
        }
        let mut reader = Reader::new(bytes);
        let mut sections = 0;
        loop {
            match reader.next_item() {
                Ok(Some(Item::Section { .. })) => sections += 1,
                Ok(Some(Item::Packet(_))) => {
                    return Err(PreambleError::Wrong("there is a packet among them"));
                }
                Ok(Some(_)) => {}
                Ok(None) => break,
                Err(ReadError::Broken(broken)) => return Err(broken.into()),
                Err(ReadError::Io { .. }) => return Err(PreambleError::Wrong("they cannot be read")),
            }
        }
        if sections > 1 {
            return Err(PreambleError::Wrong("there is more than one section"));
        }
        let interfaces = reader.interfaces();
        if interfaces.iter().any(|one| !one.times_are_plain()) {
            return Err(PreambleError::Wrong("an interface's times are not in nanoseconds"));
        }
        Ok(interfaces.to_vec())
    }

    /// The bytes, to stand in front of packet blocks.
    pub fn as_bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// The interfaces that packets name by their index.
    pub fn interfaces(&self) -> &[Interface] {
        &self.interfaces
    }
}

impl LiveInterface<'_> {
    fn describe(&self) -> Interface {
        let mut interface = Interface::plain(self.link_type, self.snaplen);
        let out = &mut interface.options;
        options::push(out, options::IF_NAME, self.name.as_bytes());
        if let Some(mac) = self.mac {
            options::push(out, options::IF_MAC, &mac);
        }
        if let Some(speed) = self.speed {
            options::push(out, options::IF_SPEED, &speed.to_le_bytes());
        }
        // A first byte of 0 says that a text follows; a text that the format cannot hold is not told.
        if let Some(filter) = self.filter.filter(|text| text.len() < usize::from(u16::MAX) / 2) {
            options::push(out, options::IF_FILTER, &[&[0], filter.as_bytes()].concat());
        }
        interface
    }
}

/// Looks through a whole capture file: makes its preamble, of at most `limit` bytes, and counts.
pub fn scan(source: impl Read, limit: usize) -> Result<(Preamble, ScanReport), ScanError> {
    scan_within(source, u64::MAX, limit)
}

/// The same, of a file of `length` bytes: a block that says it is longer than what is left takes no memory.
pub fn scan_within(
    source: impl Read,
    length: u64,
    limit: usize,
) -> Result<(Preamble, ScanReport), ScanError> {
    let mut reader = Reader::within(source, length, Vec::new());
    let mut builder = Builder::new();
    let mut report = ScanReport::default();
    let mut described = 0;
    let mut largest: Vec<u32> = Vec::new();
    loop {
        // Descriptions are in the reader; they are taken over when the next item comes.
        for interface in &reader.interfaces()[described..] {
            pcapng::push_interface(&mut builder.interfaces, interface);
        }
        described = reader.interfaces().len();
        largest.resize(described, 0);
        if builder.len() > limit {
            return Err(ScanError::TooLarge { limit });
        }
        match reader.next_item() {
            Ok(Some(Item::Packet(packet))) => {
                let size = packet.data.len() as u64;
                report.packets += 1;
                report.bytes += size;
                report.largest = report.largest.max(size);
                if let Some(largest) = largest.get_mut(usize::from(packet.interface)) {
                    *largest = (*largest).max(packet.data.len() as u32);
                }
                report.originals_too_short += u64::from(u64::from(packet.original_len) < size);
                if let Some(time) = packet.time {
                    let (first, last) = report.times.unwrap_or((time, time));
                    report.times = Some((first.min(time), last.max(time)));
                }
            }
            Ok(Some(Item::Section { options })) => builder.section(options),
            Ok(Some(Item::Interface(_))) => {}
            Ok(Some(Item::Other(block))) => {
                if !pcapng::canonical_other(&mut builder.others, &block) {
                    builder.left_out += 1;
                }
            }
            Ok(None) => break,
            Err(ReadError::Broken(broken)) => {
                let nothing = broken.at_byte == 0 || matches!(broken.damage, Damage::NotACapture(_));
                if nothing {
                    return Err(ScanError::NotACapture(broken));
                }
                report.broke = Some(broken);
                break;
            }
            Err(ReadError::Io { after_byte, error }) => return Err(ScanError::Io { after_byte, error }),
        }
    }
    report.interfaces = described;
    report.left_out = builder.left_out;
    report.notes = reader.notes();
    report.room = reader.room();
    let mut interfaces = reader.plain_interfaces();
    report.raised = raise_snaplens(&mut interfaces, &largest);
    builder.interfaces.clear();
    for interface in &interfaces {
        pcapng::push_interface(&mut builder.interfaces, interface);
    }
    Ok((Preamble { bytes: builder.finish(), interfaces }, report))
}

/// Raises snapshot lengths to the longest packet of their interfaces. Interfaces that declare the same length are
/// raised together: libpcap refuses interfaces of different lengths, too.
fn raise_snaplens(interfaces: &mut [Interface], largest: &[u32]) -> Vec<RaisedSnaplen> {
    let mut needed: BTreeMap<u32, u32> = BTreeMap::new();
    for (interface, largest) in interfaces.iter().zip(largest) {
        // A length of 0 is no limit.
        if interface.snaplen != 0 && *largest > interface.snaplen {
            let raised = needed.entry(interface.snaplen).or_default();
            *raised = (*raised).max(*largest);
        }
    }
    for interface in interfaces {
        interface.snaplen = needed.get(&interface.snaplen).copied().unwrap_or(interface.snaplen);
    }
    needed.into_iter().map(|(declared, raised)| RaisedSnaplen { declared, raised }).collect()
}

/// Collects the parts of a preamble, which may come in any order.
struct Builder {
    section: Option<Vec<u8>>,
    interfaces: Vec<u8>,
    others: Vec<u8>,
    left_out: u64,
}

impl Builder {
    fn new() -> Self {
        Self { section: None, interfaces: Vec::new(), others: Vec::new(), left_out: 0 }
    }

    /// Takes the options of a section: all of the first; of later ones those that may stand more than once.
    fn section(&mut self, bytes: &[u8]) {
        let Some(section) = &mut self.section else {
            self.section = Some(bytes.to_vec());
            return;
        };
        for (code, value) in options::iter(bytes) {
            let repeatable = code == options::COMMENT || options::CUSTOM.contains(&code);
            if options::iter(section).any(|known| known == (code, value)) {
                continue;
            }
            if repeatable && section.len() + options::size(value) <= MAX_META {
                options::push(section, code, value);
            } else {
                self.left_out += 1;
            }
        }
    }

    fn len(&self) -> usize {
        const SECTION: usize = 32;
        let section = self.section.as_ref().map_or(0, Vec::len);
        SECTION + section + self.interfaces.len() + self.others.len()
    }

    fn finish(self) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(self.len());
        pcapng::push_section(&mut bytes, &self.section.unwrap_or_default());
        bytes.extend_from_slice(&self.interfaces);
        bytes.extend_from_slice(&self.others);
        bytes
    }
}
