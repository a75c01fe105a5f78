//! Users of a block device that refuses to be opened exclusively: mounts, swap, and devices built on it.

use std::path::Path;

/// Says in words who uses the block device `major:minor`, as far as the system tells.
pub(super) fn user_of(major: u32, minor: u32) -> Option<String> {
    let mounts = std::fs::read_to_string("/proc/self/mountinfo").unwrap_or_default();
    let swaps = std::fs::read_to_string("/proc/swaps").unwrap_or_default();
    let own = (format!("{major}:{minor}"), None);
    // A claim on a partition blocks the whole disk too.
    let all = std::iter::once(own)
        .chain(partitions(major, minor).into_iter().map(|(numbers, name)| (numbers, Some(name))));
    for (numbers, partition) in all {
        let found = mounted(&mounts, &numbers)
            .map(|place| format!("mounted at {place}"))
            .or_else(|| swapped(&swaps, &numbers).then(|| "used as swap".to_owned()))
            .or_else(|| built_upon(&numbers).map(|name| format!("part of {name}")));
        if let Some(found) = found {
            return Some(match partition {
                Some(name) => format!("its partition {name} is {found}"),
                None => format!("it is {found}"),
            });
        }
    }
    None
}

/// Who else writes to the disk that the partition at a path is of, as far as the system tells; `None` for what is no
/// partition.
pub(super) fn shared_with(path: &Path) -> Option<String> {
    let stat = rustix::fs::stat(path).ok()?;
    if rustix::fs::FileType::from_raw_mode(stat.st_mode) != rustix::fs::FileType::BlockDevice {
        return None;
    }
    let (major, minor) = (rustix::fs::major(stat.st_rdev), rustix::fs::minor(stat.st_rdev));
    let place = std::fs::canonicalize(format!("/sys/dev/block/{major}:{minor}")).ok()?;
    place.join("partition").exists().then_some(())?;
    let disk = std::fs::read_to_string(place.parent()?.join("dev")).ok()?;
    let (major, minor) = disk.trim_end().split_once(':')?;
    user_of(major.parse().ok()?, minor.parse().ok()?)
}

/// The mount point of a device in the text of `/proc/self/mountinfo`.
fn mounted(mounts: &str, numbers: &str) -> Option<String> {
    let line = mounts.lines().find(|line| line.split(' ').nth(2) == Some(numbers))?;
    line.split(' ').nth(4).map(|place| place.replace("\\040", " "))
}

fn swapped(swaps: &str, numbers: &str) -> bool {
    swaps.lines().skip(1).filter_map(|line| line.split_whitespace().next()).any(|path| {
        let Ok(stat) = rustix::fs::stat(path) else { return false };
        format!("{}:{}", rustix::fs::major(stat.st_rdev), rustix::fs::minor(stat.st_rdev)) == numbers
    })
}

/// The RAID, volume or cache device that is built upon it.
fn built_upon(numbers: &str) -> Option<String> {
    let holders = std::fs::read_dir(format!("/sys/dev/block/{numbers}/holders")).ok()?;
    let holder = holders.flatten().next()?.file_name().to_string_lossy().into_owned();
    let mapped = std::fs::read_to_string(format!("/sys/block/{holder}/dm/name"));
    Some(match mapped {
        Ok(name) => format!("/dev/mapper/{}", name.trim_end()),
        Err(_) => format!("/dev/{holder}"),
    })
}

fn partitions(major: u32, minor: u32) -> Vec<(String, String)> {
    let Ok(entries) = std::fs::read_dir(format!("/sys/dev/block/{major}:{minor}")) else { return Vec::new() };
    let numbers = |path: &Path| {
        path.join("partition").exists().then_some(())?;
        Some(std::fs::read_to_string(path.join("dev")).ok()?.trim_end().to_owned())
    };
    entries
        .flatten()
        .filter_map(|entry| Some((numbers(&entry.path())?, format!("/dev/{}", entry.file_name().display()))))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mount_is_found_by_its_device() {
        let mounts =
            "22 1 254:0 / / rw - ext4 /dev/vda rw\n30 22 7:3 / /mnt/my\\040disk rw - xfs /dev/loop3 rw";
        assert_eq!(mounted(mounts, "7:3"), Some("/mnt/my disk".to_owned()));
        assert_eq!(mounted(mounts, "7:30"), None);
    }
}
