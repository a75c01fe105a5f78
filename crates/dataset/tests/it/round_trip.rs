//! Tests that a dataset gives the items of the ring that it was written from.

use crate::common::{of_dataset, of_ring, open, record, write};
use holdfast_base::{Ordinal, StreamId};
use holdfast_dataset::verify;
use holdfast_reader::Selection;
use holdfast_ring::Range;
use std::fmt::Write as _;
use std::path::Path;

/// Records, writes, and compares all items and those of some ranges.
fn round_trip(arguments: &str, folder: &Path) {
    let ring = record(folder, arguments);
    let all = of_ring(&ring, &Selection::ALL);
    assert!(!all.is_empty());
    for (compression, chunk_bytes) in [("none", 1), ("lz4", 4096), ("zstd:3", 256 << 10)] {
        let path = folder.join(format!("{chunk_bytes}.mcap"));
        let written = write(&ring, &path, compression, chunk_bytes);
        assert_eq!(written.bytes, std::fs::metadata(&path).unwrap().len());
        let dataset = open(&path);
        assert_eq!(dataset.id(), written.id);
        assert_eq!(*dataset.manifest(), written.manifest);
        assert_eq!(of_dataset(&dataset, &Selection::ALL), all, "{arguments} {compression}");
        assert_eq!(verify(&dataset, &mut |_| ()).unwrap(), []);
        let stream = dataset.manifest().streams[0].clone();
        let (first, last) = (stream.ordinals[0].0, stream.ordinals.last().unwrap().1);
        let (from, to) = (Ordinal(first + (last - first) / 3), Ordinal(first + (last - first) / 2 + 1));
        let range = Range { ordinals: Some((from, to)), ..Range::ALL };
        let selection = Selection { streams: vec![StreamId(stream.id)], range };
        assert_eq!(of_dataset(&dataset, &selection), of_ring(&ring, &selection), "{arguments}");
        let (first, last) = stream.arrivals_ns.unwrap();
        let middle = holdfast_base::Timestamp(first + (last - first) / 2);
        let selection = Selection { streams: Vec::new(), range: Range { from: middle, ..Range::ALL } };
        assert_eq!(of_dataset(&dataset, &selection), of_ring(&ring, &selection), "{arguments}");
    }
}

#[test]
fn lines_with_attributes_come_back() {
    let folder = tempfile::tempdir().unwrap();
    let mut lines = String::new();
    for at in 0..5000 {
        writeln!(lines, "{{\"n\": {at}, \"s\": \"text {}\", \"f\": {}.5}}", at % 7, at).unwrap();
    }
    let input = folder.path().join("in.jsonl");
    std::fs::write(&input, lines).unwrap();
    let attributes = "--attr n:int=json:n --attr s:text=json:s --attr f:float=json:f";
    let source = format!("--source file:{} --name lines --frame lines {attributes}", input.display());
    round_trip(&format!("--size 4MiB --slot 64KiB {source}"), folder.path());
}

#[test]
fn real_captures_and_messages_come_back() {
    let Some(data) = std::env::var_os("HOLDFAST_TEST_DATA") else {
        println!("skipped: $HOLDFAST_TEST_DATA does not name the folder of real inputs");
        return;
    };
    let data = Path::new(&data);
    let mut captures: Vec<_> =
        std::fs::read_dir(data.join("pcap")).unwrap().map(|entry| entry.unwrap().path()).collect();
    captures.sort();
    for capture in captures {
        let folder = tempfile::tempdir().unwrap();
        let source = format!("--source replay:{} --name packets --speed max", capture.display());
        round_trip(&format!("--size 128MiB --slot 1MiB {source}"), folder.path());
    }
    for (name, frame) in [("text/sherlock.txt", "lines"), ("vlbi/sample.vdif", "fixed:5032")] {
        let folder = tempfile::tempdir().unwrap();
        let source = format!("--source file:{} --name bytes --frame {frame}", data.join(name).display());
        round_trip(&format!("--size 64MiB --slot 256KiB {source}"), folder.path());
    }
}
