//! Identity of the device behind a path, as the system tells it, and whether a profile is of that device.

use holdfast_base::ByteSize;
use holdfast_media::Identity;
use rustix::fs::FileType;
use std::fs;
use std::path::{Path, PathBuf};

/// What is known of the device or file at a path, which has so many bytes.
pub fn of(path: &Path, bytes: u64) -> Identity {
    let shown = fs::canonicalize(path).unwrap_or_else(|_| path.to_owned());
    let named = Identity { path: shown.display().to_string(), bytes: ByteSize(bytes), ..Identity::default() };
    let Ok(stat) = rustix::fs::stat(path) else { return named };
    if FileType::from_raw_mode(stat.st_mode) != FileType::BlockDevice {
        let rotational = place(stat.st_dev).and_then(|place| rotational(&disk(&place)));
        return Identity { medium: "file".to_owned(), rotational, ..named };
    }
    let named = Identity { medium: "device".to_owned(), ..named };
    place(stat.st_rdev).map_or(named.clone(), |place| told(&place, named))
}

/// The folder in which the system tells of a block device.
fn place(device: u64) -> Option<PathBuf> {
    let (major, minor) = (rustix::fs::major(device), rustix::fs::minor(device));
    fs::canonicalize(format!("/sys/dev/block/{major}:{minor}")).ok()
}

/// The folder of the disk that a partition is of.
fn disk(place: &Path) -> PathBuf {
    let parent = place.parent().filter(|_| place.join("partition").exists());
    parent.unwrap_or(place).to_owned()
}

fn rotational(disk: &Path) -> Option<bool> {
    text(&disk.join("queue/rotational")).map(|text| text == "1")
}

/// Takes over what stands in the system's folder.
fn told(place: &Path, named: Identity) -> Identity {
    let disk = disk(place);
    let first = |names: &[&str]| names.iter().find_map(|name| text(&disk.join(name))).unwrap_or_default();
    let mut model = first(&["device/model"]);
    let mut serial = first(&["device/serial", "serial", "device/vpd_pg80", "device/wwid", "wwid"]);
    if let Some(file) = text(&disk.join("loop/backing_file")) {
        (model, serial) = ("loop device".to_owned(), file);
    }
    // A drive is not as fast in one partition as in another.
    if let Some(number) = text(&place.join("partition")) {
        let space = if serial.is_empty() { "" } else { " " };
        serial = format!("{serial}{space}partition {number}");
    }
    Identity { model, serial, rotational: rotational(&disk), ..named }
}

/// A short text without what surrounds it; `None` where there is none.
fn text(file: &Path) -> Option<String> {
    let bytes = fs::read(file).ok()?;
    let text: String =
        String::from_utf8_lossy(&bytes).chars().filter(|c| !c.is_control() && *c != '\u{fffd}').collect();
    let text = text.trim();
    (!text.is_empty()).then(|| text.chars().take(256).collect())
}

/// Why what was measured is not what is here; `None` where nothing says so. A file is wherever its file system puts it: of
/// it nothing is known but its length.
pub(crate) fn differs(measured: &Identity, here: &Identity) -> Option<String> {
    if here.medium != "device" {
        return None;
    }
    if measured.medium != "device" {
        return Some(format!("it is of a {}, {}", measured.medium, measured.path));
    }
    let both = |one: &str, other: &str| !one.is_empty() && !other.is_empty() && one != other;
    if both(&measured.model, &here.model) {
        return Some(format!("it is of a {}, and this is a {}", measured.model, here.model));
    }
    if both(&measured.serial, &here.serial) {
        return Some(format!("it is of number {}, and this is {}", measured.serial, here.serial));
    }
    (measured.bytes != here.bytes)
        .then(|| format!("it is of a device of {} bytes, and this has {}", measured.bytes.0, here.bytes.0))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::profile_file::tests::paper;

    #[test]
    fn what_the_system_tells_of_disks_and_partitions_is_taken_over() {
        let folder = tempfile::tempdir().unwrap();
        let disk = folder.path().join("sdb");
        let part = disk.join("sdb2");
        fs::create_dir_all(disk.join("device")).unwrap();
        fs::create_dir_all(disk.join("queue")).unwrap();
        fs::create_dir_all(&part).unwrap();
        fs::write(disk.join("device/model"), "WDC WD15EARS    \n").unwrap();
        fs::write(disk.join("device/vpd_pg80"), b"\0\x80\0\x08WD-12345").unwrap();
        fs::write(disk.join("queue/rotational"), "1\n").unwrap();
        fs::write(part.join("partition"), "2\n").unwrap();
        let whole = told(&disk, Identity::default());
        assert_eq!((whole.model.as_str(), whole.serial.as_str()), ("WDC WD15EARS", "WD-12345"));
        assert_eq!(whole.rotational, Some(true));
        assert_eq!(told(&part, Identity::default()).serial, "WD-12345 partition 2");
        let file = of(&disk.join("device/model"), 17);
        assert_eq!((file.medium.as_str(), file.bytes), ("file", ByteSize(17)));
        assert!(file.path.ends_with("device/model"));
    }

    // Promise 1: nothing is promised on the strength of another device.
    #[test]
    fn another_device_is_told_by_whatever_is_known_of_it() {
        let paper = paper().device;
        assert_eq!(differs(&paper, &paper), None);
        let unknown = Identity {
            model: String::new(),
            serial: String::new(),
            path: "/dev/sdz".to_owned(),
            ..paper.clone()
        };
        assert_eq!(differs(&paper, &unknown), None, "paths change");
        for (other, wanted) in [
            (
                Identity { serial: "X".to_owned(), ..paper.clone() },
                "it is of number WD-EXAMPLE, and this is X",
            ),
            (Identity { model: "Y".to_owned(), ..paper.clone() }, "it is of a WDC WD15EARS, and this is a Y"),
            (Identity { bytes: ByteSize(4096), ..unknown }, "and this has 4096"),
        ] {
            assert!(differs(&paper, &other).unwrap().contains(wanted), "{other:?}");
        }
        let file = Identity { medium: "file".to_owned(), path: "/a".to_owned(), ..paper.clone() };
        assert_eq!(differs(&file, &paper), Some("it is of a file, /a".to_owned()));
        assert_eq!(differs(&paper, &file), None);
    }
}
