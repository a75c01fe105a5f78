//! Tests of ownership: one owner at a time, nothing overwritten unseen, and the right message each time
//! (promise 8).
#![allow(clippy::unwrap_used)] // helpers of tests are tests too

use crate::common;

use common::{Loop, Mount, tool};
use holdfast_media::{
    Access, CreateError, Device, Disk, Foreign, OpenError, Prefill, RealDisk, create_file, signature, wipe,
};
use std::io::{BufRead, BufReader};
use std::os::unix::fs::{FileExt, MetadataExt, PermissionsExt};
use std::path::Path;
use std::process::{Command, Stdio};

const MIB: u64 = 1 << 20;
const HELD: &str = "HOLDFAST_TEST_HOLD";

/// Not a test by itself: the other process of the test below, which owns a file until its input ends.
#[test]
fn holds_a_file_for_another_test() {
    let Some(path) = std::env::var_os(HELD) else { return };
    let device = Device::open(Path::new(&path), Access::Own).unwrap();
    let mut disk = RealDisk::new(device, &[], 8);
    disk.submit(common::write(1, 0, 1 << 20, 1, true)).unwrap();
    println!("\nheld");
    std::io::stdin().lines().for_each(drop);
}

#[test]
fn the_second_owner_is_told_the_name_and_pid_of_the_first() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("ring");
    drop(create_file(&path, MIB, Prefill::No).unwrap());
    let device = Loop::over(&path);
    for path in std::iter::once(&path).chain(device.as_ref().map(|device| &device.0)) {
        let mut other = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "device::holds_a_file_for_another_test", "--nocapture"])
            .env(HELD, path)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut lines = BufReader::new(other.stdout.take().unwrap()).lines().map(Result::unwrap);
        assert!(lines.any(|line| line == "held"));
        let refused = Device::open(path, Access::Own).unwrap_err();
        let OpenError::InUse { holder: Some(holder), .. } = &refused else { panic!("{refused}") };
        assert_eq!(holder.pid, other.id());
        let own = std::env::current_exe().unwrap();
        let name = own.file_name().unwrap().to_str().unwrap();
        assert!(name.len() > 15, "longer than what the kernel keeps of a name: {name}");
        let wanted = format!("{}: in use by {name} (pid {});", path.display(), other.id());
        assert!(refused.to_string().starts_with(&wanted), "{refused}");
        Device::open(path, Access::Look).unwrap();
        // Killed, it leaves nothing behind that would lock out its successor.
        other.kill().unwrap();
        other.wait().unwrap();
        Device::open(path, Access::Own).unwrap();
    }
}

#[test]
fn one_who_only_looks_under_a_shared_lock_is_waited_for() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("ring");
    drop(create_file(&path, MIB, Prefill::No).unwrap());
    let looking = std::fs::File::open(&path).unwrap();
    looking.lock_shared().unwrap();
    std::thread::scope(|scope| {
        let owner = scope.spawn(|| Device::open(&path, Access::Own).map(drop));
        // Released after the owner has come at least as far as opening the file: it then asks again.
        while !open_elsewhere(&path) && !owner.is_finished() {
            std::thread::yield_now();
        }
        looking.unlock().unwrap();
        owner.join().unwrap().unwrap();
    });
}

/// Whether this process has the file open for writing.
fn open_elsewhere(path: &Path) -> bool {
    std::fs::read_dir("/proc/self/fd").unwrap().flatten().any(|entry| {
        let same = std::fs::read_link(entry.path()).is_ok_and(|target| target == path);
        same && entry.metadata().is_ok_and(|meta| meta.mode() & 0o200 != 0)
    })
}

#[test]
fn a_mounted_device_is_refused_with_its_mount_point() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("disk");
    std::fs::File::create(&path).unwrap().set_len(8 * MIB).unwrap();
    let Some(device) = Loop::over(&path) else { return };
    let place = folder.path().join("place");
    std::fs::create_dir(&place).unwrap();
    let (device, place) = (device.0.to_str().unwrap(), place.to_str().unwrap());
    if tool("mkfs.ext4", &["-q", device]).is_none() || tool("mount", &[device, place]).is_none() {
        println!("skipped: no mkfs.ext4, or mounting is forbidden");
        return;
    }
    let refused = Device::open(Path::new(device), Access::Own).unwrap_err().to_string();
    tool("umount", &[place]);
    assert_eq!(refused, format!("{device}: busy: it is mounted at {place}; release it there first"));
}

#[test]
fn what_is_no_place_for_a_ring_is_named() {
    let folder = tempfile::tempdir().unwrap();
    let said = |path: &Path| Device::open(path, Access::Own).unwrap_err().to_string();
    assert!(said(folder.path()).contains("is a directory; a ring lives on"));
    assert!(said(Path::new("/dev/null")).contains("is a character device"));
    assert!(said(&folder.path().join("none")).contains("not found"));
    if !common::root() {
        let path = folder.path().join("foreign");
        drop(create_file(&path, MIB, Prefill::No).unwrap());
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o000)).unwrap();
        assert!(said(&path).contains("permission denied; run as a user who may read and write it"));
    }
}

#[test]
fn a_new_file_is_private_reserved_and_never_replaces_another() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("ring");
    let device = create_file(&path, 4 * MIB, Prefill::No).unwrap();
    let meta = std::fs::metadata(&path).unwrap();
    assert_eq!((meta.len(), meta.mode() & 0o777), (4 * MIB, 0o600));
    assert!(meta.blocks() * 512 >= 4 * MIB, "its space is there");
    assert!(matches!(create_file(&path, MIB, Prefill::No), Err(CreateError::Exists { .. })));
    assert_eq!(std::fs::metadata(&path).unwrap().len(), 4 * MIB);
    assert!(matches!(create_file(&path, 5000, Prefill::No), Err(CreateError::Size { .. })));
    assert_eq!(signature(&device).unwrap(), None);
    let mut told = Vec::new();
    drop(create_file(&folder.path().join("full"), 20 * MIB, Prefill::Yes(&mut |at| told.push(at))).unwrap());
    assert_eq!(told, [8 * MIB, 16 * MIB, 20 * MIB]);
}

#[test]
fn a_file_system_that_is_too_small_is_told_and_nothing_is_left() {
    let Some(mount) = Mount::new("tmpfs", "size=1m") else { return };
    let path = mount.path().join("ring");
    let said = create_file(&path, 2 * MIB, Prefill::No).unwrap_err().to_string();
    let wanted = format!("{}: 2 MiB do not fit: the file system has 1 MiB free;", path.display());
    assert!(said.starts_with(&wanted), "{said}");
    assert!(!path.exists());
    let warnings = create_file(&path, MIB / 2, Prefill::No).unwrap().warnings().join("\n");
    assert!(warnings.contains("no guarantee on tmpfs: it is memory"), "{warnings}");
}

/// Bytes and where they stand.
type Marks = Vec<(u64, Vec<u8>)>;

/// Marks at their places, and the name that they must get.
fn handmade() -> Vec<(&'static str, Marks)> {
    let one = |at: u64, mark: &[u8]| vec![(at, mark.to_vec())];
    let end = 4 * MIB;
    let mut mbr = vec![0; 512];
    mbr[446..462].copy_from_slice(&[0x80, 0, 2, 0, 0x83, 0, 0, 0, 0, 8, 0, 0, 0, 0x10, 0, 0]);
    mbr[510..].copy_from_slice(b"\x55\xaa");
    let ext = |compat: u8, incompat: u8| {
        vec![(0x438, b"\x53\xef".to_vec()), (0x45c, vec![compat]), (0x460, vec![incompat])]
    };
    vec![
        ("an ext2 file system", ext(0x38, 0x02)),
        ("an ext3 file system", ext(0x3c, 0x06)),
        ("an ext4 file system", ext(0x3c, 0x42)),
        ("an XFS file system", one(0, b"XFSB")),
        ("a btrfs file system", one(0x10040, b"_BHRfS_M")),
        ("a FAT file system", vec![(54, b"FAT16   ".to_vec()), (510, b"\x55\xaa".to_vec())]),
        ("a FAT file system", vec![(82, b"FAT32   ".to_vec()), (510, b"\x55\xaa".to_vec())]),
        ("an exFAT file system", one(3, b"EXFAT   ")),
        ("an NTFS file system", one(3, b"NTFS    ")),
        ("swap space", one(4086, b"SWAPSPACE2")),
        ("a LUKS encrypted volume", one(0, b"LUKS\xba\xbe\x00\x02")),
        ("a LUKS encrypted volume", one(16 << 10, b"SKUL\xba\xbe")),
        ("an LVM2 physical volume", vec![(512, b"LABELONE".to_vec()), (536, b"LVM2 001".to_vec())]),
        ("a member of a Linux RAID (md)", one(4096, b"\xfc\x4e\x2b\xa9\x01")),
        ("a member of a Linux RAID (md)", one(end - (8 << 10), b"\xfc\x4e\x2b\xa9\x01")),
        ("a member of a Linux RAID (md)", one(end - (64 << 10), b"\xfc\x4e\x2b\xa9")),
        ("a member of a ZFS pool", one((128 << 10) + 5 * 1024, b"\x0c\xb1\xba\x00\x00\x00\x00\x00")),
        ("a member of a ZFS pool", one(end - (128 << 10), b"\x00\x00\x00\x00\x00\xba\xb1\x0c")),
        ("a squashfs image", one(0, b"hsqs")),
        ("an ISO 9660 image", vec![(0x8001, b"CD001".to_vec()), (0, mbr.clone())]),
        ("a GPT partition table", vec![(0, mbr.clone()), (512, b"EFI PART".to_vec())]),
        ("the backup of a GPT partition table", one(end - 512, b"EFI PART")),
        ("an MBR partition table", one(0, &mbr)),
        ("data of an unknown kind", one(700_000, b"x")),
        ("data of an unknown kind", one(510, b"\x55\xaa")),
        ("a Holdfast ring", one(0, b"HFSUPER1")),
        ("a Holdfast ring", vec![(768 << 10, b"HFSUPER1".to_vec()), (0, b"XFSB".to_vec())]),
    ]
}

#[test]
fn what_a_device_carries_is_recognised_and_wiped() {
    let folder = tempfile::tempdir().unwrap();
    for (number, (name, marks)) in handmade().into_iter().enumerate() {
        let path = folder.path().join(number.to_string());
        let device = create_file(&path, 4 * MIB, Prefill::No).unwrap();
        let file = std::fs::OpenOptions::new().write(true).open(&path).unwrap();
        for (at, mark) in marks {
            file.write_all_at(&mark, at).unwrap();
        }
        let found = signature(&device).unwrap().map(|found| found.to_string());
        assert_eq!(found.as_deref(), Some(name), "image {number}");
        wipe(&device).unwrap();
        assert_eq!(signature(&device).unwrap(), None, "image {number}");
        std::fs::remove_file(path).unwrap();
    }
    let short = folder.path().join("note");
    std::fs::write(&short, "shorter than a block").unwrap();
    let short = Device::open(&short, Access::Look).unwrap();
    assert_eq!(signature(&short).unwrap(), Some(Foreign::Data));
}

/// A sparse file with something at one place.
fn carries(path: &Path, bytes: u64, at: u64, mark: &[u8]) -> Option<Foreign> {
    let file = std::fs::File::create(path).unwrap();
    file.set_len(bytes).unwrap();
    file.write_all_at(mark, at).unwrap();
    signature(&Device::open(path, Access::Look).unwrap()).unwrap()
}

#[test]
fn a_ring_without_superblocks_is_suspected_whatever_its_slots() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("disk");
    for slot in (16..=28).map(|log2| 1_u64 << log2) {
        for bytes in [MIB + 9 * slot, 70 * slot.max(MIB)] {
            for (part, mark) in [(0, b"HFJRNL01"), (2, b"HFJRNL01"), (4, b"HFSLOT01"), (7, b"HFSLOT01")] {
                let found = carries(&path, bytes, MIB + part * slot, mark);
                assert_eq!(found, Some(Foreign::LostRing), "part {part}, slots of {slot}, device of {bytes}");
            }
        }
        // Its beginning is gone altogether, and it has the slot size that rings of its size usually have.
        let found = carries(&path, 100 * slot, MIB + 60 * slot, b"HFSLOT01");
        assert_eq!(found, Some(Foreign::LostRing), "slots of {slot}");
    }
    assert_eq!(
        carries(&path, 8 * MIB, 2 * MIB + 512, b"HFSLOT01"),
        Some(Foreign::Data),
        "not where a slot begins"
    );
}

#[test]
fn data_is_seen_wherever_it_lies() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("disk");
    for (bytes, at, len) in [
        (64 * MIB, 2 * MIB, 1),
        (64 * MIB, 10 * MIB + 77, 1),
        (64 * MIB, 64 * MIB - 1, 1),
        (10_240 * MIB, 15 * MIB, 1),
        (10_240 * MIB, 10_240 * MIB - 1, 1),
        // A small part of a large device.
        (10_240 * MIB, 5000 * MIB, 41 << 20),
    ] {
        assert_eq!(carries(&path, bytes, at, &vec![7; len]), Some(Foreign::Data), "{len} bytes at {at}");
    }
    std::fs::File::create(&path).unwrap().set_len(10_240 * MIB).unwrap();
    assert_eq!(signature(&Device::open(&path, Access::Look).unwrap()).unwrap(), None);
}

#[test]
fn what_real_tools_make_is_recognised() {
    let folder = tempfile::tempdir().unwrap();
    let tools: &[(&str, &[&str], &str)] = &[
        ("mke2fs", &["-q", "-F", "-t", "ext2"], "an ext2 file system"),
        ("mke2fs", &["-q", "-F", "-t", "ext3"], "an ext3 file system"),
        ("mke2fs", &["-q", "-F", "-t", "ext4"], "an ext4 file system"),
        ("mkfs.xfs", &["-q", "-f"], "an XFS file system"),
        ("mkfs.btrfs", &["-q", "-f"], "a btrfs file system"),
        ("mkfs.vfat", &[], "a FAT file system"),
        ("mkswap", &["-q"], "swap space"),
    ];
    for (number, (program, arguments, name)) in tools.iter().enumerate() {
        let path = folder.path().join(number.to_string());
        std::fs::File::create(&path).unwrap().set_len(320 * MIB).unwrap();
        let mut arguments = arguments.to_vec();
        arguments.push(path.to_str().unwrap());
        if tool(program, &arguments).is_none() {
            println!("skipped: {program} is not there");
            continue;
        }
        let device = Device::open(&path, Access::Look).unwrap();
        let found = signature(&device).unwrap().map(|found| found.to_string());
        assert_eq!(found.as_deref(), Some(*name), "{program}");
    }
}
