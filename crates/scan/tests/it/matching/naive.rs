//! Naive reference: full dynamic programming for ends and starts, and local minima of the distance.

/// Hit without an item: start, end and distance.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Found {
    pub(crate) start: usize,
    pub(crate) end: usize,
    pub(crate) distance: u32,
    /// Last of the adjacent ends with this distance: hits are ordered by it.
    pub(crate) last: usize,
}

/// Distances of the best match of a pattern at each end from 1 on.
fn edit_distances(pattern: &[u8], text: &[u8], same: impl Fn(u8, u8) -> bool) -> Vec<u32> {
    let mut column: Vec<u32> = (0..=pattern.len() as u32).collect();
    let distances = text.iter().map(|byte| {
        let mut corner = column[0];
        column[0] = 0;
        for row in 1..=pattern.len() {
            let left = column[row];
            let step = corner + u32::from(!same(pattern[row - 1], *byte));
            column[row] = step.min(left + 1).min(column[row - 1] + 1);
            corner = left;
        }
        column[pattern.len()]
    });
    distances.collect()
}

/// Length of the match that ends with the text: least distance, then nearest to the pattern in length, then shorter.
fn edit_length(pattern: &[u8], text: &[u8], same: impl Fn(u8, u8) -> bool) -> usize {
    let width = text.len().min(2 * pattern.len());
    // Row by row of the reversed pattern, against all suffixes of the text.
    let mut row: Vec<usize> = (0..=width).collect();
    for letter in pattern.iter().rev() {
        let mut corner = row[0];
        row[0] += 1;
        for length in 1..=width {
            let above = row[length];
            let step = corner + usize::from(!same(*letter, text[text.len() - length]));
            row[length] = step.min(above + 1).min(row[length - 1] + 1);
            corner = above;
        }
    }
    (0..=width).min_by_key(|length| (row[*length], length.abs_diff(pattern.len()), *length)).unwrap()
}

/// Ends beside which no adjacent end has a smaller distance, the leftmost of equal ones; each is its place, its distance and the
/// length of its match.
fn minima(ends: impl Iterator<Item = (usize, u32, usize)>) -> Vec<Found> {
    let ends: Vec<_> = ends.collect();
    let distance_at = |end: usize| {
        let found = ends.binary_search_by_key(&end, |(end, ..)| *end);
        found.map_or(u32::MAX, |at| ends[at].1)
    };
    let hits = ends.iter().filter_map(|(end, distance, length)| {
        let last = (*end..=ends.last()?.0).find(|end| distance_at(end + 1) != *distance)?;
        let is_minimum = distance_at(end - 1) > *distance && distance_at(last + 1) > *distance;
        is_minimum.then_some(Found { start: end - length, end: *end, distance: *distance, last })
    });
    hits.collect()
}

/// Hits of an edit-distance search; `keep` tells for the text of an end whether it is one.
pub(crate) fn edit_hits(
    pattern: &[u8],
    most: u32,
    text: &[u8],
    same: impl Fn(u8, u8) -> bool + Copy,
    keep: impl Fn(&[u8]) -> bool,
) -> Vec<Found> {
    let distances = edit_distances(pattern, text, same);
    let ends = (1..).zip(distances).filter(|(_, distance)| *distance <= most).map(|(end, distance)| {
        let window = &text[usize::saturating_sub(end, 2 * pattern.len())..end];
        (end, distance, edit_length(pattern, window, same))
    });
    minima(ends.filter(|(end, _, length)| keep(&text[end - length..*end])))
}

/// Hits of a Hamming-distance search.
pub(crate) fn hamming_hits(
    pattern: &[u8],
    most: u32,
    text: &[u8],
    same: impl Fn(u8, u8) -> bool + Copy,
) -> Vec<Found> {
    let windows = text.windows(pattern.len()).map(|window| {
        window.iter().zip(pattern).filter(|(byte, letter)| !same(**letter, **byte)).count() as u32
    });
    let length = pattern.len();
    let ends = (length..).zip(windows).filter(|(_, distance)| *distance <= most);
    minima(ends.map(|(end, distance)| (end, distance, length)))
}
