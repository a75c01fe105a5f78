//! Tests that a dataset of which any byte is changed, or that ends anywhere, gives no wrong items and no panic.

use crate::common::{open, record, told, write};
use holdfast_dataset::{Dataset, LocalFile, streams, verify};
use holdfast_reader::{Item, Selection};
use std::ops::ControlFlow;
use std::path::Path;
use std::sync::Arc;

/// Items until the first failure, and whether there was one.
fn items(path: &Path) -> (Vec<String>, bool) {
    let mut items = Vec::new();
    let sink = &mut |item: Item<'_>| {
        items.extend(told(&item));
        ControlFlow::Continue(())
    };
    let Ok(dataset) = Dataset::open(Arc::new(LocalFile::open(path).unwrap())) else {
        return (items, true);
    };
    let read = dataset.read(&Selection::ALL, sink);
    let dataset = Arc::new(dataset);
    let found = verify(&dataset, &mut |_| ());
    // Verification finds what a read fails of.
    assert!(read.is_ok() || found.is_err() || found.is_ok_and(|found| !found.is_empty()));
    let _ = streams(&dataset);
    (items, read.is_err())
}

#[test]
fn a_changed_byte_gives_an_error_or_what_was_written() {
    let folder = tempfile::tempdir().unwrap();
    let line = |at: u32| format!("{{\"n\": {at}, \"s\": \"text {}\"}}", at % 7);
    let lines = (0..300).map(line).collect::<Vec<_>>().join("\n") + "\n";
    std::fs::write(folder.path().join("in.jsonl"), lines).unwrap();
    let input = folder.path().join("in.jsonl");
    let attributes = "--attr n:int=json:n --attr s:text=json:s";
    let source = format!("--source file:{} --name lines --frame lines {attributes}", input.display());
    let ring = record(folder.path(), &format!("--size 4MiB --slot 64KiB {source}"));
    let (whole, changed) = (folder.path().join("whole.mcap"), folder.path().join("changed.mcap"));
    write(&ring, &whole, "zstd:3", 4096);
    let (right, failed) = items(&whole);
    assert!(right.len() >= 300 && !failed);
    let bytes = std::fs::read(&whole).unwrap();
    let mut errors = 0;
    for at in (0..bytes.len()).step_by(7) {
        let mut bytes = bytes.clone();
        bytes[at] ^= 1 << (at % 8);
        std::fs::write(&changed, &bytes).unwrap();
        let (some, failed) = items(&changed);
        assert!(right.starts_with(&some) && (failed || some == right), "byte {at}");
        errors += usize::from(failed);
    }
    // Message indexes, which other tools use, are not read here.
    assert!(errors > bytes.len() / 7 / 4, "{errors} of {} bytes", bytes.len());
    for length in (0..bytes.len()).step_by(97) {
        std::fs::write(&changed, &bytes[..length]).unwrap();
        assert_eq!(items(&changed), (Vec::new(), true), "{length} bytes");
    }
    assert_eq!(open(&whole).manifest().streams.len(), 1);
}
