//! Ends of approximate matches in a text: by edit distance with the crate `sassy`, by Hamming distance with a counting loop.
//!
//! Both functions report each end in the range `(from, text.len()]` once, in ascending order. The text in front of `from` is
//! context: it must hold as many letters as the longest match, unless the text begins there.

use sassy::Searcher;
use sassy::profiles::Profile;

/// Bytes of text in one call of `sassy`, which returns some 100 bytes for each end: this bounds its memory.
const PIECE: usize = 128 << 10;

/// Starts that are counted at once: as many counters as fit the registers of a core.
const GROUP: usize = 64;

/// Letters of the pattern that are compared before starts with too many mismatches are dropped.
const ROWS: usize = 16;

/// Makes a searcher that returns ends without alignments.
pub(in crate::module) fn searcher<P: Profile>() -> Searcher<P> {
    Searcher::new_fwd().without_trace()
}

/// Finds the ends with an edit distance of at most `most`.
pub(in crate::module) fn edit_ends<P: Profile>(
    searcher: &mut Searcher<P>,
    pattern: &[u8],
    most: u32,
    text: &[u8],
    from: usize,
    mut found: impl FnMut(usize, u32),
) {
    let longest = pattern.len() + most as usize;
    // A long pattern takes larger pieces, so that the context is a small part of them.
    let piece = PIECE.max(4 * longest);
    let mut at = from;
    while at < text.len() {
        let to = text.len().min(at + piece);
        let context = at.saturating_sub(longest);
        let mut ends = searcher.search_all(pattern, &text[context..to], most as usize);
        ends.sort_unstable_by_key(|end| end.text_end);
        for end in ends {
            let (distance, end) = (end.cost as u32, context + end.text_end);
            if end > at {
                found(end, distance);
            }
        }
        at = to;
    }
}

/// Finds the ends with a Hamming distance of at most `most`.
pub(super) fn hamming_ends(
    pattern: &[u8],
    most: u32,
    text: &[u8],
    from: usize,
    mut found: impl FnMut(usize, u32),
) {
    let length = pattern.len();
    let starts = (text.len() + 1).saturating_sub(length);
    let mut group = (from + 1).saturating_sub(length);
    while group + GROUP <= starts {
        if let Some(counts) = count_group(pattern, most, &text[group..group + length + GROUP - 1]) {
            for (start, count) in (group..).zip(counts) {
                if u32::from(count) <= most {
                    found(start + length, u32::from(count));
                }
            }
        }
        group += GROUP;
    }
    for start in group..starts {
        let letters = pattern.iter().zip(&text[start..]);
        let count = letters.filter(|(letter, byte)| letter != byte).count() as u32;
        if count <= most {
            found(start + length, count);
        }
    }
}

/// Counts the mismatches at each start of a group; `None` if all of them exceed the limit.
fn count_group(pattern: &[u8], most: u32, text: &[u8]) -> Option<[u16; GROUP]> {
    let mut totals = [0_u16; GROUP];
    for (number, rows) in pattern.chunks(ROWS).enumerate() {
        let mut counts = [0_u8; GROUP];
        let text = &text[number * ROWS..];
        for (letter, window) in rows.iter().zip(text.windows(GROUP)) {
            for (count, byte) in counts.iter_mut().zip(window) {
                *count += u8::from(byte != letter);
            }
        }
        let mut least = u16::MAX;
        for (total, count) in totals.iter_mut().zip(counts) {
            *total += u16::from(count);
            least = least.min(*total);
        }
        if u32::from(least) > most {
            return None;
        }
    }
    Some(totals)
}

#[cfg(test)]
mod tests {
    use super::{PIECE, edit_ends, hamming_ends, searcher};
    use sassy::profiles::Ascii;

    #[test]
    fn ends_at_the_borders_of_pieces_are_found_once() {
        let mut text = vec![b'.'; 3 * PIECE];
        let places = [0, PIECE - 3, 2 * PIECE - 6, 3 * PIECE - 6];
        for place in places {
            text[place..place + 6].copy_from_slice(b"needle");
        }
        let expected: Vec<usize> = places.iter().map(|place| place + 6).collect();
        let mut ends = Vec::new();
        edit_ends(&mut searcher::<Ascii>(), b"needle", 0, &text, 0, |end, _| ends.push(end));
        assert_eq!(ends, expected);
        let mut ends = Vec::new();
        hamming_ends(b"needle", 0, &text, 0, |end, _| ends.push(end));
        assert_eq!(ends, expected);
    }
}
