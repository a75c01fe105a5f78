//! Paths of the datasets of an archived stream.

use std::fmt::Write as _;

/// Path of the dataset that begins at an ordinal. Paths of a stream are in the order of ordinals.
pub(crate) fn dataset_path(prefix: &str, stream: &str, from: u64) -> String {
    let prefix = prefix.trim_end_matches('/');
    let slash = if prefix.is_empty() { "" } else { "/" };
    format!("{prefix}{slash}{}-{from:020}.mcap", file_name(stream))
}

/// Name of a stream in a path: bytes other than letters, digits, `.`, `_` and `-` as `%XX`.
fn file_name(stream: &str) -> String {
    let mut name = String::new();
    for byte in stream.bytes() {
        if byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'_' | b'-') {
            name.push(char::from(byte));
        } else {
            let _ = write!(name, "%{byte:02X}");
        }
    }
    name
}

/// True for a path of a dataset of the stream.
pub(crate) fn is_dataset_path(path: &str, prefix: &str, stream: &str) -> bool {
    let prefix = prefix.trim_end_matches('/');
    let below = if prefix.is_empty() { String::new() } else { format!("{prefix}/") };
    let rest = path.strip_prefix(&below).and_then(|rest| rest.strip_prefix(&file_name(stream)));
    let digits = rest.and_then(|rest| rest.strip_prefix('-')).and_then(|rest| rest.strip_suffix(".mcap"));
    digits.is_some_and(|digits| digits.len() == 20 && digits.bytes().all(|byte| byte.is_ascii_digit()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_of_a_stream_are_in_the_order_of_ordinals() {
        assert_eq!(dataset_path("", "wifi", 0), "wifi-00000000000000000000.mcap");
        assert_eq!(dataset_path("a/", "eth 0/x", 7), "a/eth%200%2Fx-00000000000000000007.mcap");
        assert!(dataset_path("", "s", u64::MAX) > dataset_path("", "s", 9));
    }
}
