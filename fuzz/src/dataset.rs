//! Datasets: opened, read whole, and verified. A message that is given has the bytes that were written.

use holdfast_base::{Ordinal, StreamId, Timestamp};
use holdfast_dataset::{
    Compression, Dataset, DatasetWriter, Options, Provenance, RangeRead, StreamHead, verify,
};
use holdfast_format::{Cause, Counters, Flags, Gap, StreamKind};
use holdfast_reader::{Element, Item, Selection};
use holdfast_ring::StreamStatus;
use std::io;
use std::ops::ControlFlow;
use std::sync::Arc;

/// Dataset as a file in memory.
struct Memory(Vec<u8>);

impl RangeRead for Memory {
    fn size(&self) -> u64 {
        self.0.len() as u64
    }

    fn read(&self, offset: u64, length: usize) -> io::Result<bytes::Bytes> {
        let end = usize::try_from(offset).ok().and_then(|start| start.checked_add(length));
        let bytes = end.and_then(|end| self.0.get(offset as usize..end));
        Ok(bytes.ok_or(io::ErrorKind::UnexpectedEof)?.to_vec().into())
    }

    fn name(&self) -> String {
        "memory".to_owned()
    }
}

fn payload(ordinal: u64) -> Vec<u8> {
    format!("{{\"n\": {ordinal}}} {}", "x".repeat(ordinal as usize % 40)).into_bytes()
}

/// Opens, reads and verifies what may be a dataset.
pub fn run(data: &[u8]) {
    let Ok(dataset) = Dataset::open(Arc::new(Memory(data.to_vec()))) else { return };
    let _ = holdfast_dataset::streams(&Arc::new(dataset));
    let Ok(dataset) = Dataset::open(Arc::new(Memory(data.to_vec()))) else { return };
    // The manifest itself may have been changed: then it is another dataset, of which nothing is known.
    let is_known = seeds().iter().any(|seed| id(seed).as_deref() == Some(dataset.id()));
    let mut sink = |item: Item<'_>| {
        if let Item::Element(element) = item
            && is_known
        {
            assert_eq!(element.data, payload(element.ordinal.0), "wrong bytes");
        }
        ControlFlow::Continue(())
    };
    let _ = dataset.read(&Selection::ALL, &mut sink);
    let _ = verify(&dataset, &mut |_| ());
}

fn id(seed: &[u8]) -> Option<String> {
    Some(Dataset::open(Arc::new(Memory(seed.to_vec()))).ok()?.id().to_owned())
}

/// Datasets of each compression, with attributes, a preamble, a gap and a note.
pub fn seeds() -> Vec<Vec<u8>> {
    ["none", "lz4", "zstd:1"].into_iter().filter_map(|how| seed(how.parse().ok()?)).collect()
}

fn seed(compression: Compression) -> Option<Vec<u8>> {
    let stream = StreamId(0);
    let status = StreamStatus {
        id: stream,
        name: "log".to_owned(),
        kind: StreamKind::Bytes,
        framing: "lines".to_owned(),
        created: Timestamp(0),
        counters: Counters::default(),
        preamble: 1,
        preamble_bytes: 4,
        schema: 0,
    };
    let schema = "n:int=json:n\n".to_owned();
    let options = Options { compression, chunk_bytes: 300, threads: std::num::NonZeroUsize::MIN };
    let head = StreamHead { status, schema };
    let mut writer = DatasetWriter::new(Vec::new(), &options, &[head], Provenance::default()).ok()?;
    writer.item(&Item::Preamble { stream, version: 1, bytes: b"head" }).ok()?;
    for ordinal in 0..40 {
        let (data, arrival) = (payload(ordinal), Timestamp(ordinal as i64 * 1000));
        let element = Element {
            stream,
            ordinal: Ordinal(ordinal),
            first: arrival,
            arrival,
            event: None,
            flags: Flags::default(),
            tag: 0,
            extra: 0,
            meta: &[],
            data: &data,
        };
        writer.item(&Item::Element(element)).ok()?;
    }
    let (first, last) = (Timestamp(0), Timestamp(1));
    let gap = Gap { ordinals: 2, elements: None, bytes: Some(7), first, last, cause: Cause::Crash, note: 0 };
    writer.item(&Item::Gap { stream, ordinal: Ordinal(40), gap }).ok()?;
    writer
        .item(&Item::Note { stream, arrival: Timestamp(0), tag: 0, flags: Flags::default(), meta: b"note" })
        .ok()?;
    writer.finish().ok().map(|(bytes, _)| bytes)
}
