//! Datasets: immutable, compressed MCAP files with an index and a manifest inside, written from the items of a reader.
//!
//! Here belong the MCAP file (written front to back, compressed on several threads), the attribute index (Parquet), the
//! manifest (JSON), reading by range with verification, and conversions of other files. Not here: places where datasets
//! are stored (`vault`), SQL itself (`query`), and what commands print. docs/dataset.md draws the file.
#![forbid(unsafe_code)]

mod bag;
mod checkpoint;
mod chunk_map;
mod chunks;
mod compression;
mod damage;
mod error;
mod evacuate;
mod events;
mod import;
mod index;
mod manifest;
mod mcap_writer;
mod overview;
mod pack;
mod reader;
mod records;
mod recovery;
mod scan;
mod storage;
mod table;
mod target;
mod unpacked;
mod verify;
mod writer;

pub use bag::{BagConversion, ConvertedBag, convert_bag, is_bag};
pub use checkpoint::Checkpoint;
pub use compression::Compression;
pub use damage::Damage;
pub use error::DatasetError;
pub use evacuate::{Evacuated, Evacuation, evacuate, failure, finished, origin};
pub use holdfast_export::{SourceAccess, make_folder_like, new_file_mode, note_complete};
pub use import::{Import, import_dataset};
pub use manifest::{
    ArchivedSpan, ChunkEntry, IndexPart, Manifest, PreambleEntry, Provenance, StreamEntry, TreeEntry,
    TreePart, VERSION,
};
pub use overview::{ChannelOverview, McapOverview};
pub use pack::{
    LeftOut, PackProgress, Packed, PackedContents, PackedEntry, PackedTree, Packing, RawFrame, Unpacked,
    pack, unpack,
};
pub use reader::{Dataset, ReadCounts, is_dataset, read_manifest};
pub use recovery::{Recovered, recover};
pub use storage::{LocalFile, RangeRead, is_mcap};
pub use table::streams;
pub use target::{LocalTarget, Passed, Target};
pub use unpacked::unpack_whole;
pub use verify::{Finding, verify, verify_parts};
pub use writer::{DatasetWriter, Options, StreamHead, Written};
