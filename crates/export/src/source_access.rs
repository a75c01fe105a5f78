//! Access to sources: the permission bits that bound those of an output, so that private data stay private.
//!
//! An output is never wider than its sources, less the umask. The group of a source counts only where the output has the same
//! group; members of another group count as others. So do users and groups whom an access control list names.

use crate::access_list::AccessList;
use std::fs::{self, File, Metadata};
use std::io;
use std::os::unix::fs::{DirBuilderExt as _, FileTypeExt as _, MetadataExt as _, PermissionsExt as _};
use std::path::Path;

/// Permission bits of group and others.
const SHARED: u32 = 0o077;

/// Bound of the permissions of an output. The default is no bound, for sources without permissions.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SourceAccess {
    bound: Option<Bound>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Bound {
    /// Bits of the group `gid` and of others.
    mode: u32,
    /// Group of the sources, if all have the same one.
    gid: Option<u32>,
    /// Owner of the sources, if all have the same one.
    uid: Option<u32>,
}

impl SourceAccess {
    /// Access to a file, device or folder of this machine; no bound if its permissions are not known.
    pub fn of(path: &Path) -> Self {
        let Ok(found) = fs::metadata(path) else { return Self::default() };
        let list = (found.mode() & 0o070 != 0).then(|| AccessList::of(path)).flatten();
        let mode = list.map_or(found.mode(), |list| (found.mode() & !0o070) | (list.group() << 3));
        Self::with_mode(&found, mode)
    }

    /// Access of the owner of the output alone.
    pub fn owner_alone() -> Self {
        Self { bound: Some(Bound { mode: 0, gid: None, uid: None }) }
    }

    /// Access to the source with this metadata. Bytes that pass a pipe or a terminal have no permissions of their own.
    pub fn of_metadata(found: &Metadata) -> Self {
        Self::with_mode(found, found.mode())
    }

    fn with_mode(found: &Metadata, mode: u32) -> Self {
        let kind = found.file_type();
        if !(kind.is_file() || kind.is_dir() || kind.is_block_device()) {
            return Self::default();
        }
        let mode = mode & SHARED;
        // A folder that can be listed and entered is readable; who may write into it does not matter.
        let mode = if found.is_dir() {
            let class = |shift: u32| if (mode >> shift) & 0o5 == 0o5 { 0o6 << shift } else { 0 };
            class(3) | class(0)
        } else {
            mode
        };
        Self { bound: Some(Bound { mode, gid: Some(found.gid()), uid: Some(found.uid()) }) }
    }

    /// Access to all of several sources.
    pub fn of_all<'a>(paths: impl IntoIterator<Item = &'a Path>) -> Self {
        paths.into_iter().fold(Self::default(), |access, path| access.and(Self::of(path)))
    }

    /// Access that two sources have in common.
    #[must_use]
    pub fn and(self, other: Self) -> Self {
        let (Some(one), Some(two)) = (self.bound, other.bound) else {
            return Self { bound: self.bound.or(other.bound) };
        };
        let uid = one.uid.filter(|_| one.uid == two.uid);
        let bound = if one.gid == two.gid {
            Bound { mode: one.mode & two.mode, gid: one.gid, uid }
        } else {
            let others = one.mode & two.mode & 0o007;
            Bound { mode: (others << 3) | others, gid: None, uid }
        };
        Self { bound: Some(bound) }
    }

    /// True if nothing is bounded.
    pub fn is_unbounded(&self) -> bool {
        self.bound.is_none()
    }

    /// True if a user may own the output: its sources are his, or others may read them.
    pub(crate) fn allows_owner(&self, uid: u32) -> bool {
        self.bound.is_none_or(|bound| bound.mode & 0o004 != 0 || bound.uid == Some(uid))
    }

    /// Permissions `wanted` of an output with a group, as far as the sources allow them. Its owner keeps his.
    pub fn bounded(&self, wanted: u32, gid: u32) -> u32 {
        let Some(bound) = self.bound else { return wanted };
        let others = bound.mode & 0o007;
        let group = if bound.gid == Some(gid) { bound.mode & 0o070 } else { others << 3 };
        wanted & (!SHARED | group | others)
    }

    /// Gives an open file the permissions of a new one, as far as the sources allow them.
    pub fn apply(&self, file: &File, wanted: u32) -> io::Result<()> {
        let found = file.metadata()?;
        let mut mode = self.bounded(wanted, found.gid());
        // Users that a list names may do what the group may.
        if mode & 0o070 != 0 && !self.is_unbounded() && AccessList::of_file(file).is_some() {
            mode &= !0o070 | ((mode & 0o007) << 3);
        }
        if found.mode() & 0o7777 == mode & 0o7777 {
            return Ok(());
        }
        match file.set_permissions(fs::Permissions::from_mode(mode)) {
            // A file system without permissions, such as FAT: its mount decides who may read.
            Err(error)
                if matches!(error.kind(), io::ErrorKind::PermissionDenied | io::ErrorKind::Unsupported) =>
            {
                Ok(())
            }
            set => set,
        }
    }
}

/// Makes a folder for outputs of the files in another one, as private as that. One that is there stays as it is.
pub fn make_folder_like(folder: &Path, source: &Path) -> io::Result<()> {
    let files = SourceAccess::of(source).bounded(0o666, rustix::process::getegid().as_raw());
    // Readers of the files may list and enter the folder.
    let mode = 0o300 | files | (files & 0o444) >> 2;
    fs::DirBuilder::new().recursive(true).mode(mode).create(folder)
}

/// Permissions that the process gives to new files in a folder, whose access control list comes before the umask.
pub fn new_file_mode(folder: &Path) -> u32 {
    0o666 & AccessList::of_new_files(folder).map_or_else(|| !umask(), AccessList::mode)
}

/// Mask of the process, which `umask`(2) tells only by changing it.
fn umask() -> u32 {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let mask = status.lines().find_map(|line| line.strip_prefix("Umask:"));
    mask.and_then(|mask| u32::from_str_radix(mask.trim(), 8).ok()).unwrap_or(SHARED)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::access_list::tests as access_list;

    fn access(mode: u32, gid: u32) -> SourceAccess {
        SourceAccess { bound: Some(Bound { mode: mode & SHARED, gid: Some(gid), uid: Some(1) }) }
    }

    #[test]
    fn an_output_is_never_wider_than_its_sources() {
        let none = SourceAccess::default();
        // Sources, wanted mode and group of the output, and its mode.
        for (sources, wanted, gid, mode) in [
            (none, 0o664, 1, 0o664),
            (access(0o600, 1), 0o644, 1, 0o600),
            (access(0o644, 1), 0o644, 1, 0o644),
            (access(0o640, 1), 0o644, 1, 0o640),
            // Members of another group are others to the source.
            (access(0o640, 1), 0o644, 2, 0o600),
            (access(0o644, 1), 0o664, 2, 0o644),
            (access(0o604, 1), 0o644, 1, 0o604),
            // The owner of an output may write it, whatever the source allows.
            (access(0o444, 1), 0o644, 1, 0o644),
            (access(0o400, 1), 0o644, 1, 0o600),
            (access(0o644, 1).and(access(0o600, 1)), 0o644, 1, 0o600),
            (access(0o640, 1).and(access(0o640, 2)), 0o644, 1, 0o600),
            (access(0o644, 1).and(access(0o664, 2)), 0o664, 3, 0o644),
            (none.and(access(0o600, 1)), 0o644, 1, 0o600),
            (access(0o600, 1).and(none), 0o644, 1, 0o600),
        ] {
            assert_eq!(sources.bounded(wanted, gid), mode, "{sources:?} {wanted:o} {gid}");
        }
    }

    #[test]
    fn an_output_belongs_to_nobody_else_unless_he_may_read_its_sources() {
        let mine = access(0o600, 1);
        let theirs = SourceAccess { bound: Some(Bound { mode: 0, gid: Some(1), uid: Some(2) }) };
        // Sources, and whether the users 1 and 2 may own their output.
        for (sources, allowed) in [
            (SourceAccess::default(), [true, true]),
            (mine, [true, false]),
            (access(0o640, 1), [true, false]),
            (access(0o604, 1), [true, true]),
            (mine.and(SourceAccess::default()), [true, false]),
            (mine.and(access(0o644, 2)), [true, false]),
            (mine.and(theirs), [false, false]),
        ] {
            assert_eq!([1, 2].map(|uid| sources.allows_owner(uid)), allowed, "{sources:?}");
        }
    }

    #[test]
    fn a_list_of_a_source_opens_its_output_to_nobody_else() {
        let dir = tempfile::tempdir().unwrap();
        let source = dir.path().join("source");
        fs::write(&source, "secret").unwrap();
        // The mode is 0640: the user 1000 may read it, and its group may not.
        if !access_list::set(&source, false, [6, 4, 0, 4, 0]) {
            return;
        }
        let found = fs::metadata(&source).unwrap();
        assert_eq!(found.mode() & 0o777, 0o640);
        assert_eq!(SourceAccess::of(&source).bounded(0o644, found.gid()), 0o600);
        assert!(access_list::set(&source, false, [6, 0, 4, 4, 4]));
        assert_eq!(SourceAccess::of(&source).bounded(0o644, found.gid()), 0o644);
    }

    #[test]
    fn a_folder_is_readable_for_those_who_can_list_and_enter_it() {
        let dir = tempfile::tempdir().unwrap();
        for (mode, wanted) in [(0o755, 0o644), (0o700, 0o600), (0o711, 0o600), (0o744, 0o600), (0o750, 0o640)]
        {
            fs::set_permissions(dir.path(), fs::Permissions::from_mode(mode)).unwrap();
            let gid = fs::metadata(dir.path()).unwrap().gid();
            assert_eq!(SourceAccess::of(dir.path()).bounded(0o644, gid), wanted, "{mode:o}");
        }
        assert!(SourceAccess::of(&dir.path().join("none")).is_unbounded());
    }
}
