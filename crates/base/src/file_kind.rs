//! Kinds of recordings in files that are neither rings nor datasets, told by their first bytes, and how to use them.

use std::fs::File;
use std::io::Read as _;
use std::path::Path;

/// Kind of a file by its first bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FileKind {
    /// Capture file of libpcap.
    Pcap,
    /// Capture file of Wireshark.
    Pcapng,
    /// Container file of robotics, MCAP.
    Mcap,
    /// Bag of ROS, version 1.
    Bag,
    /// Table file of Parquet.
    Parquet,
    /// File compressed by gzip.
    Gzip,
    /// File compressed by zstd.
    Zstd,
}

impl FileKind {
    /// Bytes that tell every kind.
    pub const BYTES: usize = 9;

    /// Kind of a file that begins with these bytes, of which four may be enough.
    pub fn of_bytes(first: &[u8]) -> Option<Self> {
        const BAG: &[u8] = b"#ROSBAG V";
        Some(match first {
            [0xd4, 0xc3, 0xb2, 0xa1, ..]
            | [0xa1, 0xb2, 0xc3, 0xd4, ..]
            | [0x4d, 0x3c, 0xb2, 0xa1, ..]
            | [0xa1, 0xb2, 0x3c, 0x4d, ..] => Self::Pcap,
            [0x0a, 0x0d, 0x0d, 0x0a, ..] => Self::Pcapng,
            [0x89, b'M', b'C', b'A', ..] => Self::Mcap,
            [b'P', b'A', b'R', b'1', ..] => Self::Parquet,
            [0x1f, 0x8b, 8, ..] => Self::Gzip,
            [0x28, 0xb5, 0x2f, 0xfd, ..] => Self::Zstd,
            bytes if bytes.len() >= 4 && BAG.starts_with(&bytes[..bytes.len().min(BAG.len())]) => Self::Bag,
            _ => return None,
        })
    }

    /// Kind of a regular file; `None` for other files, and for those that cannot be read.
    pub fn of(path: &Path) -> Option<Self> {
        if !std::fs::metadata(path).ok()?.is_file() {
            return None;
        }
        let mut first = Vec::with_capacity(Self::BYTES);
        File::open(path).ok()?.take(Self::BYTES as u64).read_to_end(&mut first).ok()?;
        Self::of_bytes(&first)
    }

    /// Name of the kind, with its article.
    pub fn name(self) -> &'static str {
        match self {
            Self::Pcap => "a pcap file",
            Self::Pcapng => "a pcapng file",
            Self::Mcap => "an MCAP file",
            Self::Bag => "a ROS 1 bag",
            Self::Parquet => "a Parquet file",
            Self::Gzip => "a file compressed by gzip",
            Self::Zstd => "a file compressed by zstd",
        }
    }

    /// Command that makes a dataset of such a file, or other programs that read it.
    pub fn advice(self, path: &Path) -> String {
        let mut stem = path.file_stem().unwrap_or_default().to_owned();
        if self == Self::Mcap {
            stem.push("-dataset");
        }
        let converted = Path::new(Path::new(&stem).file_stem().unwrap_or_default()).with_extension("mcap");
        let command = format!("`holdfast dataset convert {} -o {}`", path.display(), converted.display());
        match self {
            Self::Parquet => {
                "`holdfast dataset convert` writes such files, and does not read them; DuckDB and other programs do".to_owned()
            }
            Self::Gzip | Self::Zstd => format!("{command} makes a dataset of a capture in it"),
            _ => format!("{command} makes a dataset of it"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kinds_are_told_by_their_first_bytes() {
        for (first, kind) in [
            (&b"\xd4\xc3\xb2\xa1\x02\0"[..], Some(FileKind::Pcap)),
            (b"\xa1\xb2\x3c\x4d", Some(FileKind::Pcap)),
            (b"\n\r\r\n\0", Some(FileKind::Pcapng)),
            (b"\x89MCAP0\r\n", Some(FileKind::Mcap)),
            (b"#ROSBAG V2.0\n", Some(FileKind::Bag)),
            (b"#ROS", Some(FileKind::Bag)),
            (b"#ROSTER", None),
            (b"PAR1", Some(FileKind::Parquet)),
            (b"\x1f\x8b\x08\0", Some(FileKind::Gzip)),
            (b"\x28\xb5\x2f\xfd", Some(FileKind::Zstd)),
            (b"#!", None),
            (b"", None),
        ] {
            assert_eq!(FileKind::of_bytes(first), kind, "{first:?}");
        }
    }

    #[test]
    fn advice_names_the_command() {
        for (kind, path, advice) in [
            (
                FileKind::Pcap,
                "in/run1.pcap",
                "`holdfast dataset convert in/run1.pcap -o run1.mcap` makes a dataset of it",
            ),
            (
                FileKind::Gzip,
                "run1.pcap.gz",
                "`holdfast dataset convert run1.pcap.gz -o run1.mcap` makes a dataset of a capture in it",
            ),
            (
                FileKind::Mcap,
                "run1.mcap",
                "`holdfast dataset convert run1.mcap -o run1-dataset.mcap` makes a dataset of it",
            ),
        ] {
            assert_eq!(kind.advice(Path::new(path)), advice);
        }
        assert!(FileKind::Parquet.advice(Path::new("a.parquet")).contains("DuckDB"));
    }
}
