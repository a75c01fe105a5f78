//! Names of scanned items as output: control characters are escaped for people, other bytes come out as they are.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use holdfast_scan::{Container, ItemId};
use std::fmt::Write as _;

/// Name of an item with its control characters escaped.
pub(crate) fn shown(item: &ItemId) -> Vec<u8> {
    escaped(&item.name())
}

/// Bytes with control characters escaped as `\xNN`: a terminal obeys them otherwise. Bytes that are no UTF-8 stay.
pub(crate) fn escaped(name: &[u8]) -> Vec<u8> {
    let mut shown = Vec::with_capacity(name.len());
    for chunk in name.utf8_chunks() {
        let mut text = String::with_capacity(chunk.valid().len());
        for letter in chunk.valid().chars() {
            if letter.is_control() {
                for byte in letter.encode_utf8(&mut [0; 4]).bytes() {
                    let _ = write!(text, "\\x{byte:02x}");
                }
            } else {
                text.push(letter);
            }
        }
        shown.extend_from_slice(text.as_bytes());
        shown.extend_from_slice(chunk.invalid());
    }
    shown
}

/// Name of a source in base64, if its text is not its name.
pub(crate) fn source_bytes(container: &Container) -> Option<String> {
    let bytes = container.source_bytes();
    (bytes != container.source.as_bytes()).then(|| STANDARD.encode(bytes))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn control_characters_are_escaped_and_other_bytes_stay() {
        for (name, shown) in [
            (&b"plain \xc3\xa9"[..], &b"plain \xc3\xa9"[..]),
            (b"\x1b[31mred\n", b"\\x1b[31mred\\x0a"),
            (b"latin \xe9\x7f", b"latin \xe9\\x7f"),
            ("c1 \u{9b}31m".as_bytes(), b"c1 \\xc2\\x9b31m"),
        ] {
            assert_eq!(escaped(name), shown);
        }
    }
}
