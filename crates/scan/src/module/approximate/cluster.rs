//! Clusters of adjacent ends: one hit each, also across the borders of blocks.
//!
//! Approximate matches come in groups: beside an end with one edit there are mostly ends with two. A cluster is a
//! maximal run of ends `e, e + 1, …` of one lane. Its hit is the end with the least distance, the leftmost of equal ones.

/// Bytes of a match that a hit shows.
pub(in crate::module) const MOST_TEXT: usize = 1100;

/// Run of adjacent ends of one lane. A lane is a pattern, or one strand of a pattern.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::module) struct Cluster {
    /// Number of the lane.
    pub(in crate::module) lane: usize,
    /// First end of the run.
    pub(in crate::module) first: u64,
    /// Last end of the run.
    pub(in crate::module) last: u64,
    /// End with the least distance.
    pub(in crate::module) best: u64,
    /// Least distance of the run.
    pub(in crate::module) distance: u32,
}

impl Cluster {
    fn new(lane: usize, end: u64, distance: u32) -> Self {
        Self { lane, first: end, last: end, best: end, distance }
    }
}

/// Adds an end to the clusters of its lane. Ends come in ascending order.
pub(in crate::module) fn push_end(clusters: &mut Vec<Cluster>, lane: usize, end: u64, distance: u32) {
    match clusters.last_mut() {
        Some(cluster) if cluster.lane == lane && cluster.last + 1 == end => {
            cluster.last = end;
            if distance < cluster.distance {
                (cluster.best, cluster.distance) = (end, distance);
            }
        }
        _ => clusters.push(Cluster::new(lane, end, distance)),
    }
}

/// Match at the best end of a cluster.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::module) struct Match {
    /// Cluster that the match represents.
    pub(in crate::module) cluster: Cluster,
    /// Offset of the first byte.
    pub(in crate::module) start: u64,
    /// First bytes of the matched text.
    pub(in crate::module) text: Vec<u8>,
}

impl Match {
    /// Makes the match of a cluster from a text that begins at an offset, and from the length of the match.
    pub(in crate::module) fn new(cluster: Cluster, text: &[u8], offset: u64, length: usize) -> Self {
        let start = cluster.best - length as u64;
        let at = (start - offset) as usize;
        let text = text[at..at + length.min(MOST_TEXT)].to_vec();
        Self { cluster, start, text }
    }
}

/// Matches whose clusters may go on in the next part of an item: at most one for each lane.
#[derive(Debug, Default)]
pub(in crate::module) struct Pending {
    matches: Vec<Match>,
}

impl Pending {
    /// Adds the matches of all ends up to `border`, and returns those whose clusters are complete.
    ///
    /// The returned matches are ordered by the last ends of their clusters, then by lane. This order does not depend on borders.
    pub(in crate::module) fn add(&mut self, found: Vec<Match>, border: u64) -> Vec<Match> {
        let mut matches = std::mem::take(&mut self.matches);
        let waiting = matches.len();
        for mut next in found {
            let joined = matches[..waiting].iter_mut().find(|earlier| {
                earlier.cluster.lane == next.cluster.lane && earlier.cluster.last + 1 == next.cluster.first
            });
            match joined {
                Some(earlier) => {
                    next.cluster.first = earlier.cluster.first;
                    if earlier.cluster.distance <= next.cluster.distance {
                        earlier.cluster.last = next.cluster.last;
                    } else {
                        *earlier = next;
                    }
                }
                None => matches.push(next),
            }
        }
        matches.sort_unstable_by_key(|found| (found.cluster.last, found.cluster.lane));
        let complete = matches.partition_point(|found| found.cluster.last < border);
        self.matches = matches.split_off(complete);
        matches
    }

    /// Returns all matches that wait, at the end of the item.
    pub(in crate::module) fn finish(&mut self) -> Vec<Match> {
        std::mem::take(&mut self.matches)
    }
}

#[cfg(test)]
mod tests {
    use super::{Match, Pending, push_end};

    fn matches(ends: &[(u64, u32)]) -> Vec<Match> {
        let mut clusters = Vec::new();
        for (end, distance) in ends {
            push_end(&mut clusters, 0, *end, *distance);
        }
        clusters.into_iter().map(|cluster| Match::new(cluster, &[0; 32], 0, 1)).collect()
    }

    #[test]
    fn a_cluster_across_borders_is_one_match_with_its_leftmost_best_end() {
        let ends = [(3, 2), (4, 1), (5, 1), (6, 2), (9, 2), (10, 2)];
        let whole = matches(&ends);
        assert_eq!(whole.iter().map(|found| found.cluster.best).collect::<Vec<_>>(), [4, 9]);
        for border in 0..12 {
            let mut pending = Pending::default();
            let (left, right): (Vec<_>, Vec<_>) = ends.into_iter().partition(|(end, _)| *end <= border);
            let mut found = pending.add(matches(&left), border);
            found.extend(pending.add(matches(&right), 12));
            found.extend(pending.finish());
            assert_eq!(found, whole, "border {border}");
        }
    }
}
