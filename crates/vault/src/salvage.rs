//! Salvage of a dataset that a killed process was archiving: it is published up to its last checkpoint.

use crate::archive::{Archive, Archived, dataset_failure};
use crate::object::VaultObject;
use crate::target::VaultTarget;
use holdfast_base::failure::Result;
use holdfast_dataset::{Checkpoint, DatasetError, SourceAccess, Target as _};
use holdfast_reader::RingReader;
use std::io::BufWriter;

/// Bytes that are gathered before a write.
const GATHER: usize = 1 << 20;

/// Publishes what a killed process had written of the dataset that begins at `from`. `None` without such bytes.
///
/// Other kept bytes of this stream are of no use any more, and are removed.
pub(crate) fn salvage(
    archive: &Archive<'_>,
    reader: &RingReader,
    stream: &str,
    from: u64,
) -> Result<Option<Archived>> {
    for (place, file) in archive.vault.left_uploads()? {
        let found = checkpoint(archive, &file)?;
        let Some(checkpoint) = found else {
            archive.vault.remove_left(&place)?;
            continue;
        };
        if !is_of(archive, reader, stream, &checkpoint) {
            continue;
        }
        let archived = match &checkpoint.manifest.provenance.archived {
            Some(span) if span.from == from && span.to > from => published(archive, &checkpoint, &file)?,
            _ => None,
        };
        archive.vault.remove_left(&place)?;
        if archived.is_some() {
            return Ok(archived);
        }
    }
    Ok(None)
}

/// Last checkpoint of an unfinished file; `None` too if it is damaged.
fn checkpoint(archive: &Archive<'_>, file: &VaultObject) -> Result<Option<Checkpoint>> {
    match Checkpoint::last_of(file) {
        Err(error @ DatasetError::Io(_)) => Err(dataset_failure(&error, archive, archive.prefix)),
        found => Ok(found.ok().flatten()),
    }
}

/// True for a checkpoint of the same stream, prefix and condition.
fn is_of(archive: &Archive<'_>, reader: &RingReader, stream: &str, checkpoint: &Checkpoint) -> bool {
    let origin = &checkpoint.manifest.provenance;
    crate::archive_path::is_dataset_path(&checkpoint.name, archive.prefix, stream)
        && origin.ring == reader.superblock().ring.to_string()
        && origin.query == archive.condition.unwrap_or_default()
}

fn published(archive: &Archive<'_>, checkpoint: &Checkpoint, file: &VaultObject) -> Result<Option<Archived>> {
    let path = &checkpoint.name;
    let failed = |error: &DatasetError| dataset_failure(error, archive, path);
    let target = VaultTarget::begin(archive.vault, path, SourceAccess::of(archive.ring))?;
    let out = BufWriter::with_capacity(GATHER, target);
    let Some((out, written)) = checkpoint.complete(file, out).map_err(|error| failed(&error))? else {
        return Ok(None);
    };
    let target = out.into_inner().map_err(|error| failed(&DatasetError::Io(error.into_error())))?;
    let mut target = Box::new(target);
    target.verify()?;
    target.publish()?;
    let span = checkpoint.manifest.provenance.archived.clone();
    Ok(span.map(|span| Archived { path: path.clone(), written, span, damaged: 0 }))
}
