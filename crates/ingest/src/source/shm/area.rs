//! Layout of the shared-memory area of recorder and producer (docs/protocol.md, "Shared memory"), and the validation of
//! the producer's words. They are untrusted: read once, checked, and never read again.

use crate::framing::Framing;
use holdfast_base::ByteSize;
use holdfast_media::CommonMemory;
use std::io;
use std::os::fd::BorrowedFd;
use std::sync::atomic::{Ordering, fence};
use std::time::Duration;

/// Bytes of a ring unless said otherwise: a hundredth of a second at a GiB a second, and some.
pub const DEFAULT_AREA: ByteSize = ByteSize::mib(16);

/// Least and most bytes of a ring: a page, and more than any producer is ahead of its recorder.
pub const AREA_LIMITS: (ByteSize, ByteSize) = (ByteSize::kib(4), ByteSize::gib(1));

/// Bytes in front of the ring.
const HEAD: usize = 4096;

/// The first word, as the machine writes it: what it is, and its version.
const MAGIC: u64 = u64::from_le_bytes(*b"HFarea\0\x01");

/// Words that nobody changes.
mod about {
    pub(super) const MAGIC: usize = 0;
    pub(super) const SIZE: usize = 8;
    pub(super) const FRAMING: usize = 16;
    pub(super) const UNIT: usize = 24;
}

/// Words of the producer, in cache lines of their own.
mod theirs {
    /// Bytes put into the ring since the beginning.
    pub(super) const HEAD: usize = 128;
    /// Elements given up, their bytes, and the head when the last of them was.
    pub(super) const DROPPED: usize = 136;
    pub(super) const DROPPED_BYTES: usize = 144;
    pub(super) const DROPPED_AT: usize = 152;
    /// The tail that the producer waits for.
    pub(super) const BELL: usize = 160;
}

/// Words of the recorder, likewise.
mod ours {
    /// Bytes taken out of the ring since the beginning.
    pub(super) const TAIL: usize = 256;
    /// The head that the recorder waits for.
    pub(super) const BELL: usize = 264;
    /// See [`super::CloseStage`].
    pub(super) const CLOSED: usize = 272;
    /// Elements given up that are in gaps.
    pub(super) const COUNTED: usize = 280;
}

/// How far its end has come.
#[derive(Clone, Copy, Debug)]
pub(super) enum CloseStage {
    /// What is put from here on is not taken.
    Closing = 1,
    /// The tail does not move any more.
    Closed = 2,
}

/// What the producer says.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct ProducerState {
    pub(super) head: u64,
    pub(super) dropped: u64,
    pub(super) dropped_bytes: u64,
    pub(super) dropped_at: u64,
}

/// What has been taken so far, of a ring of so many bytes. Only the recorder knows: what stands in the area is for the
/// producer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct ConsumedState {
    pub(super) size: u64,
    pub(super) tail: u64,
    pub(super) dropped: u64,
    pub(super) dropped_bytes: u64,
}

/// What is to be done next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum AreaEvent {
    /// Up to so many bytes may be taken.
    Bytes(u64),
    /// Elements were given up here.
    Lost(u64, Option<u64>),
    /// Nothing.
    Nothing,
    /// No producer that goes by the rules says so.
    Broken,
}

/// Elements that may have been given up at once, however short the time was.
const AT_ONCE: u64 = 1000;

/// Bytes a nanosecond that may be given up and be believed: gaps of such bytes can be added up for years.
const BELIEVED: u64 = 64;

impl ConsumedState {
    /// What to make of the producer's words, `elapsed` after its losses were counted last; `between` elements, or inside
    /// of one.
    pub(super) fn next(&self, said: &ProducerState, between: bool, elapsed: Duration) -> AreaEvent {
        let there = said.head.wrapping_sub(self.tail);
        let lost = said.dropped.wrapping_sub(self.dropped);
        let elapsed = u64::try_from(elapsed.as_nanos()).unwrap_or(u64::MAX);
        // Nobody gives up more than one element a nanosecond for long: so ordinals cannot run out.
        if there > self.size || lost > elapsed.saturating_add(AT_ONCE) {
            return AreaEvent::Broken;
        }
        let mut upto = there;
        if lost > 0 {
            // Behind what was put before them. A place that was passed, or is nowhere, is here.
            let before = said.dropped_at.wrapping_sub(self.tail);
            if (1..=there).contains(&before) {
                upto = before;
            } else if between {
                let bytes = said.dropped_bytes.wrapping_sub(self.dropped_bytes);
                return AreaEvent::Lost(lost, Some(bytes).filter(|bytes| bytes / BELIEVED <= elapsed));
            }
        }
        if upto > 0 { AreaEvent::Bytes(upto) } else { AreaEvent::Nothing }
    }
}

/// The memory of one producer's visit. No other gets it: what one that has left still writes there goes nowhere.
#[derive(Debug)]
pub(super) struct Area {
    memory: CommonMemory,
    size: u64,
}

impl Area {
    /// With a ring of `bytes`, a power of two, for elements that are framed so.
    pub(super) fn new(bytes: ByteSize, framing: Framing) -> io::Result<Self> {
        let area = Self { memory: CommonMemory::new(HEAD + bytes.0 as usize)?, size: bytes.0 };
        let (kind, unit) = match framing {
            Framing::Fixed(n) => (1, n),
            Framing::Blocks(n) => (2, n),
            Framing::Lines => (3, 0),
            Framing::Len32 => (4, 0),
            Framing::Len32Be => (5, 0),
            Framing::Attr32 => (6, 0),
            Framing::Syslog => (7, 0),
            Framing::Whole => return Err(io::ErrorKind::InvalidInput.into()),
        };
        area.store(about::MAGIC, MAGIC);
        area.store(about::SIZE, bytes.0);
        area.store(about::FRAMING, kind);
        area.store(about::UNIT, unit);
        area.ask_bell(0, 1);
        Ok(area)
    }

    pub(super) fn fd(&self) -> Option<BorrowedFd<'_>> {
        self.memory.fd()
    }

    fn load(&self, at: usize) -> u64 {
        self.memory.word(at).map_or(0, |word| word.load(Ordering::Acquire))
    }

    fn store(&self, at: usize, value: u64) {
        if let Some(word) = self.memory.word(at) {
            word.store(value, Ordering::Release);
        }
    }

    /// The producer's words. Its head comes last, so that it is behind all that was put before what was given up.
    pub(super) fn said(&self) -> ProducerState {
        let dropped = self.load(theirs::DROPPED);
        let (dropped_bytes, dropped_at) = (self.load(theirs::DROPPED_BYTES), self.load(theirs::DROPPED_AT));
        ProducerState { head: self.load(theirs::HEAD), dropped, dropped_bytes, dropped_at }
    }

    /// Copies what stands in the ring from `at` on, around its end; `into` is no larger than the ring.
    pub(super) fn copy(&self, at: u64, into: &mut [u8]) {
        let start = (at % self.size) as usize;
        let (first, rest) = into.split_at_mut(into.len().min(self.size as usize - start));
        let copied = self.memory.copy(HEAD + start, first) && self.memory.copy(HEAD, rest);
        debug_assert!(copied, "{at} of {}", self.size);
    }

    /// Tells the producer that what is in front of `to` was taken, and until now only what is in front of `from`. Whether it
    /// waits for that.
    pub(super) fn took(&self, from: u64, to: u64) -> bool {
        self.store(ours::TAIL, to);
        fence(Ordering::SeqCst);
        let bell = self.load(theirs::BELL);
        from < bell && bell <= to
    }

    /// Tells the producer how many of its losses are in gaps.
    pub(super) fn counted(&self, dropped: u64) {
        self.store(ours::COUNTED, dropped);
    }

    /// Asks the producer to ring when its head gets to `bell`. Whether it is there already.
    pub(super) fn ask_bell(&self, tail: u64, bell: u64) -> bool {
        self.store(ours::BELL, bell);
        fence(Ordering::SeqCst);
        self.load(theirs::HEAD).wrapping_sub(tail) >= bell.wrapping_sub(tail)
    }

    /// Tells the producer of its end. What it puts before it sees that is seen in [`Area::said`] afterwards.
    pub(super) fn close(&self, how: CloseStage) {
        self.store(ours::CLOSED, how as u64);
        fence(Ordering::SeqCst);
    }
}

impl Drop for Area {
    fn drop(&mut self) {
        // The producer may keep its mapping for as long as it likes; our words, which it needs to see the end, stay.
        self.memory.empty_behind(HEAD);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const LONG: Duration = Duration::from_secs(1);

    fn taken(tail: u64, dropped: u64) -> ConsumedState {
        ConsumedState { size: 4096, tail, dropped, dropped_bytes: 0 }
    }

    #[test]
    fn losses_stand_behind_what_was_put_before_them() {
        let said = ProducerState { head: 300, dropped: 7, dropped_bytes: 70, dropped_at: 200 };
        assert_eq!(taken(100, 0).next(&said, true, LONG), AreaEvent::Bytes(100));
        assert_eq!(taken(200, 0).next(&said, true, LONG), AreaEvent::Lost(7, Some(70)));
        // The framing says that there the middle of an element is.
        assert_eq!(taken(200, 0).next(&said, false, LONG), AreaEvent::Bytes(100));
        assert_eq!(taken(300, 0).next(&said, false, LONG), AreaEvent::Nothing);
        assert_eq!(taken(300, 0).next(&said, true, LONG), AreaEvent::Lost(7, Some(70)));
        assert_eq!(taken(200, 7).next(&said, true, LONG), AreaEvent::Bytes(100));
        assert_eq!(taken(300, 7).next(&said, true, LONG), AreaEvent::Nothing);
    }

    #[test]
    fn what_cannot_be_is_not_believed() {
        let said = |head, dropped| ProducerState { head, dropped, ..ProducerState::default() };
        assert_eq!(taken(100, 0).next(&said(100 + 4097, 0), true, LONG), AreaEvent::Broken);
        assert_eq!(taken(100, 0).next(&said(99, 0), true, LONG), AreaEvent::Broken);
        assert_eq!(taken(100, 5).next(&said(100, 4), true, LONG), AreaEvent::Broken);
        assert_eq!(taken(0, 0).next(&said(0, 1_000_001_001), true, LONG), AreaEvent::Broken);
        assert_eq!(
            taken(0, 0).next(&said(0, 1_000_001_000), true, LONG),
            AreaEvent::Lost(1_000_001_000, Some(0))
        );
        let bytes = ProducerState { dropped_bytes: u64::MAX, ..said(0, 1) };
        assert_eq!(taken(0, 0).next(&bytes, true, LONG), AreaEvent::Lost(1, None));
    }

    proptest! {
        // Promise 8: whatever stands in the producer's words, what comes of them is within bounds, and comes to an end.
        #[test]
        fn any_words_lead_to_something_within_bounds(
            words in prop::array::uniform4(prop_oneof![any::<u64>(), 0u64..10_000]),
            from in prop::array::uniform3(0u64..10_000),
            insides in prop::collection::vec(any::<bool>(), 64),
        ) {
            let [head, dropped, dropped_bytes, dropped_at] = words;
            let said = ProducerState { head, dropped, dropped_bytes, dropped_at };
            let [tail, before, bytes] = from;
            let mut taken = ConsumedState { size: 4096, tail, dropped: before, dropped_bytes: bytes };
            for between in insides {
                match taken.next(&said, between, LONG) {
                    AreaEvent::Bytes(n) => {
                        prop_assert!((1..=head - taken.tail).contains(&n) && head - tail <= 4096);
                        taken.tail += n.min(1000);
                    }
                    AreaEvent::Lost(n, _) => {
                        prop_assert!(between && (1..=1_000_001_000).contains(&n));
                        prop_assert_eq!(taken.dropped.wrapping_add(n), dropped);
                        (taken.dropped, taken.dropped_bytes) = (dropped, dropped_bytes);
                    }
                    AreaEvent::Nothing => prop_assert_eq!(taken.tail, head),
                    AreaEvent::Broken => {
                        let far = head.wrapping_sub(tail) > 4096;
                        prop_assert!(far || dropped.wrapping_sub(before) > 1_000_001_000);
                        break;
                    }
                }
            }
        }
    }
}
