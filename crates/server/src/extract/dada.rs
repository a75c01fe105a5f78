//! DADA: a text of lines `KEY VALUE # comment` in the first `HDR_SIZE` bytes, filled up with zeros.

use super::with_unit;
use holdfast_catalog::{Attribute, Value};

/// Units that the convention gives to keys.
const UNITS: [(&str, &str); 3] = [("FREQ", "MHz"), ("BW", "MHz"), ("TSAMP", "us")];

/// True if the bytes are text with a line `HDR_SIZE`.
pub(super) fn is_dada(bytes: &[u8]) -> bool {
    size(text(bytes)).is_some()
}

/// Attributes of a header.
pub(super) fn read(bytes: &[u8]) -> Option<Vec<Attribute>> {
    let size = size(text(bytes))?;
    let text = text(&bytes[..bytes.len().min(size)]);
    let entries = text.lines().filter_map(entry);
    let attributes = entries.map(|(key, value)| {
        let unit = UNITS.iter().find(|(name, _)| *name == key).map_or("", |(_, unit)| unit);
        let time = Some(value).filter(|_| key.starts_with("UTC_")).and_then(time);
        match time.unwrap_or_else(|| Value::read(value)) {
            value @ Value::Text(_) => Attribute::new(key, value),
            value => with_unit(key, value, unit),
        }
    });
    Some(attributes.collect())
}

/// Text up to the first zero; only the valid beginning of bytes that are not UTF-8.
fn text(bytes: &[u8]) -> &str {
    let end = bytes.iter().position(|byte| *byte == 0).unwrap_or(bytes.len());
    bytes[..end].utf8_chunks().next().map_or("", |chunk| chunk.valid())
}

/// Size of the header as it says itself.
fn size(text: &str) -> Option<usize> {
    let mut sizes = text.lines().filter_map(entry).filter(|(key, _)| *key == "HDR_SIZE");
    sizes.next()?.1.parse().ok()
}

/// Key and value of a line without its comment; nothing for a line without both, or with another key than a word.
fn entry(line: &str) -> Option<(&str, &str)> {
    let line = line.split('#').next().unwrap_or_default().trim();
    let (key, value) = line.split_once([' ', '\t'])?;
    let is_word = key.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"_-.".contains(&byte));
    is_word.then(|| (key, value.trim()))
}

/// Time in the notation of DADA, `2026-11-20-10:05:00`.
fn time(text: &str) -> Option<Value> {
    let (date, clock) = text.split_at_checked(10)?;
    Value::read_time(&format!("{date}T{}Z", clock.strip_prefix('-')?))
}

#[cfg(test)]
pub(crate) mod tests {
    use super::super::tests::extract;
    use super::*;

    pub(crate) fn header() -> Vec<u8> {
        let text = "HEADER DADA\n# a comment\nHDR_SIZE 4096\nFREQ 1382.0 # centre\nSOURCE\tJ0437-4715\n\
            UTC_START 2026-11-20-10:05:00\nNBIT 8\nEMPTY\n";
        let mut bytes = text.as_bytes().to_vec();
        bytes.resize(4096, 0);
        bytes.extend(b"NCHAN 5\n".repeat(100));
        bytes
    }

    #[test]
    fn lines_become_typed_attributes() {
        let expected = [
            Attribute::new("dada.header", "DADA"),
            Attribute::new("dada.hdr_size", 4096),
            Attribute::new("dada.freq", Value::float(1382.0).unwrap()).with_unit("MHz"),
            Attribute::new("dada.source", "J0437-4715"),
            Attribute::new("dada.utc_start", Value::read_time("2026-11-20T10:05:00Z").unwrap()),
            Attribute::new("dada.nbit", 8),
        ];
        assert_eq!(extract("dada", &header()), expected);
        // A header without zeros behind it ends where it says.
        let short = b"HDR_SIZE 22\nNBIT 8    \nNCHAN 5\n";
        assert_eq!(extract("dada", short).len(), 2);
    }
}
