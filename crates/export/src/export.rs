//! Export of streams in one of the formats: the common front of the writers, each of which has a file of its own.

use crate::output::{Output, failed};
use crate::{jsonl, mcap, pcapng, raw};
use holdfast_base::StreamId;
use holdfast_base::failure::{Failure, Result};
use holdfast_format::StreamKind;
use holdfast_reader::{Element, Item};
use holdfast_ring::StreamStatus;
use std::io::Write as _;

/// Format of an export.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// Payloads as they came, behind their preamble.
    Raw,
    /// Packets for Wireshark, tcpdump and others.
    Pcapng,
    /// One channel a stream, for Foxglove and others.
    Mcap,
    /// One JSON object a line.
    Jsonl,
}

impl Format {
    /// Its name on the command line.
    pub fn name(self) -> &'static str {
        match self {
            Self::Raw => "raw",
            Self::Pcapng => "pcapng",
            Self::Mcap => "mcap",
            Self::Jsonl => "jsonl",
        }
    }

    /// What fits these streams when nothing was said.
    pub fn fitting(streams: &[StreamStatus]) -> Self {
        match streams {
            [one] if one.kind == StreamKind::Packets => Self::Pcapng,
            [_] => Self::Raw,
            _ => Self::Jsonl,
        }
    }

    /// Whether it would only confuse a terminal.
    pub fn is_binary(self) -> bool {
        self != Self::Jsonl
    }
}

/// Export of streams in progress.
pub struct Export(Writer);

enum Writer {
    Raw(raw::Raw),
    Pcapng(pcapng::Pcapng),
    Mcap(Box<mcap::Mcap>),
    Jsonl(jsonl::Jsonl),
}

impl Export {
    /// Begins one of these streams.
    pub fn new(format: Format, streams: &[StreamStatus], output: Output) -> Result<Self> {
        if let (Format::Raw | Format::Pcapng, true) = (format, streams.len() != 1) {
            return Err(Failure::usage(format_args!("{} takes one stream", format.name()))
                .at("--stream")
                .advice("give it once, or choose --format mcap or jsonl"));
        }
        let writer = match format {
            Format::Raw => raw::Raw::new(&streams[0], output).map(Writer::Raw),
            Format::Pcapng => pcapng::Pcapng::new(&streams[0], output).map(Writer::Pcapng),
            Format::Mcap => Ok(Writer::Mcap(Box::new(mcap::Mcap::new(streams, output)))),
            Format::Jsonl => Ok(Writer::Jsonl(jsonl::Jsonl::new(streams, output))),
        };
        writer.map(Self)
    }

    /// Takes the next item.
    pub fn item(&mut self, item: &Item<'_>) -> Result<()> {
        match &mut self.0 {
            Writer::Raw(raw) => raw.item(item),
            Writer::Pcapng(pcapng) => pcapng.item(item),
            Writer::Mcap(mcap) => mcap.item(item),
            Writer::Jsonl(jsonl) => jsonl.item(item),
        }
    }

    /// Passes on what is gathered, so that a reader of the output sees it. MCAP is passed on in chunks of its own.
    pub fn flush(&mut self) -> Result<()> {
        let flushed = match &mut self.0 {
            Writer::Raw(raw) => raw.output.flush(),
            Writer::Pcapng(pcapng) => pcapng.output.flush(),
            Writer::Jsonl(jsonl) => jsonl.output.flush(),
            Writer::Mcap(_) => Ok(()),
        };
        flushed.map_err(|error| failed(&error))
    }

    /// Ends it and gives the output back.
    pub fn finish(self) -> Result<Output> {
        match self.0 {
            Writer::Raw(raw) => Ok(raw.output),
            Writer::Pcapng(pcapng) => Ok(pcapng.output),
            Writer::Mcap(mcap) => mcap.finish(),
            Writer::Jsonl(jsonl) => Ok(jsonl.output),
        }
    }
}

/// The place of a stream in the list that the export began with.
pub(crate) fn place(streams: &[StreamId], stream: StreamId) -> Option<usize> {
    streams.iter().position(|known| *known == stream)
}

/// When an element happened, as far as it is known: its event time, otherwise its arrival.
pub(crate) fn happened(element: &Element<'_>) -> holdfast_base::Timestamp {
    element.event.unwrap_or(element.arrival)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sample::{element, export, export_within, gap, interface, packet, stream};

    // Promise 8.
    #[test]
    fn every_format_says_that_the_disk_is_full_wherever_it_fills() {
        let large: Vec<u8> = (0..3 << 20).map(|at: u32| (at % 251) as u8).collect();
        let preamble = interface();
        for format in [Format::Raw, Format::Pcapng, Format::Mcap, Format::Jsonl] {
            let stream = if format == Format::Pcapng {
                stream(1, "eth0", StreamKind::Packets, "whole")
            } else {
                stream(1, "adc", StreamKind::Bytes, "fixed:3")
            };
            let items = [
                Item::Preamble { stream: StreamId(1), version: 1, bytes: &preamble },
                Item::Element(Element { tag: 0, ..element(0, &large) }),
                Item::Element(Element { tag: 0, data: &large, ..packet(1) }),
                gap(),
                Item::Element(Element { tag: 0, ..element(9, &large) }),
            ];
            let streams = [stream];
            let size = export(format, &streams, &items).unwrap().len();
            export_within(size, format, &streams, &items).unwrap();
            for room in (0..size).step_by(700_001).chain([size - 1]) {
                let failure = export_within(room, format, &streams, &items).unwrap_err().to_string();
                let wanted = "cannot write the export: no space left on device: make room";
                assert!(failure.starts_with(wanted), "{} in {room}: {failure}", format.name());
            }
        }
    }
}
