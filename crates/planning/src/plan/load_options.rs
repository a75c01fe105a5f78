//! Load options: what is declared of the streams of a ring, and how it is to be carried.

use super::Ask;
use super::region::Region;
use holdfast_attributes::Schema;
use holdfast_base::failure::{Failure, Result};
use holdfast_base::{ByteSize, Rate};
use holdfast_ingest::Framing;
use std::time::Duration;

/// Declared load of a ring.
#[derive(Clone, Debug)]
pub struct LoadOptions {
    /// Payload of all streams together.
    pub rate: Rate,
    /// Elements a second of all streams together; of 64 KiB each, otherwise.
    pub elements: Option<u64>,
    /// Framing, where it is known.
    pub frame: Option<Framing>,
    /// Number of streams recorded.
    pub streams: u16,
    /// Payload that may come at once beyond the rate.
    pub burst: ByteSize,
    /// Attributes that are read of every element, as `record --attr` takes them.
    pub attributes: Vec<String>,
    /// Size of a slot.
    pub slot: Option<ByteSize>,
    /// Slots that are written in one go while somebody reads.
    pub gather: Option<u16>,
    /// Largest read that is started at once.
    pub quantum: Option<ByteSize>,
    /// Memory for slot buffers.
    pub memory: Option<ByteSize>,
    /// Part of the device to use.
    pub region: Region,
    /// Longest time between commits.
    pub flush: Duration,
}

impl LoadOptions {
    /// What is asked of a device, or why it makes no sense.
    pub fn ask(&self) -> Result<Ask> {
        if self.rate.0 == 0 {
            return Err(Failure::usage("a rate of 0 needs no guarantee")
                .at("--rate")
                .advice("give the payload, such as 60MiB/s"));
        }
        if self.quantum.is_some_and(|quantum| !(4096..=1 << 30).contains(&quantum.0)) {
            return Err(Failure::usage("reads have 4KiB to 1GiB")
                .at("--quantum")
                .advice("leave it out, or give such as 8MiB"));
        }
        let schema = Schema::typed(&self.attributes).map_err(|error| Failure::usage(error).at("--attr"))?;
        let size = match self.frame {
            Some(Framing::Fixed(bytes)) => Some(bytes),
            _ => None,
        };
        // Beside others they are not alone in their chunks.
        let frame = size.filter(|_| self.streams == 1).and_then(|bytes| bytes.try_into().ok());
        Ok(Ask {
            rate: self.rate,
            elements: self.elements,
            size,
            burst: self.burst,
            streams: self.streams.into(),
            each: schema.load(frame),
            slot: self.slot,
            gather: self.gather,
            quantum: self.quantum,
            memory: self.memory,
            flush: self.flush,
        })
    }
}
