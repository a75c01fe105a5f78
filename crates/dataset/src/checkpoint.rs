//! Checkpoints of a dataset while it is written, and the dataset that a checkpoint of an unfinished file gives.
//!
//! A checkpoint is an attachment with the manifest of all before it. A file whose writer was killed is a dataset up to its
//! last checkpoint.

use crate::error::DatasetError;
use crate::manifest::Manifest;
use crate::reader::attachment;
use crate::recovery::{attachment_head, completed};
use crate::scan::{Scan, Step};
use crate::storage::RangeRead;
use crate::writer::Written;
use bytes::Bytes;
use mcap::records::op;
use std::io::{self, Write};

/// Beginning of the names of checkpoints; the name of the dataset follows.
pub(crate) const CHECKPOINT: &str = "holdfast/checkpoint/";

/// Last checkpoint of an unfinished dataset.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Checkpoint {
    /// Name that the dataset was to get.
    pub name: String,
    /// Manifest of all before the checkpoint.
    pub manifest: Manifest,
    /// Offset of the checkpoint.
    at: u64,
}

impl Checkpoint {
    /// Finds the last whole checkpoint of a file.
    pub fn last_of(file: &dyn RangeRead) -> Result<Option<Self>, DatasetError> {
        let Some(mut scan) = Scan::new(file)? else { return Ok(None) };
        let mut last = None;
        while let Step::Record(place) = scan.next()? {
            if place.opcode != op::ATTACHMENT {
                continue;
            }
            let Ok((index, _)) = attachment_head(&mut scan, place)? else { continue };
            let Some(name) = index.name.strip_prefix(CHECKPOINT) else { continue };
            let bytes = match attachment(file, &index) {
                Err(DatasetError::Io(error)) => return Err(DatasetError::Io(error)),
                Err(_) => continue,
                Ok(bytes) => bytes,
            };
            if let Ok(manifest) = serde_json::from_slice(&bytes) {
                last = Some(Self { name: name.to_owned(), manifest, at: place.at });
            }
        }
        Ok(last)
    }

    /// Finds the whole checkpoint of the file that lies before this one.
    pub fn before(&self, file: &dyn RangeRead) -> Result<Option<Self>, DatasetError> {
        Self::last_of(&Front { file, size: self.at })
    }

    /// Writes the dataset up to this checkpoint of a file. `None` if a part of the file is damaged.
    pub fn complete<W: Write>(
        &self,
        file: &dyn RangeRead,
        out: W,
    ) -> Result<Option<(W, Written)>, DatasetError> {
        let front = Front { file, size: self.at };
        let manifest = self.manifest.clone();
        let id = blake3::hash(&manifest.to_bytes()).to_hex().to_string();
        let completed = completed(&front, out, manifest.clone())?;
        Ok(completed.map(|(out, bytes)| (out, Written { id, bytes, manifest })))
    }
}

/// Beginning of a file.
struct Front<'f> {
    file: &'f dyn RangeRead,
    size: u64,
}

impl RangeRead for Front<'_> {
    fn size(&self) -> u64 {
        self.size
    }

    fn read(&self, offset: u64, length: usize) -> io::Result<Bytes> {
        self.file.read(offset, length)
    }

    fn name(&self) -> String {
        self.file.name()
    }
}
