//! Target of a dataset that is written: its bytes are read back and compared before they get their name.

use crate::storage::{LocalFile, RangeRead};
use holdfast_base::failure::{Failure, Result};
use holdfast_export::{Existing, OutputFile, SourceAccess};
use std::fs::File;
use std::io::{self, Write};
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Bytes that are read back at once.
const STEP: u64 = 32 << 20;

/// Target of a dataset: a writer of its bytes. Dropped before it is published, it leaves nothing.
pub trait Target: Write + Send {
    /// Name of the target, for messages.
    fn name(&self) -> String;

    /// Device and inode of a local file, so that a packed folder does not contain its own dataset.
    fn inode(&self) -> Option<(u64, u64)>;

    /// Notes access to a source of the bytes: they become no wider than it.
    fn narrow(&mut self, access: SourceAccess);

    /// Ends writing, makes the bytes durable, reads them back and compares them with those that were written.
    fn verify(&mut self) -> Result<Arc<dyn RangeRead>>;

    /// Gives the bytes their name, which must be free.
    fn publish(self: Box<Self>) -> Result<()>;
}

/// Hash and number of the bytes that pass a writer.
#[derive(Default)]
pub struct Passed {
    hash: blake3::Hasher,
    bytes: u64,
}

impl Passed {
    /// Takes bytes that were written.
    pub fn add(&mut self, bytes: &[u8]) {
        self.hash.update(bytes);
        self.bytes += bytes.len() as u64;
    }

    /// Number of bytes that passed.
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// BLAKE3 of the bytes, in hexadecimal digits.
    pub fn blake3(&self) -> String {
        self.hash.finalize().to_hex().to_string()
    }

    /// Reads a file and compares it. `Ok(false)`: it has other bytes.
    pub fn are_in(&self, file: &dyn RangeRead) -> io::Result<bool> {
        if file.size() != self.bytes {
            return Ok(false);
        }
        let mut hash = blake3::Hasher::new();
        let mut at = 0;
        while at < self.bytes {
            let length = STEP.min(self.bytes - at);
            hash.update(&file.read(at, length as usize)?);
            at += length;
        }
        Ok(hash.finalize() == self.hash.finalize())
    }
}

/// Local file as a target.
pub struct LocalTarget {
    path: PathBuf,
    place: OutputFile,
    file: File,
    passed: Passed,
}

impl LocalTarget {
    /// Makes a file under a temporary name. The file itself must not exist. `access` is that to the sources of its bytes.
    pub fn make(path: &Path, access: SourceAccess) -> Result<Self> {
        let place = OutputFile::make(path, Existing::Keep, access)?;
        let file = place.writer()?;
        Ok(Self { path: path.to_owned(), place, file, passed: Passed::default() })
    }
}

impl Write for LocalTarget {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let written = self.file.write(bytes)?;
        self.passed.add(&bytes[..written]);
        Ok(written)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file.flush()
    }
}

impl Target for LocalTarget {
    fn name(&self) -> String {
        self.path.display().to_string()
    }

    fn inode(&self) -> Option<(u64, u64)> {
        self.file.metadata().ok().map(|found| (found.dev(), found.ino()))
    }

    fn narrow(&mut self, access: SourceAccess) {
        self.place.narrow(access);
    }

    fn verify(&mut self) -> Result<Arc<dyn RangeRead>> {
        let cannot = |error: &io::Error| Failure::output("cannot read the dataset back", &self.path, error);
        self.file.sync_all().map_err(|error| cannot(&error))?;
        let file =
            self.place.read_back().and_then(|file| LocalFile::new(file, self.path.display().to_string()));
        let file = file.map_err(|error| cannot(&error))?;
        file.forget_cached();
        if self.passed.are_in(&file).map_err(|error| cannot(&error))? {
            return Ok(Arc::new(file));
        }
        Err(Failure::failed("the bytes read back are not those that were written")
            .at_path(&self.path)
            .advice("check the disk, and choose another place"))
    }

    fn publish(self: Box<Self>) -> Result<()> {
        self.place.finish()
    }
}
