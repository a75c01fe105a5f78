//! Alignment of a pattern with the text in front of a known end.
//!
//! Searches yield ends of matches; this file finds their starts. It does not look for ends.

/// Start and distance of a match whose end is known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::module) struct Alignment {
    /// Letters of the text that the match covers.
    pub(in crate::module) length: usize,
    /// Edit distance between the pattern and these letters.
    pub(in crate::module) distance: u32,
}

/// Aligns a whole pattern with the last letters of a text.
///
/// `same` compares a letter of the pattern with a letter of the text, both counted from their ends (0 is the last letter).
/// The alignment has the least edit distance of all starts. Of several such starts it has the one whose text is nearest to the
/// pattern in length, and of two equally near ones the shorter text.
///
/// Algorithm: furthest-reaching diagonals. Row `i` of diagonal `d` stands for the last `i` letters of the pattern and the last
/// `i + d` letters of the text; `reach[d]` is the last row of the diagonal that as many edits reach as have been spent. Distances
/// never fall along a diagonal, so these rows suffice. Time is O(m + distance²) on random text, memory O(distance).
pub(in crate::module) fn align(
    pattern: usize,
    text: usize,
    same: impl Fn(usize, usize) -> bool,
) -> Alignment {
    let (rows, columns) = (pattern as i64, text as i64);
    let slide = |row: i64, diagonal: i64| {
        let mut row = row;
        while row < rows && row + diagonal < columns && same(row as usize, (row + diagonal) as usize) {
            row += 1;
        }
        row
    };
    // Diagonal `d` stands at index `d + edits` of `reach`.
    let mut reach = vec![slide(0, 0)];
    let mut next = Vec::new();
    let mut edits = 0_i64;
    loop {
        let complete = |diagonal: i64| reach[(diagonal + edits) as usize] == rows;
        let nearest = (0..=edits).flat_map(|away| [-away, away]).find(|diagonal| complete(*diagonal));
        if let Some(diagonal) = nearest {
            return Alignment { length: (rows + diagonal) as usize, distance: edits as u32 };
        }
        edits += 1;
        next.clear();
        for diagonal in -edits..=edits {
            // Rows of `reach` on this diagonal and on both beside it; `None` outside.
            let row = |of: i64| usize::try_from(of + edits - 1).ok().and_then(|at| reach.get(at)).copied();
            let replaced = row(diagonal).filter(|row| *row >= 0).map(|row| row + 1);
            let more_text = row(diagonal - 1).filter(|row| *row >= 0);
            let less_text = row(diagonal + 1).filter(|row| *row >= 0).map(|row| row + 1);
            let furthest = replaced.max(more_text).max(less_text).unwrap_or(-1);
            let furthest = furthest.min(rows).min(columns - diagonal);
            // A diagonal that begins behind the text or has not been reached has no row.
            let is_valid = furthest >= 0 && furthest + diagonal >= 0;
            next.push(if is_valid { slide(furthest, diagonal) } else { -1 });
        }
        std::mem::swap(&mut reach, &mut next);
    }
}

#[cfg(test)]
mod tests {
    use super::{Alignment, align};

    fn aligned(pattern: &[u8], text: &[u8]) -> Alignment {
        let same =
            |row: usize, column: usize| pattern[pattern.len() - 1 - row] == text[text.len() - 1 - column];
        align(pattern.len(), text.len(), same)
    }

    #[test]
    fn the_text_nearest_in_length_is_preferred() {
        assert_eq!(aligned(b"ACGT", b"TTACGT"), Alignment { length: 4, distance: 0 });
        // `GCGT` by a substitution, not `CGT` by a deletion.
        assert_eq!(aligned(b"ACGT", b"TTGCGT"), Alignment { length: 4, distance: 1 });
        assert_eq!(aligned(b"ACGT", b"TTACG"), Alignment { length: 3, distance: 1 });
        assert_eq!(aligned(b"ACGT", b"TTAACGGT"), Alignment { length: 5, distance: 1 });
    }

    #[test]
    fn an_empty_text_costs_the_whole_pattern() {
        assert_eq!(aligned(b"ACGT", b""), Alignment { length: 0, distance: 4 });
        assert_eq!(aligned(b"ACGT", b"T"), Alignment { length: 1, distance: 3 });
    }
}
