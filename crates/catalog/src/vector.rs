//! Version vectors: the number of operations of each site that a site has applied.

use crate::ids::{OpId, SiteId};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fmt;
use std::str::FromStr;

/// Number of leading operations of each site. A site without an entry has none.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug, Default, Hash, Serialize, Deserialize)]
pub struct VersionVector(BTreeMap<SiteId, u64>);

impl VersionVector {
    /// Number of operations of `site`.
    pub fn get(&self, site: SiteId) -> u64 {
        self.0.get(&site).copied().unwrap_or(0)
    }

    /// True if the operation is among those counted.
    pub fn contains(&self, op: OpId) -> bool {
        op.seq <= self.get(op.site)
    }

    /// True if all operations counted by `other` are counted here.
    pub fn includes(&self, other: &Self) -> bool {
        other.0.iter().all(|(site, seq)| self.get(*site) >= *seq)
    }

    /// Raises the entry of `site` to `seq`; a lower number changes nothing.
    pub fn raise(&mut self, site: SiteId, seq: u64) {
        if seq > self.get(site) {
            self.0.insert(site, seq);
        }
    }

    /// Raises every entry to that of `other`.
    pub fn merge(&mut self, other: &Self) {
        other.0.iter().for_each(|(site, seq)| self.raise(*site, *seq));
    }

    /// Lowers every entry to that of `other`.
    pub fn meet(&mut self, other: &Self) {
        self.0 = self.0.iter().map(|(site, seq)| (*site, (*seq).min(other.get(*site)))).collect();
        self.0.retain(|_, seq| *seq > 0);
    }

    /// Entries that exceed those of `known`.
    #[must_use]
    pub fn beyond(&self, known: &Self) -> Self {
        Self(self.iter().filter(|(site, seq)| *seq > known.get(*site)).collect())
    }

    /// Sites and their numbers, in the order of sites.
    pub fn iter(&self) -> impl Iterator<Item = (SiteId, u64)> {
        self.0.iter().map(|(site, seq)| (*site, *seq))
    }

    /// Number of sites with an entry.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// True if no site has an entry.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

impl FromIterator<(SiteId, u64)> for VersionVector {
    fn from_iter<I: IntoIterator<Item = (SiteId, u64)>>(entries: I) -> Self {
        let mut vector = Self::default();
        entries.into_iter().for_each(|(site, seq)| vector.raise(site, seq));
        vector
    }
}

impl fmt::Display for VersionVector {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (place, (site, seq)) in self.iter().enumerate() {
            write!(f, "{}{site}:{seq}", if place == 0 { "" } else { " " })?;
        }
        Ok(())
    }
}

/// Text that is not a version vector.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "cannot read `{text}` as a version vector: it is not SITE:NUMBER with spaces between; ask the site again"
)]
pub struct VersionVectorError {
    text: String,
}

impl FromStr for VersionVector {
    type Err = VersionVectorError;

    fn from_str(text: &str) -> Result<Self, VersionVectorError> {
        let entry = |entry: &str| {
            let (site, seq) = entry.split_once(':')?;
            let site = SiteId::new(u64::from_str_radix(site, 16).ok()?).ok()?;
            Some((site, seq.parse().ok()?))
        };
        let entries: Option<Self> = text.split_whitespace().map(entry).collect();
        entries.ok_or_else(|| VersionVectorError { text: text.chars().take(80).collect() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn vector(entries: &[(u64, u64)]) -> VersionVector {
        entries.iter().map(|(site, seq)| (SiteId::new(*site).unwrap(), *seq)).collect()
    }

    #[test]
    fn merge_and_meet_are_the_bounds_of_both() {
        let (mut up, mut down) = (vector(&[(1, 5), (2, 1)]), vector(&[(1, 5), (2, 1)]));
        let other = vector(&[(1, 3), (3, 4)]);
        up.merge(&other);
        down.meet(&other);
        assert_eq!(up, vector(&[(1, 5), (2, 1), (3, 4)]));
        assert_eq!(down, vector(&[(1, 3)]));
        assert!(up.includes(&other) && other.includes(&down) && !other.includes(&up));
        assert_eq!(up.beyond(&other), vector(&[(1, 5), (2, 1)]));
        assert_eq!(up.to_string(), "1:5 2:1 3:4");
        assert_eq!(up.to_string().parse(), Ok(up));
        assert!("1:5 2".parse::<VersionVector>().is_err() && "0:1".parse::<VersionVector>().is_err());
    }
}
