//! From what the reader gives to files that other programs read. Which elements and where to is `commands/read.rs`'s;
//! what of it is wanted is `sink`'s, where the bytes go `output`'s; each form has a file of its own.

pub(crate) mod filter;
mod hashing;
mod jsonl;
mod mcap;
pub(crate) mod output;
mod pcapng;
mod raw;
pub(crate) mod sink;

use crate::failure::{Failure, Result};
use holdfast_base::StreamId;
use holdfast_format::StreamKind;
use holdfast_reader::{Element, Item};
use holdfast_ring::StreamStatus;
use output::Output;

/// The forms.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum Format {
    /// the payloads as they came, behind their preamble
    Raw,
    /// packets for Wireshark, tcpdump and others
    Pcapng,
    /// one channel a stream, for Foxglove and others
    Mcap,
    /// one JSON object a line
    Jsonl,
}

impl Format {
    /// Its name on the command line.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Raw => "raw",
            Self::Pcapng => "pcapng",
            Self::Mcap => "mcap",
            Self::Jsonl => "jsonl",
        }
    }

    /// What fits these streams when nothing was said.
    pub(crate) fn fitting(streams: &[StreamStatus]) -> Self {
        match streams {
            [one] if one.kind == StreamKind::Packets => Self::Pcapng,
            [_] => Self::Raw,
            _ => Self::Jsonl,
        }
    }

    /// Whether it would only confuse a terminal.
    pub(crate) fn is_binary(self) -> bool {
        self != Self::Jsonl
    }
}

/// An export in the making.
pub(crate) enum Export {
    Raw(raw::Raw),
    Pcapng(pcapng::Pcapng),
    Mcap(Box<mcap::Mcap>),
    Jsonl(jsonl::Jsonl),
}

impl Export {
    /// Begins one of these streams.
    pub(crate) fn new(format: Format, streams: &[StreamStatus], output: Output) -> Result<Self> {
        if let (Format::Raw | Format::Pcapng, true) = (format, streams.len() != 1) {
            return Err(Failure::usage(format_args!("{} takes one stream", format.name()))
                .at("--stream")
                .advice("give it once, or choose --format mcap or jsonl"));
        }
        match format {
            Format::Raw => raw::Raw::new(&streams[0], output).map(Self::Raw),
            Format::Pcapng => pcapng::Pcapng::new(&streams[0], output).map(Self::Pcapng),
            Format::Mcap => mcap::Mcap::new(streams, output).map(Box::new).map(Self::Mcap),
            Format::Jsonl => Ok(Self::Jsonl(jsonl::Jsonl::new(streams, output))),
        }
    }

    /// Takes the next item.
    pub(crate) fn item(&mut self, item: &Item<'_>) -> Result<()> {
        match self {
            Self::Raw(raw) => raw.item(item),
            Self::Pcapng(pcapng) => pcapng.item(item),
            Self::Mcap(mcap) => mcap.item(item),
            Self::Jsonl(jsonl) => jsonl.item(item),
        }
    }

    /// Ends it and gives the output back.
    pub(crate) fn finish(self) -> Result<Output> {
        match self {
            Self::Raw(raw) => Ok(raw.output),
            Self::Pcapng(pcapng) => Ok(pcapng.output),
            Self::Mcap(mcap) => mcap.finish(),
            Self::Jsonl(jsonl) => Ok(jsonl.output),
        }
    }
}

/// The place of a stream in the list that the export began with.
fn place(streams: &[StreamId], stream: StreamId) -> Option<usize> {
    streams.iter().position(|known| *known == stream)
}

/// When an element happened, as far as it is known: its event time, otherwise its arrival.
fn happened(element: &Element<'_>) -> holdfast_base::Timestamp {
    element.event.unwrap_or(element.arrival)
}

#[cfg(test)]
pub(crate) mod sample;
