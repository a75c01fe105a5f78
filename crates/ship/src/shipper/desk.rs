//! Desk of one file: reading, hashing and comparing its contents, in the order of the actions. Blocks; runs on blocking threads.

use crate::transfer::{Comparison, FileIdentity, Observation, Segment};
use bytes::Bytes;
use std::collections::HashMap;
use std::fs::File;
use std::io::{self, ErrorKind};
use std::os::unix::fs::{FileExt as _, MetadataExt as _};
use std::path::Path;

/// Bytes that are read and hashed together.
const PIECE: usize = 1 << 20;

/// Open file with the hash of the bytes that were sent.
#[derive(Debug, Default)]
pub(super) struct Desk {
    file: Option<File>,
    hasher: blake3::Hasher,
    position: u64,
    /// Bytes of segments that are on their way, by generation and offset.
    kept: HashMap<(u32, u64), Bytes>,
}

/// Observation of an open file.
fn observe(file: &File) -> io::Result<Observation> {
    let metadata = file.metadata()?;
    let nanoseconds = |seconds: i64, rest: i64| seconds.saturating_mul(1_000_000_000).saturating_add(rest);
    Ok(Observation {
        identity: FileIdentity { device: metadata.dev(), inode: metadata.ino() },
        size: metadata.size(),
        modified: nanoseconds(metadata.mtime(), metadata.mtime_nsec()),
        changed: nanoseconds(metadata.ctime(), metadata.ctime_nsec()),
    })
}

fn open(path: &Path) -> io::Result<File> {
    // A file that became a link or a device since it was observed is not read.
    let flags = rustix::fs::OFlags::RDONLY | rustix::fs::OFlags::NOFOLLOW | rustix::fs::OFlags::CLOEXEC;
    let file =
        File::from(rustix::fs::open(path, flags | rustix::fs::OFlags::NONBLOCK, rustix::fs::Mode::empty())?);
    if file.metadata()?.is_file() { Ok(file) } else { Err(ErrorKind::InvalidInput.into()) }
}

/// Reads until the buffer is full or the file ends; returns the number of bytes.
fn read_full(file: &File, buffer: &mut [u8], offset: u64) -> io::Result<usize> {
    let mut filled = 0;
    while filled < buffer.len() {
        match file.read_at(&mut buffer[filled..], offset + filled as u64) {
            Ok(0) => break,
            Ok(length) => filled += length,
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(filled)
}

/// Hash of the whole file and its size.
fn hash_file(file: &File) -> io::Result<(blake3::Hash, u64)> {
    let mut hasher = blake3::Hasher::new();
    let mut buffer = vec![0; PIECE];
    let mut offset = 0;
    loop {
        let length = read_full(file, &mut buffer, offset)?;
        hasher.update(&buffer[..length]);
        offset += length as u64;
        if length < buffer.len() {
            return Ok((hasher.finalize(), offset));
        }
    }
}

impl Desk {
    /// Opens the file anew for an upload from its beginning.
    pub(super) fn begin(&mut self, path: &Path) -> io::Result<()> {
        *self = Self { file: Some(open(path)?), ..Self::default() };
        Ok(())
    }

    /// Bytes of a segment: read for the first time in the order of the offsets, or kept from then.
    pub(super) fn read(&mut self, generation: u32, segment: Segment) -> io::Result<Bytes> {
        let key = (generation, segment.start);
        if segment.is_again {
            return self.kept.get(&key).cloned().ok_or_else(|| ErrorKind::NotFound.into());
        }
        let file = self.file.as_ref().ok_or(ErrorKind::NotFound)?;
        if self.position != segment.start {
            return Err(ErrorKind::InvalidInput.into());
        }
        let mut bytes = vec![0; segment.length as usize];
        if read_full(file, &mut bytes, segment.start)? < bytes.len() {
            return Err(ErrorKind::UnexpectedEof.into());
        }
        self.hasher.update(&bytes);
        self.position += segment.length;
        let bytes = Bytes::from(bytes);
        self.kept.retain(|(kept, _), _| *kept == generation);
        self.kept.insert(key, bytes.clone());
        Ok(bytes)
    }

    /// Drops the bytes of a segment that the archive has.
    pub(super) fn forget(&mut self, generation: u32, start: u64) {
        self.kept.remove(&(generation, start));
    }

    /// Compares the file with the bytes that were sent, `size` of them.
    pub(super) fn compare(&mut self, size: u64) -> io::Result<Comparison> {
        let sent = self.hasher.finalize();
        let Some(file) = &self.file else { return Ok(Comparison::Unreadable { root: sent }) };
        let observed = observe(file)?;
        if self.position != size || observed.size < size {
            return Ok(Comparison::Changed);
        }
        if observed.size > size {
            return Ok(Comparison::Grown(observed));
        }
        let (root, length) = hash_file(file)?;
        if length > size {
            return Ok(Comparison::Grown(observe(file)?));
        }
        Ok(if root == sent { Comparison::Equal { root, observed } } else { Comparison::Changed })
    }

    /// Compares the file at `path` with contents of this hash.
    pub(super) fn check(path: &Path, root: Option<blake3::Hash>) -> io::Result<Comparison> {
        let file = open(path)?;
        let observed = observe(&file)?;
        let (found, _) = hash_file(&file)?;
        let is_equal = root == Some(found);
        Ok(if is_equal { Comparison::Equal { root: found, observed } } else { Comparison::Changed })
    }

    /// Reads a small file whole. The error `InvalidData` tells that it is no longer as it was observed.
    pub(super) fn whole(path: &Path, expected: &Observation) -> io::Result<Bytes> {
        let file = open(path)?;
        let before = observe(&file)?;
        if before.identity != expected.identity || before.size != expected.size {
            return Err(ErrorKind::InvalidData.into());
        }
        let mut bytes = vec![0; before.size as usize + 1];
        let length = read_full(&file, &mut bytes, 0)?;
        if length as u64 != before.size || observe(&file)? != before {
            return Err(ErrorKind::InvalidData.into());
        }
        bytes.truncate(length);
        Ok(Bytes::from(bytes))
    }

    /// Opens the file anew and takes its first bytes for sent: the hashes of blocks must equal those in `expected`, the bytes
    /// behind the last block the hash `tail`. Returns false if the file has other bytes.
    pub(super) fn resume(&mut self, path: &Path, prefix: &Prefix) -> io::Result<bool> {
        self.begin(path)?;
        let Some(file) = &self.file else { return Ok(false) };
        let mut buffer = vec![0; prefix.block.clamp(1, 64 << 20) as usize];
        let mut hashes = prefix.blocks.iter();
        while self.position < prefix.offset {
            let length = (prefix.offset - self.position).min(buffer.len() as u64) as usize;
            if read_full(file, &mut buffer[..length], self.position)? < length {
                return Ok(false);
            }
            let expected = if length == buffer.len() { hashes.next().copied() } else { prefix.tail };
            if expected.is_some_and(|expected| expected != blake3::hash(&buffer[..length])) {
                return Ok(false);
            }
            self.hasher.update(&buffer[..length]);
            self.position += length as u64;
        }
        Ok(true)
    }

    /// Hash, size and observation of the file at `path`.
    pub(super) fn describe(path: &Path) -> io::Result<(blake3::Hash, Observation)> {
        let file = open(path)?;
        let observed = observe(&file)?;
        let (root, size) = hash_file(&file)?;
        Ok((root, Observation { size, ..observed }))
    }
}

/// First bytes of an upload at the archive, by their hashes. Blocks without hash are taken on trust.
#[derive(Clone, Debug)]
pub(super) struct Prefix {
    /// Number of bytes at the archive.
    pub(super) offset: u64,
    /// Size of a block in bytes.
    pub(super) block: u64,
    /// BLAKE3 of the whole blocks in their order.
    pub(super) blocks: Vec<blake3::Hash>,
    /// BLAKE3 of the bytes behind the last whole block.
    pub(super) tail: Option<blake3::Hash>,
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;
    use std::io::Write as _;

    fn segment(start: u64, length: u64) -> Segment {
        Segment { start, length, is_ahead: false, is_again: false }
    }

    #[test]
    fn sent_bytes_are_compared_with_the_file_as_it_is() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("f");
        fs::write(&path, [1; 100]).unwrap();
        let mut desk = Desk::default();
        desk.begin(&path).unwrap();
        assert_eq!(desk.read(1, segment(0, 60)).unwrap(), [1; 60][..]);
        assert!(desk.read(1, segment(0, 60)).is_err(), "out of order");
        assert!(desk.read(1, segment(60, 41)).is_err(), "beyond the end");
        assert_eq!(desk.read(1, segment(60, 40)).unwrap(), [1; 40][..]);
        assert!(matches!(desk.compare(100).unwrap(), Comparison::Equal { .. }));
        let mut file = File::options().append(true).open(&path).unwrap();
        file.write_all(&[1]).unwrap();
        assert!(matches!(desk.compare(100).unwrap(), Comparison::Grown(seen) if seen.size == 101));
        file.set_len(100).unwrap();
        std::os::unix::fs::FileExt::write_at(&File::options().write(true).open(&path).unwrap(), &[2], 5)
            .unwrap();
        assert_eq!(desk.compare(100).unwrap(), Comparison::Changed);
        file.set_len(99).unwrap();
        assert_eq!(desk.compare(100).unwrap(), Comparison::Changed);
    }

    #[test]
    fn segments_are_kept_until_the_archive_has_them() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("f");
        fs::write(&path, [1; 100]).unwrap();
        let mut desk = Desk::default();
        desk.begin(&path).unwrap();
        desk.read(1, segment(0, 50)).unwrap();
        fs::write(&path, [2; 100]).unwrap();
        let again = Segment { is_again: true, ..segment(0, 50) };
        assert_eq!(desk.read(1, again).unwrap(), [1; 50][..], "the bytes that were sent at first");
        desk.forget(1, 0);
        assert!(desk.read(1, again).is_err());
    }

    #[test]
    fn a_prefix_is_compared_block_by_block() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("f");
        let bytes: Vec<u8> = (0..250).collect();
        fs::write(&path, &bytes).unwrap();
        let hashes = |bytes: &[u8]| bytes.chunks_exact(100).map(blake3::hash).collect::<Vec<_>>();
        let whole = Prefix { offset: 230, block: 100, blocks: hashes(&bytes[..230]), tail: None };
        let with_tail = Prefix { tail: Some(blake3::hash(&bytes[200..230])), ..whole.clone() };
        let mut desk = Desk::default();
        for prefix in [&whole, &with_tail] {
            assert!(desk.resume(&path, prefix).unwrap());
            assert_eq!(desk.read(1, segment(230, 20)).unwrap(), bytes[230..]);
            assert!(matches!(desk.compare(250).unwrap(), Comparison::Equal { .. }));
        }
        let mut other = bytes.clone();
        for at in [0, 199, 229] {
            other[at] ^= 1;
            fs::write(&path, &other).unwrap();
            assert!(!desk.resume(&path, &with_tail).unwrap(), "{at}");
            other[at] ^= 1;
        }
        fs::write(&path, &bytes[..229]).unwrap();
        assert!(!desk.resume(&path, &with_tail).unwrap(), "shorter");
    }

    #[test]
    fn links_and_changed_files_are_not_read() {
        let folder = tempfile::tempdir().unwrap();
        let (path, link) = (folder.path().join("f"), folder.path().join("link"));
        fs::write(&path, b"bytes").unwrap();
        std::os::unix::fs::symlink(&path, &link).unwrap();
        assert!(Desk::default().begin(&link).is_err());
        let (_, observed) = Desk::describe(&path).unwrap();
        assert_eq!(Desk::whole(&path, &observed).unwrap(), b"bytes"[..]);
        fs::write(&path, b"more bytes").unwrap();
        assert_eq!(Desk::whole(&path, &observed).unwrap_err().kind(), ErrorKind::InvalidData);
    }
}
