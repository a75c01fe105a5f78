//! The recovery string, which people type from paper.

use crate::world;
use holdfast_format::{Superblock, crc32c};

const PREFIX: &str = "holdfast1:";
const DIGITS: &[u8; 32] = b"abcdefghijklmnopqrstuvwxyz234567";

/// Reads the input as it is, and as the bytes behind a string whose checksum is right.
pub fn run(data: &[u8]) {
    check(&String::from_utf8_lossy(data));
    let mut bytes = data.to_vec();
    bytes.extend(crc32c(data).to_le_bytes());
    check(&format!("{PREFIX}{}", base32(&bytes)));
}

/// What is read must give a string that says the same.
fn check(text: &str) {
    let Ok(read) = Superblock::from_recovery_string(text) else { return };
    assert_eq!(Superblock::from_recovery_string(&read.to_recovery_string()), Ok(read));
}

/// RFC 4648, lower case, no padding: written here once more so that a fault in the product's is not repeated.
fn base32(bytes: &[u8]) -> String {
    let (mut text, mut bits, mut held) = (String::new(), 0u32, 0);
    for byte in bytes {
        bits = bits << 8 | u32::from(*byte);
        held += 8;
        while held >= 5 {
            held -= 5;
            text.push(char::from(DIGITS[(bits >> held) as usize % 32]));
        }
    }
    if held > 0 {
        text.push(char::from(DIGITS[(bits << (5 - held)) as usize % 32]));
    }
    text
}

/// The bytes behind a string, and a string as people keep it.
pub fn seeds() -> Vec<Vec<u8>> {
    let text = world::superblock().to_recovery_string();
    let spread = text.as_bytes().chunks(8).flat_map(|piece| [piece, b" "].concat()).collect();
    vec![bytes_of(&text), text.to_uppercase().into_bytes(), spread]
}

/// What a string stands for, without the checksum.
fn bytes_of(text: &str) -> Vec<u8> {
    let (mut bytes, mut bits, mut held) = (Vec::new(), 0u32, 0);
    for digit in text.trim_start_matches(PREFIX).bytes() {
        bits = bits << 5 | DIGITS.iter().position(|d| *d == digit).unwrap_or(0) as u32;
        held += 5;
        if held >= 8 {
            held -= 8;
            bytes.push((bits >> held) as u8);
        }
    }
    bytes.truncate(bytes.len().saturating_sub(4));
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_seed_is_what_a_string_says() {
        let text = world::superblock().to_recovery_string();
        let mut bytes = bytes_of(&text);
        bytes.extend(crc32c(&bytes).to_le_bytes());
        assert_eq!(format!("{PREFIX}{}", base32(&bytes)), text);
    }
}
