//! Reader of capture files of either format, as a stream of items.
//!
//! Here is what belongs to a whole file: telling the formats apart, the list of interfaces over all sections,
//! positions, and stopping at damage. Single blocks and records are `pcapng`'s and `pcap`'s.

use super::input::Input;
use super::pcapng::options::{self, Owner};
use super::{
    Broken, Damage, Flags, Interface, MAX_ALL_INTERFACE_OPTIONS, MAX_INTERFACES, Order, Packet, pcap, pcapng,
};
use holdfast_base::{MAX_META, Timestamp};
use std::io::{self, Read};
use std::ops::Range;

/// Why the next item cannot be had.
#[derive(Debug, thiserror::Error)]
pub enum ReadError {
    /// The file is damaged or cut here; the reader says so again when asked again.
    #[error(transparent)]
    Broken(#[from] Broken),
    /// The source failed; nothing is lost, reading may be tried again.
    #[error("cannot read the capture file after byte {after_byte}")]
    Io {
        /// All before this byte was delivered.
        after_byte: u64,
        /// What the source said.
        #[source]
        error: io::Error,
    },
}

/// What was read but could not be given in full.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct ReadNotes {
    /// Options of packets and interfaces beyond the limit on their size.
    pub options_left_out: u64,
    /// Packets whose time does not fit nanoseconds since 1970 in 63 bits.
    pub times_left_out: u64,
}

/// One thing in a capture file.
#[derive(Clone, Copy, Debug)]
pub enum Item<'a> {
    /// A section starts; its options are canonical.
    Section {
        /// What the section says of itself.
        options: &'a [u8],
    },
    /// An interface was described; here is its index over all sections.
    Interface(u16),
    /// A packet.
    Packet(Packet<'a>),
    /// Any other block.
    Other(OtherBlock<'a>),
}

/// A pcapng block that is neither section header, interface nor packet, as it is in the file.
#[derive(Clone, Copy, Debug)]
pub struct OtherBlock<'a> {
    /// Its type.
    pub kind: u32,
    /// Byte order of its section.
    pub order: Order,
    /// What is between its two lengths.
    pub body: &'a [u8],
    /// Index, over all sections, of its section's first interface.
    pub first_interface: u16,
    /// The interfaces of its section so far.
    pub interfaces: &'a [Interface],
}

/// Reads a capture file. Memory is bounded by the largest packet, and nothing is allocated per packet.
#[derive(Debug)]
pub struct Reader<R> {
    input: Input<R>,
    format: Format,
    interfaces: Vec<Interface>,
    option_bytes: usize,
    /// Bytes of the unit that was handed out last.
    unit: usize,
    /// Options that had to be made longer than in the file.
    scratch: Vec<u8>,
    notes: ReadNotes,
    broken: Option<Broken>,
}

#[derive(Clone, Copy, Debug)]
enum Format {
    Unknown,
    Pcap(pcap::Header),
    Pcapng { order: Option<Order>, first_interface: usize },
}

/// An item by its places in the current unit.
enum ParseStep {
    Section(Range<usize>),
    Interface(u16),
    Packet(Parts),
    Other { kind: u32, order: Order, body: Range<usize>, first_interface: usize },
}

struct Parts {
    interface: u16,
    time: Option<Timestamp>,
    original_len: u32,
    flags: Flags,
    options: Range<usize>,
    options_in_scratch: bool,
    data: Range<usize>,
}

/// Bytes of a packet's options that are kept; an old packet block's drop count must still fit behind them.
const MAX_OPTIONS: usize = MAX_META - 12;

/// Why a step failed, before it is known where.
enum ParseError {
    Damage(Damage),
    Io(io::Error),
}

impl From<Damage> for ParseError {
    fn from(damage: Damage) -> Self {
        Self::Damage(damage)
    }
}

impl From<io::Error> for ParseError {
    fn from(error: io::Error) -> Self {
        Self::Io(error)
    }
}

impl<R: Read> Reader<R> {
    /// A reader of the capture file that `source` gives from its first byte on.
    pub fn new(source: R) -> Self {
        Self::within(source, u64::MAX, Vec::new())
    }

    /// The same, of a file of `length` bytes and in memory that is there already: where it is as large as
    /// [`Reader::room`] said after the file was read before, none is allocated for blocks.
    pub fn within(source: R, length: u64, memory: Vec<u8>) -> Self {
        Self {
            input: Input::within(source, length, memory),
            format: Format::Unknown,
            interfaces: Vec::new(),
            option_bytes: 0,
            unit: 0,
            scratch: Vec::new(),
            notes: ReadNotes::default(),
            broken: None,
        }
    }

    /// Forgets what was read, but keeps its memory: the source begins anew with its first byte.
    pub(crate) fn begin_again(&mut self) {
        self.input.begin_again();
        self.format = Format::Unknown;
        self.interfaces.clear();
        (self.option_bytes, self.unit) = (0, 0);
        self.scratch.clear();
        self.notes = ReadNotes::default();
        self.broken = None;
    }

    /// The interfaces described so far, over all sections.
    pub fn interfaces(&self) -> &[Interface] {
        &self.interfaces
    }

    /// The same as a preamble describes them: with nanosecond times.
    pub(crate) fn plain_interfaces(mut self) -> Vec<Interface> {
        for interface in &mut self.interfaces {
            *interface = Interface {
                options: std::mem::take(&mut interface.options),
                ..Interface::plain(interface.link_type, interface.snaplen)
            };
        }
        self.interfaces
    }

    /// Bytes of memory in which every block so far would have had room.
    pub fn room(&self) -> usize {
        self.input.room()
    }

    /// Bytes of memory that it has for blocks.
    pub fn memory(&self) -> usize {
        self.input.memory()
    }

    /// What could not be given in full so far.
    pub fn notes(&self) -> ReadNotes {
        self.notes
    }

    /// Position in the file behind everything that was delivered.
    pub fn position(&self) -> u64 {
        self.input.position() + self.unit as u64
    }

    /// The next packet; `None` at the end of a whole file.
    pub fn next_packet(&mut self) -> Result<Option<Packet<'_>>, ReadError> {
        loop {
            match self.step()? {
                Some(ParseStep::Packet(parts)) => return Ok(Some(self.packet(&parts))),
                Some(_) => {}
                None => return Ok(None),
            }
        }
    }

    /// The next item of any kind; `None` at the end of a whole file.
    pub fn next_item(&mut self) -> Result<Option<Item<'_>>, ReadError> {
        let Some(step) = self.step()? else { return Ok(None) };
        let unit = self.input.unit(self.unit);
        Ok(Some(match step {
            ParseStep::Section(options) => Item::Section { options: &unit[options] },
            ParseStep::Interface(index) => Item::Interface(index),
            ParseStep::Packet(parts) => Item::Packet(self.packet(&parts)),
            ParseStep::Other { kind, order, body, first_interface } => Item::Other(OtherBlock {
                kind,
                order,
                body: &unit[body],
                first_interface: first_interface as u16,
                interfaces: &self.interfaces[first_interface..],
            }),
        }))
    }

    fn packet(&self, parts: &Parts) -> Packet<'_> {
        let unit = self.input.unit(self.unit);
        let options = if parts.options_in_scratch { &self.scratch[..] } else { &unit[parts.options.clone()] };
        Packet {
            interface: parts.interface,
            time: parts.time,
            original_len: parts.original_len,
            flags: parts.flags,
            options,
            data: &unit[parts.data.clone()],
        }
    }

    /// Goes to the next item, and remembers damage.
    fn step(&mut self) -> Result<Option<ParseStep>, ReadError> {
        if let Some(broken) = &self.broken {
            return Err(broken.clone().into());
        }
        self.input.skip(std::mem::take(&mut self.unit));
        let stepped = match self.format {
            Format::Unknown => self.open(),
            Format::Pcap(header) => self.record(header),
            Format::Pcapng { order, first_interface } => self.block(order, first_interface),
        };
        let at_byte = self.input.position();
        stepped.map_err(|stop| match stop {
            ParseError::Damage(damage) => {
                let broken = Broken { at_byte, damage };
                self.broken = Some(broken.clone());
                ReadError::Broken(broken)
            }
            ParseError::Io(error) => ReadError::Io { after_byte: at_byte, error },
        })
    }

    /// Makes sure of `wanted` bytes of `what`; `false` when there is nothing at all any more.
    fn want(&mut self, wanted: usize, what: &'static str) -> Result<bool, ParseError> {
        let have = self.input.want(wanted)?;
        if have > 0 && have < wanted {
            let end = self.input.position() + have as u64;
            return Err(Damage::Truncated { what, end, wanted: wanted as u64 }.into());
        }
        Ok(have == wanted)
    }

    /// Tells the format and reads a pcap file's header.
    fn open(&mut self) -> Result<Option<ParseStep>, ParseError> {
        if !self.want(4, "file header")? {
            return Err(Damage::Truncated { what: "file header", end: 0, wanted: 4 }.into());
        }
        let start = self.input.unit(4);
        if Order::Little.u32(start, 0) == pcapng::SECTION {
            self.format = Format::Pcapng { order: None, first_interface: 0 };
            return self.block(None, 0);
        }
        let Some(order) = pcap::order(start) else {
            return Err(Damage::NotACapture(start.to_vec()).into());
        };
        self.want(pcap::FILE_HEADER, "file header")?;
        let (header, interface) = pcap::Header::parse(self.input.unit(pcap::FILE_HEADER), order)?;
        self.interfaces.push(interface);
        self.unit = pcap::FILE_HEADER;
        self.format = Format::Pcap(header);
        Ok(Some(ParseStep::Interface(0)))
    }

    fn record(&mut self, header: pcap::Header) -> Result<Option<ParseStep>, ParseError> {
        let head = header.record_len();
        if !self.want(head, "record header")? {
            return Ok(None);
        }
        let record = header.record(self.input.unit(head))?;
        let len = head + record.captured as usize;
        self.want(len, "record")?;
        self.unit = len;
        Ok(Some(ParseStep::Packet(Parts {
            interface: 0,
            time: record.time,
            original_len: record.original,
            flags: record.flags,
            options: 0..0,
            options_in_scratch: false,
            data: head..len,
        })))
    }

    fn block(
        &mut self,
        order: Option<Order>,
        first_interface: usize,
    ) -> Result<Option<ParseStep>, ParseError> {
        if !self.want(pcapng::BLOCK_HEAD, "block")? {
            return Ok(None);
        }
        let at = self.input.position();
        let head = pcapng::head(self.input.unit(pcapng::BLOCK_HEAD), order, at)?;
        self.want(head.len, "block")?;
        pcapng::check_trailer(self.input.unit(head.len), head, at)?;
        let step = match head.kind {
            pcapng::SECTION => self.section(head, at)?,
            pcapng::INTERFACE => self.interface(head, at)?,
            pcapng::PACKET | pcapng::OLD_PACKET | pcapng::SIMPLE_PACKET => {
                self.packet_block(head, at, first_interface)?
            }
            kind => {
                let body = pcapng::BODY..head.len - 4;
                ParseStep::Other { kind, order: head.order, body, first_interface }
            }
        };
        self.unit = head.len;
        Ok(Some(step))
    }

    fn section(&mut self, head: pcapng::Head, at: u64) -> Result<ParseStep, ParseError> {
        let block = self.input.unit_mut(head.len);
        let options = pcapng::section(block, head, at)?;
        let bytes = &mut block[options.clone()];
        let done = options::canonicalise(bytes, head.order, Owner::Section, MAX_META)
            .map_err(|bad| pcapng::bad_option(bad, at + options.start as u64))?;
        self.notes.options_left_out += done.left_out;
        self.format = Format::Pcapng { order: Some(head.order), first_interface: self.interfaces.len() };
        Ok(ParseStep::Section(options.start..options.start + done.len))
    }

    fn interface(&mut self, head: pcapng::Head, at: u64) -> Result<ParseStep, ParseError> {
        if self.interfaces.len() >= MAX_INTERFACES {
            return Err(Damage::Field { what: "there are more than 65535 interfaces", at }.into());
        }
        let (interface, left_out) = pcapng::interface(self.input.unit_mut(head.len), head, at)?;
        self.option_bytes += interface.options.len();
        if self.option_bytes > MAX_ALL_INTERFACE_OPTIONS {
            return Err(Damage::Field { what: "all interface descriptions exceed 16 MiB", at }.into());
        }
        self.notes.options_left_out += left_out;
        self.interfaces.push(interface);
        Ok(ParseStep::Interface((self.interfaces.len() - 1) as u16))
    }

    fn packet_block(&mut self, head: pcapng::Head, at: u64, first: usize) -> Result<ParseStep, ParseError> {
        let known = &self.interfaces[first..];
        let block = self.input.unit_mut(head.len);
        let parts = pcapng::packet(block, head, at, known.first().map_or(0, |one| one.snaplen))?;
        let Some(interface) = known.get(parts.interface as usize) else {
            return Err(Damage::UnknownInterface { interface: parts.interface, known: known.len() }.into());
        };
        let mut options = parts.options;
        let bytes = &mut block[options.clone()];
        let done = options::canonicalise(bytes, head.order, Owner::Packet, MAX_OPTIONS)
            .map_err(|bad| pcapng::bad_option(bad, at + options.start as u64))?;
        options.end = options.start + done.len;
        self.notes.options_left_out += done.left_out;
        if let Some(drops) = parts.drops {
            self.scratch.clear();
            self.scratch.extend_from_slice(&block[options.clone()]);
            options::push(&mut self.scratch, options::PACKET_DROPS, &u64::from(drops).to_le_bytes());
        }
        let time = parts.ticks.and_then(|ticks| interface.time(ticks));
        if parts.ticks.is_some() && time.is_none() {
            self.notes.times_left_out += 1;
        }
        let flags = options::find(&block[options.clone()], options::PACKET_FLAGS)
            .and_then(|value| value.try_into().ok())
            .map_or(Flags::default(), |value| Flags(u32::from_le_bytes(value)));
        Ok(ParseStep::Packet(Parts {
            interface: (first + parts.interface as usize) as u16,
            time,
            original_len: parts.original_len,
            flags,
            options,
            options_in_scratch: parts.drops.is_some(),
            data: parts.data,
        }))
    }
}
