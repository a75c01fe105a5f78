//! Hand-made streams and items, and an output that can be looked at: for the tests of the exporters.

use crate::output::Output;
use crate::{Export, Format};
use holdfast_base::failure::Failure;
use holdfast_base::{Ordinal, Sequence, SlotNo, StreamId, Timestamp};
use holdfast_format::{Cause, Counters, Direction, Flags, Gap, StreamKind};
use holdfast_ingest::packet::{LinkType, LiveInterface, Preamble};
use holdfast_reader::{Element, Item};
use holdfast_ring::StreamStatus;
use std::io::{self, Write};
use std::sync::{Arc, Mutex};

/// 2026-11-20T10:05:00Z and some nanoseconds.
pub(crate) const START: i64 = 1_795_169_100_000_000_123;

/// A stream.
pub(crate) fn stream(id: u32, name: &str, kind: StreamKind, framing: &str) -> StreamStatus {
    StreamStatus {
        id: StreamId(id),
        name: name.to_owned(),
        kind,
        framing: framing.to_owned(),
        created: Timestamp(START),
        counters: Counters::default(),
        preamble: 1,
        preamble_bytes: 4,
        schema: 0,
    }
}

/// An element of stream 1, a second after the one before it.
pub(crate) fn element(ordinal: u64, data: &[u8]) -> Element<'_> {
    let arrival = Timestamp(START + ordinal as i64 * 1_000_000_000);
    Element {
        stream: StreamId(1),
        ordinal: Ordinal(ordinal),
        first: arrival,
        arrival,
        event: None,
        flags: Flags(0),
        tag: 0,
        extra: 0,
        meta: &[],
        data,
    }
}

/// A packet that came in with a snap length and a comment.
pub(crate) fn packet(ordinal: u64) -> Element<'static> {
    const COMMENT: &[u8] = &[1, 0, 2, 0, b'h', b'i', 0, 0];
    const FRAME: &[u8] = b"\xff\xff\xff\xff\xff\xff\x02\0\0\0\0\x01\x08\0E\0\0\x1c\0\0\0\0\x40\x11\0\0\x0a\0\0\x01\x0a\0\0\x02\0\x09\0\x09\0\x08\0\0";
    Element {
        flags: Flags::PCAPNG_OPTIONS.with_direction(Direction::In),
        extra: 100,
        meta: COMMENT,
        event: Some(Timestamp(START - 5 + ordinal as i64)),
        ..element(ordinal, FRAME)
    }
}

/// The preamble of a live interface.
pub(crate) fn interface() -> Vec<u8> {
    let interface = LiveInterface {
        name: "eth0",
        link_type: LinkType::ETHERNET,
        snaplen: 0,
        filter: None,
        mac: None,
        speed: None,
    };
    Preamble::live(&[interface]).unwrap().as_bytes().to_vec()
}

/// A gap of three elements.
pub(crate) fn gap() -> Item<'static> {
    let gap = Gap {
        ordinals: 3,
        elements: Some(3),
        bytes: None,
        first: Timestamp(START),
        last: Timestamp(START + 1),
        cause: Cause::Kernel,
        note: 0,
    };
    Item::Gap { stream: StreamId(1), ordinal: Ordinal(7), gap }
}

/// A damaged place.
pub(crate) fn damaged() -> Item<'static> {
    Item::Damaged { slot: SlotNo(4), sequence: Sequence(9), place: "payload block 2" }
}

#[derive(Clone, Default)]
struct Shared(Arc<Mutex<Vec<u8>>>);

impl Write for Shared {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().unwrap().extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// A medium with room for so many bytes.
struct Full(usize);

impl Write for Full {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let taken = bytes.len().min(self.0);
        self.0 -= taken;
        if taken == 0 { Err(io::ErrorKind::StorageFull.into()) } else { Ok(taken) }
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Exports these items to a medium with room for so many bytes.
pub(crate) fn export_within(
    room: usize,
    format: Format,
    streams: &[StreamStatus],
    items: &[Item<'_>],
) -> Result<(), Failure> {
    let mut export = Export::new(format, streams, Output::writer(Full(room)))?;
    items.iter().try_for_each(|item| export.item(item))?;
    export.finish()?.finish().map(|_| ())
}

/// What an export of these items is.
pub(crate) fn export(
    format: Format,
    streams: &[StreamStatus],
    items: &[Item<'_>],
) -> Result<Vec<u8>, Failure> {
    let shared = Shared::default();
    let mut export = Export::new(format, streams, Output::writer(shared.clone()))?;
    items.iter().try_for_each(|item| export.item(item))?;
    let written = export.finish()?.finish()?;
    let bytes = shared.0.lock().unwrap().clone();
    assert_eq!(written.bytes, bytes.len() as u64);
    assert_eq!(written.blake3, blake3::hash(&bytes).to_hex().to_string());
    Ok(bytes)
}
