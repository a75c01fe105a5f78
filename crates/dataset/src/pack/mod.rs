//! Packed folders: a tree of files as a dataset, and back.
//!
//! Here belong the walk of a folder, the directory of its entries (Parquet), the messages of their contents, and
//! unpacking. Not here: the MCAP file itself (`mcap_writer`), and streams of a ring (`writer`). docs/dataset.md draws
//! the file.

mod contents;
mod directory;
mod entry;
mod image;
mod ordered_pool;
mod packer;
mod series;
mod source;
mod tree;
mod unpack;
mod verification;
mod walk;

pub(crate) use directory::{ROOT, root_bytes};
pub use image::RawFrame;
pub use packer::{LeftOut, PackProgress, Packed, Packing, pack};
pub use tree::{PackedContents, PackedEntry, PackedTree};
pub use unpack::{Unpacked, unpack};
pub(crate) use verification::verify_tree;
