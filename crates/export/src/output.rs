//! Output of an export: a file that appears only when it is whole, or a pipe. It counts and hashes what passes.

use crate::access_list::AccessList;
use crate::atomic_file::AtomicFile;
use crate::hashing::Hashing;
use crate::source_access::{SourceAccess, new_file_mode};
use holdfast_base::append;
use holdfast_base::failure::{Failure, Kind, Result, reason};
use std::cell::Cell;
use std::fs::{self, File, OpenOptions};
use std::io::{self, IsTerminal, Write};
use std::os::fd::AsFd;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt, fchown};
use std::path::{Path, PathBuf};
use std::rc::Rc;

/// Bytes that are gathered before a write: less costs system calls, and wakes the thread that hashes for each; more is not
/// in the cache any more when it is written and hashed. All but the last are passed on exactly so long.
const GATHER: usize = 1 << 20;

/// An output.
pub struct Output {
    to: To,
    buffer: Vec<u8>,
    hash: Hashing,
    bytes: u64,
    passed: PipedBytes,
}

/// Bytes that a pipe was given so far; none of a file, of which nothing is left unless it gets its name.
#[derive(Clone, Default)]
pub struct PipedBytes(Rc<Cell<u64>>);

impl PipedBytes {
    /// Number of bytes so far.
    pub fn bytes(&self) -> u64 {
        self.0.get()
    }
}

enum To {
    Pipe(Box<dyn Write>),
    File(OutputFile),
}

/// A file that is written to: under another name until it is whole, unless it is a device or a named pipe.
///
/// Until it has its name only its owner may read it. Then it has the permissions of a new file, or the owner and permissions of
/// the one that it replaces, as far as its sources allow them.
pub struct OutputFile {
    file: File,
    part: Option<AtomicFile>,
    path: PathBuf,
    existing: Existing,
    mode: u32,
    /// Owner and group of the file that it replaces.
    replaced: Option<(u32, u32)>,
    access: SourceAccess,
}

/// Fate of a file that has the name of an output already.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Existing {
    /// It is kept: the command replaces no file.
    Keep,
    /// It is kept, and the message names `--force`, which the command has.
    Ask,
    /// The file there is replaced.
    Replace,
}

impl Existing {
    /// Fate of a file by the option `--force` of the command.
    pub fn by_force(force: bool) -> Self {
        if force { Self::Replace } else { Self::Ask }
    }
}

impl OutputFile {
    /// `existing` is the fate of a file that is there already. `access` is that to the sources of the contents.
    pub fn make(path: &Path, existing: Existing, access: SourceAccess) -> Result<Self> {
        let mut path = path.to_owned();
        let mut found_mode = None;
        let mut replaced = None;
        if let Ok(found) = fs::symlink_metadata(&path) {
            let target = fs::metadata(&path).ok().filter(fs::Metadata::is_file);
            let Some(target) = target else {
                // A device or named pipe is written to, not replaced.
                let file = special(&path, &found)?;
                return Ok(Self { file, part: None, path, existing, mode: 0, replaced, access });
            };
            if existing != Existing::Replace {
                return Err(taken(&path, existing));
            }
            replaced = Some((target.uid(), target.gid()));
            // A link leads there.
            path = fs::canonicalize(&path).unwrap_or(path);
            // Other contents do not run with the rights of the owner. The list of the file is gone unless its folder has one.
            let list = AccessList::of(&path).filter(|_| AccessList::of_new_files(folder_of(&path)).is_none());
            let mode = target.mode() & 0o777;
            found_mode = Some(list.map_or(mode, |list| (mode & !0o070) | (list.group() << 3)));
        }
        let trouble = |error: &io::Error| Failure::output("cannot make the file", &path, error);
        let create = |part: &Path| OpenOptions::new().write(true).create_new(true).mode(0o600).open(part);
        let atomic = AtomicFile::beside(&path, create, |error| error.kind() == io::ErrorKind::AlreadyExists)?;
        let (part, file) = atomic.map_err(|error| trouble(&error))?;
        let mode = found_mode.unwrap_or_else(|| new_file_mode(folder_of(&path)));
        Ok(Self { file, part: Some(part), path, existing, mode, replaced, access })
    }

    /// Notes a further source of the contents.
    pub fn narrow(&mut self, access: SourceAccess) {
        self.access = self.access.and(access);
    }

    /// What is written to it.
    pub fn writer(&self) -> Result<File> {
        let copied = self.file.try_clone();
        copied.map_err(|error| Failure::output("cannot write there", &self.path, &error))
    }

    /// Opens the unfinished file for reading.
    pub fn read_back(&self) -> io::Result<File> {
        File::open(self.part.as_ref().map_or(&*self.path, AtomicFile::path))
    }

    /// Everything is written: the file gets its name.
    pub fn finish(self) -> Result<()> {
        let Self { file, part: Some(part), path, existing, mut mode, replaced, access } = self else {
            return Ok(());
        };
        if let Some((owner, group)) = replaced {
            // A group that somebody is not in gets nothing from him, and another not what was that one's.
            if fchown(&file, None, Some(group)).is_err() {
                mode &= !0o070;
            }
            // Only root gives files away: not to a user who may not read the sources.
            if access.allows_owner(owner) {
                let _ = fchown(&file, Some(owner), None);
            }
        }
        let durable = access.apply(&file, mode).and_then(|()| file.sync_all());
        durable.map_err(|error| Failure::output("cannot finish the file", &path, &error))?;
        part.named(&path, existing == Existing::Replace).map_err(|error| match error.kind() {
            io::ErrorKind::AlreadyExists => taken(&path, existing),
            _ => Failure::output("cannot finish the file", &path, &error),
        })
    }
}

/// What was written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Written {
    /// Number of bytes written.
    pub bytes: u64,
    /// Their BLAKE3, in hexadecimal digits.
    pub blake3: String,
}

impl Output {
    /// Standard output; a terminal takes no binary data.
    pub fn stdout(binary: bool) -> Result<Self> {
        let stdout = io::stdout();
        if binary && stdout.is_terminal() {
            return Err(Failure::usage("this would write binary data to the terminal")
                .at("-o")
                .advice("name a file with -o FILE, pass it on through a pipe, or choose --format jsonl"));
        }
        // Not by way of the buffer for lines, which looks for their ends and cuts every write in two.
        let file = stdout.as_fd().try_clone_to_owned().map(File::from);
        let file = file.map_err(|error| {
            Failure::failed(format_args!("cannot write to standard output: {}", reason(&error)))
        })?;
        Ok(Self::new(To::Pipe(Box::new(file))))
    }

    /// A file. `existing` is the fate of one that is there already. `access` is that to the sources of the contents.
    pub fn file(path: &Path, existing: Existing, access: SourceAccess) -> Result<Self> {
        let place = OutputFile::make(path, existing, access)?;
        if place.part.is_none() {
            return Ok(Self::new(To::Pipe(Box::new(place.file))));
        }
        Ok(Self::new(To::File(place)))
    }

    /// Any writer, such as a file without a name.
    pub fn writer(writer: impl Write + 'static) -> Self {
        Self::new(To::Pipe(Box::new(writer)))
    }

    fn new(to: To) -> Self {
        Self {
            to,
            buffer: Vec::with_capacity(GATHER),
            hash: Hashing::new(),
            bytes: 0,
            passed: PipedBytes::default(),
        }
    }

    /// What tells how much has left, while it is written.
    pub fn passed(&self) -> PipedBytes {
        self.passed.clone()
    }

    fn pass(&mut self) -> io::Result<()> {
        match &mut self.to {
            To::Pipe(pipe) => {
                pipe.write_all(&self.buffer)?;
                self.passed.0.set(self.passed.0.get() + self.buffer.len() as u64);
            }
            To::File(place) => place.file.write_all(&self.buffer)?,
        }
        self.buffer = self.hash.take(std::mem::take(&mut self.buffer), GATHER)?;
        Ok(())
    }

    /// Everything is written: the file gets its name.
    pub fn finish(mut self) -> Result<Written> {
        let end = self.flush();
        end.map_err(|error| failed(&error))?;
        let blake3 = self.hash.finish().map_err(|error| failed(&error))?;
        let written = Written { bytes: self.bytes, blake3 };
        if let To::File(place) = self.to {
            place.finish()?;
        }
        Ok(written)
    }
}

impl Write for Output {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let taken = bytes.len().min(GATHER - self.buffer.len());
        append(&mut self.buffer, &bytes[..taken]);
        if self.buffer.len() == GATHER {
            self.pass()?;
        }
        self.bytes += taken as u64;
        Ok(taken)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.pass()?;
        match &mut self.to {
            To::Pipe(pipe) => pipe.flush(),
            To::File(_) => Ok(()),
        }
    }
}

/// One that has its name already.
fn special(path: &Path, found: &fs::Metadata) -> Result<File> {
    let kept = if found.is_symlink() { fs::metadata(path).ok() } else { Some(found.clone()) };
    if kept.is_none_or(|found| found.is_dir()) {
        return Err(Failure::usage("this is no place for a file").at_path(path).advice("name a file"));
    }
    let file = OpenOptions::new().write(true).open(path);
    file.map_err(|error| Failure::output("cannot write there", path, &error))
}

/// Folder that a file is in.
fn folder_of(path: &Path) -> &Path {
    path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."))
}

fn taken(path: &Path, existing: Existing) -> Failure {
    Failure::failed("there is a file of that name").at_path(path).advice(match existing {
        Existing::Keep => "choose another, or remove it first",
        Existing::Ask | Existing::Replace => "choose another, or say --force to replace it",
    })
}

/// An error while writing: a reader that has left is no failure.
pub(crate) fn failed(error: &io::Error) -> Failure {
    match error.kind() {
        io::ErrorKind::BrokenPipe => Failure::said(Kind::Done),
        io::ErrorKind::StorageFull => Failure::failed("cannot write the export: no space left on device")
            .advice("make room, or choose another place with -o"),
        _ => Failure::failed(format_args!("cannot write the export: {}", reason(error))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file(path: &Path, force: bool) -> Result<Output> {
        Output::file(path, Existing::by_force(force), SourceAccess::default())
    }

    #[test]
    fn a_file_appears_only_when_it_is_whole_and_replaces_none_unasked() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("a.raw");
        let names = || {
            let mut names: Vec<_> =
                fs::read_dir(dir.path()).unwrap().map(|entry| entry.unwrap().file_name()).collect();
            names.sort();
            names
        };
        let mut output = file(&path, false).unwrap();
        output.write_all(b"some").unwrap();
        let part = names().remove(0).into_string().unwrap();
        assert!(part.starts_with("a.raw.") && part.contains(".part"), "{part}");
        drop(output);
        assert!(names().is_empty(), "what was given up leaves nothing behind");

        let large = vec![7u8; 3 * GATHER];
        let mut output = file(&path, false).unwrap();
        output.write_all(b"ab").unwrap();
        output.write_all(&large).unwrap();
        output.write_all(b"c").unwrap();
        let written = output.finish().unwrap();
        let expected = [&b"ab"[..], &large, b"c"].concat();
        assert!(fs::read(&path).unwrap() == expected);
        assert_eq!(written.bytes, expected.len() as u64);
        assert_eq!(written.blake3, blake3::hash(&expected).to_hex().to_string());
        assert_eq!(names(), ["a.raw"]);

        let said = file(&path, false).err().unwrap().to_string();
        assert!(said.contains("--force"), "{said}");
        let said =
            OutputFile::make(&path, Existing::Keep, SourceAccess::default()).err().unwrap().to_string();
        assert!(said.contains("remove it first") && !said.contains("--force"), "{said}");
        file(&path, true).unwrap().finish().unwrap();
        assert_eq!(fs::read(&path).unwrap(), b"");
        assert!(file(dir.path(), true).is_err());
        let none = dir.path().join("none/a");
        let said = file(&none, true).err().unwrap().to_string();
        let wanted =
            format!("cannot make the file: no such file or directory, {}: choose another", none.display());
        assert!(said.starts_with(&wanted), "{said}");
    }

    #[test]
    fn what_is_replaced_stays_where_links_lead_and_as_readable_as_it_was() {
        use std::os::unix::fs::{PermissionsExt, symlink};
        let dir = tempfile::tempdir().unwrap();
        let (path, link) = (dir.path().join("a.raw"), dir.path().join("latest"));
        fs::write(&path, "old").unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o600)).unwrap();
        symlink(&path, &link).unwrap();
        assert!(file(&link, false).is_err());
        let mut output = file(&link, true).unwrap();
        output.write_all(b"new").unwrap();
        output.finish().unwrap();
        assert!(fs::symlink_metadata(&link).unwrap().is_symlink());
        assert_eq!(fs::read(&path).unwrap(), b"new");
        assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
    }

    #[test]
    fn an_output_is_as_private_as_its_sources_and_nobody_reads_it_before_it_is_whole() {
        use std::os::unix::fs::PermissionsExt;
        let dir = tempfile::tempdir().unwrap();
        let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
        let source = dir.path().join("source");
        fs::write(&source, "secret").unwrap();
        for (at, (of_source, wanted)) in
            [(0o600, 0o600), (0o644, new_file_mode(dir.path()) & 0o644)].into_iter().enumerate()
        {
            fs::set_permissions(&source, fs::Permissions::from_mode(of_source)).unwrap();
            let path = dir.path().join(format!("{at}.raw"));
            let output = Output::file(&path, Existing::Ask, SourceAccess::of(&source)).unwrap();
            let To::File(place) = &output.to else { panic!("this is no pipe") };
            assert_eq!(mode(place.part.as_ref().unwrap().path()), 0o600);
            output.finish().unwrap();
            assert_eq!(mode(&path), wanted);
            // A file that is replaced is no wider afterwards, and not wider than the source.
            fs::set_permissions(&path, fs::Permissions::from_mode(0o666)).unwrap();
            Output::file(&path, Existing::Replace, SourceAccess::of(&source)).unwrap().finish().unwrap();
            assert_eq!(mode(&path), of_source);
        }
    }

    #[test]
    fn an_output_has_the_list_of_its_folder_as_far_as_its_sources_allow() {
        use crate::access_list::tests as access_list;
        use std::os::unix::fs::PermissionsExt;
        let dir = tempfile::tempdir().unwrap();
        let source = dir.path().join("source");
        fs::write(&source, "secret").unwrap();
        if !access_list::set(dir.path(), true, [7, 6, 5, 7, 0]) {
            return;
        }
        let path = dir.path().join("plain");
        fs::write(&path, "").unwrap();
        let mode = |path: &Path| fs::metadata(path).unwrap().mode() & 0o777;
        assert_eq!(mode(&path), 0o660);
        file(&dir.path().join("a.raw"), false).unwrap().finish().unwrap();
        assert_eq!(mode(&dir.path().join("a.raw")), 0o660, "as any new file");
        // The group of the source may read it, the user of the list may not.
        fs::set_permissions(&source, fs::Permissions::from_mode(0o640)).unwrap();
        let output =
            Output::file(&dir.path().join("b.raw"), Existing::Ask, SourceAccess::of(&source)).unwrap();
        output.finish().unwrap();
        assert_eq!(mode(&dir.path().join("b.raw")), 0o600);
    }

    #[test]
    fn a_group_gets_nothing_that_the_list_of_a_replaced_file_kept_from_it() {
        use crate::access_list::tests as access_list;
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("a.raw");
        fs::write(&path, "old").unwrap();
        if !access_list::set(&path, false, [6, 4, 0, 4, 0]) {
            return;
        }
        file(&path, true).unwrap().finish().unwrap();
        assert_eq!(fs::metadata(&path).unwrap().mode() & 0o777, 0o600);
    }

    #[test]
    fn root_gives_an_output_only_to_an_owner_who_may_read_its_sources() {
        use std::os::unix::fs::{PermissionsExt, chown};
        let dir = tempfile::tempdir().unwrap();
        let (source, path) = (dir.path().join("source"), dir.path().join("a.raw"));
        fs::write(&source, "secret").unwrap();
        fs::write(&path, "old").unwrap();
        let (root, other) = (0, 12_345);
        if chown(&path, Some(other), None).is_err() {
            eprintln!("skipped: only root gives files away");
            return;
        }
        // Owner and mode of the source, and owner of its output in the place of another user's file.
        for (owner, mode, wanted) in [(root, 0o600, root), (root, 0o644, other), (other, 0o600, other)] {
            chown(&source, Some(owner), None).unwrap();
            fs::set_permissions(&source, fs::Permissions::from_mode(mode)).unwrap();
            let _ = fs::remove_file(&path);
            fs::write(&path, "old").unwrap();
            chown(&path, Some(other), None).unwrap();
            let output = Output::file(&path, Existing::Replace, SourceAccess::of(&source)).unwrap();
            let To::File(place) = &output.to else { panic!("this is no pipe") };
            assert_eq!(fs::metadata(place.part.as_ref().unwrap().path()).unwrap().uid(), root);
            output.finish().unwrap();
            assert_eq!(fs::metadata(&path).unwrap().uid(), wanted, "{owner} {mode:o}");
        }
    }

    #[test]
    fn two_files_of_one_name_do_not_meet_and_the_first_that_is_whole_gets_it() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("a.raw");
        let unrelated = dir.path().join("a.raw.part");
        fs::write(&unrelated, "mine").unwrap();
        let mut outputs = [1, 2, 3].map(|_| file(&path, false).unwrap());
        for (output, text) in outputs.iter_mut().zip(["one", "two", "three"]) {
            output.write_all(text.as_bytes()).unwrap();
            output.flush().unwrap();
        }
        let [one, two, three] = outputs;
        drop(three);
        two.finish().unwrap();
        let said = one.finish().unwrap_err().to_string();
        assert!(said.contains("there is a file of that name") && said.contains("--force"), "{said}");
        assert_eq!(fs::read(&path).unwrap(), b"two");
        assert_eq!(fs::read(&unrelated).unwrap(), b"mine");
        assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 2, "and no piece of the others");
    }

    #[test]
    fn a_reader_that_has_left_is_no_failure() {
        let left = failed(&io::ErrorKind::BrokenPipe.into());
        assert!(left.is_quiet() && left.number() == 0);
        assert_eq!(failed(&io::ErrorKind::StorageFull.into()).number(), 1);
    }
}
