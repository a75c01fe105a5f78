//! Entry of a packed folder: a file, directory or link, and the place of its contents.

use std::cmp::Ordering;

/// Kind of an entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// Regular file with contents of its own.
    File,
    /// Further name of a file that precedes it.
    HardLink,
    /// Directory, before all entries below it.
    Directory,
    /// Symbolic link, which is never followed.
    Symlink,
}

impl Kind {
    const ALL: [Self; 4] = [Self::File, Self::HardLink, Self::Directory, Self::Symlink];

    /// Name in the directory's column.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::File => "file",
            Self::HardLink => "hardlink",
            Self::Directory => "directory",
            Self::Symlink => "symlink",
        }
    }

    /// The kind of this name.
    pub(crate) fn parse(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.name() == name)
    }

    /// Returns true if entries of this kind have contents.
    pub(crate) fn has_contents(self) -> bool {
        matches!(self, Self::File | Self::HardLink)
    }
}

/// Modification time: seconds since 1970 (UTC), and nanoseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct ModifiedTime {
    pub(crate) seconds: i64,
    pub(crate) nanos: u32,
}

/// Encoding of a piece's message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Encoding {
    /// The message is the piece.
    Plain,
    /// The message is a filtered image.
    Image,
}

impl Encoding {
    /// Number in the directory's column.
    pub(crate) fn number(self) -> u8 {
        match self {
            Self::Plain => 0,
            Self::Image => 1,
        }
    }

    /// Message encoding of a channel (MCAP); empty for contents as they are.
    pub(crate) fn message_encoding(self) -> &'static str {
        match self {
            Self::Plain => "",
            Self::Image => "holdfast-image",
        }
    }

    /// The encoding of this number.
    pub(crate) fn parse(number: u8) -> Option<Self> {
        [Self::Plain, Self::Image].into_iter().find(|encoding| encoding.number() == number)
    }
}

/// Place of a piece's message in the file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Place {
    /// Offset of the chunk record in the file.
    pub(crate) chunk_offset: u64,
    /// Bytes of the chunk record.
    pub(crate) chunk_length: u64,
    /// Offset of the message record in the decompressed chunk.
    pub(crate) message: u64,
    /// Encoding of the message's data.
    pub(crate) encoding: Encoding,
}

/// Piece of a file's contents: one message, or a hole.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Piece<P = Place> {
    /// Offset in the file's contents.
    pub(crate) offset: u64,
    /// Number of its bytes.
    pub(crate) length: u64,
    /// Place of its message; `None` for a hole, which reads as zeros.
    pub(crate) place: Option<P>,
    /// BLAKE3 of its bytes; zeros for a hole.
    pub(crate) blake3: [u8; 32],
}

/// Entry of a packed folder.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Entry<P = Place> {
    /// Path below the folder, without a leading slash; empty for the folder itself.
    pub(crate) path: Vec<u8>,
    pub(crate) kind: Kind,
    /// Permission bits, with set-user-id, set-group-id and sticky.
    pub(crate) mode: u32,
    pub(crate) modified: ModifiedTime,
    /// Bytes of the contents; 0 of directories and symbolic links.
    pub(crate) size: u64,
    /// Target of a symbolic link, or path of the entry whose further name a hard link is; empty otherwise.
    pub(crate) target: Vec<u8>,
    /// BLAKE3 of the contents; `None` for entries without contents.
    pub(crate) blake3: Option<[u8; 32]>,
    /// Pieces of the contents, without a gap between them.
    pub(crate) pieces: Vec<Piece<P>>,
}

/// Order of paths: by component, so that a directory directly precedes all entries below it.
pub(crate) fn path_order(a: &[u8], b: &[u8]) -> Ordering {
    a.split(|byte| *byte == b'/').cmp(b.split(|byte| *byte == b'/'))
}

/// Path of the directory that has an entry, and the entry's name.
pub(crate) fn parent(path: &[u8]) -> (&[u8], &[u8]) {
    match path.iter().rposition(|byte| *byte == b'/') {
        Some(slash) => (&path[..slash], &path[slash + 1..]),
        None => (&[], path),
    }
}

/// Returns true if a path stays below its folder: plain names, one slash between them.
pub(crate) fn is_plain(path: &[u8]) -> bool {
    let is_name = |name: &[u8]| {
        !name.is_empty() && name != b"." && name != b".." && !name.contains(&0) && name.len() < 256
    };
    path.is_empty() || path.split(|byte| *byte == b'/').all(is_name)
}

/// Path in text, for messages.
pub(crate) fn shown(path: &[u8]) -> String {
    if path.is_empty() { ".".to_owned() } else { path.escape_ascii().to_string() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_directory_directly_precedes_its_entries() {
        let mut paths: Vec<&[u8]> = vec![b"a.b", b"a/b", b"", b"a", b"a/b/c", b"a-", b"b"];
        paths.sort_by(|a, b| path_order(a, b));
        assert_eq!(paths, [&b""[..], b"a", b"a/b", b"a/b/c", b"a-", b"a.b", b"b"]);
    }

    #[test]
    fn paths_that_lead_out_of_the_folder_are_not_plain() {
        for wrong in ["/", "/a", "a/", "a//b", "..", "a/../b", "./a", "a\0b"] {
            assert!(!is_plain(wrong.as_bytes()), "{wrong}");
        }
        assert!(is_plain(b"") && is_plain(b"a\n/\xff") && is_plain(&[b'x'; 255]) && !is_plain(&[b'x'; 256]));
        assert_eq!(parent(b"a/b/c"), (&b"a/b"[..], &b"c"[..]));
        assert_eq!(parent(b"a"), (&b""[..], &b"a"[..]));
    }
}
