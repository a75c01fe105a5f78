//! Unpacking: a packed folder becomes files again, below one new folder and nowhere else.

use crate::error::DatasetError;
use crate::evacuate::failure;
use crate::pack::contents::ContentReader;
use crate::pack::entry::{Entry, Kind, ModifiedTime, parent, shown};
use crate::pack::ordered_pool::OrderedPool;
use crate::pack::packer::LeftOut;
use crate::pack::tree::PackedTree;
use holdfast_base::failure::{Failure, Result as Outcome, reason};
use rustix::fs::{AtFlags, Mode, OFlags, ResolveFlags, Timespec, Timestamps, UTIME_OMIT};
use std::fs::File;
use std::io;
use std::num::NonZeroUsize;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::fs::FileExt as _;
use std::path::Path;
use std::sync::Arc;

/// Bytes and entries of a job.
const JOB_BYTES: u64 = 4 << 20;
const JOB_ENTRIES: usize = 256;

/// Damaged files that are listed by name; further ones are counted.
const MOST_LISTED: usize = 1000;

/// Folder that was unpacked.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Unpacked {
    /// Entries that were made.
    pub entries: u64,
    /// Bytes of their contents.
    pub bytes: u64,
    /// Files whose contents are damaged, the first ones of them; they were left out.
    pub damaged: Vec<LeftOut>,
    /// Number of damaged files.
    pub damaged_count: u64,
}

/// Permission bits that an entry gets. A dataset tells no owners: set-id bits would act for whoever unpacks it.
fn unpacked_mode(entry: Kind, mode: u32) -> Mode {
    let kept = if entry == Kind::Directory { 0o1777 } else { 0o777 };
    Mode::from_raw_mode(mode & kept)
}

/// Unpacks a packed folder into a folder that is new or empty. `progress` gets the bytes of contents so far.
pub fn unpack(tree: &PackedTree, folder: &Path, progress: &mut dyn FnMut(u64)) -> Outcome<Unpacked> {
    let doing = "cannot make the folder";
    match std::fs::create_dir(folder) {
        Ok(()) => {}
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
            let mut items =
                std::fs::read_dir(folder).map_err(|error| Failure::output(doing, folder, &error))?;
            if items.next().is_some() {
                return Err(Failure::failed("this folder is not empty")
                    .at_path(folder)
                    .advice("name a new or an empty folder"));
            }
        }
        Err(error) => return Err(Failure::output(doing, folder, &error)),
    }
    let root = rustix::fs::open(folder, OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC, Mode::empty());
    let root = root.map_err(|error| Failure::output(doing, folder, &error.into()))?;
    let mut unpacker = Unpacker { root: Arc::new(root), done: Unpacked::default(), open: Vec::new() };
    unpacker.run(tree, progress).map_err(|error| failure(&error, folder))?;
    Ok(unpacker.done)
}

/// Directory whose mode and time are set when all below it is there.
struct Directory {
    path: Vec<u8>,
    mode: u32,
    modified: ModifiedTime,
}

struct Unpacker {
    root: Arc<OwnedFd>,
    done: Unpacked,
    /// Directories from the folder down to the present entry.
    open: Vec<Directory>,
}

/// Result of a job: bytes, entries, and damaged files.
type Made = Result<(u64, u64, Vec<LeftOut>), DatasetError>;

impl Unpacker {
    fn run(&mut self, tree: &PackedTree, progress: &mut dyn FnMut(u64)) -> Result<(), DatasetError> {
        let threads = std::thread::available_parallelism().unwrap_or(NonZeroUsize::MIN);
        let mut pool = OrderedPool::start(threads, "holdfast-unpack", || {
            let mut maker = FileMaker { root: Arc::clone(&self.root), reader: tree.contents(), parent: None };
            move |entries: Vec<Entry>| -> Made { maker.files(&entries) }
        })?;
        for part in &tree.tree().parts {
            let (mut job, mut bytes) = (Vec::new(), 0);
            let (mut links, mut closed) = (Vec::new(), Vec::new());
            for entry in tree.part(part)? {
                closed.extend(self.enter(&entry.path)?);
                match entry.kind {
                    Kind::Directory => self.directory(entry)?,
                    Kind::Symlink => self.symlink(&entry)?,
                    Kind::HardLink => links.push(entry),
                    Kind::File => {
                        bytes += entry.size;
                        job.push(entry);
                    }
                }
                if bytes >= JOB_BYTES || job.len() >= JOB_ENTRIES {
                    bytes = 0;
                    let made = pool.give(std::mem::take(&mut job))?;
                    made.map_or(Ok(()), |made| self.made(made, progress))?;
                }
            }
            let made = pool.give(job)?;
            made.map_or(Ok(()), |made| self.made(made, progress))?;
            // Links need their files, and directories everything in them.
            while let Some(made) = pool.next()? {
                self.made(made, progress)?;
            }
            for link in &links {
                self.hard_link(link)?;
                progress(self.done.bytes);
            }
            for directory in closed {
                self.close(&directory)?;
            }
        }
        while let Some(directory) = self.open.pop() {
            self.close(&directory)?;
        }
        Ok(())
    }

    fn made(&mut self, made: Made, progress: &mut dyn FnMut(u64)) -> Result<(), DatasetError> {
        let (bytes, entries, damaged) = made?;
        self.done.bytes += bytes;
        self.done.entries += entries;
        self.done.damaged_count += damaged.len() as u64;
        let room = MOST_LISTED.saturating_sub(self.done.damaged.len());
        self.done.damaged.extend(damaged.into_iter().take(room));
        progress(self.done.bytes);
        Ok(())
    }

    /// Leaves all directories that do not have the next entry, which must be in the last one that is left.
    fn enter(&mut self, path: &[u8]) -> Result<Vec<Directory>, DatasetError> {
        let mut left = Vec::new();
        if path.is_empty() && self.open.is_empty() {
            return Ok(left);
        }
        let above = parent(path).0;
        while self.open.last().is_some_and(|directory| directory.path != above) {
            left.extend(self.open.pop());
        }
        if self.open.is_empty() || path.is_empty() {
            let cause = format!("`{}` is in no directory of its own", shown(path));
            return Err(DatasetError::damaged("the directory", &cause));
        }
        Ok(left)
    }

    fn directory(&mut self, entry: Entry) -> Result<(), DatasetError> {
        if !entry.path.is_empty() {
            let (above, name) = parent(&entry.path);
            let above =
                beneath(&self.root, above).map_err(|error| at(&entry.path, "make the directory", &error))?;
            rustix::fs::mkdirat(&above, name, Mode::RWXU)
                .map_err(|error| at(&entry.path, "make the directory", &error.into()))?;
        }
        self.done.entries += 1;
        self.open.push(Directory { path: entry.path, mode: entry.mode, modified: entry.modified });
        Ok(())
    }

    fn close(&self, directory: &Directory) -> Result<(), DatasetError> {
        let set = || -> io::Result<()> {
            let flags = OFlags::RDONLY | OFlags::DIRECTORY;
            let opened = if directory.path.is_empty() {
                self.root.try_clone()?
            } else {
                open_beneath(&self.root, &directory.path, flags)?
            };
            // The time first: a mode may forbid to set it.
            rustix::fs::futimens(&opened, &times(directory.modified))?;
            Ok(rustix::fs::fchmod(&opened, unpacked_mode(Kind::Directory, directory.mode))?)
        };
        set().map_err(|error| at(&directory.path, "set the mode and time of the directory", &error))
    }

    fn symlink(&mut self, entry: &Entry) -> Result<(), DatasetError> {
        let (above, name) = parent(&entry.path);
        let make = || -> io::Result<()> {
            let above = beneath(&self.root, above)?;
            rustix::fs::symlinkat(&entry.target[..], &above, name)?;
            let time = times(entry.modified);
            Ok(rustix::fs::utimensat(&above, name, &time, AtFlags::SYMLINK_NOFOLLOW)?)
        };
        make().map_err(|error| at(&entry.path, "make the symbolic link", &error))?;
        self.done.entries += 1;
        Ok(())
    }

    fn hard_link(&mut self, entry: &Entry) -> Result<(), DatasetError> {
        let make = || -> io::Result<bool> {
            let (from, target) = parent(&entry.target);
            let (above, name) = parent(&entry.path);
            let (from, above) = (beneath(&self.root, from)?, beneath(&self.root, above)?);
            // A link to a symbolic link is one to the link itself, never to a file elsewhere.
            match rustix::fs::linkat(&from, target, &above, name, AtFlags::empty()) {
                Ok(()) => Ok(true),
                Err(rustix::io::Errno::NOENT) => Ok(false),
                Err(error) => Err(error.into()),
            }
        };
        if make().map_err(|error| at(&entry.path, "make the hard link", &error))? {
            self.done.entries += 1;
            self.done.bytes += entry.size;
        } else {
            self.done.damaged_count += 1;
            if self.done.damaged.len() < MOST_LISTED {
                let reason = format!("`{}`, of which it is a further name, is missing", shown(&entry.target));
                self.done.damaged.push(LeftOut { path: entry.path.clone(), reason });
            }
        }
        Ok(())
    }
}

/// Maker of files, with the directory that it used last.
struct FileMaker {
    root: Arc<OwnedFd>,
    reader: ContentReader,
    parent: Option<(Vec<u8>, OwnedFd)>,
}

impl FileMaker {
    fn files(&mut self, entries: &[Entry]) -> Made {
        let (mut bytes, mut made, mut damaged) = (0, 0, Vec::new());
        for entry in entries {
            match self.file(entry) {
                Ok(()) => (bytes, made) = (bytes + entry.size, made + 1),
                Err(DatasetError::Damaged { place, cause }) => {
                    let reason = format!("{place} is damaged: {cause}");
                    damaged.push(LeftOut { path: entry.path.clone(), reason });
                }
                Err(error) => return Err(error),
            }
        }
        Ok((bytes, made, damaged))
    }

    fn file(&mut self, entry: &Entry) -> Result<(), DatasetError> {
        let wrong = |error: io::Error| at(&entry.path, "write the file", &error);
        let (above, name) = parent(&entry.path);
        let above = match self.parent.take() {
            Some(known) if known.0 == above => &self.parent.insert(known).1,
            _ => {
                let opened = beneath(&self.root, above).map_err(wrong)?;
                &self.parent.insert((above.to_vec(), opened)).1
            }
        };
        let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let file = rustix::fs::openat(above, name, flags, Mode::RUSR | Mode::WUSR);
        let file = File::from(file.map_err(|error| wrong(error.into()))?);
        for piece in &entry.pieces {
            match self.reader.piece(entry, piece) {
                Ok(None) => {}
                Ok(Some(bytes)) => file.write_all_at(&bytes, piece.offset).map_err(wrong)?,
                Err(error) => {
                    rustix::fs::unlinkat(above, name, AtFlags::empty())
                        .map_err(|error| wrong(error.into()))?;
                    return Err(error);
                }
            }
        }
        // A hole at the end has no bytes that were written.
        if entry.pieces.last().is_some_and(|last| last.place.is_none()) {
            file.set_len(entry.size).map_err(wrong)?;
        }
        let mode = unpacked_mode(Kind::File, entry.mode);
        rustix::fs::fchmod(&file, mode).map_err(|error| wrong(error.into()))?;
        rustix::fs::futimens(&file, &times(entry.modified)).map_err(|error| wrong(error.into()))
    }
}

/// Opens a directory below a folder. The kernel refuses symbolic links and ways out of the folder.
fn beneath(root: &impl AsFd, path: &[u8]) -> io::Result<OwnedFd> {
    let path = if path.is_empty() { b"." } else { path };
    open_beneath(root, path, OFlags::PATH | OFlags::DIRECTORY)
}

fn open_beneath(root: &impl AsFd, path: &[u8], flags: OFlags) -> io::Result<OwnedFd> {
    let resolve = ResolveFlags::BENEATH | ResolveFlags::NO_SYMLINKS | ResolveFlags::NO_MAGICLINKS;
    Ok(rustix::fs::openat2(root, path, flags | OFlags::CLOEXEC, Mode::empty(), resolve)?)
}

fn times(modified: ModifiedTime) -> Timestamps {
    Timestamps {
        last_access: Timespec { tv_sec: 0, tv_nsec: UTIME_OMIT },
        last_modification: Timespec { tv_sec: modified.seconds, tv_nsec: modified.nanos.into() },
    }
}

/// Error of the operating system at an entry.
fn at(path: &[u8], doing: &str, error: &io::Error) -> DatasetError {
    let text = format!("cannot {doing} `{}`: {}", shown(path), reason(error));
    DatasetError::Io(io::Error::new(error.kind(), text))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::manifest::{TreeEntry, TreePart};
    use crate::pack::directory::tests::{entry, part_of};
    use crate::storage::LocalFile;
    use std::fs;
    use std::os::unix::fs::PermissionsExt as _;
    use std::path::PathBuf;

    /// Packed folder of entries that no packer writes.
    fn forged(dir: &Path, entries: &[Entry]) -> PackedTree {
        let bytes = part_of(entries);
        fs::write(dir.join("part"), &bytes).unwrap();
        let part = TreePart {
            offset: 0,
            length: bytes.len() as u64,
            rows: entries.len() as u64,
            first: String::new(),
            blake3: blake3::hash(&bytes).to_hex().to_string(),
        };
        let tree = TreeEntry { parts: vec![part], ..TreeEntry::default() };
        PackedTree::of(Arc::new(LocalFile::open(&dir.join("part")).unwrap()), tree)
    }

    fn all_below(dir: &Path) -> Vec<PathBuf> {
        let mut names: Vec<_> = fs::read_dir(dir).unwrap().map(|item| item.unwrap().path()).collect();
        names.sort();
        names
    }

    #[test]
    fn set_id_bits_are_dropped_as_no_owner_is_kept() {
        let dir = tempfile::tempdir().unwrap();
        let with = |path, kind, mode| Entry { mode, ..entry(path, kind, "") };
        let packed = [
            with("", Kind::Directory, 0o2755),
            with("d", Kind::Directory, 0o7777),
            with("d/f", Kind::File, 0o7755),
            with("g", Kind::File, 0o4711),
            Entry { mode: 0o4711, ..entry("h", Kind::HardLink, "g") },
        ];
        let folder = dir.path().join("to");
        unpack(&forged(dir.path(), &packed), &folder, &mut |_| ()).unwrap();
        for (path, wanted) in [("", 0o755), ("d", 0o1777), ("d/f", 0o755), ("g", 0o711), ("h", 0o711)] {
            let mode = fs::symlink_metadata(folder.join(path)).unwrap().permissions().mode() & 0o7777;
            assert_eq!(mode, wanted, "{path}: {mode:o}");
        }
    }

    #[test]
    fn nothing_is_written_outside_the_folder() {
        let dir = tempfile::tempdir().unwrap();
        let outside = dir.path().join("outside");
        fs::create_dir(&outside).unwrap();
        fs::write(outside.join("secret"), "secret").unwrap();
        let to = outside.to_str().unwrap();
        let root = || entry("", Kind::Directory, "");
        for (at, wrong) in [
            vec![root(), entry("a", Kind::Symlink, to), entry("a/new", Kind::File, "")],
            vec![root(), entry("a", Kind::Symlink, to), entry("a/new", Kind::Directory, "")],
            vec![root(), entry("a", Kind::Symlink, to), entry("a/new", Kind::Symlink, "x")],
            vec![root(), entry("a", Kind::Symlink, "../outside"), entry("a/new", Kind::File, "")],
            vec![root(), entry("a", Kind::Symlink, to), entry("b", Kind::HardLink, "a/secret")],
            vec![root(), entry("a/new", Kind::File, "")],
            vec![root(), entry(&format!("{to}/new"), Kind::File, "")],
            vec![root(), entry("../outside/new", Kind::File, "")],
            vec![root(), entry("../outside", Kind::Directory, "")],
            vec![root(), entry("a/../../outside/new", Kind::Symlink, to)],
            vec![root(), entry("./a", Kind::File, "")],
            vec![root(), entry("b", Kind::HardLink, &format!("{to}/secret"))],
            vec![root(), entry("b", Kind::HardLink, "../outside/secret")],
            vec![entry("a", Kind::Directory, "")],
        ]
        .into_iter()
        .enumerate()
        {
            let folder = dir.path().join(format!("to{at}"));
            let tree = forged(dir.path(), &wrong);
            assert!(unpack(&tree, &folder, &mut |_| ()).is_err(), "{wrong:?}");
            assert_eq!(all_below(&outside), [outside.join("secret")]);
            assert!(!folder.join("b").exists());
        }
        let folder = dir.path().join("right");
        let right = [
            root(),
            entry("a", Kind::Symlink, to),
            entry("b", Kind::File, ""),
            entry("c", Kind::HardLink, "b"),
        ];
        let done = unpack(&forged(dir.path(), &right), &folder, &mut |_| ()).unwrap();
        assert_eq!((done.entries, all_below(&folder).len()), (4, 3));
    }
}
