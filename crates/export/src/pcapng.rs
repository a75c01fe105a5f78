//! pcapng: the preamble's blocks, then one enhanced packet block an element, with nanosecond times.

use crate::export::happened;
use crate::output::{Output, failed};
use holdfast_base::failure::{Failure, Result};
use holdfast_format::{Direction, Flags, StreamKind};
use holdfast_ingest::packet::pcapng::write_packet;
use holdfast_ingest::packet::{self, Direction as Way, Interface, Packet, Preamble, Reception};
use holdfast_reader::{Element, Item};
use holdfast_ring::StreamStatus;
use std::io::Write;

/// An export of one packet stream.
pub(crate) struct Pcapng {
    pub(crate) output: Output,
    name: String,
    preamble: Vec<u8>,
    interfaces: usize,
}

impl Pcapng {
    pub(crate) fn new(stream: &StreamStatus, output: Output) -> Result<Self> {
        if stream.kind != StreamKind::Packets {
            return Err(Failure::usage(format_args!(
                "stream `{}` has no packets: it was recorded with the framing {}",
                stream.name, stream.framing
            ))
            .at("--format pcapng")
            .advice("choose --format mcap or jsonl"));
        }
        Ok(Self { output, name: stream.name.clone(), preamble: Vec::new(), interfaces: 0 })
    }

    pub(crate) fn item(&mut self, item: &Item<'_>) -> Result<()> {
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
        self.interfaces = interfaces(&self.name, bytes)?.len();
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
        write_packet(&mut self.output, &packet(element)).map_err(|error| failed(&error))
    }
}

/// The interfaces that a stream's preamble describes.
pub(crate) fn interfaces(stream: &str, preamble: &[u8]) -> Result<Vec<Interface>> {
    Preamble::validate(preamble).map_err(|error| {
        Failure::failed(format_args!("the preamble of stream `{stream}` cannot be used: {error}"))
    })
}

/// An element as the packet that it is.
pub(crate) fn packet<'a>(element: &Element<'a>) -> Packet<'a> {
    let direction = match element.flags.direction() {
        Direction::Unknown => Way::Unknown,
        Direction::In => Way::Inbound,
        Direction::Out => Way::Outbound,
    };
    Packet {
        interface: element.tag,
        time: Some(happened(element)),
        original_len: u32::try_from(element.data.len()).unwrap_or(u32::MAX).saturating_add(element.extra),
        flags: packet::Flags::new(direction, Reception::Unknown),
        options: if element.flags.has(Flags::PCAPNG_OPTIONS) { element.meta } else { &[] },
        data: element.data,
    }
}

#[cfg(test)]
mod tests {
    use crate::Format;
    use crate::sample::{START, element, export, interface, packet, stream};
    use holdfast_base::{StreamId, Timestamp};
    use holdfast_format::StreamKind;
    use holdfast_ingest::packet::{Direction, Reader};
    use holdfast_reader::{Element, Item};

    #[test]
    fn packets_come_back_with_times_lengths_direction_and_comments() {
        let preamble = interface();
        let first = Item::Preamble { stream: StreamId(1), version: 1, bytes: &preamble };
        let plain = Element { tag: 0, ..element(1, b"0123456789abcdef") };
        let items = [first, Item::Element(packet(0)), first, Item::Element(plain)];
        let file =
            export(Format::Pcapng, &[stream(1, "eth0", StreamKind::Packets, "whole")], &items).unwrap();
        assert!(file.starts_with(&preamble));
        let mut reader = Reader::new(&file[..]);
        let read = reader.next_packet().unwrap().unwrap();
        assert_eq!(read.time, Some(Timestamp(START - 5)), "the event time, where there is one");
        assert_eq!((read.data, read.original_len), (packet(0).data, packet(0).data.len() as u32 + 100));
        assert_eq!(read.flags.direction(), Direction::Inbound);
        assert!(read.options.starts_with(packet(0).meta));
        let read = reader.next_packet().unwrap().unwrap();
        assert_eq!(
            (read.time, read.data),
            (Some(Timestamp(START + 1_000_000_000)), &b"0123456789abcdef"[..])
        );
        assert_eq!(reader.next_packet().unwrap(), None, "the same preamble twice is one section");
        assert_eq!(reader.interfaces()[0].name(), Some("eth0"));
    }

    #[test]
    fn what_is_not_packets_is_refused() {
        let bytes = [stream(1, "adc", StreamKind::Bytes, "fixed:4")];
        let failure = export(Format::Pcapng, &bytes, &[]).unwrap_err();
        assert_eq!(failure.number(), 2);
        assert!(failure.to_string().contains("`adc` has no packets") && failure.to_string().contains("mcap"));
        let packets = [stream(1, "eth0", StreamKind::Packets, "whole")];
        let failure = export(Format::Pcapng, &packets, &[Item::Element(packet(0))]).unwrap_err();
        assert!(failure.to_string().contains("the preamble describes 0"), "{failure}");
        let wrong = Item::Preamble { stream: StreamId(1), version: 1, bytes: b"SIMPLE  =" };
        assert!(export(Format::Pcapng, &packets, &[wrong]).is_err());
        assert!(export(Format::Pcapng, &[packets.clone(), bytes].concat(), &[]).is_err());
    }
}
