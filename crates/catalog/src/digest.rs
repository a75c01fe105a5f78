//! Digest of a state: equal at two sites if, and for all practical purposes only if, their records are equal.
//!
//! The digest is the sum of the BLAKE3 hashes of all records modulo 2^256. A sum needs no order, so a store
//! scans its tables as they lie. It can later keep the digest up to date record by record.

use crate::record::Record;
use std::fmt;

/// Sum of record hashes, four words of which the first is the lowest.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct StateDigest([u64; 4]);

impl StateDigest {
    /// Adds one record, whose canonical form is its postcard encoding.
    pub fn add(&mut self, record: &Record) {
        // Writing into a vector fails only for types of unknown length, which records do not contain.
        let bytes = postcard::to_allocvec(record).unwrap_or_default();
        let hash = blake3::hash(&bytes);
        let mut carry = 0;
        for (word, bytes) in self.0.iter_mut().zip(hash.as_bytes().chunks_exact(8)) {
            let term = bytes.iter().rev().fold(0_u64, |term, byte| (term << 8) | u64::from(*byte));
            let sum = u128::from(*word) + u128::from(term) + carry;
            *word = sum as u64;
            carry = sum >> 64;
        }
    }
}

impl<'a> FromIterator<&'a Record> for StateDigest {
    fn from_iter<I: IntoIterator<Item = &'a Record>>(records: I) -> Self {
        let mut digest = Self::default();
        records.into_iter().for_each(|record| digest.add(record));
        digest
    }
}

/// Sixty-four hexadecimal digits, the highest word first.
impl fmt::Display for StateDigest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().rev().try_for_each(|word| write!(f, "{word:016x}"))
    }
}

impl fmt::Debug for StateDigest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ids::SiteId;
    use crate::record::SiteProgress;
    use crate::vector::VersionVector;

    #[test]
    fn the_order_of_records_does_not_matter_and_their_number_does() {
        let record = |applied| {
            let site = SiteId::new(1).unwrap();
            Record::Site(SiteProgress { site, applied, seen: VersionVector::default() })
        };
        let records: Vec<Record> = (1..50).map(record).collect();
        let forward: StateDigest = records.iter().collect();
        let backward: StateDigest = records.iter().rev().collect();
        let twice: StateDigest = records.iter().chain(&records[..1]).collect();
        assert_eq!(forward, backward);
        assert_ne!(forward, twice);
        assert_eq!(forward.to_string().len(), 64);
    }
}
