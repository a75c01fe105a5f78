//! Property: every tree of files, directories and links comes back from its packed folder.

use crate::pack::round_trip;
use proptest::collection::vec;
use proptest::prelude::*;
use std::ffi::OsStr;
use std::fs::{self, File, FileTimes, Permissions};
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::path::PathBuf;
use std::time::{Duration, SystemTime};

/// Entry to be made in a directory that was made before.
#[derive(Clone, Debug)]
enum Made {
    File(Vec<u8>),
    Repeated(u8, usize),
    Directory,
    Symlink(Vec<u8>),
    HardLink(usize),
}

fn made() -> impl Strategy<Value = Made> {
    prop_oneof![
        4 => vec(any::<u8>(), 0..200).prop_map(Made::File),
        2 => (any::<u8>(), 0..600_000usize).prop_map(|(byte, length)| Made::Repeated(byte, length)),
        2 => Just(Made::Directory),
        1 => vec(1..=255u8, 1..40).prop_map(Made::Symlink),
        1 => any::<usize>().prop_map(Made::HardLink),
    ]
}

fn name() -> impl Strategy<Value = Vec<u8>> {
    let byte = any::<u8>().prop_filter("names have no slash and no zero", |byte| !matches!(byte, 0 | b'/'));
    let odd = vec(byte, 1..30).prop_filter("dots are no names", |name| name != b"." && name != b"..");
    prop_oneof![
        odd,
        "f[0-9]{1,2}\\.raw".prop_map(String::into_bytes),
        "[a-c.-]{3}".prop_map(String::into_bytes)
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(40))]

    #[test]
    fn every_tree_comes_back(
        entries in vec((any::<usize>(), name(), made(), 0..0o1000u32, any::<u32>(), 0..1_000_000_000u32), 0..60)
    ) {
        let folder = tempfile::tempdir().unwrap();
        let mut directories: Vec<PathBuf> = vec![folder.path().to_owned()];
        let mut files: Vec<PathBuf> = Vec::new();
        for (directory, name, made, mode, seconds, nanos) in entries {
            let path = directories[directory % directories.len()].join(OsStr::from_bytes(&name));
            if fs::symlink_metadata(&path).is_ok() {
                continue;
            }
            // Readable and enterable, so that it can be packed without root's rights.
            let time = SystemTime::UNIX_EPOCH + Duration::new(seconds.into(), nanos);
            let file = |bytes: &[u8]| {
                fs::write(&path, bytes).unwrap();
                File::open(&path).unwrap().set_times(FileTimes::new().set_modified(time)).unwrap();
                fs::set_permissions(&path, Permissions::from_mode(mode | 0o400)).unwrap();
            };
            match made {
                Made::File(bytes) => file(&bytes),
                Made::Repeated(byte, length) => file(&vec![byte; length]),
                Made::Directory => {
                    fs::create_dir(&path).unwrap();
                    directories.push(path);
                    continue;
                }
                Made::Symlink(target) => {
                    symlink(OsStr::from_bytes(&target), &path).unwrap();
                    continue;
                }
                Made::HardLink(_) if files.is_empty() => continue,
                Made::HardLink(at) => fs::hard_link(&files[at % files.len()], &path).unwrap(),
            }
            files.push(path);
        }
        round_trip(folder.path());
    }
}
