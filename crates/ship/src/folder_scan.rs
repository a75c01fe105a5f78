//! Scan of a folder tree: its files with their identities and times, and the names that cannot be sent.
//!
//! Here belongs reading of directories. Not here: watching (`folder_watch`), and decisions about files.

use crate::path_filter::{PathFilter, PathRole};
use std::fs::Metadata;
use std::io;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

/// Longest path in bytes and longest name that a site accepts.
const MOST_PATH: usize = 900;
const MOST_NAME: usize = 255;

/// Prefix of names that sites keep for themselves.
const RESERVED: &str = ".holdfast";

/// Regular file as the file system describes it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FileSeen {
    /// Path of the file.
    pub path: PathBuf,
    /// Path relative to the root of the tree, with `/` between names.
    pub relative: String,
    /// Device of the file system.
    pub device: u64,
    /// Number of the file in its file system.
    pub inode: u64,
    /// Size of the contents in bytes.
    pub size: u64,
    /// Time of the last change of the contents, in nanoseconds since 1970.
    pub modified_ns: i64,
    /// Time of the last change of contents or attributes, in nanoseconds since 1970.
    pub changed_ns: i64,
}

/// Finding of a scan.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Found {
    /// File that is to be sent.
    File(FileSeen),
    /// Marker of finished files.
    Marker(FileSeen),
    /// Path that cannot be sent, or folder that cannot be read.
    Unshippable {
        /// Path of the file or folder.
        path: PathBuf,
        /// Reason of the refusal, and its remedy.
        reason: String,
    },
}

impl FileSeen {
    /// Describes a file; `None` if it does not exist, is no regular file, or has a name that cannot be sent.
    pub fn of(root: &Path, path: &Path) -> io::Result<Option<Self>> {
        let Ok(Ok(relative)) = path.strip_prefix(root).map(shippable_name) else { return Ok(None) };
        match path.symlink_metadata() {
            Ok(metadata) if metadata.is_file() => Ok(Some(Self::from_metadata(path, relative, &metadata))),
            Ok(_) => Ok(None),
            Err(error) if matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory) => {
                Ok(None)
            }
            Err(error) => Err(error),
        }
    }

    fn from_metadata(path: &Path, relative: &str, metadata: &Metadata) -> Self {
        let nanoseconds =
            |seconds: i64, rest: i64| seconds.saturating_mul(1_000_000_000).saturating_add(rest);
        Self {
            path: path.to_owned(),
            relative: relative.to_owned(),
            device: metadata.dev(),
            inode: metadata.ino(),
            size: metadata.size(),
            modified_ns: nanoseconds(metadata.mtime(), metadata.mtime_nsec()),
            changed_ns: nanoseconds(metadata.ctime(), metadata.ctime_nsec()),
        }
    }
}

/// Relative path as the text that names the object at the site. The error is the reason and the remedy.
pub fn shippable_name(relative: &Path) -> Result<&str, String> {
    let text = relative.to_str().ok_or("its name is not UTF-8; rename it")?;
    if text.contains(char::is_control) {
        return Err("its name contains a control character; rename it".to_owned());
    }
    if text.len() > MOST_PATH || text.split('/').any(|name| name.len() > MOST_NAME) {
        return Err(format!(
            "its name has more than {MOST_NAME} bytes or its path more than {MOST_PATH}; shorten it"
        ));
    }
    if text.split('/').any(|name| name.starts_with(RESERVED)) {
        return Err(format!("its name has the reserved prefix '{RESERVED}'; rename it"));
    }
    Ok(text)
}

/// Scans a folder of the tree, which may be its root, in the order of the names. Symbolic links below the root are not followed.
/// An error is one of the folder itself; a folder below it that cannot be read is a finding.
pub fn scan(root: &Path, folder: &Path, filter: &PathFilter, found: &mut dyn FnMut(Found)) -> io::Result<()> {
    let mut folders = vec![folder.to_owned()];
    while let Some(folder_path) = folders.pop() {
        let entries = std::fs::read_dir(&folder_path).and_then(Iterator::collect::<io::Result<Vec<_>>>);
        let mut entries = match entries {
            Ok(entries) => entries,
            Err(error) if folder_path == folder => return Err(error),
            Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
            Err(error) => {
                let reason = format!("it cannot be read ({error}); give the shipper access");
                found(Found::Unshippable { path: folder_path, reason });
                continue;
            }
        };
        entries.sort_by_key(std::fs::DirEntry::file_name);
        let mut below = Vec::new();
        for entry in entries {
            let (path, Ok(kind)) = (entry.path(), entry.file_type()) else { continue };
            if !kind.is_file() && !kind.is_dir() {
                continue;
            }
            let relative = path.strip_prefix(root).unwrap_or(&path);
            let relative = match shippable_name(relative) {
                Ok(relative) => relative.to_owned(),
                Err(reason) => {
                    if !filter.excludes_folder(&relative.to_string_lossy()) {
                        found(Found::Unshippable { path, reason });
                    }
                    continue;
                }
            };
            if kind.is_dir() {
                if !filter.excludes_folder(&relative) {
                    below.push(path);
                }
                continue;
            }
            let role = filter.role(&relative);
            // A file that vanishes between both calls is not there.
            let (true, Ok(metadata)) = (role != PathRole::Ignored, entry.metadata()) else { continue };
            let seen = FileSeen::from_metadata(&path, &relative, &metadata);
            found(if role == PathRole::Marker { Found::Marker(seen) } else { Found::File(seen) });
        }
        folders.extend(below.into_iter().rev());
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::path_filter::Marker;
    use std::ffi::OsStr;
    use std::fs;
    use std::os::unix::ffi::OsStrExt as _;
    use std::os::unix::fs::symlink;

    #[test]
    fn files_are_found_in_order_and_links_and_exclusions_are_not() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path();
        fs::create_dir_all(root.join("b/c")).unwrap();
        fs::create_dir_all(root.join("tmp")).unwrap();
        for name in ["a", "b/c/1", "b/2", "z", "z.done", "tmp/x", "skipped.part"] {
            fs::write(root.join(name), name.rsplit('/').next().unwrap()).unwrap();
        }
        symlink(root, root.join("loop")).unwrap();
        symlink(root.join("a"), root.join("link")).unwrap();
        let bad = OsStr::from_bytes(b"bad\xff");
        fs::write(root.join(bad), "").unwrap();
        fs::write(root.join("tmp").join(bad), "").unwrap();
        fs::write(root.join("new\nline"), "").unwrap();
        let exclude = ["tmp".to_owned(), "*.part".to_owned()];
        let filter = PathFilter::new(&[], &exclude, Some(Marker::Suffix(".done".to_owned()))).unwrap();
        let mut names = Vec::new();
        let mut add = |found| {
            names.push(match found {
                Found::File(seen) => {
                    assert_eq!(FileSeen::of(root, &seen.path).unwrap().as_ref(), Some(&seen));
                    assert_eq!(
                        (seen.size, seen.inode != 0),
                        (seen.path.file_name().unwrap().len() as u64, true)
                    );
                    seen.relative
                }
                Found::Marker(seen) => format!("marker {}", seen.relative),
                Found::Unshippable { reason, .. } => reason,
            });
        };
        scan(root, root, &filter, &mut add).unwrap();
        names.sort();
        let expected = [
            "a",
            "b/2",
            "b/c/1",
            "its name contains a control character; rename it",
            "its name is not UTF-8; rename it",
            "marker z.done",
            "z",
        ];
        assert_eq!(names, expected);
        let mut below = Vec::new();
        scan(root, &root.join("b"), &filter, &mut |found| below.push(found)).unwrap();
        assert_eq!(below.len(), 2);
        assert!(scan(root, &root.join("absent"), &filter, &mut |_| {}).is_err());
        for none in ["absent", "link", "b", "a/below"] {
            assert_eq!(FileSeen::of(root, &root.join(none)).unwrap(), None, "{none}");
        }
    }
}
