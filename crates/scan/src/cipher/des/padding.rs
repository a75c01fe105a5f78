//! PKCS#7 padding to whole Triple DES blocks.

use crate::cipher::BLOCK_LEN;

/// Appends PKCS#7 padding: one to eight bytes that each tell the number of bytes appended.
pub fn pad(bytes: &mut Vec<u8>) {
    let padded = (bytes.len() / BLOCK_LEN + 1) * BLOCK_LEN;
    bytes.resize(padded, (padded - bytes.len()) as u8);
}

/// Length of the content before the padding, or none when the padding is wrong.
pub(in super::super) fn unpadded_len(bytes: &[u8]) -> Option<usize> {
    let count = usize::from(*bytes.last()?);
    let content = bytes.len().checked_sub(count)?;
    let is_padding = (1..=BLOCK_LEN).contains(&count);
    (is_padding && bytes[content..].iter().all(|&byte| usize::from(byte) == count)).then_some(content)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn padding_is_removed_and_anything_else_is_refused() {
        for len in 0..20 {
            let mut bytes = vec![3; len];
            pad(&mut bytes);
            assert_eq!(bytes.len(), (len / 8 + 1) * 8);
            assert_eq!(unpadded_len(&bytes), Some(len));
        }
        for wrong in [&[][..], &[0; 8], &[9; 16], &[1, 1, 1, 1, 1, 2, 3, 3], &[8; 4]] {
            assert_eq!(unpadded_len(wrong), None, "{wrong:?}");
        }
    }
}
