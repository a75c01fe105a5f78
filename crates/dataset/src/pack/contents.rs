//! Contents of a packed folder's files: pieces from chunks, verified by their hashes.

use crate::error::DatasetError;
use crate::pack::entry::{Encoding, Entry, Piece, Place, shown};
use crate::pack::image::decode;
use crate::reader::records;
use crate::records::{HEAD, MESSAGE_HEAD, record};
use crate::storage::RangeRead;
use bytes::Bytes;
use mcap::records::op;
use std::collections::VecDeque;
use std::sync::Arc;

/// Bytes of decompressed chunks that a reader keeps: files that share contents lead back to them.
const CACHE: usize = 8 << 20;

/// Reader of contents, with the chunks that it read last.
pub(crate) struct ContentReader {
    file: Arc<dyn RangeRead>,
    /// Offset of the chunk record, and the chunk's records, the last one used in front.
    chunks: VecDeque<(u64, Bytes)>,
}

impl ContentReader {
    pub(crate) fn new(file: Arc<dyn RangeRead>) -> Self {
        Self { file, chunks: VecDeque::new() }
    }

    /// Bytes of a piece, verified; `None` for a hole.
    pub(crate) fn piece(&mut self, entry: &Entry, piece: &Piece) -> Result<Option<Bytes>, DatasetError> {
        let Some(place) = piece.place else { return Ok(None) };
        let wrong = |cause: &dyn ToString| {
            DatasetError::damaged(format!("file `{}`", shown(&entry.path)), &cause.to_string())
        };
        let records = self.chunk(&place).map_err(|error| match error {
            DatasetError::Damaged { place, cause } => wrong(&format!("{place}: {cause}")),
            other => other,
        })?;
        let data = message(&records, place.message).ok_or_else(|| wrong(&"its message is missing"))?;
        let bytes = match place.encoding {
            Encoding::Plain => data,
            Encoding::Image => Bytes::from(decode(&data).ok_or_else(|| wrong(&"its image makes no sense"))?),
        };
        if bytes.len() as u64 != piece.length || *blake3::hash(&bytes).as_bytes() != piece.blake3 {
            return Err(wrong(&"its contents do not have its BLAKE3"));
        }
        Ok(Some(bytes))
    }

    fn chunk(&mut self, place: &Place) -> Result<Bytes, DatasetError> {
        if let Some(at) = self.chunks.iter().position(|(offset, _)| *offset == place.chunk_offset) {
            self.chunks.swap(0, at);
            return Ok(self.chunks[0].1.clone());
        }
        let name = || format!("the chunk at byte {}", place.chunk_offset);
        let length =
            usize::try_from(place.chunk_length).map_err(|error| DatasetError::damaged(name(), &error))?;
        let within = place.chunk_offset.checked_add(place.chunk_length);
        if within.is_none_or(|end| end > self.file.size()) {
            return Err(DatasetError::damaged(name(), "it lies beyond the end of the file"));
        }
        let bytes = self.file.read(place.chunk_offset, length)?;
        let records = Bytes::from(records(&bytes).map_err(|cause| DatasetError::damaged(name(), &cause))?);
        self.chunks.push_front((place.chunk_offset, records.clone()));
        while self.chunks.len() > 1 && self.chunks.iter().map(|(_, kept)| kept.len()).sum::<usize>() > CACHE {
            self.chunks.pop_back();
        }
        Ok(records)
    }
}

/// Data of the message record at an offset.
fn message(records: &Bytes, offset: u64) -> Option<Bytes> {
    let offset = usize::try_from(offset).ok()?;
    let (opcode, content) = record(records.get(offset..)?)?;
    let is_message = opcode == op::MESSAGE && content.len() >= MESSAGE_HEAD - HEAD;
    is_message.then(|| records.slice(offset + MESSAGE_HEAD..offset + HEAD + content.len()))
}

/// Gives the zeros of a hole, a part at a time.
pub(crate) fn zeros<E>(length: u64, mut sink: impl FnMut(&[u8]) -> Result<(), E>) -> Result<(), E> {
    static PART: [u8; 64 << 10] = [0; 64 << 10];
    let mut left = length;
    while left > 0 {
        let length = left.min(PART.len() as u64);
        sink(&PART[..length as usize])?;
        left -= length;
    }
    Ok(())
}
