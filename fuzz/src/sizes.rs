//! Sizes and rates as people type them.

use holdfast_base::{ByteSize, Rate};

/// Reads a size and a rate; what is shown of a size must be read back as about that size.
pub fn run(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else { return };
    let _ = text.parse::<Rate>();
    let Ok(size) = text.parse::<ByteSize>() else { return };
    if size.0 > 1 << 62 {
        return;
    }
    let shown = size.to_string();
    let again = shown.parse::<ByteSize>().map(|size| size.0);
    // One decimal is shown: at worst 0.05 of a unit is lost.
    let near = again.as_ref().is_ok_and(|again| again.abs_diff(size.0) <= size.0 / 20 + 1);
    assert!(near, "{text:?} is {size:?}, shown as {shown:?}, read back as {again:?}");
}

/// Every unit, and the edges of what fits.
pub fn seeds() -> Vec<Vec<u8>> {
    let texts =
        ["0", "64MiB", "1.5 GiB", "60MB/s", "10gib", "4096b", "1k", "8PiB", "18446744073709551615", "1..5M"];
    texts.map(|text| text.as_bytes().to_vec()).to_vec()
}
