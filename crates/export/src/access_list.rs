//! POSIX access control lists, as the kernel keeps them in extended attributes: a version, then eight bytes an entry.
//!
//! The mode of a file with a list shows the mask of the list in the place of the permissions of the group.

use rustix::fs::{fgetxattr, getxattr};
use rustix::io::{Errno, Result};
use std::fs::File;
use std::path::Path;

/// Attribute with the list of a file.
const OF_FILE: &str = "system.posix_acl_access";

/// Attribute of a folder with the list of new files in it.
const OF_NEW_FILES: &str = "system.posix_acl_default";

/// Bytes of the longest list that is read: five hundred entries.
const LONGEST: usize = 4096;

/// Permissions of an access control list, three bits each. Those of further users and groups are left out.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct AccessList {
    owner: u32,
    group: u32,
    /// Bound of the group, and of further users and groups.
    mask: Option<u32>,
    others: u32,
}

impl AccessList {
    /// List of a file or folder; `None` if it has none.
    pub(crate) fn of(path: &Path) -> Option<Self> {
        Self::read(|list| getxattr(path, OF_FILE, list))
    }

    /// List of an open file; `None` if it has none.
    pub(crate) fn of_file(file: &File) -> Option<Self> {
        Self::read(|list| fgetxattr(file, OF_FILE, list))
    }

    /// List of new files in a folder; `None` if it has none.
    pub(crate) fn of_new_files(folder: &Path) -> Option<Self> {
        Self::read(|list| getxattr(folder, OF_NEW_FILES, list))
    }

    fn read(read: impl FnOnce(&mut [u8]) -> Result<usize>) -> Option<Self> {
        let mut list = [0; LONGEST];
        match read(&mut list) {
            Ok(bytes) => Some(Self::parse(&list[..bytes])),
            // A list that is too long to be read allows nothing.
            Err(Errno::RANGE) => Some(Self::default()),
            Err(_) => None,
        }
    }

    fn parse(list: &[u8]) -> Self {
        let mut parsed = Self::default();
        for entry in list.get(4..).unwrap_or_default().chunks_exact(8) {
            let number = |at: usize| u16::from_le_bytes([entry[at], entry[at + 1]]);
            let allowed = u32::from(number(2) & 0o7);
            match number(0) {
                0x01 => parsed.owner = allowed,
                0x04 => parsed.group = allowed,
                0x10 => parsed.mask = Some(allowed),
                0x20 => parsed.others = allowed,
                _ => {}
            }
        }
        parsed
    }

    /// Permissions of the group itself.
    pub(crate) fn group(self) -> u32 {
        self.group & self.mask.unwrap_or(0o7)
    }

    /// Mode of a file with this list.
    pub(crate) fn mode(self) -> u32 {
        (self.owner << 6) | (self.mask.unwrap_or(self.group) << 3) | self.others
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use rustix::fs::{XattrFlags, setxattr};

    /// A list that allows the owner, the user 1000, the group, all of these, and others so much.
    pub(crate) fn list([owner, user, group, mask, others]: [u8; 5]) -> Vec<u8> {
        let mut list = vec![2, 0, 0, 0];
        let nobody = [0xff; 4];
        for (tag, allowed, of) in [
            (0x01, owner, nobody),
            (0x02, user, 1000_u32.to_le_bytes()),
            (0x04, group, nobody),
            (0x10, mask, nobody),
            (0x20, others, nobody),
        ] {
            list.extend([tag, 0, allowed, 0]);
            list.extend(of);
        }
        list
    }

    /// Gives a file or folder a list, and new files in it with `is_default`; false if the file system knows none.
    pub(crate) fn set(path: &Path, is_default: bool, allowed: [u8; 5]) -> bool {
        let name = if is_default { OF_NEW_FILES } else { OF_FILE };
        let set = setxattr(path, name, &list(allowed), XattrFlags::empty()).is_ok();
        if !set {
            eprintln!("skipped: the file system of the test has no access control lists");
        }
        set
    }

    #[test]
    fn a_list_tells_the_permissions_of_the_group_apart_from_the_mask() {
        let parsed = AccessList::parse(&list([6, 4, 0, 4, 0]));
        assert_eq!(parsed, AccessList { owner: 6, group: 0, mask: Some(4), others: 0 });
        assert_eq!((parsed.group(), parsed.mode()), (0, 0o640));
        let masked = AccessList::parse(&list([7, 7, 7, 5, 4]));
        assert_eq!((masked.group(), masked.mode()), (5, 0o754));
        for cut in [&b""[..], &[2, 0], &[2, 0, 0, 0, 1, 0, 6]] {
            assert_eq!(AccessList::parse(cut), AccessList::default());
        }
    }
}
