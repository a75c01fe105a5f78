//! Assembler of elements out of fragments, over chunks and slots.

use super::item::Missing;
use holdfast_base::{Age, MAX_ELEMENT, Ordinal, StreamId, Timestamp};
use holdfast_format::{Flags, Row};

/// Bytes of all elements that are being collected: the largest element, and some of the usual size beside it.
const MOST: usize = MAX_ELEMENT as usize + (256 << 20);

/// Elements collected at once: more means that the ends of many were lost.
const MOST_OPEN: usize = 1024;

/// An element of which not all fragments are there yet.
#[derive(Clone, Debug)]
pub(crate) struct PartialElement {
    pub(crate) stream: StreamId,
    pub(crate) ordinal: Ordinal,
    /// Arrival of its first byte.
    pub(crate) first: Timestamp,
    /// Arrival of the last byte so far.
    pub(crate) arrival: Timestamp,
    pub(crate) event: Option<Timestamp>,
    pub(crate) flags: Flags,
    pub(crate) tag: u16,
    pub(crate) extra: u32,
    pub(crate) meta: Vec<u8>,
    pub(crate) data: Vec<u8>,
    /// Number of the fragment that comes next.
    next: u32,
    /// The age of the slot that its last fragment so far is in.
    pub(crate) age: Age,
    /// Set when it can never become whole.
    pub(crate) spoiled: Option<Missing>,
}

/// What to do with a fragment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum FragmentStep {
    /// Append its bytes to the open element with this index.
    Append(usize),
    /// It adds nothing; the open element with this index, if it is known, goes on without.
    Skip(Option<usize>),
    /// A fragment of the open element with this index is missing before it.
    Hole(usize),
    /// What comes before it has not been seen.
    Orphan,
}

/// All elements that are being collected.
#[derive(Debug, Default)]
pub(crate) struct Assembler {
    open: Vec<PartialElement>,
    /// Those that had to make room: to be reported.
    evicted: Vec<PartialElement>,
    bytes: usize,
}

impl PartialElement {
    /// Begins with what a row says.
    pub(crate) fn begin(stream: StreamId, row: &Row) -> Self {
        let event = row.flags.has(Flags::EVENT).then_some(row.event);
        Self {
            stream,
            ordinal: row.ordinal,
            first: row.first_arrival(),
            arrival: row.arrival,
            event,
            flags: Flags(row.flags.0 & !Flags::LAST.0),
            tag: row.tag,
            extra: row.extra,
            meta: Vec::new(),
            data: Vec::new(),
            next: 0,
            age: Age(0),
            spoiled: None,
        }
    }

    /// Whether this row continues it without a hole.
    pub(crate) fn continues(&self, row: &Row) -> bool {
        self.next == row.number && self.data.len() as u64 == row.offset
    }

    /// Takes note of a fragment, in a slot of this age, whose bytes have been appended.
    pub(crate) fn note(&mut self, row: &Row, age: Age) {
        self.next = row.number.saturating_add(1);
        self.age = age;
        self.seen(row);
    }

    fn seen(&mut self, row: &Row) {
        self.first = self.first.min(row.first_arrival());
        self.arrival = self.arrival.max(row.arrival);
        self.flags = Flags(self.flags.0 | row.flags.0 & !Flags::LAST.0);
        self.extra = self.extra.max(row.extra);
        // A source may know its tag only at the end.
        self.tag = row.tag;
        if row.flags.has(Flags::EVENT) {
            self.event = Some(row.event);
        }
    }

    fn spoil(&mut self, why: Missing) {
        self.spoiled.get_or_insert(why);
        self.data = Vec::new();
        self.meta = Vec::new();
    }
}

impl Assembler {
    /// Looks at a fragment.
    pub(crate) fn step(&mut self, stream: StreamId, row: &Row) -> FragmentStep {
        let found = self.open.iter().position(|open| open.ordinal == row.ordinal && open.stream == stream);
        let Some(at) = found else {
            if row.number != 0 {
                return FragmentStep::Orphan;
            }
            self.insert(PartialElement::begin(stream, row));
            return FragmentStep::Append(self.open.len() - 1);
        };
        let room = MOST.saturating_sub(self.bytes);
        let open = &mut self.open[at];
        if open.spoiled.is_some() {
            open.seen(row);
            return FragmentStep::Skip(Some(at));
        }
        if row.number < open.next {
            return FragmentStep::Skip(Some(at));
        }
        if !open.continues(row) {
            open.seen(row);
            return FragmentStep::Hole(at);
        }
        let why = if row.payload() > room {
            Some(Missing::Memory)
        } else if open.data.len() as u64 + u64::from(row.len) > MAX_ELEMENT {
            Some(Missing::Damaged)
        } else {
            None
        };
        if let Some(why) = why {
            open.seen(row);
            self.spoil(at, why);
            return FragmentStep::Skip(Some(at));
        }
        FragmentStep::Append(at)
    }

    /// Takes an element in, such as one whose beginning was looked up.
    pub(crate) fn insert(&mut self, open: PartialElement) -> usize {
        if self.open.len() >= MOST_OPEN {
            self.spoil(0, Missing::Memory);
            let gone = self.open.remove(0);
            self.evicted.push(gone);
        }
        self.bytes += open.data.len() + open.meta.len();
        self.open.push(open);
        self.open.len() - 1
    }

    /// The open element that [`Assembler::step`] named, to append to; [`Assembler::appended`] comes afterwards.
    pub(crate) fn open(&mut self, at: usize) -> &mut PartialElement {
        &mut self.open[at]
    }

    /// The bytes of the fragment, in a slot of this age, have been appended.
    pub(crate) fn appended(&mut self, at: usize, row: &Row, age: Age) {
        self.open[at].note(row, age);
        self.bytes += row.payload();
    }

    /// The age of the slot that the last fragment of an open element so far is in.
    pub(crate) fn age(&self, at: usize) -> Age {
        self.open[at].age
    }

    /// It can never become whole.
    pub(crate) fn spoil(&mut self, at: usize, why: Missing) {
        let open = &mut self.open[at];
        self.bytes = self.bytes.saturating_sub(open.data.len() + open.meta.len());
        open.spoil(why);
    }

    /// Takes an element out that is over.
    pub(crate) fn take(&mut self, at: usize) -> PartialElement {
        let open = self.open.swap_remove(at);
        self.bytes = self.bytes.saturating_sub(open.data.len() + open.meta.len());
        open
    }

    /// Takes out the element that a row aborts.
    pub(crate) fn abort(&mut self, stream: StreamId, ordinal: Ordinal) -> Option<PartialElement> {
        let at = self.open.iter().position(|open| open.ordinal == ordinal && open.stream == stream)?;
        Some(self.take(at))
    }

    /// What a crash cut off, by stream and ordinals, can never become whole.
    pub(crate) fn cut_off(&mut self, stream: StreamId, ordinals: std::ops::Range<u64>) {
        for at in 0..self.open.len() {
            if self.open[at].stream == stream && ordinals.contains(&self.open[at].ordinal.0) {
                self.spoil(at, Missing::Unfinished);
            }
        }
    }

    /// Ends the collection: what is left, by stream and ordinal.
    pub(crate) fn finish(&mut self) -> Vec<PartialElement> {
        self.bytes = 0;
        let mut left = std::mem::take(&mut self.open);
        left.append(&mut self.evicted);
        left.sort_by_key(|open| (open.stream, open.ordinal));
        left
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use holdfast_format::Kind;

    fn row(ordinal: u64, number: u32, offset: u64, len: u32) -> Row {
        Row { kind: Kind::Fragment, ordinal: Ordinal(ordinal), number, offset, len, ..Row::default() }
    }

    #[test]
    fn a_hole_is_seen_and_a_crash_ends_what_it_cut_off() {
        let mut assembler = Assembler::default();
        let stream = StreamId(1);
        let first = row(7, 0, 0, 3);
        assert_eq!(assembler.step(stream, &first), FragmentStep::Append(0));
        assembler.open(0).data.extend_from_slice(b"abc");
        assembler.appended(0, &first, Age(5));
        assert_eq!(assembler.step(stream, &row(7, 2, 6, 3)), FragmentStep::Hole(0));
        for (stream, ordinals, spoiled) in
            [(2, 0..9, None), (1, 8..9, None), (1, 7..9, Some(Missing::Unfinished))]
        {
            assembler.cut_off(StreamId(stream), ordinals);
            assert_eq!((assembler.open(0).spoiled, assembler.open(0).age), (spoiled, Age(5)));
        }
        assert_eq!(
            (assembler.step(stream, &row(7, 1, 3, 3)), assembler.bytes),
            (FragmentStep::Skip(Some(0)), 0)
        );
    }

    #[test]
    fn interleaved_elements_do_not_mix() {
        let mut assembler = Assembler::default();
        for (stream, number, bytes) in [(1, 0, b"ab"), (2, 0, b"xy"), (1, 1, b"cd"), (2, 1, b"zz")] {
            let row = row(0, number, u64::from(number) * 2, 2);
            let FragmentStep::Append(at) = assembler.step(StreamId(stream), &row) else {
                panic!("{stream} {number}")
            };
            assembler.open(at).data.extend_from_slice(bytes);
            assembler.appended(at, &row, Age(0));
        }
        let left: Vec<Vec<u8>> = assembler.finish().into_iter().map(|open| open.data).collect();
        assert_eq!(left, [b"abcd".to_vec(), b"xyzz".to_vec()]);
    }

    #[test]
    fn a_fragment_without_a_beginning_is_an_orphan_and_a_repeated_one_is_skipped() {
        let mut assembler = Assembler::default();
        assert_eq!(assembler.step(StreamId(0), &row(3, 1, 5, 5)), FragmentStep::Orphan);
        let first = row(3, 0, 0, 1);
        assert_eq!(assembler.step(StreamId(0), &first), FragmentStep::Append(0));
        assembler.open(0).data.extend_from_slice(b"a");
        assembler.appended(0, &first, Age(0));
        assert_eq!(assembler.step(StreamId(0), &first), FragmentStep::Skip(Some(0)));
    }
}
