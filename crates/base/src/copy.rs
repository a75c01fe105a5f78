//! Copying of many bytes at once.

/// Bytes that are copied at once: few enough that no C library hands them to the processor as one string instruction
/// (`rep movsb`), which on some processors takes half as long again, depending on how the two places lie to each other.
const PIECE: usize = 2048;

/// As [`slice::copy_from_slice`], for any number of bytes: no slower where they are few, faster where they are many.
///
/// # Panics
///
/// When the two are not of one length: an error in the program.
#[inline]
pub fn copy(to: &mut [u8], from: &[u8]) {
    if from.len() <= PIECE {
        to.copy_from_slice(from);
    } else {
        copy_pieces(to, from);
    }
}

/// As [`Vec::extend_from_slice`], likewise.
pub fn append(to: &mut Vec<u8>, from: &[u8]) {
    to.reserve(from.len());
    for piece in from.chunks(PIECE) {
        to.extend_from_slice(piece);
    }
}

#[inline(never)]
fn copy_pieces(to: &mut [u8], from: &[u8]) {
    assert_eq!(to.len(), from.len(), "what is copied must fit where it goes");
    for (to, from) in to.chunks_mut(PIECE).zip(from.chunks(PIECE)) {
        to.copy_from_slice(from);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_byte_is_copied_and_none_beside() {
        let from: Vec<u8> = (0..3 * PIECE as u32 + 9).map(|n| (n % 251) as u8 + 1).collect();
        for len in [0, 1, PIECE - 1, PIECE, PIECE + 1, 2 * PIECE, from.len()] {
            let mut to = vec![0; from.len() + 1];
            copy(&mut to[..len], &from[..len]);
            assert!(to[..len] == from[..len] && to[len..].iter().all(|byte| *byte == 0), "{len}");
            let mut to = vec![7];
            append(&mut to, &from[..len]);
            assert!(to[0] == 7 && to[1..] == from[..len], "{len}");
        }
    }

    #[test]
    #[should_panic(expected = "must fit")]
    fn two_lengths_are_an_error_of_the_program() {
        copy(&mut [0; 2 * PIECE], &[0; 2 * PIECE + 1]);
    }
}
