//! Header `Upload-Metadata`: pairs of a key and a Base64 value.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

/// Greatest length of the header in bytes.
const MOST_BYTES: usize = 16 << 10;

/// Pairs of the header in their order; the text is the reason of a refusal.
pub(crate) fn parse(header: &str) -> Result<Vec<(String, Vec<u8>)>, String> {
    if header.len() > MOST_BYTES {
        return Err(format!("the header Upload-Metadata has more than {MOST_BYTES} bytes; shorten it"));
    }
    let mut pairs: Vec<(String, Vec<u8>)> = Vec::new();
    for pair in header.split(',').map(str::trim).filter(|_| !header.trim().is_empty()) {
        let (key, value) = pair.split_once(' ').unwrap_or((pair, ""));
        if key.is_empty() {
            return Err("the header Upload-Metadata has an empty key; name every value".to_owned());
        }
        if pairs.iter().any(|(known, _)| known == key) {
            return Err(format!("the key '{key}' occurs twice in Upload-Metadata; send it once"));
        }
        let value = STANDARD.decode(value.trim());
        let value = value.map_err(|_| format!("the value of '{key}' is not Base64; encode it"))?;
        pairs.push((key.to_owned(), value));
    }
    Ok(pairs)
}

/// Value of a key as a text; `Err` names a value that is not UTF-8.
pub(crate) fn text<'a>(pairs: &'a [(String, Vec<u8>)], key: &str) -> Result<Option<&'a str>, String> {
    let value = pairs.iter().find(|(known, _)| known == key).map(|(_, value)| value);
    let text = value.map(|value| std::str::from_utf8(value)).transpose();
    text.map_err(|_| format!("the value of '{key}' in Upload-Metadata is not UTF-8; encode it as UTF-8"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pairs_are_decoded_and_bad_headers_refused() {
        let pairs = parse("filename d29ybGRfZG9taW5hdGlvbl9wbGFuLnBkZg==,is_confidential").unwrap();
        assert_eq!(text(&pairs, "filename"), Ok(Some("world_domination_plan.pdf")));
        assert_eq!(text(&pairs, "is_confidential"), Ok(Some("")));
        assert_eq!(text(&pairs, "other"), Ok(None));
        assert_eq!(parse(""), Ok(Vec::new()));
        assert!(text(&parse("a /w==").unwrap(), "a").is_err());
        for bad in ["a ?", "a YQ==,a YQ==", "a YQ==,,b YQ==", ", ", &"a".repeat(20_000)] {
            assert!(parse(bad).is_err(), "{bad}");
        }
    }
}
