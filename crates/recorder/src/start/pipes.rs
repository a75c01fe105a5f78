//! Check for pipes that several sources would read: each byte leaves a pipe once, so none of them would get its stream.

use super::StartError;
use crate::args::SourceSettings;
use holdfast_ingest::SourceSpec;
use std::os::unix::fs::{FileTypeExt as _, MetadataExt as _};
use std::path::Path;

/// Refuses two sources over one pipe. Files may be read as often as one likes; what cannot be looked at is left to
/// whoever opens it.
pub(super) fn refuse_shared(sources: &[SourceSettings]) -> Result<(), StartError> {
    let mut seen: Vec<((u64, u64), &SourceSpec)> = Vec::new();
    for source in sources {
        let Some(pipe) = pipe_of(&source.spec) else { continue };
        if let Some((_, first)) = seen.iter().find(|(known, _)| *known == pipe) {
            return Err(StartError::SharedPipe { first: first.to_string(), second: source.spec.to_string() });
        }
        seen.push((pipe, &source.spec));
    }
    Ok(())
}

/// Which pipe a source reads, if it reads one.
fn pipe_of(spec: &SourceSpec) -> Option<(u64, u64)> {
    let path = match spec {
        SourceSpec::Stdin => Path::new("/dev/stdin"),
        SourceSpec::File(path) => path,
        _ => return None,
    };
    let about = std::fs::metadata(path).ok()?;
    about.file_type().is_fifo().then(|| (about.dev(), about.ino()))
}
