//! Packet filter: an expression in tcpdump syntax, for the packets of some streams. libpcap compiles it for the interfaces
//! that each stream's preamble describes, and again when the preamble changes.

use crate::pcapng::{interfaces, packet};
use holdfast_base::StreamId;
use holdfast_base::failure::{Failure, Result};
use holdfast_format::StreamKind;
use holdfast_ingest::packet::filter::FileFilter;
use holdfast_reader::Element;
use holdfast_ring::StreamStatus;
use std::collections::HashMap;

/// An expression, compiled for each stream.
pub struct Filter {
    expression: String,
    names: HashMap<StreamId, String>,
    compiled: HashMap<StreamId, (Vec<u8>, FileFilter)>,
}

impl Filter {
    /// Creates a filter for streams of packets; other streams are refused.
    pub fn new(expression: &str, streams: &[StreamStatus]) -> Result<Self> {
        if let Some(other) = streams.iter().find(|stream| stream.kind != StreamKind::Packets) {
            return Err(Failure::usage(format_args!(
                "stream `{}` has no packets: it was recorded with the framing {}",
                other.name, other.framing
            ))
            .at("--filter")
            .advice("name streams of packets with --stream, or ask with `holdfast query`"));
        }
        let names = streams.iter().map(|stream| (stream.id, stream.name.clone())).collect();
        Ok(Self { expression: expression.to_owned(), names, compiled: HashMap::new() })
    }

    /// Takes a stream's preamble.
    pub fn preamble(&mut self, stream: StreamId, bytes: &[u8]) -> Result<()> {
        if self.compiled.get(&stream).is_some_and(|(known, _)| known == bytes) {
            return Ok(());
        }
        let interfaces = interfaces(self.names.get(&stream).map_or("", String::as_str), bytes)?;
        let filter = FileFilter::compile(&self.expression, &interfaces)
            .map_err(|error| Failure::usage(error).at("--filter"))?;
        self.compiled.insert(stream, (bytes.to_vec(), filter));
        Ok(())
    }

    /// Whether a packet passes; one of an interface that no preamble described does not.
    pub fn accepts(&self, element: &Element<'_>) -> bool {
        self.compiled.get(&element.stream).is_some_and(|(_, filter)| filter.accepts(&packet(element)))
    }
}
