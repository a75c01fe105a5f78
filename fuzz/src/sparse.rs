//! Images of the format as fuzzing inputs: only the stretches that are not zero, so that a mutation hits a field and
//! not the padding.
//!
//! ```text
//! 0   which checks are left as they are (see `seal`): 0, all are put right
//! 1   pieces: offset (4), bytes (2), the bytes
//! ```

/// Longest image that an input may make: a slot of the smallest size, twice.
const MOST_BYTES: usize = 128 << 10;

/// A stretch of zeros that ends a piece.
const HOLE: usize = 12;

/// The image that an input stands for, and which checks it leaves alone.
pub(crate) fn expand(data: &[u8]) -> (Vec<u8>, u8) {
    let (&leave, mut rest) = data.split_first().unwrap_or((&0, &[]));
    let mut image = Vec::new();
    while let Some((head, tail)) = rest.split_first_chunk::<6>() {
        let at = u32::from_le_bytes([head[0], head[1], head[2], head[3]]) as usize;
        let len = usize::from(u16::from_le_bytes([head[4], head[5]])).min(tail.len());
        let end = at.saturating_add(len);
        if end <= MOST_BYTES {
            image.resize(image.len().max(end), 0);
            image[at..end].copy_from_slice(&tail[..len]);
        }
        rest = &tail[len..];
    }
    (image, leave)
}

/// The input that stands for an image.
pub(crate) fn squeeze(image: &[u8]) -> Vec<u8> {
    let mut data = vec![0];
    let mut at = 0;
    while let Some(skip) = image[at..].iter().position(|byte| *byte != 0) {
        at += skip;
        let rest = &image[at..image.len().min(at + 1024)];
        let hole = rest.windows(HOLE).position(|window| window.iter().all(|byte| *byte == 0));
        let len = hole.unwrap_or(rest.len());
        data.extend((at as u32).to_le_bytes());
        data.extend((len as u16).to_le_bytes());
        data.extend(&rest[..len]);
        at += len;
    }
    data
}

/// The two bytes at `at`, 0 where there are none.
pub(crate) fn u16_at(bytes: &[u8], at: usize) -> usize {
    bytes.get(at..at + 2).map_or(0, |b| usize::from(u16::from_le_bytes([b[0], b[1]])))
}

/// The four bytes at `at`, 0 where there are none.
pub(crate) fn u32_at(bytes: &[u8], at: usize) -> usize {
    bytes.get(at..at + 4).map_or(0, |b| u32::from_le_bytes([b[0], b[1], b[2], b[3]]) as usize)
}

/// Writes `check` at `at`, if there is such a place.
pub(crate) fn put(bytes: &mut [u8], at: usize, check: &[u8]) {
    if let Some(place) = at.checked_add(check.len()).and_then(|end| bytes.get_mut(at..end)) {
        place.copy_from_slice(check);
    }
}

/// The `len` bytes at `at`.
pub(crate) fn piece(bytes: &[u8], at: usize, len: usize) -> Option<&[u8]> {
    bytes.get(at..at.checked_add(len)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_image_comes_back_up_to_its_last_byte() {
        let mut image = vec![0; 9000];
        for at in [0, 5, 17, 18, 4095, 4096, 8999] {
            image[at] = at as u8 | 1;
        }
        image[5000..7500].fill(7);
        assert_eq!(expand(&squeeze(&image)), (image, 0));
        assert_eq!(expand(&[]), (Vec::new(), 0));
        assert_eq!(expand(&[3, 1, 2]), (Vec::new(), 3));
    }
}
