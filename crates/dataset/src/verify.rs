//! Verification of a dataset: every chunk, index part and preamble against its hash in the manifest,
//! and every element by the index.

use crate::error::DatasetError;
use crate::manifest::StreamEntry;
use crate::pack::verify_tree;
use crate::reader::Dataset;
use holdfast_base::StreamId;
use holdfast_reader::{Item, Selection};
use std::collections::HashMap;
use std::ops::ControlFlow;

/// Part that did not pass.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    /// Chunk, index or preamble.
    pub place: String,
    /// The check that failed.
    pub cause: String,
}

/// Verifies all parts of a dataset, and reads all elements by the index. `progress` is told the bytes of the parts that were read
/// so far.
pub fn verify(dataset: &Dataset, progress: &mut dyn FnMut(u64)) -> Result<Vec<Finding>, DatasetError> {
    let mut findings = verify_parts(dataset, progress)?;
    if findings.is_empty() {
        findings.extend(counted(dataset)?);
    }
    Ok(findings)
}

/// Verifies all parts of a dataset by their hashes. `progress` is told the bytes that were read so far.
pub fn verify_parts(dataset: &Dataset, progress: &mut dyn FnMut(u64)) -> Result<Vec<Finding>, DatasetError> {
    let mut findings = Vec::new();
    let mut done = 0;
    let mut take = |result: Result<(), DatasetError>, bytes: u64| {
        done += bytes;
        progress(done);
        match result {
            Ok(()) => Ok(()),
            Err(DatasetError::Damaged { place, cause }) => {
                findings.push(Finding { place, cause });
                Ok(())
            }
            Err(error) => Err(error),
        }
    };
    let manifest = dataset.manifest();
    for (number, chunk) in manifest.chunks.iter().enumerate() {
        let read = if manifest.tree.is_some() {
            // The verification of the files decompresses it.
            dataset.verified(&format!("chunk {number}"), chunk.offset, chunk.length, &chunk.blake3).map(drop)
        } else {
            dataset.chunk(number as u32).map(drop)
        };
        take(read, chunk.length)?;
    }
    for stream in &manifest.streams {
        for part in &stream.index {
            take(dataset.index_part(&stream.name, part).map(drop), part.length)?;
        }
        for preamble in &stream.preambles {
            let place = format!("preamble {} of stream `{}`", preamble.version, stream.name);
            let read = dataset.verified(&place, preamble.offset, preamble.length, &preamble.blake3);
            take(read.map(drop), preamble.length)?;
        }
    }
    if let Some(tree) = &manifest.tree {
        findings.extend(verify_tree(dataset.file(), tree)?);
    }
    Ok(findings)
}

/// Reads all elements by the index, and compares their number and bytes with the manifest.
pub(crate) fn counted(dataset: &Dataset) -> Result<Vec<Finding>, DatasetError> {
    let mut counts: HashMap<StreamId, (u64, u64)> = HashMap::new();
    let mut count = |item: Item<'_>| {
        if let Item::Element(element) = item {
            let (elements, bytes) = counts.entry(element.stream).or_default();
            *elements += 1;
            *bytes += element.data.len() as u64;
        }
        ControlFlow::Continue(())
    };
    match dataset.read(&Selection::ALL, &mut count) {
        Ok(_) => {}
        Err(DatasetError::Damaged { place, cause }) => return Ok(vec![Finding { place, cause }]),
        Err(error) => return Err(error),
    }
    let differs = |stream: &&StreamEntry| {
        let counted = counts.get(&StreamId(stream.id)).copied().unwrap_or_default();
        counted != (stream.elements, stream.bytes)
    };
    let finding = |stream: &StreamEntry| Finding {
        place: format!("the index of stream `{}`", stream.name),
        cause: "it does not lead to all elements of the manifest".to_owned(),
    };
    Ok(dataset.manifest().streams.iter().filter(differs).map(finding).collect())
}
