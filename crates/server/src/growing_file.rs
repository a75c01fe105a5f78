//! File of a growing upload: appends with block hashes, syncs, and truncates to the durable offset. No database here.

use crate::archive::read_exact_at;
use crate::upload_record::BLOCK_BYTES;
use crate::upload_table::BlockHash;
use std::fs::{File, OpenOptions};
use std::io::{self, ErrorKind};
use std::os::unix::fs::{FileExt as _, OpenOptionsExt as _};
use std::path::Path;

/// File that is open for appending. Bytes behind the durable offset count only after [`sync`](Self::sync).
#[derive(Debug)]
pub(crate) struct GrowingFile {
    file: File,
    written: u64,
    synced: u64,
    hasher: blake3::Hasher,
    /// Hashes of the blocks that were completed since the last call of [`take_blocks`](Self::take_blocks).
    blocks: Vec<BlockHash>,
    reserve: u64,
}

impl GrowingFile {
    /// Makes an empty file; its entry in the folder is durable only after a sync of the folder.
    pub(crate) fn create(path: &Path) -> io::Result<()> {
        OpenOptions::new().write(true).create_new(true).mode(0o600).open(path).map(drop)
    }

    /// Opens a file, cuts off what lies behind the durable offset, and hashes its unfinished block again. Appends fail with
    /// `StorageFull` when fewer than `reserve` bytes would be left for others.
    pub(crate) fn open(path: &Path, offset: u64, reserve: u64) -> io::Result<Self> {
        let file = OpenOptions::new().read(true).write(true).open(path)?;
        let length = file.metadata()?.len();
        if length < offset {
            let reason = format!("the file has {length} bytes, {offset} were durable");
            return Err(io::Error::new(ErrorKind::UnexpectedEof, reason));
        }
        if length > offset {
            file.set_len(offset)?;
        }
        let start = offset - offset % BLOCK_BYTES;
        let mut tail = vec![0; (offset - start) as usize];
        read_exact_at(&file, &mut tail, start)?;
        let mut hasher = blake3::Hasher::new();
        hasher.update(&tail);
        Ok(Self { file, written: offset, synced: offset, hasher, blocks: Vec::new(), reserve })
    }

    /// Appends bytes. After an error those that were written still count, see [`written`](Self::written).
    pub(crate) fn append(&mut self, mut bytes: &[u8]) -> io::Result<()> {
        while !bytes.is_empty() {
            let most = BLOCK_BYTES - self.written % BLOCK_BYTES;
            let piece = &bytes[..bytes.len().min(most as usize)];
            self.check_space(piece.len() as u64)?;
            let written = match self.file.write_at(piece, self.written) {
                Ok(0) => return Err(ErrorKind::WriteZero.into()),
                Err(error) if error.kind() == ErrorKind::Interrupted => continue,
                written => written?,
            };
            self.hasher.update(&piece[..written]);
            self.written += written as u64;
            if self.written.is_multiple_of(BLOCK_BYTES) {
                self.blocks.push((self.written / BLOCK_BYTES - 1, self.hasher.finalize()));
                self.hasher.reset();
            }
            bytes = &bytes[written..];
        }
        Ok(())
    }

    fn check_space(&self, length: u64) -> io::Result<()> {
        if self.reserve == 0 {
            return Ok(());
        }
        let space = rustix::fs::fstatvfs(&self.file)?;
        let free = space.f_bavail.saturating_mul(space.f_frsize);
        if free < self.reserve.saturating_add(length) { Err(ErrorKind::StorageFull.into()) } else { Ok(()) }
    }

    /// Number of bytes in the file, durable or not.
    pub(crate) fn written(&self) -> u64 {
        self.written
    }

    /// Number of bytes that were appended since the last sync.
    pub(crate) fn unsynced(&self) -> u64 {
        self.written - self.synced
    }

    /// Makes all appended bytes and the file's size durable.
    pub(crate) fn sync(&mut self) -> io::Result<()> {
        if self.unsynced() > 0 {
            self.file.sync_data()?;
            self.synced = self.written;
        }
        Ok(())
    }

    /// Hashes of the blocks that were completed since the last call.
    pub(crate) fn take_blocks(&mut self) -> Vec<BlockHash> {
        std::mem::take(&mut self.blocks)
    }

    /// Gives the space of bytes behind `offset` back. The file must not be appended to afterwards.
    pub(crate) fn cut(self, offset: u64) -> io::Result<()> {
        self.file.set_len(offset)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn block_hashes_do_not_depend_on_pieces_and_reopening() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a");
        let bytes: Vec<u8> = (0..BLOCK_BYTES * 2 + 777).map(|at| (at % 251) as u8).collect();
        GrowingFile::create(&path).unwrap();
        let mut blocks = Vec::new();
        let mut offset = 0;
        for cut in [0, 1, 1_000_000, BLOCK_BYTES as usize, 2_000_000, bytes.len()] {
            let mut file = GrowingFile::open(&path, offset as u64, 1).unwrap();
            file.append(&bytes[offset..cut]).unwrap();
            file.sync().unwrap();
            // Bytes that were never acknowledged are cut off when the file is opened again.
            file.append(b"unacknowledged").unwrap();
            blocks.extend(file.take_blocks());
            offset = cut;
        }
        let hash = |from: usize| blake3::hash(&bytes[from..from + BLOCK_BYTES as usize]);
        assert_eq!(blocks, [(0, hash(0)), (1, hash(BLOCK_BYTES as usize))]);
        GrowingFile::open(&path, offset as u64, 0).unwrap();
        assert_eq!(std::fs::read(&path).unwrap(), bytes);
        assert_eq!(
            GrowingFile::open(&path, offset as u64 + 1, 0).unwrap_err().kind(),
            ErrorKind::UnexpectedEof
        );
        let mut file = GrowingFile::open(&path, 5, u64::MAX).unwrap();
        assert_eq!(file.append(b"x").unwrap_err().kind(), ErrorKind::StorageFull);
    }
}
