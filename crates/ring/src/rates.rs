//! Rate limits of streams: a token bucket a stream, of bytes and of elements. Data within the declared rate
//! is packed at once; data beyond it takes only what other streams leave. A pure value: the caller passes
//! times and owns the buffers.

use crate::Declared;
use holdfast_base::Timestamp;
use holdfast_format::ElementLoad;
use std::time::Duration;

/// A token of a bucket that fills every second by its rate is so many parts.
const PARTS: i128 = 1_000_000_000;

/// Seconds of its rate by which a stream may be early before that is told of.
const EARLY: u64 = 1;

/// Bytes on the medium that an element takes besides its own, at most, rounded up.
const ROW: u64 = 64;

/// What has arrived of a stream and is to be packed in one go.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Piece {
    /// When its last byte arrived.
    pub arrived: Timestamp,
    /// Bytes of payload.
    pub bytes: u64,
    /// Elements that begin in it.
    pub elements: u64,
}

impl Piece {
    /// What it takes of a slot, at most, where elements take so much beside their payload.
    fn on_medium(&self, each: &ElementLoad) -> u64 {
        let cells = each.of_size(self.bytes.div_ceil(self.elements.max(1)));
        self.bytes + (ROW + cells.total()) * self.elements
    }
}

/// What becomes of a piece.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum RateVerdict {
    /// It is within what was declared.
    Within,
    /// It is beyond that, and there is room for it all the same.
    Beyond,
    /// It waits: until then, or until there is room again.
    Held(Timestamp),
}

/// Bytes on the medium that may pass beyond what was declared.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Spare {
    /// Of a stream beside others: what these are not entitled to.
    pub beside: u64,
    /// Of a stream that nobody is to be protected from.
    pub alone: u64,
}

impl Spare {
    /// As much as there is.
    pub const ALL: Self = Self { beside: u64::MAX, alone: u64::MAX };
}

/// What passed beyond the declared rate, in the long run: what is early by less than a second is not.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Excess {
    /// Bytes of payload.
    pub bytes: u64,
    /// Elements.
    pub elements: u64,
}

/// Tokens. They are taken on credit: what begins within the rate is taken whole.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Bucket {
    rate: u64,
    most: i128,
    level: i128,
}

impl Bucket {
    fn new(rate: u64, burst: u64) -> Self {
        let most = i128::from(burst) * PARTS;
        Self { rate, most, level: most }
    }

    fn fill(&mut self, nanos: i128) {
        self.level = (self.level + i128::from(self.rate) * nanos).min(self.most);
    }

    fn take(&mut self, tokens: u64) {
        self.level -= i128::from(tokens) * PARTS;
    }

    /// The same, and what was missing is not owed, but told.
    fn take_beyond(&mut self, tokens: u64) -> u64 {
        self.take(tokens);
        let missing = u64::try_from(-self.level.min(0) / PARTS).unwrap_or(u64::MAX);
        self.level += i128::from(missing) * PARTS;
        missing
    }

    /// Nanoseconds until nothing is owed; `None` where that never comes.
    fn owes(&self) -> Option<i128> {
        match (self.level, i128::from(self.rate)) {
            (_, 0) => None,
            (level, _) if level >= 0 => Some(0),
            (level, rate) => Some((rate - 1 - level) / rate),
        }
    }
}

/// What one stream declared, or several together.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Share {
    bytes: Bucket,
    elements: Bucket,
    /// The same of all that passes, to tell what was beyond.
    all_bytes: Bucket,
    all_elements: Bucket,
    /// Until when the buckets are filled.
    at: Timestamp,
    /// Nobody else has declared anything that would have to be kept for him.
    alone: bool,
}

impl Share {
    fn new(declared: &Declared, begin: Timestamp) -> Self {
        let Declared { rate, elements, burst, .. } = *declared;
        // A burst has elements of the size that the rate has.
        let of_burst = u128::from(burst.0) * u128::from(elements) / u128::from(rate.0.max(1));
        let of_burst = u64::try_from(of_burst).unwrap_or(u64::MAX);
        Self {
            bytes: Bucket::new(rate.0, burst.0),
            elements: Bucket::new(elements, of_burst),
            all_bytes: Bucket::new(rate.0, burst.0.saturating_add(EARLY * rate.0)),
            all_elements: Bucket::new(elements, of_burst.saturating_add(EARLY * elements)),
            at: begin,
            alone: false,
        }
    }

    /// Fills the buckets as far as what arrived then has to wait: the time from which it is within the rate.
    fn due(&mut self, arrived: Timestamp) -> Timestamp {
        self.fill(arrived);
        let owes = self.bytes.owes().zip(self.elements.owes()).map(|(bytes, elements)| bytes.max(elements));
        let nanos = owes.and_then(|nanos| u64::try_from(nanos).ok());
        nanos.map_or(Timestamp::MAX, |nanos| self.at + Duration::from_nanos(nanos))
    }

    /// What of a piece that passes is beyond the rate.
    fn beyond(&mut self, piece: &Piece) -> Excess {
        let bytes = self.all_bytes.take_beyond(piece.bytes);
        Excess { bytes, elements: self.all_elements.take_beyond(piece.elements) }
    }

    fn fill(&mut self, to: Timestamp) {
        let nanos = i128::from(to.0) - i128::from(self.at.0);
        if nanos > 0 {
            for bucket in [&mut self.bytes, &mut self.elements, &mut self.all_bytes, &mut self.all_elements] {
                bucket.fill(nanos);
            }
            self.at = to;
        }
    }
}

/// The rates of all streams of a run.
///
/// It goes by when things arrived, not by when they are looked at: that the packer is late makes nobody too fast. Within
/// any time *t* a stream gets *burst + rate·t* and one piece through as [`RateVerdict::Within`].
#[derive(Clone, Debug)]
pub struct Rates {
    shares: Vec<Share>,
    /// By stream: whose share is its, and what its elements take beside their payload.
    of: Vec<(usize, ElementLoad)>,
    excess: Vec<Excess>,
}

impl Rates {
    /// What each stream declared. Those that declared nothing have `rest` together, each in its turn.
    pub fn new(streams: &[Option<Declared>], rest: &Declared, begin: Timestamp) -> Self {
        let mut shares = vec![Share::new(rest, begin)];
        let of = streams.iter().map(|declared| {
            let Some(declared) = declared else { return (0, rest.each) };
            shares.push(Share::new(declared, begin));
            (shares.len() - 1, declared.each)
        });
        let of = of.collect();
        let promised = |share: &Share| share.bytes.rate > 0;
        let all = shares.iter().filter(|share| promised(share)).count();
        for share in &mut shares {
            share.alone = all == usize::from(promised(share));
        }
        Self { shares, of, excess: vec![Excess::default(); streams.len()] }
    }

    /// What becomes of a piece of a stream now, where so much is to spare. A stream that nothing is known of is beyond its rate.
    pub fn pass(&mut self, stream: usize, piece: &Piece, spare: Spare, now: Timestamp) -> RateVerdict {
        let declared = self.of.get(stream).and_then(|(at, cells)| self.shares.get_mut(*at).zip(Some(cells)));
        let Some((own, cells)) = declared else {
            return if piece.on_medium(&ElementLoad::NONE) > spare.beside {
                RateVerdict::Held(Timestamp::MAX)
            } else {
                RateVerdict::Beyond
            };
        };
        let due = own.due(piece.arrived.min(now));
        let within = due <= now;
        if within {
            own.fill(due);
            own.bytes.take(piece.bytes);
            own.elements.take(piece.elements);
        } else if piece.on_medium(cells) > if own.alone { spare.alone } else { spare.beside } {
            return RateVerdict::Held(due);
        }
        let beyond = own.beyond(piece);
        if let Some(excess) = self.excess.get_mut(stream) {
            excess.bytes += beyond.bytes;
            excess.elements += beyond.elements;
        }
        if within { RateVerdict::Within } else { RateVerdict::Beyond }
    }

    /// What of a stream passed beyond its rate.
    pub fn excess(&self, stream: usize) -> Excess {
        self.excess.get(stream).copied().unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use holdfast_base::{ByteSize, Rate};
    use proptest::prelude::*;

    fn declared(rate: u64, elements: u64, burst: u64) -> Declared {
        Declared { rate: Rate(rate), elements, burst: ByteSize(burst), ..Declared::NOTHING }
    }

    /// So much beside others.
    fn spare(beside: u64) -> Spare {
        Spare { beside, ..Spare::ALL }
    }

    fn at(millis: i64) -> Timestamp {
        Timestamp(millis * 1_000_000)
    }

    const OTHER: Option<Declared> = Some(Declared { rate: Rate(1), elements: 1, ..Declared::NOTHING });

    const NOTHING: Declared = Declared::NOTHING;

    #[test]
    fn a_stream_at_its_rate_is_never_beyond_it_however_late_it_is_looked_at() {
        let mut rates = Rates::new(&[Some(declared(1000, 10, 0)), OTHER], &NOTHING, at(0));
        for n in 0..100 {
            let piece = Piece { arrived: at(n * 500), bytes: 500, elements: 5 };
            assert_eq!(rates.pass(0, &piece, spare(0), at(100_000)), RateVerdict::Within, "{n}");
        }
        let more = Piece { arrived: at(49_501), bytes: 1, elements: 0 };
        assert_eq!(rates.pass(0, &more, spare(0), at(49_501)), RateVerdict::Held(at(50_000)));
        assert_eq!(rates.pass(0, &more, spare(0), at(50_000)), RateVerdict::Within);
        assert_eq!(rates.excess(0), Excess::default());
    }

    #[test]
    fn elements_count_as_bytes_do_and_a_burst_is_both() {
        let mut rates = Rates::new(&[Some(declared(1000, 10, 5000)), OTHER], &NOTHING, at(0));
        let piece = |bytes, elements| Piece { arrived: at(0), bytes, elements };
        assert_eq!(rates.pass(0, &piece(100, 51), spare(0), at(0)), RateVerdict::Within);
        assert_eq!(
            rates.pass(0, &piece(1, 1), spare(64), at(0)),
            RateVerdict::Held(at(100)),
            "a row takes room"
        );
        assert_eq!(rates.pass(0, &piece(1, 1), spare(65), at(0)), RateVerdict::Beyond);
        assert_eq!(rates.pass(0, &piece(5000, 0), spare(0), at(100)), RateVerdict::Within);
        // Ten elements may be early by a second; of 52 there is one for each tenth of a second besides.
        assert_eq!(rates.excess(0), Excess::default());
        assert_eq!(
            rates.pass(0, &piece(2000, 20), spare(0), at(100)),
            RateVerdict::Within,
            "taken on credit"
        );
        assert_eq!(rates.excess(0), Excess { bytes: 5101 + 2000 - 6100, elements: 52 + 20 - 61 });
    }

    // What is told of a stream is what it is in the long run, not how its elements come.
    #[test]
    fn who_is_a_little_early_is_not_beyond_and_who_is_twice_too_fast_is_by_half() {
        for (times, beyond) in [(1, 0), (2, 9000)] {
            let mut rates = Rates::new(&[Some(declared(1000, 10, 0)), OTHER], &NOTHING, at(0));
            for n in 0..100 {
                // Every tenth of a second, a few thousandths early or late.
                let piece = Piece { arrived: at(n * 100 + n * 7 % 5), bytes: 100 * times, elements: times };
                assert_ne!(
                    rates.pass(0, &piece, spare(u64::MAX), at(n * 100 + 5)),
                    RateVerdict::Held(Timestamp::MAX)
                );
            }
            let Excess { bytes, elements } = rates.excess(0);
            assert!(
                bytes.abs_diff(beyond) <= 110 && elements.abs_diff(beyond / 100) <= 2,
                "{times}: {bytes} {elements}"
            );
        }
    }

    #[test]
    fn who_declares_nothing_shares_what_is_left_or_gets_only_what_is_spare() {
        let mut rates = Rates::new(&[None, Some(declared(1000, 10, 0)), None], &NOTHING, at(0));
        let piece = Piece { arrived: at(9), bytes: 10, elements: 0 };
        assert_eq!(rates.pass(0, &piece, spare(9), at(9)), RateVerdict::Held(Timestamp::MAX));
        assert_eq!(rates.pass(2, &piece, spare(10), at(9)), RateVerdict::Beyond);
        assert_eq!(
            rates.pass(7, &piece, spare(9), at(9)),
            RateVerdict::Held(Timestamp::MAX),
            "nobody knows it"
        );
        let mut rates = Rates::new(&[None, None, OTHER], &declared(1000, 10, 0), at(0));
        let piece = Piece { bytes: 1000, ..piece };
        assert_eq!(rates.pass(0, &piece, spare(0), at(9)), RateVerdict::Within);
        assert_eq!(rates.pass(1, &piece, spare(0), at(9)), RateVerdict::Held(at(1009)));
    }

    // The bursts that are published for a ring are ridden out, by whoever has it for himself.
    #[test]
    fn where_there_is_nobody_to_be_protected_nobody_is_held() {
        let piece = Piece { arrived: at(0), bytes: 10, elements: 0 };
        for streams in [vec![Some(declared(1, 1, 0))], vec![None, None]] {
            let rest = if streams[0].is_some() { NOTHING } else { declared(1, 1, 0) };
            let mut rates = Rates::new(&streams, &rest, at(0));
            assert_eq!(rates.pass(0, &piece, spare(0), at(0)), RateVerdict::Within);
            assert_eq!(rates.pass(0, &piece, spare(0), at(0)), RateVerdict::Beyond);
            let none = Spare { beside: u64::MAX, alone: 0 };
            assert!(matches!(rates.pass(0, &piece, none, at(0)), RateVerdict::Held(_)), "readers come first");
        }
        let mut rates = Rates::new(&[Some(declared(1, 1, 0)), None], &NOTHING, at(0));
        assert_eq!(
            rates.pass(1, &piece, spare(0), at(0)),
            RateVerdict::Held(Timestamp::MAX),
            "but who is promised nothing"
        );
        assert_eq!(
            [0, 0].map(|_| rates.pass(0, &piece, spare(0), at(0))),
            [RateVerdict::Within, RateVerdict::Beyond]
        );
    }

    proptest! {
        // Promise 1: in no window does a stream get more through as its own than it declared, and one piece; and
        // what keeps to its rate is never held, whatever the others bring.
        #[test]
        fn no_window_has_more_than_was_declared(
            rate in 1u64..5000, burst in 0u64..20_000, other in 1u64..50,
            steps in prop::collection::vec((0i64..2000, 1u64..3000, 0i64..500), 1..150),
        ) {
            let both = [Some(declared(rate, u64::MAX, burst)), Some(declared(rate, u64::MAX, 0))];
            let mut rates = Rates::new(&both, &NOTHING, at(0));
            // The naive model of the tame stream: it sends when its rate has paid for it.
            let (mut now, mut free, mut look, mut through) = (0, 0i64, 0i64, Vec::new());
            for (pause, bytes, late) in steps {
                now += pause;
                look = look.max(now + late);
                for _ in 0..other {
                    let wild = Piece { arrived: at(now), bytes, elements: 1 };
                    if rates.pass(0, &wild, spare(0), at(look)) == RateVerdict::Within {
                        through.push((look, bytes));
                    }
                }
                if now >= free {
                    let tame = Piece { arrived: at(now), bytes, elements: 1 };
                    prop_assert_eq!(rates.pass(1, &tame, spare(0), at(look)), RateVerdict::Within);
                    free = now + (bytes * 1000).div_ceil(rate) as i64;
                }
            }
            for (from, (begin, _)) in through.iter().enumerate() {
                let mut sum = 0;
                for (end, bytes) in &through[from..] {
                    // The lateness of looking may bring what arrived apart together.
                    let most = burst as f64 + rate as f64 * (end - begin + 500) as f64 / 1000.0;
                    prop_assert!(sum as f64 <= most + 1.0, "{} after {} ms", sum, end - begin);
                    sum += bytes;
                }
            }
        }
    }
}
