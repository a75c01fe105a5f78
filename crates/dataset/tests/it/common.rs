//! Rings to make datasets of: recorded by the recorder from files.

use holdfast_dataset::{
    ArchivedSpan, Compression, Dataset, DatasetWriter, LocalFile, Options, Provenance, StreamHead, Written,
};
use holdfast_reader::{Item, RingReader, Selection};
use holdfast_recorder::{args, run};
use std::fs::File;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Records on a ring in a folder, with these arguments.
pub(crate) fn record(folder: &Path, arguments: &str) -> PathBuf {
    let ring = folder.join("r.hf");
    let words = [ring.to_str().unwrap(), "--quiet"].into_iter().chain(arguments.split(' '));
    let args::Invocation::Record(settings) = args::parse(words.map(Into::into)).unwrap() else {
        panic!("a recording")
    };
    let summary = run::record(&settings).unwrap();
    assert_eq!(summary.errors, Vec::<String>::new());
    ring
}

/// Items of a read, in words.
pub(crate) fn told(item: &Item<'_>) -> Option<String> {
    (!matches!(item, Item::Progress { .. })).then(|| format!("{item:?}"))
}

/// All items of a ring.
pub(crate) fn of_ring(ring: &Path, selection: &Selection) -> Vec<String> {
    let mut reader = RingReader::open(ring).unwrap();
    let plan = reader.plan(selection).unwrap();
    let mut items = Vec::new();
    let sink = &mut |item: Item<'_>| {
        items.extend(told(&item));
        ControlFlow::Continue(())
    };
    reader.read(&plan, sink).unwrap();
    items
}

/// All items of a dataset.
pub(crate) fn of_dataset(dataset: &Dataset, selection: &Selection) -> Vec<String> {
    let mut items = Vec::new();
    let sink = &mut |item: Item<'_>| {
        items.extend(told(&item));
        ControlFlow::Continue(())
    };
    dataset.read(selection, sink).unwrap();
    items
}

/// Writes everything on a ring to a dataset.
pub(crate) fn write(ring: &Path, to: &Path, compression: &str, chunk_bytes: usize) -> Written {
    let compression: Compression = compression.parse().unwrap();
    write_with(ring, to, &Options { compression, chunk_bytes, ..Options::default() }, &Selection::ALL)
}

/// Writes a selection of a ring to a dataset.
pub(crate) fn write_some(ring: &Path, to: &Path, selection: &Selection) -> Written {
    write_with(ring, to, &Options::default(), selection)
}

fn write_with(ring: &Path, to: &Path, options: &Options, selection: &Selection) -> Written {
    let mut reader = RingReader::open(ring).unwrap();
    let head = |status: holdfast_ring::StreamStatus| {
        let schema = RingReader::open(ring).unwrap().schema(status.id).unwrap();
        StreamHead { status, schema }
    };
    let heads: Vec<StreamHead> = reader.streams().unwrap().into_iter().map(head).collect();
    let provenance = Provenance { ring: reader.superblock().ring.to_string(), ..Provenance::default() };
    let mut writer = DatasetWriter::new(File::create(to).unwrap(), options, &heads, provenance).unwrap();
    let plan = reader.plan(selection).unwrap();
    let sink = &mut |item: Item<'_>| {
        writer.item(&item).unwrap();
        ControlFlow::Continue(())
    };
    reader.read(&plan, sink).unwrap();
    writer.finish().unwrap().1
}

/// Writes everything on a ring to a file, with a checkpoint after so many elements each; the file and the ends of the
/// checkpoints.
pub(crate) fn checkpointed(ring: &Path, folder: &Path, every: u64) -> (PathBuf, Vec<usize>) {
    let (file, mut places, mut count) = (folder.join("checkpointed.mcap"), Vec::new(), 0);
    let mut reader = RingReader::open(ring).unwrap();
    let status = reader.streams().unwrap().remove(0);
    let schema = reader.schema(status.id).unwrap();
    let stream = status.name.clone();
    let options = Options { chunk_bytes: 600, ..Options::default() };
    let heads = [StreamHead { status, schema }];
    let out = File::create(&file).unwrap();
    let mut writer = DatasetWriter::new(out, &options, &heads, Provenance::default()).unwrap();
    let plan = reader.plan(&Selection::ALL).unwrap();
    let sink = &mut |item: Item<'_>| {
        writer.item(&item).unwrap();
        if matches!(item, Item::Element(_)) {
            count += 1;
            if count % every == 0 {
                let span = ArchivedSpan { stream: stream.clone(), from: 0, to: count, expired: 0 };
                writer.checkpoint(&format!("{stream}-{count}"), span).unwrap();
                places.push(std::fs::metadata(&file).unwrap().len() as usize);
            }
        }
        ControlFlow::Continue(())
    };
    reader.read(&plan, sink).unwrap();
    writer.finish().unwrap();
    (file, places)
}

/// Opens the dataset at a path.
pub(crate) fn open(path: &Path) -> Dataset {
    Dataset::open(Arc::new(LocalFile::open(path).unwrap())).unwrap()
}
