//! Raw: the preamble, then the payloads put back through the framing that had cut them, so that the bytes are those
//! that came in.

use super::output::{Output, failed};
use crate::failure::{Failure, Result};
use holdfast_ingest::Framing;
use holdfast_link::Item;
use holdfast_ring::StreamStatus;
use std::io::Write;

/// A raw export of one stream.
pub(crate) struct Raw {
    pub(super) output: Output,
    framing: Framing,
    preamble: Vec<u8>,
}

impl Raw {
    pub(super) fn new(stream: &StreamStatus, output: Output) -> Result<Self> {
        let framing = stream.framing.parse().map_err(|error| {
            Failure::failed(format_args!(
                "the framing of stream `{}` is not known here: {error}",
                stream.name
            ))
            .advice("use the release of Holdfast that recorded it, or --format jsonl")
        })?;
        Ok(Self { output, framing, preamble: Vec::new() })
    }

    pub(super) fn item(&mut self, item: &Item<'_>) -> Result<()> {
        let written = match item {
            // The same preamble again, after a restart of the recorder, would stand in the middle of the data.
            Item::Preamble { bytes, .. } if *bytes != self.preamble => {
                self.preamble = bytes.to_vec();
                self.output.write_all(bytes)
            }
            Item::Element(element) => {
                let lead = self.framing.lead(element.data.len() as u64);
                let parts = [lead.as_ref(), element.data, self.framing.trail(element.tag)];
                parts.into_iter().try_for_each(|part| self.output.write_all(part))
            }
            _ => Ok(()),
        };
        written.map_err(|error| failed(&error))
    }
}
