//! Manifest of a dataset: its origin, its streams, and the hash of every part.

use serde::{Deserialize, Serialize};

/// Version of the manifest that is written.
pub const VERSION: u32 = 1;

/// Name of the manifest's attachment.
pub(crate) const NAME: &str = "holdfast/manifest.json";

/// Manifest. The BLAKE3 of its bytes is the dataset's id.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Manifest {
    /// Format version of the dataset.
    pub version: u32,
    /// Origin of the data.
    #[serde(default)]
    pub provenance: Provenance,
    /// Compression of the chunks, as it was asked for.
    pub compression: String,
    /// Number of the channel of gaps, if there are any.
    pub gap_channel: Option<u16>,
    /// Number of the channel of notes, if there are any.
    pub note_channel: Option<u16>,
    /// Streams in the order of the ring.
    pub streams: Vec<StreamEntry>,
    /// Chunks in the order of the file.
    pub chunks: Vec<ChunkEntry>,
    /// Directory of a packed folder.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tree: Option<TreeEntry>,
}

/// Directory of a packed folder.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct TreeEntry {
    /// Number of entries, the folder itself included.
    pub entries: u64,
    /// Number of regular files, each with one name.
    pub files: u64,
    /// Further names of these files.
    pub hard_links: u64,
    /// Number of directories, the folder itself included.
    pub directories: u64,
    /// Number of symbolic links.
    pub symlinks: u64,
    /// Number of file series, each a channel.
    pub series: u64,
    /// Bytes of the contents of all files and hard links.
    pub bytes: u64,
    /// Parts of the directory, in the order of paths.
    pub parts: Vec<TreePart>,
}

/// Part of the directory of a packed folder: a Parquet file as an attachment.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct TreePart {
    /// Offset of its bytes in the file.
    pub offset: u64,
    /// Number of its bytes.
    pub length: u64,
    /// Number of its rows.
    pub rows: u64,
    /// Path of its first entry, in base64.
    pub first: String,
    /// BLAKE3 of its bytes.
    pub blake3: String,
}

/// Origin of a dataset's data.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Provenance {
    /// UUID of the ring.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub ring: String,
    /// Name of the ring.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub ring_name: String,
    /// Folder that was packed.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub folder: String,
    /// Hold that was evacuated.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub hold: Option<u64>,
    /// Span of a stream that was archived.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub archived: Option<ArchivedSpan>,
    /// Condition of the hold, or the query that chose the elements.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub query: String,
    /// Owner of the hold, or the user who wrote the dataset.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub owner: String,
    /// Reason of the hold.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub reason: String,
    /// Machine that wrote the dataset.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub host: String,
    /// Program that wrote the dataset.
    pub program: String,
    /// Time of writing, in nanoseconds since 1970 (UTC).
    pub written_ns: i64,
}

/// Span of a stream's ordinals that a dataset of an archive stands for.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ArchivedSpan {
    /// Name of the stream.
    pub stream: String,
    /// First ordinal of the span.
    pub from: u64,
    /// Ordinal behind the last.
    pub to: u64,
    /// Number of ordinals that had expired before they were read.
    pub expired: u64,
}

/// Stream in a dataset.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct StreamEntry {
    /// Name of the stream.
    pub name: String,
    /// Number of the stream on its ring.
    pub id: u32,
    /// Kind of its elements: `bytes` or `packets`.
    pub kind: String,
    /// Rule that cut its elements, as given when it was recorded.
    pub framing: String,
    /// Attribute schema, as `--attr` takes it; empty without attributes.
    pub schema: String,
    /// Numbers of its channels in the MCAP file.
    pub channels: Vec<u16>,
    /// Number of its elements.
    pub elements: u64,
    /// Bytes of their payloads.
    pub bytes: u64,
    /// Gaps: losses before the data was recorded.
    pub gaps: u64,
    /// Elements of which only a part was left, and which are not in the dataset.
    pub partial: u64,
    /// Ordinals of its elements, as runs of first and last; sparse ones share runs, see `exact_ordinals`.
    pub ordinals: Vec<(u64, u64)>,
    /// True if every ordinal in the runs has an element.
    pub exact_ordinals: bool,
    /// Arrival of the first and last element, in nanoseconds since 1970 (UTC).
    pub arrivals_ns: Option<(i64, i64)>,
    /// First and last event time, in nanoseconds since 1970 (UTC).
    pub events_ns: Option<(i64, i64)>,
    /// Preambles in the order of their use.
    pub preambles: Vec<PreambleEntry>,
    /// Parts of the index.
    pub index: Vec<IndexPart>,
    /// Numbers of the chunks that have gaps or notes of this stream.
    pub event_chunks: Vec<u32>,
}

/// Preamble of a stream.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct PreambleEntry {
    /// Version of the preamble on its ring.
    pub version: u32,
    /// Chunk and offset of the first message behind it.
    pub from: (u32, u64),
    /// Offset of its bytes in the file.
    pub offset: u64,
    /// Number of its bytes.
    pub length: u64,
    /// BLAKE3 of its bytes.
    pub blake3: String,
}

/// Part of the index of a stream: a Parquet file as an attachment.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct IndexPart {
    /// Offset of its bytes in the file.
    pub offset: u64,
    /// Number of its bytes.
    pub length: u64,
    /// Number of its rows.
    pub rows: u64,
    /// Least and greatest ordinal.
    pub ordinals: (u64, u64),
    /// First and last arrival, in nanoseconds since 1970 (UTC).
    pub arrivals_ns: (i64, i64),
    /// BLAKE3 of its bytes.
    pub blake3: String,
}

/// Chunk of a dataset.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ChunkEntry {
    /// Offset of the chunk record in the file.
    pub offset: u64,
    /// Bytes of the chunk record.
    pub length: u64,
    /// BLAKE3 of the chunk record.
    pub blake3: String,
}

impl Manifest {
    /// Bytes of the attachment.
    pub(crate) fn to_bytes(&self) -> Vec<u8> {
        // Texts and numbers alone: there is nothing that JSON cannot say.
        serde_json::to_vec(self).unwrap_or_default()
    }
}
