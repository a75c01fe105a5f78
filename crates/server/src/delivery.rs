//! Delivery of a complete upload to the archive: read back, compared with the hashes taken on arrival, and stored.

use crate::archive::{Archive, FinishedUpload, StoredVersion};
use crate::error::reason;
use crate::metadata;
use crate::object_path::{ObjectPath, ProjectName};
use crate::upload_id::UploadId;
use crate::upload_record::{BLOCK_BYTES, UploadRecord};
use crate::upload_store::UploadStore;
use crate::upload_table::{self, BlockHash};
use std::fs::File;
use std::io::{self, ErrorKind, Read as _};
use std::time::Instant;

/// Block hashes that are read from the database together.
const HASHES: usize = 4096;

/// Result of an attempt that needs no repetition.
pub(crate) enum Attempt<T> {
    /// The attempt has succeeded with this result.
    Done(T),
    /// No further attempt succeeds, for this reason: the received bytes are damaged, or the archive refuses them.
    Failed(String),
}

/// Verifies the file of a complete upload and hands it to the archive. The error is the reason to try again. Blocks.
pub(crate) fn attempt(
    store: &UploadStore,
    archive: &dyn Archive,
    record: &UploadRecord,
    (project, path): (ProjectName, ObjectPath),
) -> Result<Attempt<StoredVersion>, String> {
    let file = store.file(record.id);
    let blake3 = match verify(store, record)? {
        Attempt::Done(hash) => hash,
        Attempt::Failed(reason) => return Ok(Attempt::Failed(reason)),
    };
    let finished = FinishedUpload {
        id: record.id,
        project,
        path,
        size: record.offset,
        blake3,
        metadata: metadata::parse(&record.metadata).unwrap_or_default(),
        file,
    };
    let started = Instant::now();
    let stored = match archive.store(&finished) {
        Err(error) if error.is_refusal() => return Ok(Attempt::Failed(error.to_string())),
        stored => stored.map_err(|error| error.to_string())?,
    };
    store.metrics.deliveries.record(started.elapsed());
    Ok(Attempt::Done(stored))
}

/// Reads the file back, compares every complete block with its hash, and hashes the whole.
fn verify(store: &UploadStore, record: &UploadRecord) -> Result<Attempt<blake3::Hash>, String> {
    let failed = |error: io::Error| reason(&error);
    let mut file = File::open(store.file(record.id)).map_err(failed)?;
    let mut whole = blake3::Hasher::new();
    let mut block = vec![0; BLOCK_BYTES as usize];
    let mut hashes = Hashes::new(store, record.id);
    let mut left = record.offset;
    let mut number = 0;
    while left > 0 {
        let piece = &mut block[..left.min(BLOCK_BYTES) as usize];
        match file.read_exact(piece) {
            Err(error) if error.kind() == ErrorKind::UnexpectedEof => {
                return Ok(Attempt::Failed(format!("its file ends {left} bytes early")));
            }
            read => read.map_err(failed)?,
        }
        whole.update(piece);
        if piece.len() as u64 == BLOCK_BYTES && !hashes.matches(number, piece)? {
            return Ok(Attempt::Failed(format!("block {number} of its file is not as it was received")));
        }
        left -= piece.len() as u64;
        number += 1;
    }
    Ok(Attempt::Done(whole.finalize()))
}

/// Block hashes of an upload, read ahead from the database in order.
pub(crate) struct Hashes<'a> {
    store: &'a UploadStore,
    id: UploadId,
    ahead: std::vec::IntoIter<BlockHash>,
}

impl<'a> Hashes<'a> {
    pub(crate) fn new(store: &'a UploadStore, id: UploadId) -> Self {
        Self { store, id, ahead: Vec::new().into_iter() }
    }

    /// True when the bytes are those of complete block `number`. Numbers must ascend without gaps.
    pub(crate) fn matches(&mut self, number: u64, bytes: &[u8]) -> Result<bool, String> {
        if self.ahead.len() == 0 {
            let id = self.id;
            let read = move |connection: &_| upload_table::blocks(connection, id, number, HASHES);
            let hashes = self.store.database.read_blocking(read).map_err(|error| error.to_string())?;
            self.ahead = hashes.into_iter();
        }
        Ok(self.ahead.next() == Some((number, blake3::hash(bytes))))
    }
}
