//! Verification of a packed folder: the contents of every file against the hashes of its directory.

use crate::error::DatasetError;
use crate::manifest::TreeEntry;
use crate::pack::contents::{ContentReader, zeros};
use crate::pack::entry::{Entry, shown};
use crate::pack::ordered_pool::OrderedPool;
use crate::pack::tree::PackedTree;
use crate::storage::RangeRead;
use crate::verify::Finding;
use std::collections::HashSet;
use std::num::NonZeroUsize;
use std::sync::Arc;

/// Bytes and entries of a job.
const JOB_BYTES: u64 = 4 << 20;
const JOB_ENTRIES: usize = 1024;

/// Contents that are known to be verified: 32 bytes each; others are verified again.
const MOST_KNOWN: usize = 1 << 21;

type Verified = Result<Vec<Finding>, DatasetError>;

/// Verifies the directory of a packed folder and the contents of all files.
pub(crate) fn verify_tree(file: &Arc<dyn RangeRead>, manifest_tree: &TreeEntry) -> Verified {
    let mut findings = Vec::new();
    let cause = match PackedTree::open(Arc::clone(file)) {
        Ok(tree) if tree.tree() == manifest_tree => None,
        Ok(_) => Some("it is not the one of the manifest".to_owned()),
        Err(DatasetError::Damaged { cause, .. }) => Some(cause),
        Err(error) => Some(error.to_string()),
    };
    findings.extend(cause.map(|cause| Finding { place: "the root of the directory".to_owned(), cause }));
    let tree = PackedTree::of(Arc::clone(file), manifest_tree.clone());
    let threads = std::thread::available_parallelism().unwrap_or(NonZeroUsize::MIN);
    let mut pool = OrderedPool::start(threads, "holdfast-verify", || {
        let mut reader = tree.contents();
        move |entries: Vec<Entry>| -> Verified {
            entries.iter().filter_map(|entry| verify_entry(&mut reader, entry).transpose()).collect()
        }
    })?;
    let mut take = |found: Verified| -> Result<(), DatasetError> {
        findings.extend(found?);
        Ok(())
    };
    let mut known = HashSet::new();
    let mut entries = 0;
    for part in &manifest_tree.parts {
        let list = match tree.part(part) {
            Ok(list) => list,
            Err(DatasetError::Damaged { place, cause }) => {
                take(Ok(vec![Finding { place, cause }]))?;
                continue;
            }
            Err(error) => return Err(error),
        };
        entries += list.len() as u64;
        let (mut job, mut bytes) = (Vec::new(), 0);
        for entry in list.into_iter().filter(|entry| entry.kind.has_contents()) {
            let key = contents_key(&entry);
            if known.contains(&key) {
                continue;
            }
            if known.len() < MOST_KNOWN {
                known.insert(key);
            }
            bytes += entry.size;
            job.push(entry);
            if bytes >= JOB_BYTES || job.len() >= JOB_ENTRIES {
                bytes = 0;
                pool.give(std::mem::take(&mut job))?.map_or(Ok(()), &mut take)?;
            }
        }
        pool.give(job)?.map_or(Ok(()), &mut take)?;
    }
    while let Some(result) = pool.next()? {
        take(result)?;
    }
    if findings.is_empty() && entries != manifest_tree.entries {
        let cause = format!("it has {entries} entries, the manifest {}", manifest_tree.entries);
        findings.push(Finding { place: "the directory".to_owned(), cause });
    }
    Ok(findings)
}

/// Hash of a file's hash and of the places of its pieces: the same if verification reads the same.
fn contents_key(entry: &Entry) -> [u8; 32] {
    let mut hasher = blake3::Hasher::new();
    hasher.update(&entry.blake3.unwrap_or_default());
    for piece in &entry.pieces {
        let place = piece.place.map_or((0, 0), |place| (place.chunk_offset, place.message));
        for word in [piece.offset, piece.length, place.0, place.1] {
            hasher.update(&word.to_le_bytes());
        }
    }
    *hasher.finalize().as_bytes()
}

fn verify_entry(reader: &mut ContentReader, entry: &Entry) -> Result<Option<Finding>, DatasetError> {
    let mut hasher = blake3::Hasher::new();
    let is_single = entry.pieces.len() == 1 && entry.pieces.iter().all(|piece| piece.place.is_some());
    for piece in &entry.pieces {
        match reader.piece(entry, piece) {
            // The reader has compared the hash of a single piece.
            Ok(Some(_)) if is_single => return Ok(None),
            Ok(Some(bytes)) => drop(hasher.update(&bytes)),
            Ok(None) => zeros(piece.length, |bytes| {
                hasher.update(bytes);
                Ok::<(), DatasetError>(())
            })?,
            Err(DatasetError::Damaged { place, cause }) => return Ok(Some(Finding { place, cause })),
            Err(error) => return Err(error),
        }
    }
    let is_right = entry.blake3.is_some_and(|hash| hash == *hasher.finalize().as_bytes());
    Ok((!is_right).then(|| Finding {
        place: format!("file `{}`", shown(&entry.path)),
        cause: "its contents do not have its BLAKE3".to_owned(),
    }))
}
