//! Contents of simulated elements: bytes that can be made again at any time, so that a model of much data
//! takes little memory.

use holdfast_media::Seed;
use std::sync::Arc;

/// The bytes of an element.
#[derive(Clone, Debug)]
pub enum Content {
    /// Made from a number.
    Salt(u64),
    /// These.
    Bytes(Arc<[u8]>),
}

impl Content {
    /// Bytes `offset..offset + len` of it.
    pub fn range(&self, offset: u64, len: usize) -> Vec<u8> {
        match self {
            Self::Salt(salt) => {
                let first = offset / 8;
                let words = (offset + len as u64).div_ceil(8) - first;
                let mut bytes = Vec::with_capacity(words as usize * 8);
                for word in first..first + words {
                    bytes.extend_from_slice(&Seed::new(salt ^ word).bits().to_le_bytes());
                }
                bytes.drain(..(offset % 8) as usize);
                bytes.truncate(len);
                bytes
            }
            Self::Bytes(bytes) => bytes[offset as usize..offset as usize + len].to_vec(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pieces_are_those_of_the_whole() {
        let content = Content::Salt(7);
        let whole = content.range(0, 100);
        assert_eq!(whole.len(), 100);
        for (offset, len) in [(0, 1), (3, 17), (8, 8), (99, 1), (50, 0)] {
            assert_eq!(content.range(offset as u64, len), whole[offset..offset + len]);
        }
    }
}
