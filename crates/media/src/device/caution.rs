//! File systems on which a ring works, but nothing can be promised of its speed or safety.

use rustix::fs::{FsWord, StatFs};

/// Why there is no guarantee on a file system, in words.
pub(super) fn no_guarantee(stat: &StatFs) -> Option<String> {
    let (name, why) = reason(stat.f_type)?;
    Some(format!(
        "no guarantee on {name}: {why}; use a block device, or a file on ext4 or XFS, for a guaranteed rate"
    ))
}

/// Name and reason by magic number (linux/magic.h, and the sources of those kept outside the kernel).
fn reason(magic: FsWord) -> Option<(&'static str, &'static str)> {
    const COPIES: &str =
        "it writes to new places instead of overwriting, so it slows down and may run out of space";
    const NETWORK: &str = "its speed and its durability depend on a network and another machine";
    const MEMORY: &str = "it is memory: all is lost when the machine stops";
    Some(match magic as u32 {
        0x9123_683e => ("btrfs", COPIES),
        0x2fc1_2fc1 => ("ZFS", COPIES),
        0xca45_1a4e => ("bcachefs", COPIES),
        0x0000_6969 => ("NFS", NETWORK),
        0xff53_4d42 | 0xfe53_4d42 | 0x0000_517b => ("SMB/CIFS", NETWORK),
        0x00c3_6400 => ("Ceph", NETWORK),
        0x0102_1997 => ("9p", NETWORK),
        0x6573_5546 => ("a FUSE file system", "what stands behind it is not known"),
        0x794c_7630 => ("overlayfs", "what stands behind it is not known"),
        0x0102_1994 => ("tmpfs", MEMORY),
        0x8584_58f6 => ("ramfs", MEMORY),
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_and_network_file_systems_are_named_and_ordinary_ones_are_not() {
        let stat = rustix::fs::statfs("/dev/shm").unwrap();
        assert!(no_guarantee(&stat).is_none_or(|text| text.contains("tmpfs")));
        assert_eq!(reason(0x0102_1994).unwrap().0, "tmpfs");
        assert_eq!(reason(0x6969).unwrap().0, "NFS");
        // CIFS's number has its top bit set: it must be found whether `statfs` extends the sign or not.
        assert_eq!(reason(FsWord::from(0xff53_4d42_u32 as i32)).unwrap().0, "SMB/CIFS");
        for ordinary in [0xef53, 0x5846_5342] {
            assert_eq!(reason(ordinary), None);
        }
    }
}
