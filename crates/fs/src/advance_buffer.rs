//! Advance buffer of one open file: which ranges to fetch for a read, and which to forget. No I/O, no clock, no bytes.
//!
//! Each read belongs to a stream of sequential reads, or begins one. A new stream fetches its request only. Each further
//! request of it may fetch as much ahead as the stream has read so far, up to a limit. So a file is never fetched more than
//! twice as far as it is read, and random access fetches nothing ahead.

use std::collections::BTreeMap;
use std::ops::Range;

/// Streams that are told apart in one file: interleaved readers.
const STREAMS: usize = 8;

/// Distance behind a stream within which a read belongs to it, and bytes are kept: programs look back a little.
const BACK: u64 = 256 << 10;

/// Distance before a stream within which a read belongs to it: the kernel sends parts of one read in any order.
const FORWARD: u64 = 1 << 20;

/// Most bytes in one range: ranges are fetched in parallel.
const PIECE: u64 = 4 << 20;

/// Least bytes that are worth a request of their own.
const LEAST: u64 = 128 << 10;

/// Way in which a file is fetched ahead.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BufferMode {
    /// Each read fetches its bytes only.
    Off,
    /// A read beyond the buffer fetches so many bytes.
    Fixed(u64),
    /// Sequential reads fetch more and more ahead, at most so many bytes.
    Adaptive(u64),
}

/// Effect of a read.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ReadPlan {
    /// Ranges that the read waits for and that nobody has fetched.
    pub needed: Vec<Range<u64>>,
    /// Ranges that are fetched ahead.
    pub ahead: Vec<Range<u64>>,
    /// Ranges that are not needed after this read.
    pub dropped: Vec<Range<u64>>,
}

/// Sequence of reads, each of which begins near the end of the one before.
#[derive(Clone, Copy, Debug)]
struct Stream {
    /// Offset behind the bytes that were read.
    next: u64,
    /// Bytes that may be fetched ahead, before the limit: grows with sequential reads, shrinks with seeks.
    credit: u64,
    /// Offset behind the bytes that were fetched for the stream.
    end: u64,
}

/// Advance buffer of one open file.
#[derive(Clone, Debug)]
pub struct AdvanceBuffer {
    mode: BufferMode,
    size: u64,
    /// Streams, the last used one last.
    streams: Vec<Stream>,
    /// Fetched ranges, also those under way: their ends by their beginnings. They do not overlap.
    held: BTreeMap<u64, u64>,
    asked: u64,
    fetched: u64,
}

impl AdvanceBuffer {
    /// Makes the empty buffer of a file of a size.
    pub fn new(mode: BufferMode, size: u64) -> Self {
        Self { mode, size, streams: Vec::new(), held: BTreeMap::new(), asked: 0, fetched: 0 }
    }

    /// Decides what a read fetches. At most `room` bytes are fetched ahead.
    pub fn read(&mut self, offset: u64, length: u64, room: u64) -> ReadPlan {
        let range = offset.min(self.size)..offset.saturating_add(length).min(self.size);
        if range.is_empty() {
            return ReadPlan::default();
        }
        self.asked += range.end - range.start;
        match self.mode {
            BufferMode::Off => self.plain(range),
            BufferMode::Fixed(size) => self.fixed(range, size, room),
            BufferMode::Adaptive(limit) => self.adaptive(&range, limit, room),
        }
    }

    /// True if a range is kept for later reads.
    pub(crate) fn holds(&self, range: &Range<u64>) -> bool {
        self.held.get(&range.start) == Some(&range.end)
    }

    /// Forgets a range whose fetch failed, or whose memory is needed elsewhere.
    pub fn forget(&mut self, range: &Range<u64>) {
        if self.holds(range) {
            self.held.remove(&range.start);
        }
    }

    fn plain(&mut self, range: Range<u64>) -> ReadPlan {
        let dropped = self.drop_all();
        self.fetched += range.end - range.start;
        ReadPlan { needed: vec![range], dropped, ..ReadPlan::default() }
    }

    /// The buffer of the paper: one contiguous range, which a read beyond it replaces.
    fn fixed(&mut self, range: Range<u64>, size: u64, room: u64) -> ReadPlan {
        if self.missing(&range).is_empty() {
            return ReadPlan::default();
        }
        if range.end - range.start >= size {
            return self.plain(range);
        }
        let end = range.end + (size - (range.end - range.start)).min(room).min(self.size - range.end);
        let dropped = self.drop_all();
        let whole = range.start..end;
        self.hold(&whole);
        ReadPlan { needed: vec![whole], dropped, ..ReadPlan::default() }
    }

    fn adaptive(&mut self, range: &Range<u64>, limit: u64, room: u64) -> ReadPlan {
        let missing = self.missing(range);
        let stream = self.advance(range);
        let needed: Vec<Range<u64>> = missing.iter().flat_map(pieces).collect();
        for piece in &needed {
            self.hold(piece);
        }
        let allowance = (2 * self.asked).saturating_sub(self.fetched).min(room);
        let window = stream.credit.min(limit);
        let (from, to) = (stream.end.max(range.end), stream.next.saturating_add(window).min(self.size));
        let length = to.saturating_sub(from).min(allowance);
        // Small steps would be many requests, and nothing is left behind the end of the file.
        let is_worth_it = length >= LEAST.max(window / 4) || (length > 0 && from + length == self.size);
        let mut ahead = Vec::new();
        if is_worth_it {
            ahead = self.missing(&(from..from + length)).iter().flat_map(pieces).collect();
            for piece in &ahead {
                self.hold(piece);
            }
            if let Some(stream) = self.streams.last_mut() {
                stream.end = from + length;
            }
        }
        ReadPlan { needed, ahead, dropped: self.drop_behind(range) }
    }

    /// Finds the stream of a read or begins one, makes it the last one, and moves it behind the read.
    fn advance(&mut self, range: &Range<u64>) -> Stream {
        let distance = |stream: &Stream| {
            let reach = FORWARD.max(stream.end.saturating_sub(stream.next));
            let near = stream.next.saturating_sub(BACK)..=stream.next.saturating_add(reach);
            near.contains(&range.start).then(|| stream.next.abs_diff(range.start))
        };
        let found = self.streams.iter().enumerate();
        let found = found.filter_map(|(at, stream)| Some((distance(stream)?, at))).min();
        let mut stream = match found {
            Some((_, at)) => self.streams.remove(at),
            None => Stream { next: range.start, credit: 0, end: range.end },
        };
        let is_new = found.is_none();
        let skipped = range.start.saturating_sub(stream.next);
        let read = range.end.saturating_sub(stream.next).min(range.end - range.start);
        // The first read alone tells nothing: it may be random access.
        stream.credit = if is_new { 0 } else { stream.credit.max(read) + read };
        stream.credit = stream.credit.saturating_sub(skipped);
        stream.next = stream.next.max(range.end);
        stream.end = stream.end.max(stream.next);
        if self.streams.len() >= STREAMS {
            self.streams.remove(0);
        }
        self.streams.push(stream);
        stream
    }

    /// Parts of a range that are not held.
    fn missing(&self, range: &Range<u64>) -> Vec<Range<u64>> {
        let mut missing = Vec::new();
        let mut at = range.start;
        let before = self.held.range(..=range.start).next_back();
        for (start, end) in
            before.into_iter().chain(self.held.range(range.start + 1..range.end.max(range.start + 1)))
        {
            if *start > at {
                missing.push(at..*start);
            }
            at = at.max(*end);
        }
        if at < range.end {
            missing.push(at..range.end);
        }
        missing
    }

    fn hold(&mut self, range: &Range<u64>) {
        self.held.insert(range.start, range.end);
        self.fetched += range.end - range.start;
    }

    fn drop_all(&mut self) -> Vec<Range<u64>> {
        std::mem::take(&mut self.held).into_iter().map(|(start, end)| start..end).collect()
    }

    /// Drops the ranges that no stream will read soon.
    fn drop_behind(&mut self, now: &Range<u64>) -> Vec<Range<u64>> {
        let streams = &self.streams;
        let is_needed = |start: u64, end: u64| {
            let is_near = |stream: &Stream| end > stream.next.saturating_sub(BACK) && start < stream.end;
            (start < now.end && end > now.start) || streams.iter().any(is_near)
        };
        let dropped: Vec<_> =
            self.held.iter().filter(|(start, end)| !is_needed(**start, **end)).map(|(s, e)| *s..*e).collect();
        for range in &dropped {
            self.held.remove(&range.start);
        }
        dropped
    }
}

/// Parts of a range that are fetched at the same time.
fn pieces(range: &Range<u64>) -> impl Iterator<Item = Range<u64>> + use<> {
    let (start, end) = (range.start, range.end);
    (start..end).step_by(PIECE as usize).map(move |at| at..(at + PIECE).min(end))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const KIB: u64 = 1 << 10;
    const MIB: u64 = 1 << 20;

    fn fetched(plan: &ReadPlan) -> u64 {
        plan.needed.iter().chain(&plan.ahead).map(|range| range.end - range.start).sum()
    }

    #[test]
    fn sequential_reads_fetch_twice_as_much_each_time() {
        let mut buffer = AdvanceBuffer::new(BufferMode::Adaptive(16 * MIB), 1 << 30);
        let mut requests = 0;
        for at in (0..64 * MIB).step_by(128 << 10) {
            let plan = buffer.read(at, 128 * KIB, u64::MAX);
            requests += plan.needed.len() + plan.ahead.len();
        }
        // 64 MiB and a window of 16 MiB, most of them in pieces of 4 MiB.
        assert!((16..60).contains(&requests), "{requests}");
        assert!(buffer.fetched <= 80 * MIB + 128 * KIB, "{}", buffer.fetched);
    }

    #[test]
    fn interleaved_readers_are_two_streams() {
        let mut buffer = AdvanceBuffer::new(BufferMode::Adaptive(8 * MIB), 1 << 30);
        let mut waits = 0;
        for turn in 0..200 {
            for begin in [0, 512 * MIB] {
                let plan = buffer.read(begin + turn * 128 * KIB, 128 * KIB, u64::MAX);
                waits += usize::from(turn > 10 && !plan.needed.is_empty());
            }
        }
        assert_eq!(waits, 0);
    }

    #[test]
    fn a_file_that_is_read_backwards_fetches_nothing_ahead() {
        let mut buffer = AdvanceBuffer::new(BufferMode::Adaptive(8 * MIB), 1 << 30);
        for turn in (0..100).rev() {
            let plan = buffer.read(turn * 2 * MIB, 4 * KIB, u64::MAX);
            assert_eq!(fetched(&plan), 4 * KIB);
        }
    }

    #[test]
    fn a_fixed_buffer_is_filled_at_each_miss() {
        let mut buffer = AdvanceBuffer::new(BufferMode::Fixed(MIB), 3 * MIB + 5);
        let mut requests = 0;
        for at in (0..3 * MIB + 5).step_by(8 << 10) {
            requests += buffer.read(at, 8 * KIB, u64::MAX).needed.len();
        }
        assert_eq!(requests, 4);
        assert_eq!(fetched(&buffer.read(0, 2 * MIB, u64::MAX)), 2 * MIB);
    }

    proptest! {
        #[test]
        fn a_read_is_covered_and_the_rest_is_bounded(
            reads in proptest::collection::vec((0_u64..40 * MIB, 1_u64..300_000, any::<bool>(), 0_u64..4 * MIB), 1..200),
            mode in prop_oneof![Just(BufferMode::Off), Just(BufferMode::Fixed(MIB)), Just(BufferMode::Adaptive(8 * MIB))],
        ) {
            let size = 30 * MIB;
            let mut buffer = AdvanceBuffer::new(mode, size);
            let mut present: Vec<Range<u64>> = Vec::new();
            let (mut next, mut asked, mut total) = (0, 0, 0);
            for (offset, length, is_sequential, room) in reads {
                let offset = if is_sequential { next } else { offset };
                let range = offset.min(size)..(offset + length).min(size);
                next = range.end;
                asked += range.end - range.start;
                let plan = buffer.read(offset, length, room);
                let mut seen: Vec<Range<u64>> = present.clone();
                seen.extend(plan.needed.iter().cloned());
                seen.sort_by_key(|range| range.start);
                let mut at = range.start;
                for part in &seen {
                    if part.start <= at && part.end > at {
                        at = part.end;
                    }
                }
                prop_assert!(range.is_empty() || at >= range.end, "{range:?} {seen:?}");
                let ahead: u64 = plan.ahead.iter().map(|range| range.end - range.start).sum();
                prop_assert!(ahead <= room);
                total += fetched(&plan);
                if matches!(mode, BufferMode::Adaptive(_)) {
                    // A read may fetch a dropped range again.
                    prop_assert!(plan.ahead.is_empty() || total <= 2 * asked, "{total} of {asked}");
                }
                if mode != BufferMode::Off {
                    present.extend(plan.needed.iter().chain(&plan.ahead).cloned());
                }
                present.retain(|range| !plan.dropped.contains(range));
                let held: Vec<_> = buffer.held.iter().map(|(start, end)| *start..*end).collect();
                prop_assert!(held.windows(2).all(|pair| pair[0].end <= pair[1].start));
            }
        }
    }
}
