//! Recognition of a device's contents: file systems, volumes, partition tables, another ring, any data. The
//! contents are only told apart, never read further; the caller decides. `spread` lists where data without a
//! mark is searched.

use super::Device;
use super::spread::{PIECE, places};
use crate::Buffer;
use crate::disk::{DiskError, Fault};
use holdfast_base::BLOCK;
use std::fmt;
use std::os::fd::AsFd;

/// Bytes looked at, and wiped, at each end: the largest place at which anything known keeps its mark.
const ENDS: u64 = PIECE as u64;

/// Where the superblock copies of a ring start.
const COPIES: [usize; 4] = [0, 256 << 10, 512 << 10, 768 << 10];
const RING: &[u8] = b"HFSUPER1";

/// What journal commits and slots of a ring begin with, always at the start of a block.
const PARTS: [&[u8]; 2] = [b"HFJRNL01", b"HFSLOT01"];
const ZEROS: [u8; BLOCK] = [0; BLOCK];

/// What was found on a device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Foreign {
    /// A Holdfast ring.
    Ring,
    /// Journal or slots of a Holdfast ring, without any of its superblocks.
    LostRing,
    /// Something with a known mark.
    Known(&'static str),
    /// Bytes that are not zero, of no known kind.
    Data,
}

impl fmt::Display for Foreign {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Ring => f.write_str("a Holdfast ring"),
            Self::LostRing => f.write_str("what is left of a Holdfast ring, without its superblocks"),
            Self::Known(name) => f.write_str(name),
            Self::Data => f.write_str("data of an unknown kind"),
        }
    }
}

/// Marks that stand at a fixed place. What is more telling comes first: a bootable image may look like several.
const MARKS: &[(usize, &[u8], &str)] = &[
    (512, b"EFI PART", "a GPT partition table"),
    (4096, b"EFI PART", "a GPT partition table"),
    (0, b"HFIXDRV1", "an index drive of Holdfast"),
    (0, b"LUKS\xba\xbe", "a LUKS encrypted volume"),
    (16 << 10, b"SKUL\xba\xbe", "a LUKS encrypted volume"),
    (32 << 10, b"SKUL\xba\xbe", "a LUKS encrypted volume"),
    (3, b"-FVE-FS-", "a BitLocker encrypted volume"),
    (0, b"\xfc\x4e\x2b\xa9", "a member of a Linux RAID (md)"),
    (4096, b"\xfc\x4e\x2b\xa9", "a member of a Linux RAID (md)"),
    (65_600, b"_BHRfS_M", "a btrfs file system"),
    (0, b"XFSB", "an XFS file system"),
    (1024, b"\x10\x20\xf5\xf2", "an F2FS file system"),
    (32, b"NXSB", "an APFS container"),
    (4120, b"\xc6\x85\x73\xf6\x4e\x1a\x45\xca", "a bcache or bcachefs device"),
    (0, b"hsqs", "a squashfs image"),
    (32_769, b"CD001", "an ISO 9660 image"),
    (32_769, b"BEA01", "a UDF file system"),
    (1024, b"H+\x00\x04", "an HFS+ file system"),
    (1024, b"HX\x00\x05", "an HFS+ file system"),
    (3, b"EXFAT   ", "an exFAT file system"),
    (3, b"NTFS    ", "an NTFS file system"),
    (54, b"FAT12   ", "a FAT file system"),
    (54, b"FAT16   ", "a FAT file system"),
    (54, b"FAT     ", "a FAT file system"),
    (82, b"FAT32   ", "a FAT file system"),
];

/// Looks for what `device` carries; `None` when nothing but zeros was seen. A small device is read whole, a large one at
/// its ends and at places spread over it: `None` does not prove that it is empty.
pub fn signature(device: &Device) -> Result<Option<Foreign>, DiskError> {
    let info = device.info();
    let bytes = info.bytes;
    if bytes == 0 {
        // A file shorter than a block cannot be read directly; it is somebody's all the same.
        let stat = rustix::fs::fstat(device.as_fd());
        let stat = stat.map_err(|cause| info.error("read", 0, 0, crate::fault::of(cause)))?;
        return Ok((stat.st_size > 0).then_some(Foreign::Data));
    }
    let mut head = room(device, 0)?;
    let head_len = ENDS.min(bytes) as usize;
    device.read(0, &mut head, head_len)?;
    let head = &head[..head_len];
    let tail_at = bytes.saturating_sub(ENDS);
    let mut tail = room(device, tail_at)?;
    device.read(tail_at, &mut tail, head_len)?;
    let tail = &tail[..head_len];

    let found = ring(head).or_else(|| known(head).or_else(|| at_the_end(tail)).map(Foreign::Known));
    if found.is_some() {
        return Ok(found);
    }
    let mut seen = Seen::default();
    seen.look(head);
    seen.look(tail);
    let mut piece = room(device, 0)?;
    for (at, len) in places(bytes) {
        device.read(at, &mut piece, len)?;
        seen.look(&piece[..len]);
    }
    Ok(seen.verdict())
}

/// What the places without a known mark showed.
#[derive(Default)]
struct Seen {
    data: bool,
    ring: bool,
}

impl Seen {
    fn look(&mut self, bytes: &[u8]) {
        for block in bytes.chunks(BLOCK).filter(|block| **block != ZEROS[..block.len()]) {
            self.data = true;
            self.ring |= PARTS.iter().any(|mark| block.starts_with(mark));
        }
    }

    fn verdict(&self) -> Option<Foreign> {
        match self {
            Self { ring: true, .. } => Some(Foreign::LostRing),
            Self { data: true, .. } => Some(Foreign::Data),
            _ => None,
        }
    }
}

/// Overwrites both ends with zeros, so that nobody takes the device for what it carried before.
pub fn wipe(device: &Device) -> Result<(), DiskError> {
    let bytes = device.info().bytes;
    let len = ENDS.min(bytes);
    if len > 0 {
        let zeros = room(device, 0)?;
        device.write(0, &zeros, len as usize)?;
        device.write(bytes - len, &zeros, len as usize)?;
    }
    device.sync()
}

fn room(device: &Device, offset: u64) -> Result<Buffer, DiskError> {
    Buffer::aligned(PIECE).map_err(|_| device.info().error("read", offset, PIECE as u64, Fault::Os(12)))
}

fn ring(head: &[u8]) -> Option<Foreign> {
    COPIES.iter().any(|at| stands(head, *at, RING)).then_some(Foreign::Ring)
}

fn stands(bytes: &[u8], at: usize, mark: &[u8]) -> bool {
    bytes.get(at..at + mark.len()) == Some(mark)
}

fn word(bytes: &[u8], at: usize) -> u32 {
    bytes.get(at..at + 4).map_or(0, |word| u32::from_le_bytes([word[0], word[1], word[2], word[3]]))
}

fn known(head: &[u8]) -> Option<&'static str> {
    let volume = (0..4).any(|sector| {
        stands(head, sector * 512, b"LABELONE") && stands(head, sector * 512 + 24, b"LVM2 001")
    });
    let swap = [4096, 8192, 16_384, 65_536]
        .into_iter()
        .any(|page| stands(head, page - 10, b"SWAPSPACE2") || stands(head, page - 10, b"SWAP-SPACE"));
    let marked = || MARKS.iter().find(|(at, mark, _)| stands(head, *at, mark)).map(|(_, _, name)| *name);
    if volume {
        return Some("an LVM2 physical volume");
    }
    if zfs(head) {
        return Some("a member of a ZFS pool");
    }
    if swap {
        return Some("swap space");
    }
    marked().or_else(|| ext(head)).or_else(|| partitioned(head).then_some("an MBR partition table"))
}

/// ext2, ext3 and ext4 share a mark and differ by features (fs/ext4/ext4.h).
fn ext(head: &[u8]) -> Option<&'static str> {
    const JOURNAL: u32 = 0x4;
    // Extents, 64 bit, flexible groups, inline data and what came with them.
    const NEWER: u32 = 0x40 | 0x80 | 0x100 | 0x200 | 0x400 | 0x8000;
    if !stands(head, 0x438, b"\x53\xef") {
        return None;
    }
    Some(if word(head, 0x460) & NEWER != 0 {
        "an ext4 file system"
    } else if word(head, 0x45c) & JOURNAL != 0 {
        "an ext3 file system"
    } else {
        "an ext2 file system"
    })
}

/// A boot sector's mark alone says little: one entry at least must look like a partition.
fn partitioned(head: &[u8]) -> bool {
    stands(head, 510, b"\x55\xaa")
        && (0..4).map(|entry| 446 + entry * 16).any(|at| {
            matches!(head[at], 0 | 0x80)
                && head[at + 4] != 0
                && word(head, at + 8) != 0
                && word(head, at + 12) != 0
        })
}

/// ZFS keeps 256 KiB labels, two at each end, each with a ring of uberblocks in its second half, in the byte order
/// of the machine that wrote it.
fn zfs(part: &[u8]) -> bool {
    part.chunks_exact(256 << 10).any(|label| {
        label[128 << 10..].chunks_exact(1024).any(|block| {
            stands(block, 0, b"\x0c\xb1\xba\x00\x00\x00\x00\x00")
                || stands(block, 0, b"\x00\x00\x00\x00\x00\xba\xb1\x0c")
        })
    })
}

/// Marks that are counted from the end of the device, which is the end of `tail`.
fn at_the_end(tail: &[u8]) -> Option<&'static str> {
    let len = tail.len();
    let from_end = |back: usize, mark: &[u8]| back <= len && stands(tail, len - back, mark);
    // md 1.0 stands 8 to 12 KiB before the end, md 0.90 in the last whole 64 KiB before the last 64 KiB.
    let raid = (8..=12).any(|kib| from_end(kib << 10, b"\xfc\x4e\x2b\xa9"))
        || (64..=128).step_by(4).any(|kib| from_end(kib << 10, b"\xfc\x4e\x2b\xa9"));
    if raid {
        return Some("a member of a Linux RAID (md)");
    }
    if from_end(512, b"EFI PART") || from_end(4096, b"EFI PART") {
        return Some("the backup of a GPT partition table");
    }
    // Labels start at multiples of 256 KiB of the device, which may lie anywhere in the tail.
    (0..256)
        .any(|shift| tail.len() > shift << 10 && zfs(&tail[shift << 10..]))
        .then_some("a member of a ZFS pool")
}
