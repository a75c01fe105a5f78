//! What payload comes to on the medium: heads, summary, checks, rows at their widest, and what stays empty at the end.

use super::build::FEW_ROWS;
use super::columns::{ROW_BYTES, worst};
use super::directory::DirectoryEntry;
use super::{chunk_rows, summary};
use holdfast_base::{BLOCK, CHECK_BLOCK};

/// Bytes that may stay empty at the end of a slot because an element does not fit: a larger one goes on in the next slot.
pub fn splinter(slot_bytes: u64) -> u64 {
    slot_bytes / 1024
}

/// Bytes a second that a ring with slots of `slot_bytes` writes into them, at most, for `payload` bytes and `elements` a
/// second of so many streams; infinite when the slots are too small for the streams.
pub fn on_medium(slot_bytes: u64, payload: f64, elements: f64, streams: usize) -> f64 {
    let chunk = (worst(0, streams + 1) + DirectoryEntry::BYTES) as f64;
    // Header, footer, payload and index on blocks of their own; what the last rows might have taken.
    let blocks = 4 * BLOCK + summary::summary_bytes(streams, 0).next_multiple_of(BLOCK);
    let fixed = blocks + worst(FEW_ROWS + 1, streams + 1) + slot_bytes as usize / CHECK_BLOCK * 4;
    let usable = slot_bytes as f64 - fixed as f64 - splinter(slot_bytes) as f64;
    if usable <= 0.0 {
        return f64::INFINITY;
    }
    let row = ROW_BYTES as f64 + chunk / chunk_rows(slot_bytes) as f64;
    (payload + elements * row) * slot_bytes as f64 / usable
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn large_elements_cost_little_and_small_ones_their_rows() {
        let share = |payload, elements| on_medium(64 << 20, payload, elements, 1) / payload;
        assert!(share(1e8, 1.0) < 1.0015 && share(1e8, 1.0) > 1.0, "{}", share(1e8, 1.0));
        assert!((share(2e8, 1e7) - 4.0).abs() < 0.02, "20 bytes take up to 60 more: {}", share(2e8, 1e7));
        assert!(on_medium(64 << 10, 1.0, 0.0, 256).is_infinite());
    }
}
