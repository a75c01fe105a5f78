//! Verification of a dataset: every chunk, index part and preamble against its hash in the manifest.

use crate::error::DatasetError;
use crate::reader::Dataset;

/// Part that did not pass.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    /// Chunk, index or preamble.
    pub place: String,
    /// The check that failed.
    pub cause: String,
}

/// Verifies all parts of a dataset. `progress` is told the bytes that were read so far.
pub fn verify(dataset: &Dataset, progress: &mut dyn FnMut(u64)) -> Result<Vec<Finding>, DatasetError> {
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
        take(dataset.chunk(number as u32).map(drop), chunk.length)?;
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
    Ok(findings)
}
