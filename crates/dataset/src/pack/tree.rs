//! Reader of a packed folder: finds an entry with two reads, and its contents with one a chunk.

use crate::error::DatasetError;
use crate::evacuate::failure;
use crate::manifest::{TreeEntry, TreePart};
use crate::pack::contents::{ContentReader, zeros};
use crate::pack::directory::{ROOT, entries, first_path, parse_root};
use crate::pack::entry::{Entry, Kind, parent, path_order, shown};
use crate::reader::{FOOTER, footer};
use crate::records::record;
use crate::storage::{LocalFile, RangeRead};
use bytes::Bytes;
use holdfast_base::failure::Failure;
use mcap::parse_record;
use mcap::records::{Record, op};
use std::cmp::Ordering;
use std::io::Write;
use std::ops::ControlFlow;
use std::path::Path;
use std::sync::Arc;

/// Bytes at the end of a file that are read first: room for the root of some million entries.
const TAIL: u64 = 256 << 10;

/// Bytes of a root at most: about a million parts.
const MOST_ROOT: u64 = 256 << 20;

/// Contents of a packed folder's files, one after the other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PackedContents<'a> {
    /// Path of the file that begins.
    File(&'a [u8]),
    /// Next bytes of the file.
    Bytes(&'a [u8]),
    /// End of the file.
    End,
    /// Damage of the file, which ends it.
    Damaged(&'a str),
}

/// File or directory of a packed folder.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PackedEntry {
    /// Name in its directory; empty for the folder itself.
    pub name: Vec<u8>,
    /// True for a directory, else it is a file.
    pub is_directory: bool,
    /// Bytes of the contents; 0 for a directory.
    pub size: u64,
    /// Modification time: seconds since 1970 (UTC), and nanoseconds.
    pub modified: (i64, u32),
}

impl PackedEntry {
    /// Nothing for a symbolic link.
    fn of(entry: &Entry) -> Option<Self> {
        let is_directory = entry.kind == Kind::Directory;
        let is_shown = is_directory || entry.kind.has_contents();
        is_shown.then(|| Self {
            name: parent(&entry.path).1.to_vec(),
            is_directory,
            size: entry.size,
            modified: (entry.modified.seconds, entry.modified.nanos),
        })
    }
}

/// Packed folder that is open for reading.
pub struct PackedTree {
    file: Arc<dyn RangeRead>,
    tree: TreeEntry,
}

impl std::fmt::Debug for PackedTree {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("PackedTree").field("file", &self.file.name()).finish_non_exhaustive()
    }
}

impl PackedTree {
    /// Opens a packed folder by the root of its directory, without its manifest and chunk index.
    pub fn open(file: Arc<dyn RangeRead>) -> Result<Self, DatasetError> {
        let size = file.size();
        let start = size.saturating_sub(TAIL);
        let tail = file.read(start, (size - start) as usize)?;
        let offsets = footer(&tail)?.summary_offset_start;
        let end = tail.len() - FOOTER;
        let offsets = offsets.checked_sub(start).and_then(|at| usize::try_from(at).ok());
        let mut rest = offsets.and_then(|at| tail.get(at..end)).ok_or(DatasetError::NotPacked)?;
        while let Some((opcode, content)) = record(rest) {
            rest = &rest[crate::records::HEAD + content.len()..];
            if opcode != op::SUMMARY_OFFSET {
                continue;
            }
            let parsed = parse_record(opcode, content);
            match parsed.map_err(|error| DatasetError::damaged("the summary", &error))? {
                Record::SummaryOffset(group) if group.group_opcode == ROOT => {
                    let bytes = group_bytes(&*file, &tail, start, group.group_start, group.group_length)?;
                    let (_, content) =
                        record(&bytes).filter(|(opcode, _)| *opcode == ROOT).ok_or_else(|| {
                            DatasetError::damaged("the root of the directory", "its record is cut off")
                        })?;
                    return Ok(Self { tree: parse_root(content)?, file });
                }
                _ => {}
            }
        }
        Err(DatasetError::NotPacked)
    }

    /// Opens the packed folder in a local file.
    pub fn open_file(path: &Path) -> holdfast_base::failure::Result<Self> {
        let file = LocalFile::open(path);
        let file = file.map_err(|error| Failure::io("cannot open the dataset", path, &error))?;
        Self::open(Arc::new(file)).map_err(|error| failure(&error, path))
    }

    pub(crate) fn of(file: Arc<dyn RangeRead>, tree: TreeEntry) -> Self {
        Self { file, tree }
    }

    /// Counts of entries, and the parts of the directory.
    pub fn tree(&self) -> &TreeEntry {
        &self.tree
    }

    pub(crate) fn contents(&self) -> ContentReader {
        ContentReader::new(Arc::clone(&self.file))
    }

    /// Entries of a part of the directory, verified.
    pub(crate) fn part(&self, part: &TreePart) -> Result<Vec<Entry>, DatasetError> {
        let first = first_path(part)?;
        let place = || format!("the directory from `{}` on", shown(&first));
        let length = usize::try_from(part.length).map_err(|error| DatasetError::damaged(place(), &error))?;
        let bytes = self.file.read(part.offset, length)?;
        if blake3::hash(&bytes).to_hex().as_str() != part.blake3 {
            return Err(DatasetError::damaged(place(), "its bytes do not have its BLAKE3"));
        }
        let entries = entries(bytes).map_err(|cause| DatasetError::damaged(place(), &cause))?;
        if entries.first().is_none_or(|entry| entry.path != first) {
            return Err(DatasetError::damaged(place(), "it does not begin with its first path"));
        }
        Ok(entries)
    }

    /// Finds an entry by its path.
    pub(crate) fn find(&self, path: &[u8]) -> Result<Option<Entry>, DatasetError> {
        let mut found = None;
        for part in &self.tree.parts {
            if path_order(&first_path(part)?, path) == Ordering::Greater {
                break;
            }
            found = Some(part);
        }
        let Some(part) = found else { return Ok(None) };
        let mut entries = self.part(part)?;
        let at = entries.binary_search_by(|entry| path_order(&entry.path, path));
        Ok(at.ok().map(|at| entries.swap_remove(at)))
    }

    /// File or directory with a path below the folder; nothing if there is none.
    pub fn entry(&self, path: &[u8]) -> Result<Option<PackedEntry>, DatasetError> {
        Ok(self.find(path)?.as_ref().and_then(PackedEntry::of))
    }

    /// Files and directories in a directory of the folder.
    pub fn entries(&self, folder: &[u8]) -> Result<Vec<PackedEntry>, DatasetError> {
        let mut all = Vec::new();
        for (at, part) in self.tree.parts.iter().enumerate() {
            let next = self.tree.parts.get(at + 1).map(first_path).transpose()?;
            if next.is_some_and(|next| path_order(&next, folder) != Ordering::Greater) {
                continue;
            }
            let first = first_path(part)?;
            if path_order(&first, folder) == Ordering::Greater && !is_below(&first, folder) {
                break;
            }
            let entries = self.part(part)?;
            let inside =
                entries.iter().filter(|entry| !entry.path.is_empty() && parent(&entry.path).0 == folder);
            all.extend(inside.filter_map(PackedEntry::of));
        }
        Ok(all)
    }

    /// Gives the contents of all files, in the order of their paths. A damaged file is told, and its bytes so far are void.
    pub fn read_files(
        &self,
        take: &mut dyn FnMut(PackedContents<'_>) -> ControlFlow<()>,
    ) -> Result<(), DatasetError> {
        let mut reader = self.contents();
        for part in &self.tree.parts {
            for entry in self.part(part)? {
                if entry.kind == Kind::File && file_contents(&mut reader, &entry, take)?.is_break() {
                    return Ok(());
                }
            }
        }
        Ok(())
    }

    /// Writes the contents of a file to an output, each piece when it is verified; the number of bytes. `None`:
    /// no entry has this path.
    pub fn cat(&self, path: &[u8], out: &mut dyn Write) -> Result<Option<u64>, DatasetError> {
        let path = path.strip_prefix(b"./").unwrap_or(path);
        let path = path.strip_suffix(b"/").unwrap_or(path);
        let path = if path == b"." { b"" } else { path };
        let Some(entry) = self.find(path)? else { return Ok(None) };
        let no_file = |what: String| DatasetError::NoFile { path: shown(&entry.path), what };
        match entry.kind {
            Kind::Directory => return Err(no_file("a directory".to_owned())),
            Kind::Symlink => return Err(no_file(format!("a symbolic link to `{}`", shown(&entry.target)))),
            Kind::File | Kind::HardLink => {}
        }
        let mut reader = self.contents();
        for piece in &entry.pieces {
            if let Some(bytes) = reader.piece(&entry, piece)? {
                out.write_all(&bytes)?;
            } else {
                zeros(piece.length, |bytes| out.write_all(bytes))?;
            }
        }
        Ok(Some(entry.size))
    }
}

/// True for a path of a directory or of what lies below it.
fn is_below(path: &[u8], folder: &[u8]) -> bool {
    let rest = path.strip_prefix(folder);
    folder.is_empty() || rest.is_some_and(|rest| rest.is_empty() || rest.starts_with(b"/"))
}

fn file_contents(
    reader: &mut ContentReader,
    entry: &Entry,
    take: &mut dyn FnMut(PackedContents<'_>) -> ControlFlow<()>,
) -> Result<ControlFlow<()>, DatasetError> {
    let mut flow = take(PackedContents::File(&entry.path));
    for piece in &entry.pieces {
        if flow.is_break() {
            return Ok(flow);
        }
        match reader.piece(entry, piece) {
            Ok(Some(bytes)) => flow = take(PackedContents::Bytes(&bytes)),
            Ok(None) => zeros(piece.length, |bytes| {
                if flow.is_continue() {
                    flow = take(PackedContents::Bytes(bytes));
                }
                Ok::<(), DatasetError>(())
            })?,
            Err(error @ DatasetError::Damaged { .. }) => {
                return Ok(take(PackedContents::Damaged(&error.to_string())));
            }
            Err(error) => return Err(error),
        }
    }
    Ok(if flow.is_break() { flow } else { take(PackedContents::End) })
}

/// Bytes of a summary group: from the tail where it has them.
fn group_bytes(
    file: &dyn RangeRead,
    tail: &Bytes,
    start: u64,
    group_start: u64,
    length: u64,
) -> Result<Bytes, DatasetError> {
    if length > MOST_ROOT {
        return Err(DatasetError::Limit(format!(
            "the root of the directory has more than {MOST_ROOT} bytes"
        )));
    }
    let length = length as usize;
    let from = group_start.checked_sub(start).and_then(|from| usize::try_from(from).ok());
    match from.and_then(|from| Some((from, from.checked_add(length).filter(|end| *end <= tail.len())?))) {
        Some((from, end)) => Ok(tail.slice(from..end)),
        None => Ok(file.read(group_start, length)?),
    }
}
