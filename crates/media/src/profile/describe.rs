//! What the system and the drive say of how it works: cache, discard, read errors. Nothing is measured here; which
//! device it is, is asked elsewhere.

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
    let said = |name: &str| {
        let text = std::fs::read_to_string(found.as_ref()?.join(name)).ok()?;
        Some(text.trim().to_owned())
    };
    let ata = whole && said("device/vendor").as_deref() == Some("ATA");
    let limit = if ata { sct::read_limit(device) } else { Limit::Unknown };
    Described {
        write_cache: said("queue/write_cache").map(|kind| kind == "write back"),
        discard: said("queue/discard_max_bytes").is_some_and(|bytes| bytes != "0"),
        read_error: match limit {
            Limit::After(limit) => ReadError::Limited(limit),
            Limit::Off | Limit::Unknown => ReadError::Assumed(ASSUMED_READ_ERROR),
        },
        unlimited: limit == Limit::Off,
        zoned: said("queue/zoned").is_some_and(|kind| kind != "none"),
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
        let described = describe(&device);
        assert_eq!(described.read_error, ReadError::Assumed(ASSUMED_READ_ERROR));
        assert!(!described.unlimited && !described.zoned);
        assert_eq!(disk("0:0"), None);
    }
}
