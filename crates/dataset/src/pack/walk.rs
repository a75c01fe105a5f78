//! Walk of a folder: every entry once, in the order of paths, without following symbolic links.

use crate::pack::entry::parent;
use crate::pack::packer::LeftOut;
use crate::pack::series::{DirectorySeries, Member, SeriesRules};
use holdfast_base::failure::reason;
use std::ffi::OsStr;
use std::fs::{self, FileType, Metadata};
use std::io;
use std::os::unix::ffi::{OsStrExt as _, OsStringExt as _};
use std::os::unix::fs::{FileTypeExt as _, MetadataExt as _};
use std::path::{Path, PathBuf};
use std::rc::Rc;

/// Entry that the walk found.
#[derive(Debug)]
pub(crate) struct Found {
    /// Path below the folder.
    pub(crate) path: Vec<u8>,
    pub(crate) metadata: Metadata,
    pub(crate) series: Option<Member>,
}

/// Entries of a directory that the walk has still to give.
struct Level {
    path: Vec<u8>,
    names: std::vec::IntoIter<(Vec<u8>, bool)>,
    series: Rc<DirectorySeries>,
}

/// Walk of a folder. Memory: the names of the directories from the folder down to the present one.
pub(crate) struct Walk {
    folder: PathBuf,
    rules: SeriesRules,
    levels: Vec<Level>,
    /// Directory that was found last, whose entries come next.
    next: Option<Vec<u8>>,
    /// Device and inode of a file that is not part of the folder: the output itself.
    except: Option<(u64, u64)>,
    begun: bool,
}

impl Walk {
    /// Begins the walk of a folder.
    pub(crate) fn new(folder: &Path, rules: SeriesRules, except: Option<(u64, u64)>) -> Self {
        let folder = folder.to_owned();
        Self { folder, rules, levels: Vec::new(), next: None, except, begun: false }
    }

    /// The next entry, or one that cannot be packed.
    pub(crate) fn next(&mut self) -> Option<Result<Found, LeftOut>> {
        if !self.begun {
            self.begun = true;
            return Some(self.examine(Vec::new(), None));
        }
        if let Some(directory) = self.next.take()
            && let Err(error) = self.enter(&directory)
        {
            let why = format!("cannot list the directory: {}", reason(&error));
            return Some(Err(LeftOut { path: directory, reason: why }));
        }
        loop {
            let level = self.levels.last_mut()?;
            let Some((name, is_file)) = level.names.next() else {
                self.levels.pop();
                continue;
            };
            let path = if level.path.is_empty() { name } else { [&level.path[..], b"/", &name[..]].concat() };
            let series = Rc::clone(&level.series);
            let found = self.examine(path, is_file.then_some(&*series));
            if let Ok(found) = &found
                && (found.metadata.dev(), found.metadata.ino()) == self.except.unwrap_or_default()
            {
                continue;
            }
            return Some(found);
        }
    }

    fn enter(&mut self, directory: &[u8]) -> io::Result<()> {
        let mut names = Vec::new();
        for item in fs::read_dir(on_disk(&self.folder, directory))? {
            let item = item?;
            names.push((item.file_name().into_vec(), item.file_type()?.is_file()));
        }
        names.sort_unstable();
        let files = names.iter().filter(|(_, is_file)| *is_file).map(|(name, _)| &name[..]);
        let series = Rc::new(self.rules.examine(directory, files));
        self.levels.push(Level { path: directory.to_vec(), names: names.into_iter(), series });
        Ok(())
    }

    fn examine(&mut self, path: Vec<u8>, series: Option<&DirectorySeries>) -> Result<Found, LeftOut> {
        let metadata = match fs::symlink_metadata(on_disk(&self.folder, &path)) {
            Ok(metadata) => metadata,
            Err(error) => {
                return Err(LeftOut { path, reason: format!("cannot examine it: {}", reason(&error)) });
            }
        };
        if let Some(special) = special(metadata.file_type()) {
            return Err(LeftOut { path, reason: format!("it is {special}, which has no contents to pack") });
        }
        if metadata.is_dir() {
            self.next = Some(path.clone());
        }
        let member = |series| self.rules.member(series, &path, parent(&path).1);
        let series = series.filter(|_| metadata.is_file()).and_then(member);
        Ok(Found { path, metadata, series })
    }
}

/// Path on the disk of an entry.
pub(crate) fn on_disk(folder: &Path, path: &[u8]) -> PathBuf {
    if path.is_empty() { folder.to_owned() } else { folder.join(OsStr::from_bytes(path)) }
}

fn special(kind: FileType) -> Option<&'static str> {
    if kind.is_socket() {
        Some("a socket")
    } else if kind.is_fifo() {
        Some("a named pipe")
    } else if kind.is_block_device() || kind.is_char_device() {
        Some("a device")
    } else {
        None
    }
}
