//! Index of the pieces of long patterns: exact occurrences in a text, found in one pass whatever their number.
//!
//! All pieces have the same length of at most 32 bases, two bits each, so that a `u64` is a piece. A bitmap of hashes rejects
//! most places of a text; the others are looked up in a sorted list.

/// Bases of a piece at most: as many as a `u64` holds.
pub(super) const MOST_PIECE: usize = 32;

/// Bits of the bitmap for each piece: one place of a text in as many passes the bitmap by chance.
const BITS_A_PIECE: usize = 32;

/// Multiplier of the hash: 2^64 divided by the golden ratio.
const MULTIPLIER: u64 = 0x9e37_79b9_7f4a_7c15;

/// Code of bytes that are no exact base.
const NONE: u8 = 4;

/// Codes of all bytes.
const CODES: [u8; 256] = {
    let mut codes = [NONE; 256];
    codes[b'A' as usize] = 0;
    codes[b'C' as usize] = 1;
    codes[b'G' as usize] = 2;
    codes[b'T' as usize] = 3;
    codes
};

/// Piece of a pattern.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Piece {
    bases: u64,
    lane: usize,
    /// Bases from the begin of the piece to the end of its pattern.
    behind: usize,
}

/// Index of pieces of one length.
#[derive(Clone, Debug)]
pub(super) struct PieceIndex {
    length: usize,
    pieces: Vec<Piece>,
    bitmap: Vec<u64>,
    /// Right shift that leaves the bits of a hash.
    shift: u32,
}

impl PieceIndex {
    /// Makes an empty index for pieces of a length from 1 to 32, with room for their number.
    pub(super) fn new(length: usize, count: usize) -> Self {
        let bits = (count.max(2) * BITS_A_PIECE).next_power_of_two();
        Self {
            length,
            pieces: Vec::with_capacity(count),
            bitmap: vec![0; bits / 64],
            shift: 64 - bits.trailing_zeros(),
        }
    }

    /// Adds a piece of exact bases: its lane, and the bases from its begin to the end of its pattern.
    pub(super) fn add(&mut self, bases: &[u8], lane: usize, behind: usize) {
        let bases =
            bases.iter().fold(0, |bases, letter| (bases << 2) | u64::from(CODES[usize::from(*letter)]));
        self.pieces.push(Piece { bases, lane, behind });
        let hash = self.hash(bases);
        self.bitmap[hash / 64] |= 1 << (hash % 64);
    }

    /// Completes the index: no piece is added any more.
    pub(super) fn sort(&mut self) {
        self.pieces.sort_unstable();
    }

    /// Calls `found` for each occurrence of a piece with the lane and with the begin of the piece plus the bases behind it, which
    /// is the end of a match whose edits are all in front of the piece.
    pub(super) fn find(&self, text: &[u8], mut found: impl FnMut(usize, usize)) {
        let mask = u64::MAX >> (64 - 2 * self.length);
        let (mut bases, mut length) = (0_u64, 0);
        for (at, letter) in text.iter().enumerate() {
            let code = CODES[usize::from(*letter)];
            if code == NONE {
                length = 0;
                continue;
            }
            bases = ((bases << 2) | u64::from(code)) & mask;
            length += 1;
            let hash = self.hash(bases);
            if self.bitmap[hash / 64] & (1 << (hash % 64)) == 0 || length < self.length {
                continue;
            }
            let first = self.pieces.partition_point(|piece| piece.bases < bases);
            for piece in self.pieces[first..].iter().take_while(|piece| piece.bases == bases) {
                found(piece.lane, at + 1 - self.length + piece.behind);
            }
        }
    }

    fn hash(&self, bases: u64) -> usize {
        (bases.wrapping_mul(MULTIPLIER) >> self.shift) as usize
    }
}

#[cfg(test)]
mod tests {
    use super::PieceIndex;

    #[test]
    fn all_occurrences_are_found() {
        for length in [3, 12, 32] {
            let pieces = [b"ACGTACGTACGTACGTACGTACGTACGTACGT", b"TTTTTTTTTTTTTTTTTTTTTTTTTTTTTTTT"];
            let mut index = PieceIndex::new(length, 3);
            index.add(&pieces[0][..length], 0, length);
            index.add(&pieces[1][..length], 1, 100);
            index.add(&pieces[1][..length], 2, 200);
            index.sort();
            let text = [&b"GT"[..], &pieces[0][..length], b"N", &pieces[1][..length], b"T"].concat();
            let mut found = Vec::new();
            index.find(&text, |lane, end| found.push((lane, end)));
            let begin = length + 3;
            let repeat = [(1, begin + 100), (2, begin + 200), (1, begin + 101), (2, begin + 201)];
            assert_eq!(found, [&[(0, 2 + length)][..], &repeat].concat(), "length {length}");
        }
    }
}
