//! Contents of a disk in memory: sparse, and cheap to copy. No requests, no faults.

use std::collections::BTreeMap;
use std::sync::Arc;

/// Bytes of a page. Copies share pages until one of them writes.
const PAGE: u64 = 64 << 10;

/// What stands on a medium. Places never written are zero and cost nothing.
#[derive(Clone, Debug, Default)]
pub struct Image {
    bytes: u64,
    pages: BTreeMap<u64, Arc<[u8]>>,
}

/// Cuts `len` bytes at `offset` at page borders: page, first byte inside it, range of the caller's bytes.
fn pieces(offset: u64, len: usize) -> impl Iterator<Item = (u64, usize, std::ops::Range<usize>)> {
    let mut done = 0;
    std::iter::from_fn(move || {
        (done < len).then(|| {
            let at = offset + done as u64;
            let inside = (at % PAGE) as usize;
            let end = (done + PAGE as usize - inside).min(len);
            let piece = (at / PAGE, inside, done..end);
            done = end;
            piece
        })
    })
}

impl Image {
    /// An image of `bytes` zeros.
    pub fn new(bytes: u64) -> Self {
        Self { bytes, pages: BTreeMap::new() }
    }

    /// How long it is.
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Makes it at least `bytes` long.
    pub fn grow(&mut self, bytes: u64) {
        self.bytes = self.bytes.max(bytes);
    }

    /// Copies what stands at `offset`; zeros beyond the end.
    pub fn read(&self, offset: u64, into: &mut [u8]) {
        for (page, inside, range) in pieces(offset, into.len()) {
            let target = &mut into[range];
            match self.pages.get(&page) {
                Some(page) => target.copy_from_slice(&page[inside..inside + target.len()]),
                None => target.fill(0),
            }
        }
    }

    /// Writes `from` at `offset`; what lies beyond the end is dropped.
    pub fn write(&mut self, offset: u64, from: &[u8]) {
        let len = from.len().min(usize::try_from(self.bytes.saturating_sub(offset)).unwrap_or(usize::MAX));
        for (page, inside, range) in pieces(offset, len) {
            let source = &from[range];
            let page = self.pages.entry(page).or_insert_with(|| Arc::from(vec![0; PAGE as usize]));
            Arc::make_mut(page)[inside..inside + source.len()].copy_from_slice(source);
        }
    }

    /// Turns over the bits of `mask` in the byte at `offset`.
    pub fn flip(&mut self, offset: u64, mask: u8) {
        let mut byte = [0];
        self.read(offset, &mut byte);
        self.write(offset, &[byte[0] ^ mask]);
    }

    /// `len` bytes at `offset`, as a vector: for tests.
    pub fn range(&self, offset: u64, len: usize) -> Vec<u8> {
        let mut bytes = vec![0; len];
        self.read(offset, &mut bytes);
        bytes
    }

    /// Memory that its pages take, shared ones counted.
    pub fn memory(&self) -> u64 {
        self.pages.len() as u64 * PAGE
    }
}

impl From<&[u8]> for Image {
    fn from(bytes: &[u8]) -> Self {
        let mut image = Self::new(bytes.len() as u64);
        image.write(0, bytes);
        image
    }
}

/// Equal when every byte is, whether zeros were written or never touched.
impl PartialEq for Image {
    fn eq(&self, other: &Self) -> bool {
        let same = |page: &u64| match (self.pages.get(page), other.pages.get(page)) {
            (Some(a), Some(b)) => Arc::ptr_eq(a, b) || a == b,
            (Some(one), None) | (None, Some(one)) => one.iter().all(|byte| *byte == 0),
            (None, None) => true,
        };
        self.bytes == other.bytes && self.pages.keys().chain(other.pages.keys()).all(same)
    }
}

impl Eq for Image {}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn an_image_reads_back_like_a_plain_vector(
            steps in prop::collection::vec((0u64..300_000, 1usize..100_000, any::<u8>()), 1..12),
            reads in prop::collection::vec((0u64..300_000, 1usize..100_000), 1..6),
        ) {
            let mut naive = vec![0u8; 300_000];
            let mut image = Image::new(naive.len() as u64);
            let mut copies = Vec::new();
            for (offset, len, value) in steps {
                copies.push((image.clone(), naive.clone()));
                image.write(offset, &vec![value; len]);
                let end = naive.len().min(offset as usize + len);
                naive[offset as usize..end].fill(value);
            }
            copies.push((image, naive));
            for (image, naive) in copies {
                for (offset, len) in &reads {
                    let mut wanted = naive[*offset as usize..naive.len().min(*offset as usize + len)].to_vec();
                    wanted.resize(*len, 0);
                    prop_assert_eq!(image.range(*offset, *len), wanted);
                }
                prop_assert_eq!(&Image::from(&naive[..]), &image);
            }
        }
    }

    #[test]
    fn a_large_empty_image_costs_nothing_and_zeros_are_zeros() {
        let mut image = Image::new(16 << 30);
        assert_eq!(image.memory(), 0);
        image.write((16 << 30) - 4, &[0; 4]);
        assert_eq!(image, Image::new(16 << 30));
        image.flip(5, 0b10);
        assert_eq!(image.range(4, 3), [0, 2, 0]);
        assert_ne!(image, Image::new(16 << 30));
    }
}
