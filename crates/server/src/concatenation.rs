//! Concatenation: copies the bytes of verified partial uploads into a final upload, from its durable offset on.

use crate::archive::read_exact_at;
use crate::delivery::{Attempt, Hashes};
use crate::growing_file::GrowingFile;
use crate::live_upload::{Pin, UploadGuard};
use crate::store_error::StoreError;
use crate::upload_record::{BLOCK_BYTES, UploadRecord, UploadState};
use crate::upload_store::UploadStore;
use std::fs::File;

/// Copies the parts, in their order, behind the durable offset of a final upload. Blocks.
pub(crate) fn assemble(
    store: &UploadStore,
    guard: &UploadGuard,
    parts: &[Pin],
) -> Result<Attempt<()>, StoreError> {
    let record = guard.record();
    let mut file = GrowingFile::open(&store.file(record.id), record.offset, store.limits.reserved_space)?;
    let mut start = 0;
    for part in parts {
        let part = part.upload.record();
        if part.state != UploadState::Complete {
            return Ok(Attempt::Failed(format!("its part {} is not complete", part.id)));
        }
        let end = start + part.offset;
        if end > file.written() {
            let copied = copy(store, guard, &mut file, &part, start);
            if let Err(error) = copied {
                // Bytes that were copied before the error count.
                store.commit(guard, &mut file)?;
                return Err(error);
            }
            if let Ok(Some(damage)) = copied {
                return Ok(Attempt::Failed(damage));
            }
        }
        start = end;
    }
    store.commit(guard, &mut file)?;
    Ok(Attempt::Done(()))
}

/// Copies one part that begins at `start` of the final upload; returns the damage that was found in it.
fn copy(
    store: &UploadStore,
    guard: &UploadGuard,
    file: &mut GrowingFile,
    part: &UploadRecord,
    start: u64,
) -> Result<Option<String>, StoreError> {
    let source = File::open(store.file(part.id))?;
    let mut hashes = Hashes::new(store, part.id);
    let mut block = vec![0; BLOCK_BYTES as usize];
    // Whole blocks are read, so that the hash of the first one can be compared also when a part of it was copied before.
    let copied = file.written().saturating_sub(start);
    let mut at = copied - copied % BLOCK_BYTES;
    while at < part.offset {
        let piece = &mut block[..(part.offset - at).min(BLOCK_BYTES) as usize];
        read_exact_at(&source, piece, at)?;
        let number = at / BLOCK_BYTES;
        let is_whole = piece.len() as u64 == BLOCK_BYTES;
        if is_whole && !hashes.matches(number, piece).map_err(StoreError::Failed)? {
            return Ok(Some(format!("block {number} of its part {} is not as it was received", part.id)));
        }
        let skip = (start + at).max(file.written()) - (start + at);
        file.append(&piece[skip as usize..])?;
        at += piece.len() as u64;
        if file.unsynced() >= store.limits.sync_bytes {
            store.commit(guard, file)?;
        }
    }
    Ok(None)
}
