//! Builder of capture files in both byte orders. Shares no code with the readers under test.

use holdfast_base::Timestamp;
use holdfast_ingest::packet::{Flags, Packet, ReadError, Reader};

/// A packet that owns its bytes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Owned {
    pub(crate) interface: u16,
    pub(crate) time: Option<Timestamp>,
    pub(crate) original_len: u32,
    pub(crate) flags: Flags,
    pub(crate) options: Vec<u8>,
    pub(crate) data: Vec<u8>,
}

impl From<Packet<'_>> for Owned {
    fn from(packet: Packet<'_>) -> Self {
        Self {
            interface: packet.interface,
            time: packet.time,
            original_len: packet.original_len,
            flags: packet.flags,
            options: packet.options.to_vec(),
            data: packet.data.to_vec(),
        }
    }
}

impl Owned {
    pub(crate) fn borrow(&self) -> Packet<'_> {
        Packet {
            interface: self.interface,
            time: self.time,
            original_len: self.original_len,
            flags: self.flags,
            options: &self.options,
            data: &self.data,
        }
    }
}

/// All packets up to the end or to damage.
pub(crate) fn read_all(bytes: &[u8]) -> (Vec<Owned>, Option<ReadError>) {
    let mut reader = Reader::new(bytes);
    let mut packets = Vec::new();
    loop {
        match reader.next_packet() {
            Ok(Some(packet)) => packets.push(packet.into()),
            Ok(None) => return (packets, None),
            Err(error) => return (packets, Some(error)),
        }
    }
}

/// All packets of a file that is whole.
pub(crate) fn read_whole(bytes: &[u8]) -> Vec<Owned> {
    let (packets, error) = read_all(bytes);
    assert!(error.is_none(), "{error:?}");
    packets
}

/// A file under construction; remembers where each block or record ends.
#[derive(Clone, Debug)]
pub(crate) struct File {
    pub(crate) big: bool,
    pub(crate) bytes: Vec<u8>,
    /// Ends of all units, and how many packets there are up to each.
    pub(crate) ends: Vec<(usize, usize)>,
    packets: usize,
}

impl File {
    pub(crate) fn new(big: bool) -> Self {
        Self { big, bytes: Vec::new(), ends: Vec::new(), packets: 0 }
    }

    pub(crate) fn u16(&self, value: u16) -> Vec<u8> {
        if self.big { value.to_be_bytes().to_vec() } else { value.to_le_bytes().to_vec() }
    }

    pub(crate) fn u32(&self, value: u32) -> Vec<u8> {
        if self.big { value.to_be_bytes().to_vec() } else { value.to_le_bytes().to_vec() }
    }

    pub(crate) fn u64(&self, value: u64) -> Vec<u8> {
        if self.big { value.to_be_bytes().to_vec() } else { value.to_le_bytes().to_vec() }
    }

    fn end(&mut self, packets: usize) {
        self.packets += packets;
        self.ends.push((self.bytes.len(), self.packets));
    }

    /// A pcap file header.
    pub(crate) fn pcap(&mut self, magic: u32, snaplen: u32, network: u32) {
        let parts = [
            self.u32(magic),
            self.u16(2),
            self.u16(4),
            self.u32(0),
            self.u32(0),
            self.u32(snaplen),
            self.u32(network),
        ];
        self.bytes.extend(parts.concat());
        self.end(0);
    }

    /// A pcap record; `extra` goes between header and data.
    pub(crate) fn record(&mut self, seconds: u32, fraction: u32, original: u32, extra: &[u8], data: &[u8]) {
        let parts = [self.u32(seconds), self.u32(fraction), self.u32(data.len() as u32), self.u32(original)];
        self.bytes.extend(parts.concat());
        self.bytes.extend(extra);
        self.bytes.extend(data);
        self.end(1);
    }

    /// An option.
    pub(crate) fn option(&self, code: u16, value: &[u8]) -> Vec<u8> {
        [self.u16(code), self.u16(value.len() as u16), pad(value)].concat()
    }

    /// A pcapng block.
    pub(crate) fn block(&mut self, kind: u32, body: &[u8]) {
        let body = pad(body);
        let len = self.u32(body.len() as u32 + 12);
        let block = [self.u32(kind), len.clone(), body, len].concat();
        self.bytes.extend(block);
        self.end(usize::from(matches!(kind, 2 | 3 | 6)));
    }

    pub(crate) fn section(&mut self, options: &[u8]) {
        let body =
            [self.u32(0x1a2b_3c4d), self.u16(1), self.u16(0), vec![0xff; 8], options.to_vec()].concat();
        self.block(0x0a0d_0d0a, &body);
    }

    pub(crate) fn interface(&mut self, link_type: u16, snaplen: u32, options: &[u8]) {
        let body = [self.u16(link_type), self.u16(0), self.u32(snaplen), options.to_vec()].concat();
        self.block(1, &body);
    }

    /// An enhanced packet block.
    pub(crate) fn packet(&mut self, interface: u32, ticks: u64, original: u32, data: &[u8], options: &[u8]) {
        let body = [
            self.u32(interface),
            self.u32((ticks >> 32) as u32),
            self.u32(ticks as u32),
            self.u32(data.len() as u32),
            self.u32(original),
            pad(data),
            options.to_vec(),
        ]
        .concat();
        self.block(6, &body);
    }

    /// An obsolete packet block.
    pub(crate) fn old_packet(&mut self, interface: u16, drops: u16, ticks: u64, data: &[u8], options: &[u8]) {
        let body = [
            self.u16(interface),
            self.u16(drops),
            self.u32((ticks >> 32) as u32),
            self.u32(ticks as u32),
            self.u32(data.len() as u32),
            self.u32(data.len() as u32),
            pad(data),
            options.to_vec(),
        ]
        .concat();
        self.block(2, &body);
    }

    /// A simple packet block; `data` is what the snap length leaves of `original` bytes.
    pub(crate) fn simple_packet(&mut self, original: u32, data: &[u8]) {
        let body = [self.u32(original), pad(data)].concat();
        self.block(3, &body);
    }

    /// One of everything, over two sections.
    pub(crate) fn mixed(big: bool) -> Self {
        let mut file = Self::new(big);
        file.section(&file.option(4, b"by hand"));
        let options = [file.option(2, b"eth0"), file.option(9, &[9])].concat();
        file.interface(1, 64, &options);
        file.packet(0, 1_000_000_001, 5, b"first", &file.option(1, b"seen"));
        file.block(0x7000_0001, b"unknown");
        file.old_packet(0, 3, 2_000_000_002, b"second", &[]);
        file.simple_packet(100, &[7; 64]);
        file.big = !big;
        file.section(&[]);
        file.interface(101, 0, &[]);
        file.packet(0, 3_000_003, 9, b"fourth", &[]);
        file
    }
}

/// The bytes, filled up to a multiple of four.
pub(crate) fn pad(bytes: &[u8]) -> Vec<u8> {
    let mut padded = bytes.to_vec();
    padded.resize(bytes.len().next_multiple_of(4), 0);
    padded
}
