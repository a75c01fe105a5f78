//! Rate curve of a drive: how fast it streams from place to place, and how long a stretch takes (the integral
//! of one over the rate, solved). No heads, no time of day.

use holdfast_base::Rate;
use std::ops::Range;

/// A rate over the position on the whole drive, straight between its knots.
#[derive(Clone, Debug, PartialEq)]
pub struct Curve {
    /// Position (0 is the first byte of the whole drive, 1 its end) and rate there, in the order of position.
    knots: Vec<(f64, Rate)>,
}

impl Curve {
    /// The same everywhere.
    pub fn flat(rate: Rate) -> Self {
        Self { knots: vec![(0.0, Rate(rate.0.max(1)))] }
    }

    /// Through these: position from 0 to 1 and MiB a second, in any order, one a position. Before the first and past
    /// the last knot the rate stays as it is there; without any it is 1 MiB a second.
    pub fn through(knots: &[(f64, f64)]) -> Self {
        let rate = |mib: f64| Rate(((mib * f64::from(1 << 20)) as u64).max(1));
        let mut knots: Vec<_> = knots.iter().map(|(at, mib)| (at.clamp(0.0, 1.0), rate(*mib))).collect();
        knots.sort_by(|a, b| a.0.total_cmp(&b.0));
        knots.dedup_by_key(|(at, _)| *at);
        if knots.is_empty() {
            knots.push((0.0, rate(1.0)));
        }
        Self { knots }
    }

    /// Bytes a second at a position.
    pub fn at(&self, position: f64) -> f64 {
        let past = self.knots.partition_point(|(at, _)| *at <= position);
        let (before, after) = (past.checked_sub(1).map(|i| self.knots[i]), self.knots.get(past).copied());
        match (before, after) {
            (Some((a, low)), Some((b, high))) => {
                low.0 as f64 + (high.0 as f64 - low.0 as f64) * (position - a) / (b - a)
            }
            (Some((_, rate)), None) | (None, Some((_, rate))) => rate.0 as f64,
            (None, None) => 1.0,
        }
    }

    /// The slowest rate within a stretch of positions, in bytes a second: straight lines have theirs at an end.
    pub fn least(&self, stretch: Range<f64>) -> f64 {
        let inside = self.knots.iter().map(|(at, _)| *at).filter(|at| stretch.contains(at));
        inside.chain([stretch.start, stretch.end]).map(|at| self.at(at)).fold(f64::INFINITY, f64::min)
    }
}

/// A stretch on which the rate is a straight line. Bytes, nanoseconds, and bytes a nanosecond.
#[derive(Clone, Debug)]
struct Segment {
    begin: f64,
    end: f64,
    rate: f64,
    slope: f64,
    /// How long the drive streams from its first byte to `begin`.
    before: f64,
}

impl Segment {
    fn rate(&self, at: f64) -> f64 {
        self.rate + self.slope * (at - self.begin)
    }

    /// Nanoseconds from one byte to a later one of this stretch.
    fn time(&self, from: f64, to: f64) -> f64 {
        // ln(b / a) is twice the area tangent of (b - a) / (b + a); its series needs four terms for what is usual.
        let (len, middle) = (to - from, self.rate(f64::midpoint(from, to)));
        let half = self.slope * len / (2.0 * middle);
        let square = half * half;
        if square < 0.0025 {
            let series = 1.0 + square * (1.0 / 3.0 + square * (0.2 + square * (1.0 / 7.0 + square / 9.0)));
            return len / middle * series;
        }
        (self.rate(to) / self.rate(from)).ln() / self.slope
    }
}

/// A curve laid over the bytes of a drive.
#[derive(Clone, Debug)]
pub(super) struct Track {
    segments: Vec<Segment>,
}

impl Track {
    /// For a drive of `bytes` that stands for the `stretch` of the curve.
    pub(super) fn new(curve: &Curve, stretch: &Range<f64>, bytes: u64) -> Self {
        let bytes = bytes.max(1) as f64;
        let span = (stretch.end - stretch.start).max(f64::MIN_POSITIVE);
        let inside =
            curve.knots.iter().map(|(at, _)| *at).filter(|at| *at > stretch.start && *at < stretch.end);
        let mut ends: Vec<f64> = inside.collect();
        ends.push(stretch.end);
        let (mut segments, mut begin, mut before) = (Vec::with_capacity(ends.len()), 0.0, 0.0);
        let mut first = curve.at(stretch.start) / 1e9;
        for position in ends {
            let end = ((position - stretch.start) / span * bytes).min(bytes);
            let last = curve.at(position) / 1e9;
            if end > begin {
                let segment =
                    Segment { begin, end, rate: first, slope: (last - first) / (end - begin), before };
                before += segment.time(begin, end);
                segments.push(segment);
            }
            (begin, first) = (end, last);
        }
        Self { segments }
    }

    fn segment(&self, at: f64) -> &Segment {
        let last = self.segments.len() - 1;
        &self.segments[self.segments.iter().position(|segment| at < segment.end).unwrap_or(last)]
    }

    /// Bytes a nanosecond at a place.
    pub(super) fn rate(&self, at: u64) -> f64 {
        self.segment(at as f64).rate(at as f64)
    }

    /// Nanoseconds from the first byte of the drive to `at`, streaming.
    pub(super) fn before(&self, at: u64) -> f64 {
        let segment = self.segment(at as f64);
        segment.before + segment.time(segment.begin, at as f64)
    }

    /// Nanoseconds from `from` to `to`, streaming.
    pub(super) fn time(&self, from: u64, to: u64) -> f64 {
        let (first, last) = (self.segment(from as f64), self.segment(to as f64));
        if std::ptr::eq(first, last) {
            return first.time(from as f64, to as f64);
        }
        let (tail, head) = (first.time(from as f64, first.end), last.time(last.begin, to as f64));
        tail + (last.before - first.before - first.time(first.begin, first.end)) + head
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn a_stretch_takes_the_sum_of_its_small_pieces(
            knots in prop::collection::vec((0.0f64..1.0, 20.0f64..200.0), 1..6),
            ends in (0u64..1 << 30, 0u64..1 << 30),
            part in (0.0f64..0.9, 0.01f64..0.1),
        ) {
            let curve = Curve::through(&knots);
            let stretch = part.0..part.0 + part.1;
            let track = Track::new(&curve, &stretch, 1 << 30);
            let (from, to) = (ends.0.min(ends.1), ends.0.max(ends.1));
            let pieces = 2000;
            let width = (to - from) as f64 / f64::from(pieces);
            let naive: f64 = (0..pieces)
                .map(|n| from as f64 + (f64::from(n) + 0.5) * width)
                .map(|at| width * 1e9 / curve.at(stretch.start + part.1 * at / (1u64 << 30) as f64))
                .sum();
            let solved = track.time(from, to);
            prop_assert!((solved - naive).abs() <= naive * 2e-3 + 1.0, "{} {}", solved, naive);
            prop_assert!((track.before(to) - track.before(from) - solved).abs() <= solved * 1e-9 + 1e-3);
        }
    }

    #[test]
    fn steep_and_flat_curves_agree_with_the_formula() {
        let curve = Curve::through(&[(1.0, 50.0), (0.0, 100.0)]);
        let track = Track::new(&curve, &(0.0..1.0), 100 << 20);
        assert!((track.time(0, 100 << 20) - 2e9 * 2f64.ln()).abs() < 1.0);
        assert!((curve.least(0.2..0.6) / f64::from(1 << 20) - 70.0).abs() < 1e-5);
        let flat = Track::new(&Curve::flat(Rate(1 << 20)), &(0.0..1.0), 100 << 20);
        assert!((flat.time(5 << 20, 6 << 20) - 1e9).abs() < 1.0);
    }
}
