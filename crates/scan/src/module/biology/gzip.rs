//! Gzip decompression of a stream that arrives in blocks, with any number of members.

use crate::module::ModuleError;
use flate2::write::MultiGzDecoder;
use std::io::Write as _;

/// First bytes of a gzip file.
pub(super) const MAGIC: [u8; 2] = [0x1f, 0x8b];

/// Compressed bytes that are taken at once: deflate expands them to at most 1032 times as many, some 8 MiB.
const STEP: usize = 8 << 10;

/// Decompressor of one item.
#[derive(Debug)]
pub(super) struct Gzip {
    decoder: MultiGzDecoder<Vec<u8>>,
    /// Compressed bytes that were taken.
    offset: u64,
}

impl Gzip {
    /// Makes a decompressor at the first byte of an item.
    pub(super) fn new() -> Self {
        Self { decoder: MultiGzDecoder::new(Vec::new()), offset: 0 }
    }

    /// Decompresses the next bytes of the item.
    pub(super) fn push(
        &mut self,
        bytes: &[u8],
        mut sink: impl FnMut(&[u8]) -> Result<(), ModuleError>,
    ) -> Result<(), ModuleError> {
        let mut rest = bytes;
        while !rest.is_empty() {
            // Steps end at multiples of their size, so that errors name the same offset for each division into blocks.
            let room = STEP - (self.offset % STEP as u64) as usize;
            let (step, behind) = rest.split_at(room.min(rest.len()));
            let written = self.decoder.write_all(step);
            self.drain(&mut sink)?;
            written.map_err(|error| {
                ModuleError(format!(
                    "cannot decompress gzip near byte offset {}: {error}; check the file with `gzip -t`",
                    self.offset / STEP as u64 * STEP as u64
                ))
            })?;
            self.offset += step.len() as u64;
            rest = behind;
        }
        Ok(())
    }

    /// Ends the item: fails if its last member is incomplete.
    pub(super) fn finish(
        &mut self,
        mut sink: impl FnMut(&[u8]) -> Result<(), ModuleError>,
    ) -> Result<(), ModuleError> {
        let finished = self.decoder.try_finish();
        self.drain(&mut sink)?;
        finished.map_err(|error| {
            ModuleError(format!(
                "cannot decompress gzip up to its end at byte offset {}: {error}; the file is cut off, fetch it again",
                self.offset
            ))
        })
    }

    fn drain(&mut self, sink: &mut impl FnMut(&[u8]) -> Result<(), ModuleError>) -> Result<(), ModuleError> {
        let decompressed = self.decoder.get_mut();
        let result = if decompressed.is_empty() { Ok(()) } else { sink(decompressed) };
        decompressed.clear();
        result
    }
}
