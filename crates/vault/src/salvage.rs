//! Salvage of datasets that killed processes were archiving: they are published up to their last whole checkpoint.

use crate::archive::{Archive, Archived, dataset_failure};
use crate::object::VaultObject;
use crate::target::VaultTarget;
use holdfast_base::failure::Result;
use holdfast_client::Notices;
use holdfast_dataset::{ArchivedSpan, Checkpoint, DatasetError, SourceAccess, Target as _};
use holdfast_reader::RingReader;
use std::io::{BufWriter, ErrorKind};
use std::time::Duration;

/// Bytes that are gathered before a write.
const GATHER: usize = 1 << 20;

/// Age at which an unfinished dataset of another archive is told of.
const OLD: Duration = Duration::from_hours(30 * 24);

/// Unfinished dataset whose process has ended.
struct Left {
    /// Path in the store.
    place: String,
    file: VaultObject,
    age: Duration,
    /// Last checkpoint that is whole.
    checkpoint: Checkpoint,
}

/// Unfinished datasets of a vault whose processes have ended.
pub(crate) struct Salvage<'a> {
    archive: &'a Archive<'a>,
    notices: &'a Notices,
    left: Vec<Left>,
}

impl<'a> Salvage<'a> {
    /// Finds the unfinished datasets. One without a whole checkpoint is damaged, and set aside.
    pub(crate) fn new(archive: &'a Archive<'a>, notices: &'a Notices) -> Result<Self> {
        let mut salvage = Self { archive, notices, left: Vec::new() };
        for (place, file, age) in archive.vault.left_uploads()? {
            match Checkpoint::last_of(&file) {
                Ok(Some(checkpoint)) => salvage.left.push(Left { place, file, age, checkpoint }),
                Err(DatasetError::Io(error)) if error.kind() == ErrorKind::NotFound => {}
                Err(error @ DatasetError::Io(_)) => return Err(dataset_failure(&error, archive, &place)),
                Ok(None) | Err(_) => salvage.set_aside(&place, None)?,
            }
        }
        Ok(salvage)
    }

    /// Publishes what a killed process had written of the dataset that begins at `from`. `None` without such bytes.
    pub(crate) fn next(&mut self, reader: &RingReader, stream: &str, from: u64) -> Result<Option<Archived>> {
        while let Some(at) = self.place_of(reader, stream, from) {
            let left = self.left.remove(at);
            let archived = self.published(&left)?;
            match &archived {
                Some(archived) if Some(&archived.span) == span(&left.checkpoint) => {
                    self.archive.vault.remove_left(&left.place)?;
                }
                _ => self.set_aside(&left.place, archived.as_ref().map(|archived| archived.span.to))?,
            }
            if archived.is_some() {
                return Ok(archived);
            }
        }
        Ok(None)
    }

    fn place_of(&self, reader: &RingReader, stream: &str, from: u64) -> Option<usize> {
        self.left.iter().position(|left| {
            self.is_of(reader, stream, &left.checkpoint)
                && span(&left.checkpoint).is_some_and(|span| span.from == from && span.to > from)
        })
    }

    /// Removes unfinished datasets of this stream whose ordinals, all below `from`, were published.
    pub(crate) fn remove_published(&mut self, reader: &RingReader, stream: &str, from: u64) -> Result<()> {
        let all = std::mem::take(&mut self.left);
        let is_published = |left: &Left| {
            self.is_of(reader, stream, &left.checkpoint)
                && span(&left.checkpoint).is_some_and(|span| span.to <= from)
        };
        let (published, left): (Vec<Left>, Vec<Left>) = all.into_iter().partition(is_published);
        self.left = left;
        published.iter().try_for_each(|left| self.archive.vault.remove_left(&left.place))
    }

    /// Tells of old unfinished datasets of other archives.
    pub(crate) fn end(self) {
        for Left { place, checkpoint, .. } in self.left.iter().filter(|left| left.age > OLD) {
            self.notices.tell(format_args!(
                "the unfinished dataset {} has waited for more than 30 days in {}; start its archive again, \
                 or remove it",
                self.archive.vault.place(&checkpoint.name),
                self.archive.vault.place(place)
            ));
        }
    }

    /// True for a checkpoint of the same stream, prefix and condition.
    fn is_of(&self, reader: &RingReader, stream: &str, checkpoint: &Checkpoint) -> bool {
        let origin = &checkpoint.manifest.provenance;
        crate::archive_path::is_dataset_path(&checkpoint.name, self.archive.prefix, stream)
            && origin.ring == reader.superblock().ring.to_string()
            && origin.query == self.archive.condition.unwrap_or_default()
    }

    /// Publishes the dataset up to the last checkpoint before which nothing is damaged. `None` without any.
    fn published(&self, left: &Left) -> Result<Option<Archived>> {
        let failed = |error: &DatasetError| dataset_failure(error, self.archive, &left.place);
        let mut checkpoint = Some(left.checkpoint.clone());
        while let Some(found) = checkpoint {
            if let Some(archived) = self.published_to(&found, &left.file)? {
                return Ok(Some(archived));
            }
            checkpoint = found.before(&left.file).map_err(|error| failed(&error))?;
        }
        Ok(None)
    }

    /// Publishes the dataset up to a checkpoint. `None` if something before it is damaged.
    fn published_to(&self, checkpoint: &Checkpoint, file: &VaultObject) -> Result<Option<Archived>> {
        let (archive, path) = (self.archive, &checkpoint.name);
        let Some(span) = span(checkpoint).cloned() else { return Ok(None) };
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
        Ok(Some(Archived { path: path.clone(), written, span, damaged: 0 }))
    }

    /// Gives a damaged file another name, and tells of it. `published` is the ordinal up to which it was published.
    fn set_aside(&self, place: &str, published: Option<u64>) -> Result<()> {
        let vault = self.archive.vault;
        let Some(aside) = vault.set_aside(place)? else { return Ok(()) };
        let from = published.map_or_else(String::new, |to| format!(" from ordinal {to} on"));
        self.notices.tell(format_args!(
            "cannot publish an unfinished dataset{from}: it is damaged; it is kept as {}, from which \
             `holdfast dataset recover` copies the whole chunks",
            vault.place(&aside)
        ));
        Ok(())
    }
}

fn span(checkpoint: &Checkpoint) -> Option<&ArchivedSpan> {
    checkpoint.manifest.provenance.archived.as_ref()
}
