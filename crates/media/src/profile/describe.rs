//! Description of a device by the system and the drive: cache, discard, read errors. Nothing is measured
//! here, and the device's identity is asked elsewhere.

use super::{
    ReadError,
    sct::{self, Limit},
};
use crate::{Device, Medium};
use rustix::fs::{fstat, major, minor};
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Drives that do not say how long they try to read a bad place are taken to try as long as those for servers do.
const ASSUMED_READ_ERROR: Duration = Duration::from_secs(7);

/// What is said of a device.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Described {
    /// Whether it has a volatile write cache that is on.
    pub write_cache: Option<bool>,
    /// Whether it can be told that places are free.
    pub discard: bool,
    /// How long it tries to read a bad place.
    pub read_error: ReadError,
    /// Whether it could limit that, and does not.
    pub unlimited: bool,
    /// Whether its tracks overlap, or whatever else makes zones of it that are to be written in order (`host-aware`,
    /// `host-managed`). Drives that hide it are not known.
    pub zoned: bool,
}

/// Asks the system, and the drive. Of a file it is that of the device that it lies on, where that is one.
pub fn describe(device: &Device) -> Described {
    let whole = device.info().medium == Medium::Device;
    let number = fstat(device).ok().map(|stat| if whole { stat.st_rdev } else { stat.st_dev });
    let found = number.and_then(|number| disk(&format!("{}:{}", major(number), minor(number))));
    let said = |name: &str| std::fs::read_to_string(found.as_ref()?.join(name)).ok();
    let ata = whole && said("device/vendor").is_some_and(|vendor| vendor.trim() == "ATA");
    let limit = if ata { sct::read_limit(device) } else { Limit::Unknown };
    described(said, limit)
}

/// What follows from the files in which the system tells of a disk, and from what the drive answered.
fn described(said: impl Fn(&str) -> Option<String>, limit: Limit) -> Described {
    let is = |name: &str, word: &str| said(name).map(|text| text.trim() == word);
    Described {
        write_cache: is("queue/write_cache", "write back"),
        discard: is("queue/discard_max_bytes", "0") == Some(false),
        read_error: match limit {
            Limit::After(limit) => ReadError::Limited(limit),
            Limit::Off | Limit::Unknown => ReadError::Assumed(ASSUMED_READ_ERROR),
        },
        unlimited: limit == Limit::Off,
        zoned: is("queue/zoned", "none") == Some(false),
    }
}

/// Where the system tells of the disk `major:minor`, or of the disk that it is a partition of.
fn disk(numbers: &str) -> Option<PathBuf> {
    let folder = std::fs::canonicalize(Path::new("/sys/dev/block").join(numbers)).ok()?;
    if folder.join("partition").exists() {
        return folder.parent().map(Path::to_path_buf);
    }
    Some(folder)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Access;

    #[test]
    fn what_is_not_known_is_not_made_up() {
        let file = tempfile::NamedTempFile::new().unwrap();
        file.as_file().set_len(1 << 20).unwrap();
        let device = Device::open(file.path(), Access::Own).unwrap();
        let found = describe(&device);
        assert_eq!(found.read_error, ReadError::Assumed(ASSUMED_READ_ERROR));
        assert!(!found.unlimited && !found.zoned);
        assert_eq!(disk("0:0"), None);
        let nothing = described(|_| None, Limit::Unknown);
        assert_eq!((nothing.write_cache, nothing.discard, nothing.zoned), (None, false, false));
    }

    #[test]
    fn what_the_system_says_is_understood() {
        // As the kernel writes it.
        let of = |cache: &str, discard: &str, zoned: &str, limit| {
            let files =
                [("queue/write_cache", cache), ("queue/discard_max_bytes", discard), ("queue/zoned", zoned)];
            let said =
                |name: &str| files.iter().find(|file| file.0 == name).map(|file| format!("{}\n", file.1));
            described(said, limit)
        };
        let second = Duration::from_secs(1);
        assert_eq!(
            of("write back", "2147450880", "host-managed", Limit::After(second)),
            Described {
                write_cache: Some(true),
                discard: true,
                read_error: ReadError::Limited(second),
                unlimited: false,
                zoned: true,
            }
        );
        assert_eq!(
            of("write through", "0", "none", Limit::Off),
            Described {
                write_cache: Some(false),
                discard: false,
                read_error: ReadError::Assumed(ASSUMED_READ_ERROR),
                unlimited: true,
                zoned: false,
            }
        );
    }
}
