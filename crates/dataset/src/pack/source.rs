//! Sources of a packed folder: entries as they are read from the disk, small files whole.

use crate::compression::Compression;
use crate::pack::entry::Encoding;
use crate::pack::image::{RawFrame, encode};
use crate::pack::packer::LeftOut;
use crate::pack::walk::{Found, on_disk};
use holdfast_base::failure::reason;
use std::fs::{File, Metadata, OpenOptions};
use std::io::{self, Read};
use std::os::unix::ffi::OsStringExt as _;
use std::os::unix::fs::{MetadataExt as _, OpenOptionsExt as _};
use std::path::Path;

/// Bytes of a piece of a large file, and of a file that is read whole: the unit of memory.
pub(crate) const PIECE: u64 = 4 << 20;

/// Bytes of a file of a series that is one message; a larger one has several.
pub(crate) const FRAME: u64 = 32 << 20;

/// Contents of an entry.
#[derive(Debug)]
pub(crate) enum Contents {
    /// Directories have no contents.
    None,
    /// Target of a symbolic link.
    Target(Vec<u8>),
    /// File that was read whole.
    Whole(Whole),
    /// Open file, to be read in pieces.
    Open(File),
}

/// File that was read whole.
#[derive(Debug)]
pub(crate) struct Whole {
    pub(crate) size: u64,
    /// BLAKE3 of the contents.
    pub(crate) blake3: [u8; 32],
    /// Message that stands for the contents.
    pub(crate) message: Vec<u8>,
    pub(crate) encoding: Encoding,
}

/// Rules for images among the files.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ImageRules {
    /// True if images are stored as they are.
    pub(crate) is_off: bool,
    pub(crate) raw: Option<RawFrame>,
    pub(crate) compression: Compression,
}

/// Entry as it was read.
#[derive(Debug)]
pub(crate) struct Source {
    pub(crate) found: Found,
    /// Metadata when the file was opened.
    pub(crate) metadata: Metadata,
    pub(crate) contents: Contents,
    /// True if the file changed while it was read.
    pub(crate) is_changed: bool,
}

/// Reads an entry; a large or sparse file is opened only.
pub(crate) fn read(folder: &Path, found: Found, images: ImageRules) -> Result<Source, LeftOut> {
    match attempt(folder, &found, images) {
        Ok((metadata, contents, is_changed)) => Ok(Source { found, metadata, contents, is_changed }),
        Err(error) => {
            let why = format!("cannot read it: {}", reason(&error));
            Err(LeftOut { path: found.path, reason: why })
        }
    }
}

fn attempt(folder: &Path, found: &Found, images: ImageRules) -> io::Result<(Metadata, Contents, bool)> {
    let path = on_disk(folder, &found.path);
    let metadata = found.metadata.clone();
    if metadata.is_dir() {
        return Ok((metadata, Contents::None, false));
    }
    if metadata.is_symlink() {
        let target = std::fs::read_link(path)?;
        return Ok((metadata, Contents::Target(target.into_os_string().into_vec()), false));
    }
    // A file that became a pipe or a link meanwhile is neither waited for nor followed.
    let flags = rustix::fs::OFlags::NOFOLLOW | rustix::fs::OFlags::NONBLOCK;
    let mut file = OpenOptions::new().read(true).custom_flags(flags.bits().cast_signed()).open(path)?;
    let metadata = file.metadata()?;
    if !metadata.is_file() {
        return Err(io::Error::other("it was replaced by another kind of file"));
    }
    let size = metadata.size();
    let most = if found.series.is_some() { FRAME } else { PIECE };
    if size > most || is_sparse(&metadata) {
        return Ok((metadata, Contents::Open(file), false));
    }
    let mut bytes = Vec::with_capacity(size as usize);
    file.by_ref().take(size).read_to_end(&mut bytes)?;
    let blake3 = *blake3::hash(&bytes).as_bytes();
    let is_changed = bytes.len() as u64 != size || has_changed(&metadata, &file.metadata()?);
    let size = bytes.len() as u64;
    let filtered = (!images.is_off).then(|| encode(&bytes, images.compression, images.raw)).flatten();
    let (message, encoding) = match filtered {
        Some(filtered) => (filtered, Encoding::Image),
        None => (bytes, Encoding::Plain),
    };
    Ok((metadata, Contents::Whole(Whole { size, blake3, message, encoding }), is_changed))
}

/// Bytes of a file from which on holes are looked for: smaller ones are read whole.
const LEAST_SPARSE: u64 = 64 << 10;

/// Returns true if a file has fewer blocks than its size takes.
fn is_sparse(metadata: &Metadata) -> bool {
    metadata.size() >= LEAST_SPARSE && metadata.blocks().saturating_mul(512) < metadata.size()
}

/// Returns true if a file was written to between two looks.
pub(crate) fn has_changed(before: &Metadata, after: &Metadata) -> bool {
    let state = |at: &Metadata| (at.size(), at.mtime(), at.mtime_nsec(), at.ctime(), at.ctime_nsec());
    state(before) != state(after)
}
