//! Compression of chunks: zstd with a level, LZ4 or none, by the names that MCAP gives them.

use std::fmt;
use std::io::{self, Read as _, Write as _};
use std::str::FromStr;

/// Compression of a dataset's chunks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Compression {
    /// No compression at all.
    None,
    /// LZ4 frames: fast, and larger.
    Lz4,
    /// Zstandard at a level from 1 (fast) to 19 (small).
    Zstd(i32),
}

impl Default for Compression {
    fn default() -> Self {
        Self::Zstd(3)
    }
}

impl FromStr for Compression {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let wrong = || format!("`{text}` is no compression: give zstd, zstd:LEVEL (1 to 19), lz4 or none");
        match text.split_once(':') {
            None if text == "none" => Ok(Self::None),
            None if text == "lz4" => Ok(Self::Lz4),
            None if text == "zstd" => Ok(Self::default()),
            Some(("zstd", level)) => {
                let level: i32 = level.parse().map_err(|_| wrong())?;
                if (1..=19).contains(&level) { Ok(Self::Zstd(level)) } else { Err(wrong()) }
            }
            _ => Err(wrong()),
        }
    }
}

impl fmt::Display for Compression {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::None => f.write_str("none"),
            Self::Lz4 => f.write_str("lz4"),
            Self::Zstd(level) => write!(f, "zstd:{level}"),
        }
    }
}

impl Compression {
    /// Name in a chunk's header (MCAP specification, appendix "Well-known compression formats").
    pub(crate) fn mcap_name(self) -> &'static str {
        match self {
            Self::None => "",
            Self::Lz4 => "lz4",
            Self::Zstd(_) => "zstd",
        }
    }

    /// Compresses the records of a chunk.
    pub(crate) fn compress(self, bytes: &[u8]) -> io::Result<Vec<u8>> {
        match self {
            Self::None => Ok(bytes.to_vec()),
            Self::Lz4 => {
                let mut encoder = lz4_flex::frame::FrameEncoder::new(Vec::new());
                encoder.write_all(bytes)?;
                encoder.finish().map_err(io::Error::other)
            }
            Self::Zstd(level) => zstd::bulk::compress(bytes, level),
        }
    }
}

/// Decompresses a chunk's records, which must come to exactly `size` bytes.
pub(crate) fn decompress(name: &str, bytes: &[u8], size: usize) -> io::Result<Vec<u8>> {
    if size > MOST_RECORDS {
        return Err(io::Error::other(format!("it states {size} bytes, and {MOST_RECORDS} at most are read")));
    }
    match name {
        "" => exactly(&mut &*bytes, size),
        "lz4" => exactly(&mut lz4_flex::frame::FrameDecoder::new(bytes), size),
        "zstd" => exactly(&mut zstd::Decoder::with_buffer(bytes)?, size),
        other => Err(io::Error::other(format!("unknown compression `{other}`"))),
    }
}

/// Reads a decoder to its end, which must come after exactly `size` bytes.
pub(crate) fn exactly(decoder: &mut dyn io::Read, size: usize) -> io::Result<Vec<u8>> {
    // One byte more than announced shows that the size is wrong, and no more memory is used for it.
    let mut out = Vec::with_capacity(size.min(MOST_AHEAD));
    decoder.take(size as u64 + 1).read_to_end(&mut out)?;
    if out.len() == size {
        Ok(out)
    } else {
        Err(io::Error::other(format!("it decompresses to other than {size} bytes")))
    }
}

/// Bytes of a chunk's records at most: an element of 1 GiB, and as much again for chunks of other programs.
const MOST_RECORDS: usize = 2 << 30;

/// Bytes that are allocated on the word of a header.
const MOST_AHEAD: usize = 64 << 20;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_compression_gives_the_bytes_back() {
        let bytes: Vec<u8> = (0..10_000u32).flat_map(|at| (at / 7).to_le_bytes()).collect();
        for text in ["none", "lz4", "zstd", "zstd:1", "zstd:19"] {
            let compression: Compression = text.parse().unwrap();
            let packed = compression.compress(&bytes).unwrap();
            assert_eq!(decompress(compression.mcap_name(), &packed, bytes.len()).unwrap(), bytes);
            for wrong in [bytes.len() - 1, bytes.len() + 1] {
                assert!(decompress(compression.mcap_name(), &packed, wrong).is_err(), "{text} {wrong}");
            }
        }
        for wrong in ["zip", "zstd:0", "zstd:20", "zstd:x", "lz4:1", ""] {
            let said = wrong.parse::<Compression>().unwrap_err();
            assert!(said.contains("zstd:LEVEL"), "{said}");
        }
    }
}
