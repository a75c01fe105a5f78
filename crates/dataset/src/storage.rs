//! Storage that a dataset is read from, by ranges of bytes: a local file here, objects in vaults elsewhere.

use crate::records::MAGIC;
use bytes::{Buf as _, Bytes};
use parquet::errors::{ParquetError, Result as ParquetResult};
use parquet::file::reader::{ChunkReader, Length};
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt as _;
use std::path::Path;
use std::sync::Arc;

/// File that is read by ranges. Its methods may block.
pub trait RangeRead: Send + Sync {
    /// Bytes of the file.
    fn size(&self) -> u64;

    /// Reads exactly `length` bytes from `offset` on.
    fn read(&self, offset: u64, length: usize) -> io::Result<Bytes>;

    /// Name of the file, for messages.
    fn name(&self) -> String;
}

/// Local file, read by ranges.
#[derive(Debug)]
pub struct LocalFile {
    file: File,
    size: u64,
    name: String,
}

impl LocalFile {
    /// Opens the file at a path.
    pub fn open(path: &Path) -> io::Result<Self> {
        Self::new(File::open(path)?, path.display().to_string())
    }

    /// Reads a file that is open, and has this name for messages.
    pub fn new(file: File, name: String) -> io::Result<Self> {
        let size = file.metadata()?.len();
        Ok(Self { file, size, name })
    }

    /// Drops the file's pages from memory, so that reads come from the disk; a hint.
    pub(crate) fn forget_cached(&self) {
        let _ = rustix::fs::fadvise(&self.file, 0, None, rustix::fs::Advice::DontNeed);
    }
}

/// Returns true if a file begins as an MCAP file does.
pub fn is_mcap(path: &Path) -> bool {
    let is_file = std::fs::metadata(path).is_ok_and(|found| found.is_file());
    let mut magic = [0; MAGIC.len()];
    is_file && File::open(path).and_then(|file| file.read_exact_at(&mut magic, 0)).is_ok() && magic == MAGIC
}

impl RangeRead for LocalFile {
    fn size(&self) -> u64 {
        self.size
    }

    fn read(&self, offset: u64, length: usize) -> io::Result<Bytes> {
        if offset.checked_add(length as u64).is_none_or(|end| end > self.size) {
            return Err(io::Error::new(io::ErrorKind::UnexpectedEof, "the file is shorter than it says"));
        }
        let mut bytes = vec![0; length];
        self.file.read_exact_at(&mut bytes, offset)?;
        Ok(bytes.into())
    }

    fn name(&self) -> String {
        self.name.clone()
    }
}

/// Part of a file, as Parquet readers want it.
#[derive(Clone)]
pub(crate) struct FilePart {
    pub(crate) file: Arc<dyn RangeRead>,
    pub(crate) offset: u64,
    pub(crate) length: u64,
}

/// Bytes that a reader without an end gets at once.
const STEP: usize = 64 << 10;

impl Length for FilePart {
    fn len(&self) -> u64 {
        self.length
    }
}

impl FilePart {
    fn bytes(&self, start: u64, length: usize) -> ParquetResult<Bytes> {
        let end = start.checked_add(length as u64).filter(|end| *end <= self.length);
        let offset = end.and_then(|_| self.offset.checked_add(start));
        let offset = offset.ok_or_else(|| ParquetError::EOF("it reaches beyond the part".to_owned()))?;
        self.file.read(offset, length).map_err(|error| ParquetError::External(Box::new(error)))
    }
}

impl ChunkReader for FilePart {
    type T = io::BufReader<PartReader>;

    fn get_read(&self, start: u64) -> ParquetResult<Self::T> {
        Ok(io::BufReader::with_capacity(STEP, PartReader { part: self.clone(), at: start }))
    }

    fn get_bytes(&self, start: u64, length: usize) -> ParquetResult<Bytes> {
        self.bytes(start, length)
    }
}

/// Reader of a part from a place on.
pub(crate) struct PartReader {
    part: FilePart,
    at: u64,
}

impl io::Read for PartReader {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        let left = usize::try_from(self.part.length.saturating_sub(self.at)).unwrap_or(usize::MAX);
        let length = into.len().min(left);
        let mut bytes = self.part.bytes(self.at, length).map_err(io::Error::other)?;
        bytes.copy_to_slice(&mut into[..length]);
        self.at += length as u64;
        Ok(length)
    }
}
