//! Extractors of attributes from datasets and other MCAP files, for the drivers of a server.
//!
//! | extractor | attributes |
//! |---|---|
//! | `dataset` | origin and sums of the manifest: `dataset.ring_name`, `dataset.stream`, `dataset.first`, … |
//! | `mcap` | channels and counts of an MCAP file: `mcap.topic`, `mcap.messages`, `mcap.first`, … |

use bytes::Bytes;
use holdfast_catalog::{Attribute, Nanos, Value};
use holdfast_dataset::{DatasetError, Manifest, McapOverview, RangeRead, read_manifest};
use holdfast_server::{Extractor, ReadAt};
use std::io;

/// Extractors that the program adds to those of the server.
pub(crate) fn extractors() -> Vec<Extractor> {
    vec![
        Extractor::new("dataset", |contents, size| {
            let manifest = read_manifest(&Contents { contents, size });
            Ok(found(manifest)?.map_or_else(Vec::new, |(id, manifest)| of_manifest(id, &manifest)))
        }),
        Extractor::new("mcap", |contents, size| {
            let overview = McapOverview::of(&Contents { contents, size });
            Ok(found(overview)?.map_or_else(Vec::new, |overview| of_overview(&overview)))
        }),
    ]
}

/// Result of reading; `None` for a file of another format or a damaged one. An error is a failure of the storage.
fn found<T>(read: Result<T, DatasetError>) -> io::Result<Option<T>> {
    match read {
        Ok(found) => Ok(Some(found)),
        Err(DatasetError::Io(error)) if error.kind() != io::ErrorKind::UnexpectedEof => Err(error),
        Err(_) => Ok(None),
    }
}

fn of_manifest(id: String, manifest: &Manifest) -> Vec<Attribute> {
    let origin = &manifest.provenance;
    let mut attributes = vec![
        Attribute::new("id", Value::Text(id)),
        Attribute::new("compression", manifest.compression.as_str()),
        Attribute::new("written", Value::Time(Nanos(origin.written_ns))),
    ];
    let texts = [
        ("ring", &origin.ring),
        ("ring_name", &origin.ring_name),
        ("folder", &origin.folder),
        ("query", &origin.query),
        ("owner", &origin.owner),
        ("reason", &origin.reason),
        ("host", &origin.host),
        ("program", &origin.program),
    ];
    let texts = texts.into_iter().filter(|(_, text)| !text.is_empty());
    attributes.extend(texts.map(|(name, text)| Attribute::new(name, text.as_str())));
    attributes.extend(origin.hold.map(|hold| Attribute::new("hold", count(hold))));
    if let Some(tree) = &manifest.tree {
        attributes.push(Attribute::new("files", count(tree.files)));
        attributes.push(Attribute::new("payload", count(tree.bytes)).with_unit("B"));
        return attributes;
    }
    let streams = &manifest.streams;
    let sum = |field: fn(&holdfast_dataset::StreamEntry) -> u64| count(streams.iter().map(field).sum());
    attributes.push(Attribute::new("elements", sum(|stream| stream.elements)));
    attributes.push(Attribute::new("payload", sum(|stream| stream.bytes)).with_unit("B"));
    attributes.push(Attribute::new("gaps", sum(|stream| stream.gaps)));
    attributes.extend(streams.iter().map(|stream| Attribute::new("stream", stream.name.as_str())));
    let spans = || streams.iter().filter_map(|stream| stream.arrivals_ns);
    let first = spans().map(|(first, _)| first).min();
    let last = spans().map(|(_, last)| last).max();
    attributes.extend(first.map(|first| Attribute::new("first", Value::Time(Nanos(first)))));
    attributes.extend(last.map(|last| Attribute::new("last", Value::Time(Nanos(last)))));
    attributes
}

fn of_overview(overview: &McapOverview) -> Vec<Attribute> {
    let mut attributes = vec![
        Attribute::new("messages", count(overview.messages)),
        Attribute::new("chunks", count(overview.chunks)),
    ];
    for (name, text) in overview.channels.iter().flat_map(|channel| {
        [("topic", &channel.topic), ("encoding", &channel.encoding), ("schema", &channel.schema)]
    }) {
        let attribute = Attribute::new(name, text.as_str());
        if !text.is_empty() && !attributes.contains(&attribute) {
            attributes.push(attribute);
        }
    }
    let time = |nanos: u64| Value::Time(Nanos(i64::try_from(nanos).unwrap_or(i64::MAX)));
    if let Some((first, last)) = overview.times_ns {
        attributes.push(Attribute::new("first", time(first)));
        attributes.push(Attribute::new("last", time(last)));
    }
    attributes
}

fn count(count: u64) -> i64 {
    i64::try_from(count).unwrap_or(i64::MAX)
}

/// Contents of a version as a file that is read by ranges.
struct Contents<'a> {
    contents: &'a dyn ReadAt,
    size: u64,
}

impl RangeRead for Contents<'_> {
    fn size(&self) -> u64 {
        self.size
    }

    fn read(&self, offset: u64, length: usize) -> io::Result<Bytes> {
        // A damaged file may ask for more than there is.
        if offset.checked_add(length as u64).is_none_or(|end| end > self.size) {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        let mut bytes = vec![0; length];
        let mut filled = 0;
        while filled < length {
            match self.contents.read_at(&mut bytes[filled..], offset + filled as u64)? {
                0 => return Err(io::ErrorKind::UnexpectedEof.into()),
                read => filled += read,
            }
        }
        Ok(bytes.into())
    }

    fn name(&self) -> String {
        "the contents".to_owned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use holdfast_dataset::{Provenance, StreamEntry};
    use std::io::Read as _;

    #[test]
    fn a_manifest_becomes_attributes() {
        let stream = |name: &str, at: i64| StreamEntry {
            name: name.to_owned(),
            elements: 10,
            bytes: 100,
            arrivals_ns: Some((at, at + 5)),
            ..StreamEntry::default()
        };
        let manifest = Manifest {
            provenance: Provenance { ring_name: "lab".to_owned(), hold: Some(3), ..Provenance::default() },
            streams: vec![stream("a", 7), stream("b", 1)],
            ..Manifest::default()
        };
        let attributes = of_manifest("id".to_owned(), &manifest);
        let value = |name: &str| {
            let found = attributes.iter().filter(|attribute| attribute.name == name);
            found.map(|attribute| attribute.value.to_string()).collect::<Vec<_>>().join(",")
        };
        assert_eq!((value("ring_name").as_str(), value("hold").as_str()), ("lab", "3"));
        assert_eq!((value("elements").as_str(), value("stream").as_str()), ("20", "a,b"));
        assert_eq!(value("last"), Value::Time(Nanos(12)).to_string());
        assert_eq!(value("owner"), "");
    }

    #[test]
    fn other_files_have_no_attributes() {
        struct Text(&'static [u8]);
        impl ReadAt for Text {
            fn read_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<usize> {
                let mut rest = self.0.get(offset as usize..).unwrap_or_default();
                rest.read(buffer)
            }
        }
        for text in [&b""[..], b"text", &[0; 4096], b"\x89MCAP0\r\n"] {
            let contents = Text(text);
            let contents = Contents { contents: &contents, size: text.len() as u64 };
            assert!(found(read_manifest(&contents)).unwrap().is_none());
            let overview = found(McapOverview::of(&contents)).unwrap();
            assert!(overview.is_none_or(|overview| overview.messages == 0));
        }
    }
}
