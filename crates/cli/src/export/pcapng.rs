//! pcapng: the preamble's blocks, then one enhanced packet block an element, with nanosecond times.

use super::happened;
use super::output::{Output, failed};
use crate::failure::{Failure, Result};
use holdfast_format::{Direction, Flags, StreamKind};
use holdfast_ingest::packet::{self, Packet, Preamble};
use holdfast_link::{Element, Item};
use holdfast_ring::StreamStatus;
use std::io::Write;

/// An export of one packet stream.
pub(crate) struct Pcapng {
    pub(super) output: Output,
    name: String,
    preamble: Vec<u8>,
    interfaces: usize,
}

impl Pcapng {
    pub(super) fn new(stream: &StreamStatus, output: Output) -> Result<Self> {
        if stream.kind != StreamKind::Packets {
            return Err(Failure::usage(format_args!(
                "stream `{}` has no packets: it was recorded with the framing {}",
                stream.name, stream.framing
            ))
            .at("--format pcapng")
            .advice("choose --format raw, mcap or jsonl"));
        }
        Ok(Self { output, name: stream.name.clone(), preamble: Vec::new(), interfaces: 0 })
    }

    pub(super) fn item(&mut self, item: &Item<'_>) -> Result<()> {
        match item {
            Item::Preamble { bytes, .. } => self.section(bytes),
            Item::Element(element) => self.packet(element),
            _ => Ok(()),
        }
    }

    /// A preamble begins a section; a changed one in the middle of the range another.
    fn section(&mut self, bytes: &[u8]) -> Result<()> {
        if bytes == self.preamble {
            return Ok(());
        }
        let interfaces = Preamble::validate(bytes).map_err(|error| {
            Failure::failed(format_args!("the preamble of stream `{}` cannot be used: {error}", self.name))
        })?;
        self.interfaces = interfaces.len();
        self.preamble = bytes.to_vec();
        self.output.write_all(bytes).map_err(|error| failed(&error))
    }

    fn packet(&mut self, element: &Element<'_>) -> Result<()> {
        if usize::from(element.tag) >= self.interfaces {
            return Err(Failure::failed(format_args!(
                "packet {} of stream `{}` is of interface {}, and the preamble describes {}",
                element.ordinal, self.name, element.tag, self.interfaces
            ))
            .advice("choose --format jsonl or raw, and report this"));
        }
        let direction = match element.flags.direction() {
            Direction::Unknown => packet::Direction::Unknown,
            Direction::In => packet::Direction::Inbound,
            Direction::Out => packet::Direction::Outbound,
        };
        let options = if element.flags.has(Flags::PCAPNG_OPTIONS) { element.meta } else { &[] };
        let packet = Packet {
            interface: element.tag,
            time: Some(happened(element)),
            original_len: u32::try_from(element.data.len()).unwrap_or(u32::MAX).saturating_add(element.extra),
            flags: packet::Flags::new(direction, packet::Reception::Unknown),
            options,
            data: element.data,
        };
        packet::pcapng::write_packet(&mut self.output, &packet).map_err(|error| failed(&error))
    }
}
