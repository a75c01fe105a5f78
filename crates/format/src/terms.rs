//! Terms of a guarantee: the lane's measurements and the load's declarations. The superblock keeps them, so
//! that every run can weigh the guarantee anew; the `ring` crate does that.

use crate::FormatError;
use crate::bytes::{FieldReader, SliceWriter};
use crate::slot::ElementLoad;
use holdfast_base::{ByteSize, Rate, Timestamp};
use std::time::Duration;

/// Bytes that terms take in the superblock.
pub(crate) const TERMS_BYTES: usize = 256;

/// What is known of a lane in the region that a ring uses; everything at its worst there.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Measured {
    /// When it was measured.
    pub at: Timestamp,
    /// Writing in order, within a write; on a device that serves in parallel with the largest reads beside it. *w*
    pub write: Rate,
    /// Reading in order. *r*
    pub read: Rate,
    /// From anywhere to anywhere. *s*
    pub reposition: Duration,
    /// What a write costs beyond its bytes to be on the medium: a flush, or FUA. *c*
    pub commit: Duration,
    /// How long the drive tries before it gives a read up. *e*
    pub read_error: Duration,
    /// In any window of length Δ it stands still for at most `stall` + `stalled`·Δ. *σ*
    pub stall: Duration,
    /// The share of time that it stands still in the long run, in millionths. *ρ*
    pub stalled: u32,
    /// Requests that it serves at once to advantage: 1 for a drive with a head.
    pub parallel: u16,
    /// Elements a second that the packer manages on this machine.
    pub elements: u64,
    /// Cells of attributes a second that it manages; 0: nobody measured it.
    pub cells: u64,
}

/// What a ring was admitted for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Terms {
    /// What it rests on.
    pub measured: Measured,
    /// Declared payload of all streams together.
    pub rate: Rate,
    /// Declared elements a second of all streams together.
    pub elements: u64,
    /// Payload that may come at once beyond the rate.
    pub burst: ByteSize,
    /// Full slots that are written in one go. *g*
    pub gather: u16,
    /// Bytes of the largest read that is started at once. *q*
    pub quantum: u32,
    /// Memory that the admission counted on.
    pub memory: ByteSize,
    /// What an element takes beside its payload.
    pub each: ElementLoad,
}

const WHAT: &str = "terms of the guarantee";

fn nanos(span: Duration) -> u64 {
    u64::try_from(span.as_nanos()).unwrap_or(u64::MAX)
}

impl Terms {
    /// Puts them into the superblock: a mark that they are there, then the fields in order.
    pub(crate) fn encode(&self, into: &mut [u8]) {
        let Measured { at, write, read, reposition, commit, read_error, stall, stalled, parallel, .. } =
            self.measured;
        let mut put = SliceWriter::new(into);
        put.u32(1).u32(stalled).time(at).u64(write.0).u64(read.0).u64(nanos(reposition)).u64(nanos(commit));
        put.u64(nanos(read_error))
            .u64(nanos(stall))
            .u64(self.measured.elements)
            .u16(parallel)
            .u16(self.gather);
        put.u32(self.quantum).u64(self.rate.0).u64(self.elements).u64(self.burst.0).u64(self.memory.0);
        let ElementLoad { frame, columns, texts, bytes, text_bytes } = self.each;
        put.u64(self.measured.cells).u16(columns).u16(texts).u32(bytes).u32(text_bytes);
        put.u32(frame.unwrap_or(0));
    }

    /// Reads them; `None` for a ring that was formatted without.
    pub(crate) fn decode(from: &[u8]) -> Result<Option<Self>, FormatError> {
        let mut get = FieldReader::new(WHAT, from);
        match get.u32()? {
            0 => return Ok(None),
            1 => {}
            _ => return Err(get.malformed("terms of an unknown kind")),
        }
        let stalled = get.u32()?;
        let at = get.time()?;
        let (write, read) = (Rate(get.u64()?), Rate(get.u64()?));
        let mut span = || get.u64().map(Duration::from_nanos);
        let (reposition, commit, read_error, stall) = (span()?, span()?, span()?, span()?);
        let (elements, parallel, gather, quantum) = (get.u64()?, get.u16()?, get.u16()?, get.u32()?);
        let (rate, declared) = (Rate(get.u64()?), get.u64()?);
        let (burst, memory, cells) = (ByteSize(get.u64()?), ByteSize(get.u64()?), get.u64()?);
        let (columns, texts, bytes, text_bytes) = (get.u16()?, get.u16()?, get.u32()?, get.u32()?);
        let frame = Some(get.u32()?).filter(|bytes| *bytes > 0);
        let each = ElementLoad { frame, columns, texts, bytes, text_bytes };
        #[rustfmt::skip]
        let measured = Measured {
            at, write, read, reposition, commit, read_error, stall, stalled, parallel, elements, cells,
        };
        let whole =
            write.0 > 0 && read.0 > 0 && stalled < 1_000_000 && gather > 0 && quantum > 0 && rate.0 > 0;
        if !whole {
            return Err(get.malformed("terms under which nothing could be admitted"));
        }
        Ok(Some(Self { measured, rate, elements: declared, burst, gather, quantum, memory, each }))
    }
}
