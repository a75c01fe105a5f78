//! Contents of a closed file: one export of a stream, in a local file.

use super::ring_path::{RingFile, Span, bounds};
use super::{failed, ring_failure};
use crate::error::FsError;
use bytes::Bytes;
use holdfast_base::failure::Failure;
use holdfast_export::{Export, Output};
use holdfast_reader::{Item, RingReader, Selection};
use holdfast_ring::{Range, StreamStatus};
use rustix::io::Errno;
use std::fs::File;
use std::ops::ControlFlow;
use std::os::unix::fs::FileExt as _;
use std::path::Path;

/// Contents of a closed file.
#[derive(Debug)]
pub(crate) struct Exported {
    file: File,
    size: u64,
}

/// Temporary file in a folder, without a name.
pub(crate) fn scratch(folder: &Path) -> Result<File, FsError> {
    tempfile::tempfile_in(folder).map_err(|error| {
        let errno = Errno::from_io_error(&error).unwrap_or(Errno::IO);
        FsError::new(
            errno,
            format!("cannot make a file in {}: {error}; free some space there", folder.display()),
        )
    })
}

pub(super) fn read(file: &File, size: u64, offset: u64, length: u64) -> Result<Bytes, FsError> {
    let range = offset.min(size)..offset.saturating_add(length).min(size);
    let mut bytes = vec![0; (range.end - range.start) as usize];
    file.read_exact_at(&mut bytes, range.start).map_err(|error| {
        FsError::new(Errno::IO, format!("cannot read the export: {error}; open the file again"))
    })?;
    Ok(bytes.into())
}

impl Exported {
    pub(crate) fn new(file: File, size: u64) -> Self {
        Self { file, size }
    }

    /// Exports the range of a file. A range that has expired wholly is an error.
    pub(super) fn make(
        reader: &mut RingReader,
        stream: &StreamStatus,
        file: &RingFile,
        folder: &Path,
    ) -> Result<Self, FsError> {
        let ring = |error| failed(&ring_failure(&error));
        let (mut range, mut slots) = (Range::ALL, None);
        match file.span {
            Span::Minute(minute) => (range.from, range.to) = bounds(minute),
            Span::Live => {}
            Span::Hold(id) => {
                let holds = reader.holds().map_err(ring)?;
                let hold = holds.into_iter().find(|hold| hold.id.0 == id);
                let released =
                    || FsError::new(Errno::NOENT, format!("cannot read hold {id}: it was released"));
                let hold = hold.ok_or_else(released)?;
                (range, slots) = (hold.range, Some(hold.sequences));
            }
        }
        let scratch = scratch(folder)?;
        let copy = scratch.try_clone().map_err(|error| FsError::new(Errno::IO, error.to_string()))?;
        let output = Output::writer(copy);
        let export = Export::new(file.format.into(), std::slice::from_ref(stream), output);
        let mut export = export.map_err(|failure| failed(&failure))?;
        let (mut wrong, mut elements, mut has_expired) = (None::<Failure>, 0, false);
        let selection = Selection { streams: vec![stream.id], range };
        let mut plan = reader.plan(&selection).map_err(ring)?;
        if let Some(slots) = slots {
            // A hold by condition keeps slots of its own choice.
            let is_held = |sequence| slots.iter().any(|(first, last)| (*first..=*last).contains(&sequence));
            plan.slots.retain(|slot| is_held(slot.sequence));
        }
        has_expired |= plan.expired_before.is_some();
        let mut take = |item: Item<'_>| {
            elements += u64::from(matches!(item, Item::Element(_)));
            has_expired |= matches!(item, Item::Expired { .. });
            match export.item(&item) {
                Ok(()) => ControlFlow::Continue(()),
                Err(failure) => {
                    wrong = Some(failure);
                    ControlFlow::Break(())
                }
            }
        };
        reader.read(&plan, &mut take).map_err(ring)?;
        if let Some(failure) = wrong {
            return Err(failed(&failure));
        }
        if elements == 0 && has_expired {
            return Err(FsError::new(Errno::IO, "cannot read the file: its data have expired on the ring"));
        }
        let written = export.finish().and_then(Output::finish).map_err(|failure| failed(&failure))?;
        Ok(Self { file: scratch, size: written.bytes })
    }

    /// Size of the file.
    pub(crate) fn size(&self) -> u64 {
        self.size
    }

    pub(crate) fn read(&self, offset: u64, length: u64) -> Result<Bytes, FsError> {
        read(&self.file, self.size, offset, length)
    }
}
