//! Where an export goes: a file that appears only when it is whole, or a pipe. Counts and hashes what passes.

use super::hashing::Hashing;
use crate::failure::{Failure, Kind, Result, reason};
use holdfast_base::append;
use std::fs::{self, File, OpenOptions};
use std::io::{self, IsTerminal, Write};
use std::os::fd::AsFd;
use std::path::{Path, PathBuf};

/// Bytes that are gathered before a write: less costs system calls, and wakes the thread that hashes for each; more is not
/// in the cache any more when it is written and hashed. All but the last are passed on exactly so long.
const GATHER: usize = 1 << 20;

/// An output.
pub(crate) struct Output {
    to: To,
    buffer: Vec<u8>,
    hash: Hashing,
    bytes: u64,
}

enum To {
    Pipe(Box<dyn Write>),
    File { file: File, part: Part, path: PathBuf },
}

/// The unfinished file; gone when it is dropped before it got its name.
struct Part(Option<PathBuf>);

impl Drop for Part {
    fn drop(&mut self) {
        if let Some(path) = self.0.take() {
            let _ = fs::remove_file(path);
        }
    }
}

/// What was written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Written {
    /// Bytes.
    pub(crate) bytes: u64,
    /// Their BLAKE3, in hexadecimal digits.
    pub(crate) blake3: String,
}

impl Output {
    /// Standard output; a terminal takes no binary data.
    pub(crate) fn stdout(binary: bool) -> Result<Self> {
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

    /// A file, under another name until it is whole; one that is there already is kept unless `force` is set.
    pub(crate) fn file(path: &Path, force: bool) -> Result<Self> {
        if let Ok(found) = fs::symlink_metadata(path) {
            let regular = fs::metadata(path).is_ok_and(|found| found.is_file());
            if !regular {
                // A device or named pipe is written to, not replaced.
                return Self::special(path, &found);
            }
            if !force {
                return Err(Failure::failed("there is a file of that name")
                    .at_path(path)
                    .advice("choose another, or say --force to replace it"));
            }
        }
        let mut part = path.as_os_str().to_owned();
        part.push(".part");
        let part = PathBuf::from(part);
        let file = OpenOptions::new()
            .write(true)
            .create(true)
            .truncate(true)
            .open(&part)
            .map_err(|error| Failure::io("cannot make the file", &part, &error))?;
        Ok(Self::new(To::File { file, part: Part(Some(part)), path: path.to_owned() }))
    }

    fn special(path: &Path, found: &fs::Metadata) -> Result<Self> {
        let kept = if found.is_symlink() { fs::metadata(path).ok() } else { Some(found.clone()) };
        if kept.is_none_or(|found| found.is_dir()) {
            return Err(Failure::usage("this is no place for a file").at_path(path).advice("name a file"));
        }
        let file = OpenOptions::new().write(true).open(path);
        let file = file.map_err(|error| Failure::io("cannot write there", path, &error))?;
        Ok(Self::new(To::Pipe(Box::new(file))))
    }

    /// Any writer.
    #[cfg(test)]
    pub(crate) fn to(writer: impl Write + 'static) -> Self {
        Self::new(To::Pipe(Box::new(writer)))
    }

    fn new(to: To) -> Self {
        Self { to, buffer: Vec::with_capacity(GATHER), hash: Hashing::new(), bytes: 0 }
    }

    fn pass(&mut self) -> io::Result<()> {
        match &mut self.to {
            To::Pipe(pipe) => pipe.write_all(&self.buffer)?,
            To::File { file, .. } => file.write_all(&self.buffer)?,
        }
        self.buffer = self.hash.take(std::mem::take(&mut self.buffer), GATHER)?;
        Ok(())
    }

    /// Everything is written: the file gets its name.
    pub(crate) fn finish(mut self) -> Result<Written> {
        let end = self.flush();
        end.map_err(|error| failed(&error))?;
        let blake3 = self.hash.finish().map_err(|error| failed(&error))?;
        let written = Written { bytes: self.bytes, blake3 };
        if let To::File { file, mut part, path } = self.to {
            let named = file.sync_all().and_then(|()| match part.0.as_ref() {
                Some(unfinished) => fs::rename(unfinished, &path),
                None => Ok(()),
            });
            named.map_err(|error| Failure::io("cannot finish the file", &path, &error))?;
            part.0 = None;
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
            To::File { .. } => Ok(()),
        }
    }
}

/// An error while writing: a reader that has left is no failure.
pub(crate) fn failed(error: &io::Error) -> Failure {
    match error.kind() {
        io::ErrorKind::BrokenPipe => Failure::said(Kind::Done),
        io::ErrorKind::StorageFull => Failure::failed("the export does not fit: no space left")
            .advice("make room, or choose another place with -o"),
        _ => Failure::failed(format_args!("cannot write the export: {}", reason(error))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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
        let mut output = Output::file(&path, false).unwrap();
        output.write_all(b"some").unwrap();
        assert_eq!(names(), ["a.raw.part"]);
        drop(output);
        assert!(names().is_empty(), "what was given up leaves nothing behind");

        let large = vec![7u8; 3 * GATHER];
        let mut output = Output::file(&path, false).unwrap();
        output.write_all(b"ab").unwrap();
        output.write_all(&large).unwrap();
        output.write_all(b"c").unwrap();
        let written = output.finish().unwrap();
        let expected = [&b"ab"[..], &large, b"c"].concat();
        assert!(fs::read(&path).unwrap() == expected);
        assert_eq!(written.bytes, expected.len() as u64);
        assert_eq!(written.blake3, blake3::hash(&expected).to_hex().to_string());
        assert_eq!(names(), ["a.raw"]);

        let said = Output::file(&path, false).err().unwrap().to_string();
        assert!(said.contains("--force"), "{said}");
        Output::file(&path, true).unwrap().finish().unwrap();
        assert_eq!(fs::read(&path).unwrap(), b"");
        assert!(Output::file(dir.path(), true).is_err());
        assert!(Output::file(&dir.path().join("none/a"), true).is_err());
    }

    #[test]
    fn a_reader_that_has_left_is_no_failure() {
        let left = failed(&io::ErrorKind::BrokenPipe.into());
        assert!(left.is_quiet() && left.number() == 0);
        assert_eq!(failed(&io::ErrorKind::StorageFull.into()).number(), 1);
    }
}
