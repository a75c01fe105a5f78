//! Golden files: datasets of every format version stay readable, and the writer still writes the latest byte for byte.

use crate::common::open;
use holdfast_base::{Ordinal, StreamId, Timestamp};
use holdfast_dataset::{Compression, DatasetWriter, Options, Provenance, StreamHead, VERSION, verify};
use holdfast_format::{Cause, Counters, Flags, Gap, StreamKind};
use holdfast_reader::{Element, Item, Selection};
use holdfast_ring::StreamStatus;
use std::fs;
use std::num::NonZeroUsize;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};

const STREAM: StreamId = StreamId(3);

fn payload(ordinal: u64) -> Vec<u8> {
    format!("{{\"n\": {}, \"host\": \"web-{}\"}}", ordinal * 7, ordinal % 3).into_bytes()
}

fn written(compression: Compression) -> Vec<u8> {
    let status = StreamStatus {
        id: STREAM,
        name: "log".to_owned(),
        kind: StreamKind::Bytes,
        framing: "lines".to_owned(),
        created: Timestamp(0),
        counters: Counters::default(),
        preamble: 1,
        preamble_bytes: 4,
        schema: 0,
    };
    let head = StreamHead { status, schema: "n:int=json:n\nhost:text=json:host\n".to_owned() };
    let options = Options { compression, chunk_bytes: 512, threads: NonZeroUsize::MIN };
    let provenance = Provenance {
        ring: "00000000-0000-4000-8000-000000000001".to_owned(),
        ring_name: "lab".to_owned(),
        hold: Some(7),
        owner: "tester".to_owned(),
        program: "holdfast golden".to_owned(),
        written_ns: 1_800_000_000_000_000_000,
        ..Provenance::default()
    };
    let mut writer = DatasetWriter::new(Vec::new(), &options, &[head], provenance).unwrap();
    writer.item(&Item::Preamble { stream: STREAM, version: 1, bytes: b"head" }).unwrap();
    for ordinal in 0..40 {
        let (data, arrival) = (payload(ordinal), Timestamp(1_700_000_000_000_000_000 + ordinal as i64));
        let element = Element {
            stream: STREAM,
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
        writer.item(&Item::Element(element)).unwrap();
    }
    let at = Timestamp(1_700_000_000_000_000_050);
    let gap = Gap {
        ordinals: 2,
        elements: None,
        bytes: Some(9),
        first: at,
        last: at,
        cause: Cause::Crash,
        note: 0,
    };
    writer.item(&Item::Gap { stream: STREAM, ordinal: Ordinal(40), gap }).unwrap();
    writer.finish().unwrap().0
}

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden")
}

#[test]
fn datasets_of_every_version_are_read() {
    for version in 1..=VERSION {
        for compression in ["none", "lz4", "zstd"] {
            let dataset = open(&folder().join(format!("v{version}-{compression}.mcap")));
            assert_eq!(verify(&dataset, &mut |_| ()).unwrap(), []);
            let (mut elements, mut gaps) = (0, 0);
            let mut sink = |item: Item<'_>| {
                match item {
                    Item::Element(element) => {
                        assert_eq!((element.ordinal.0, element.data), (elements, &payload(elements)[..]));
                        elements += 1;
                    }
                    Item::Gap { gap, .. } => gaps += gap.ordinals,
                    _ => {}
                }
                ControlFlow::Continue(())
            };
            dataset.read(&Selection::ALL, &mut sink).unwrap();
            assert_eq!((elements, gaps), (40, 2));
        }
    }
}

/// Compressed bytes may change with the version of a compressor; the records around them may not.
#[test]
fn the_latest_version_is_written_byte_for_byte() {
    let bless = std::env::var_os("HOLDFAST_BLESS").is_some();
    for (name, how) in [("none", "none"), ("lz4", "lz4"), ("zstd", "zstd:3")] {
        let path = folder().join(format!("v{VERSION}-{name}.mcap"));
        let bytes = written(how.parse().unwrap());
        if bless && !path.exists() {
            fs::create_dir_all(folder()).unwrap();
            fs::write(&path, &bytes).unwrap();
        }
        if name == "none" {
            assert!(fs::read(&path).unwrap() == bytes, "the format has changed: give it a new version");
        }
    }
}
