//! Directory of a packed folder: Parquet parts with one row a piece, sorted by path, and the root that lists them.

use crate::error::DatasetError;
use crate::manifest::{TreeEntry, TreePart};
use crate::mcap_writer::Position;
use crate::pack::entry::{Encoding, Entry, Kind, ModifiedTime, Piece, Place, is_plain, path_order};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use datafusion::arrow::array::{
    Array, ArrayRef, AsArray as _, BinaryBuilder, FixedSizeBinaryBuilder, Int64Array, RecordBatch,
    StringArray, UInt8Array, UInt32Array, UInt64Array,
};
use datafusion::arrow::datatypes::{
    DataType, Field, Int64Type, Schema as ArrowSchema, UInt8Type, UInt32Type, UInt64Type,
};
use datafusion::arrow::error::ArrowError;
use parquet::arrow::ArrowWriter;
use parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;
use parquet::basic::{Compression, ZstdLevel};
use parquet::file::properties::WriterProperties;
use std::cmp::Ordering;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

/// Opcode of the root: a record of the application in the summary, which other MCAP tools skip.
pub(crate) const ROOT: u8 = 0xF0;

/// Bytes of the BLAKE3 behind the root's JSON.
const HASH: usize = 32;

/// Rows of a part, about: what one look-up reads and parses.
const PART_ROWS: usize = 8192;

/// Bytes of paths and targets of a part, about.
const PART_NAMES: usize = 4 << 20;

/// Rows of a part at most when it is read: a file of 64 TiB, in one part.
const MOST_ROWS: i64 = 1 << 24;

/// Builder of the directory's parts. A file's rows are in one part.
#[derive(Default)]
pub(crate) struct DirectoryBuilder {
    entries: Vec<Entry<(Position, Encoding)>>,
    rows: usize,
    names: usize,
}

impl DirectoryBuilder {
    /// Adds an entry; returns true if the part is full.
    pub(crate) fn push(&mut self, entry: Entry<(Position, Encoding)>) -> bool {
        self.rows += entry.pieces.len().max(1);
        self.names += entry.path.len() + entry.target.len();
        self.entries.push(entry);
        self.rows >= PART_ROWS || self.names >= PART_NAMES
    }

    /// Ends the part: its bytes, and its entry without a place. `None` if nothing was added.
    pub(crate) fn build(
        &mut self,
        chunk: impl Fn(u32) -> Option<(u64, u64)>,
    ) -> Result<Option<(Vec<u8>, TreePart)>, DatasetError> {
        let Some(first) = self.entries.first() else { return Ok(None) };
        let first = STANDARD.encode(&first.path);
        let place = |(at, encoding): (Position, Encoding)| {
            let (chunk_offset, chunk_length) = chunk(at.chunk)?;
            Some(Place { chunk_offset, chunk_length, message: at.offset, encoding })
        };
        let wrong = |cause: &dyn ToString| DatasetError::Index {
            stream: "directory".to_owned(),
            cause: cause.to_string(),
        };
        let batch = batch(&self.entries, place).map_err(|error| wrong(&error))?;
        let properties =
            WriterProperties::builder().set_compression(Compression::ZSTD(ZstdLevel::default())).build();
        let bytes = ArrowWriter::try_new(Vec::new(), batch.schema(), Some(properties))
            .and_then(|mut writer| writer.write(&batch).and_then(|()| writer.into_inner()))
            .map_err(|error| wrong(&error))?;
        let part = TreePart {
            offset: 0,
            length: bytes.len() as u64,
            rows: batch.num_rows() as u64,
            first,
            blake3: blake3::hash(&bytes).to_hex().to_string(),
        };
        *self = Self::default();
        Ok(Some((bytes, part)))
    }
}

/// Row while it becomes columns: its entry, and offset, length, place and own hash of its piece.
type Row<'e, P> = (&'e Entry<P>, u64, u64, Option<Place>, Option<[u8; 32]>);

fn batch<P: Copy>(
    entries: &[Entry<P>],
    resolve: impl Fn(P) -> Option<Place>,
) -> Result<RecordBatch, ArrowError> {
    let mut rows: Vec<Row<'_, P>> = Vec::new();
    for entry in entries {
        if entry.pieces.is_empty() {
            rows.push((entry, 0, 0, None, None));
        }
        for piece in &entry.pieces {
            let place = match piece.place {
                None => None,
                Some(place) => {
                    let missing = || ArrowError::ComputeError("a chunk has no place".to_owned());
                    Some(resolve(place).ok_or_else(missing)?)
                }
            };
            // The contents' own hash is that of a single piece.
            let hash = (entry.pieces.len() > 1 && place.is_some()).then_some(piece.blake3);
            rows.push((entry, piece.offset, piece.length, place, hash));
        }
    }
    let mut paths = BinaryBuilder::new();
    let mut targets = BinaryBuilder::new();
    for (entry, ..) in &rows {
        paths.append_value(&entry.path);
        targets.append_option((!entry.target.is_empty()).then_some(&entry.target));
    }
    let hashes = |values: &mut dyn Iterator<Item = Option<[u8; 32]>>| -> Result<ArrayRef, ArrowError> {
        let mut builder = FixedSizeBinaryBuilder::new(HASH as i32);
        for value in values {
            match value {
                Some(value) => builder.append_value(value)?,
                None => builder.append_null(),
            }
        }
        Ok(Arc::new(builder.finish()))
    };
    let words = |value: &dyn Fn(&Place) -> u64| -> ArrayRef {
        Arc::new(rows.iter().map(|row| row.3.as_ref().map(value)).collect::<UInt64Array>())
    };
    let numbers = |value: &dyn Fn(&Entry<P>) -> u64| -> ArrayRef {
        Arc::new(rows.iter().map(|row| Some(value(row.0))).collect::<UInt64Array>())
    };
    let columns: Vec<(&str, ArrayRef)> = vec![
        ("path", Arc::new(paths.finish())),
        ("kind", Arc::new(rows.iter().map(|row| Some(row.0.kind.name())).collect::<StringArray>())),
        ("mode", Arc::new(rows.iter().map(|row| Some(row.0.mode)).collect::<UInt32Array>())),
        ("mtime_s", Arc::new(rows.iter().map(|row| Some(row.0.modified.seconds)).collect::<Int64Array>())),
        ("mtime_ns", Arc::new(rows.iter().map(|row| Some(row.0.modified.nanos)).collect::<UInt32Array>())),
        ("size", numbers(&|entry| entry.size)),
        ("target", Arc::new(targets.finish())),
        ("blake3", hashes(&mut rows.iter().map(|row| row.0.blake3))?),
        ("offset", Arc::new(rows.iter().map(|row| Some(row.1)).collect::<UInt64Array>())),
        ("length", Arc::new(rows.iter().map(|row| Some(row.2)).collect::<UInt64Array>())),
        ("piece_blake3", hashes(&mut rows.iter().map(|row| row.4))?),
        ("chunk_offset", words(&|place| place.chunk_offset)),
        ("chunk_length", words(&|place| place.chunk_length)),
        ("message", words(&|place| place.message)),
        (
            "encoding",
            Arc::new(rows.iter().map(|row| row.3.map(|p| p.encoding.number())).collect::<UInt8Array>()),
        ),
    ];
    let is_null = ["target", "blake3", "piece_blake3", "chunk_offset", "chunk_length", "message", "encoding"];
    let field = |(name, array): &(&str, ArrayRef)| {
        Field::new(*name, array.data_type().clone(), is_null.contains(name))
    };
    let schema = ArrowSchema::new(columns.iter().map(field).collect::<Vec<_>>());
    RecordBatch::try_new(Arc::new(schema), columns.into_iter().map(|(_, array)| array).collect())
}

/// Entries of a part that was verified, checked for sense: plain ascending paths, and contents without gaps.
pub(crate) fn entries(bytes: Bytes) -> Result<Vec<Entry>, String> {
    // The Parquet reader panics at some pages that make no sense: a forged part has its right hash.
    let parsed = catch_unwind(AssertUnwindSafe(|| parse(bytes)));
    parsed.unwrap_or_else(|_| Err("it is no Parquet file that makes sense".to_owned()))
}

fn parse(bytes: Bytes) -> Result<Vec<Entry>, String> {
    let builder = ParquetRecordBatchReaderBuilder::try_new(bytes).map_err(|error| error.to_string())?;
    if builder.metadata().file_metadata().num_rows() > MOST_ROWS {
        return Err(format!("it has more than {MOST_ROWS} rows"));
    }
    let mut entries: Vec<Entry> = Vec::new();
    for batch in builder.build().map_err(|error| error.to_string())? {
        let batch = batch.map_err(|error| error.to_string())?;
        let rows = Rows::of(&batch).ok_or("a column is missing or has another type")?;
        for at in 0..batch.num_rows() {
            let (entry, piece) = rows.row(at).ok_or_else(|| format!("row {at} makes no sense"))?;
            let is_next = piece.is_some_and(|piece| piece.offset > 0);
            if is_next {
                let piece = piece.ok_or("a row has no piece")?;
                let last = entries.last_mut().filter(|last| last.path == entry.path);
                let last = last.ok_or("a file has no beginning")?;
                if last.pieces.last().and_then(|last| last.offset.checked_add(last.length))
                    != Some(piece.offset)
                {
                    return Err("the pieces of a file have a gap".to_owned());
                }
                last.pieces.push(piece);
                continue;
            }
            let order = entries.last().map(|last| path_order(&last.path, &entry.path));
            if !is_plain(&entry.path) || order.is_some_and(|order| order != Ordering::Less) {
                return Err("its paths are not plain and ascending".to_owned());
            }
            entries.push(Entry { pieces: piece.into_iter().collect(), ..entry });
        }
    }
    let is_whole = |entry: &Entry| {
        let end = entry.pieces.last().map_or(Some(0), |last| last.offset.checked_add(last.length));
        let has_contents = entry.kind.has_contents();
        end == Some(entry.size)
            && has_contents == entry.blake3.is_some()
            && (has_contents || entry.pieces.is_empty())
            && (entry.kind != Kind::HardLink || is_plain(&entry.target))
    };
    for entry in &mut entries {
        if !is_whole(entry) {
            return Err("the contents of a file are not those of its size".to_owned());
        }
        // A single piece has the hash of the whole.
        if let ([piece], Some(hash)) = (&mut entry.pieces[..], entry.blake3) {
            piece.blake3 = hash;
        }
    }
    Ok(entries)
}

/// Columns of a part.
struct Rows<'b>(&'b RecordBatch);

impl<'b> Rows<'b> {
    /// Columns of a batch; `None` if one is missing or has another type.
    fn of(batch: &'b RecordBatch) -> Option<Self> {
        let kinds = [
            ("path", DataType::Binary),
            ("kind", DataType::Utf8),
            ("mode", DataType::UInt32),
            ("mtime_s", DataType::Int64),
            ("mtime_ns", DataType::UInt32),
            ("size", DataType::UInt64),
            ("target", DataType::Binary),
            ("blake3", DataType::FixedSizeBinary(HASH as i32)),
            ("offset", DataType::UInt64),
            ("length", DataType::UInt64),
            ("piece_blake3", DataType::FixedSizeBinary(HASH as i32)),
            ("chunk_offset", DataType::UInt64),
            ("chunk_length", DataType::UInt64),
            ("message", DataType::UInt64),
            ("encoding", DataType::UInt8),
        ];
        let is_there = |(name, kind): &(&str, DataType)| {
            batch.column_by_name(name).is_some_and(|column| column.data_type() == kind)
        };
        kinds.iter().all(is_there).then_some(Self(batch))
    }

    fn valid(&self, name: &str, at: usize) -> Option<&'b ArrayRef> {
        self.0.column_by_name(name).filter(|column| column.is_valid(at))
    }

    fn word(&self, name: &str, at: usize) -> Option<u64> {
        Some(self.valid(name, at)?.as_primitive_opt::<UInt64Type>()?.value(at))
    }

    fn half(&self, name: &str, at: usize) -> Option<u32> {
        Some(self.valid(name, at)?.as_primitive_opt::<UInt32Type>()?.value(at))
    }

    fn bytes(&self, name: &str, at: usize) -> Option<Vec<u8>> {
        Some(self.valid(name, at)?.as_binary_opt::<i32>()?.value(at).to_vec())
    }

    fn hash(&self, name: &str, at: usize) -> Option<[u8; 32]> {
        self.valid(name, at)?.as_fixed_size_binary_opt()?.value(at).try_into().ok()
    }

    /// An entry without pieces, and its piece in this row.
    fn row(&self, at: usize) -> Option<(Entry, Option<Piece>)> {
        let kind = Kind::parse(self.valid("kind", at)?.as_string_opt::<i32>()?.value(at))?;
        let seconds = self.valid("mtime_s", at)?.as_primitive_opt::<Int64Type>()?.value(at);
        let nanos = self.half("mtime_ns", at).filter(|nanos| *nanos < 1_000_000_000)?;
        let entry = Entry {
            path: self.bytes("path", at)?,
            kind,
            mode: self.half("mode", at).filter(|mode| *mode <= 0o7777)?,
            modified: ModifiedTime { seconds, nanos },
            size: self.word("size", at)?,
            target: self.bytes("target", at).unwrap_or_default(),
            blake3: self.hash("blake3", at),
            pieces: Vec::new(),
        };
        let (offset, length) = (self.word("offset", at)?, self.word("length", at)?);
        if length == 0 {
            return (offset == 0).then_some((entry, None));
        }
        let place = match self.word("chunk_offset", at) {
            None => None,
            Some(chunk_offset) => Some(Place {
                chunk_offset,
                chunk_length: self.word("chunk_length", at)?,
                message: self.word("message", at)?,
                encoding: Encoding::parse(
                    self.valid("encoding", at)?.as_primitive_opt::<UInt8Type>()?.value(at),
                )?,
            }),
        };
        let blake3 = self.hash("piece_blake3", at).unwrap_or_default();
        Some((entry, Some(Piece { offset, length, place, blake3 })))
    }
}

/// Content of the root's record: the tree as JSON, and the BLAKE3 of it.
pub(crate) fn root_bytes(tree: &TreeEntry) -> Vec<u8> {
    // Texts and numbers alone: there is nothing that JSON cannot say.
    let mut bytes = serde_json::to_vec(tree).unwrap_or_default();
    let hash = blake3::hash(&bytes);
    bytes.extend_from_slice(hash.as_bytes());
    bytes
}

/// The tree of a root's record.
pub(crate) fn parse_root(content: &[u8]) -> Result<TreeEntry, DatasetError> {
    let damaged =
        |cause: &dyn ToString| DatasetError::damaged("the root of the directory", &cause.to_string());
    let start = content.len().checked_sub(HASH).ok_or_else(|| damaged(&"it is cut off"))?;
    let (json, hash) = content.split_at(start);
    if blake3::hash(json).as_bytes() != hash {
        return Err(damaged(&"its bytes do not have its BLAKE3"));
    }
    serde_json::from_slice(json).map_err(|error| damaged(&error))
}

/// First path of a part.
pub(crate) fn first_path(part: &TreePart) -> Result<Vec<u8>, DatasetError> {
    let wrong = |error| DatasetError::damaged("the root of the directory", &error);
    STANDARD.decode(&part.first).map_err(wrong)
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    /// Directory of a single part with these entries, which have no contents.
    pub(crate) fn part_of(entries: &[Entry]) -> Bytes {
        let batch = batch(entries, Some).unwrap();
        let mut writer = ArrowWriter::try_new(Vec::new(), batch.schema(), None).unwrap();
        writer.write(&batch).unwrap();
        writer.into_inner().unwrap().into()
    }

    /// Entry that has no pieces.
    pub(crate) fn entry(path: &str, kind: Kind, target: &str) -> Entry {
        let blake3 = kind.has_contents().then(|| *blake3::hash(b"").as_bytes());
        Entry {
            path: path.as_bytes().to_vec(),
            kind,
            mode: 0o755,
            modified: ModifiedTime { seconds: -7, nanos: 5 },
            size: 0,
            target: target.as_bytes().to_vec(),
            blake3,
            pieces: Vec::new(),
        }
    }

    fn piece(offset: u64, length: u64) -> Piece {
        let place = (length % 2 == 1).then_some(Place {
            chunk_offset: 9,
            chunk_length: 8,
            message: 7,
            encoding: Encoding::Plain,
        });
        Piece { offset, length, place, blake3: if place.is_some() { [3; 32] } else { [0; 32] } }
    }

    #[test]
    fn entries_come_back_from_a_part() {
        let mut file = entry("a/b", Kind::File, "");
        (file.size, file.pieces) = (11, vec![piece(0, 4), piece(4, 5), piece(9, 2)]);
        let all = [
            entry("", Kind::Directory, ""),
            entry("a", Kind::Directory, ""),
            file,
            entry("a/c", Kind::HardLink, "a/b"),
            entry("d", Kind::Symlink, "../../x"),
        ];
        assert_eq!(entries(part_of(&all)).unwrap(), all);
    }

    #[test]
    fn a_hostile_part_or_root_gives_an_error_and_no_panic() {
        let mut file = entry("a/b", Kind::File, "");
        (file.size, file.pieces) = (11, vec![piece(0, 4), piece(4, 5), piece(9, 2)]);
        let part = part_of(&[entry("", Kind::Directory, ""), entry("a", Kind::Directory, ""), file]);
        let root = root_bytes(&TreeEntry { entries: 3, ..TreeEntry::default() });
        let mut random = 0x2545_F491_4F6C_DD1Du64;
        let mut next = |below: usize| {
            random ^= random << 13;
            random ^= random >> 7;
            random ^= random << 17;
            (random % below as u64) as usize
        };
        for _ in 0..2000 {
            for (bytes, is_root) in [(&part[..], false), (&root[..], true)] {
                let mut bytes = bytes.to_vec();
                for _ in 0..=next(3) {
                    let at = next(bytes.len());
                    bytes[at] = next(256) as u8;
                }
                if next(4) == 0 {
                    bytes.truncate(next(bytes.len()));
                }
                if is_root {
                    let _ = parse_root(&bytes);
                } else {
                    let _ = entries(bytes.into());
                }
            }
        }
    }

    #[test]
    fn entries_that_make_no_sense_are_refused() {
        let root = || entry("", Kind::Directory, "");
        let gap = Entry { size: 9, pieces: vec![piece(0, 4), piece(5, 4)], ..entry("f", Kind::File, "") };
        let short = Entry { size: 9, pieces: vec![piece(0, 4)], ..entry("f", Kind::File, "") };
        let huge = Entry { size: 9, pieces: vec![piece(1, u64::MAX)], ..entry("f", Kind::File, "") };
        let with_contents = Entry { size: 4, pieces: vec![piece(0, 4)], ..entry("f", Kind::Directory, "") };
        let without_hash = Entry { blake3: None, ..entry("f", Kind::File, "") };
        for wrong in [
            vec![root(), entry("../f", Kind::File, "")],
            vec![root(), entry("/etc/f", Kind::File, "")],
            vec![root(), entry("a/../../f", Kind::Directory, "")],
            vec![root(), entry(".", Kind::Directory, "")],
            vec![root(), entry("b", Kind::File, ""), entry("a", Kind::File, "")],
            vec![root(), entry("a", Kind::File, ""), entry("a", Kind::Symlink, "b")],
            vec![root(), entry("a", Kind::HardLink, "../f")],
            vec![root(), entry("a", Kind::HardLink, "/etc/passwd")],
            vec![root(), gap],
            vec![root(), short],
            vec![root(), huge],
            vec![root(), with_contents],
            vec![root(), without_hash],
        ] {
            assert!(entries(part_of(&wrong)).is_err(), "{wrong:?}");
        }
    }
}
