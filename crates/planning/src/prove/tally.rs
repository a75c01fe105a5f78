//! The account of what was read back: every element against what was sent, every hole in the ordinals against the gaps that
//! tell of it. Pure.

use super::pattern::Pattern;
use holdfast_reader::{Item, Missing};

/// Faults that are told one by one; more are counted.
const MOST_TOLD: usize = 8;

/// What a reading has to find.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Sent {
    /// Of which bytes every element is.
    pub(crate) pattern: Pattern,
    /// Bytes of every element.
    pub(crate) element: u64,
    /// The first ordinal that is looked for.
    pub(crate) from: u64,
    /// The one behind the last.
    pub(crate) to: u64,
}

/// Where a reading may begin.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Begins {
    /// With the first that is looked for: nothing of it may have expired.
    AtFirst,
    /// Later, as the oldest has expired; from there on nothing may be missing.
    Anywhere,
}

/// What was read, and what was wrong with it.
#[derive(Clone, Debug)]
pub(crate) struct Tally {
    sent: Sent,
    /// The ordinal that comes next; `None` before the first.
    next: Option<u64>,
    /// Ordinals that have expired, behind something that is held: the first, and the one behind the last.
    expired: Vec<(u64, u64)>,
    /// Elements that are as they were sent.
    pub(crate) elements: u64,
    /// Their bytes.
    pub(crate) bytes: u64,
    /// Elements that gaps tell of.
    pub(crate) lost: u64,
    /// Gaps.
    pub(crate) gaps: u64,
    /// How many things were wrong.
    pub(crate) wrong: u64,
    /// The first of them.
    pub(crate) faults: Vec<String>,
}

impl Tally {
    /// Nothing was read yet.
    pub(crate) fn new(sent: Sent, begins: Begins) -> Self {
        let next = (begins == Begins::AtFirst).then_some(sent.from);
        let expired = Vec::new();
        Self { sent, next, expired, elements: 0, bytes: 0, lost: 0, gaps: 0, wrong: 0, faults: Vec::new() }
    }

    /// Of a ring on which something is held: what expired behind that is not missing.
    pub(crate) fn without(mut self, expired: Vec<(u64, u64)>) -> Self {
        self.expired = expired;
        self
    }

    /// Whether what would come next up to `ordinal` has expired. What lies across the bounds is expired in part.
    fn has_expired(&self, next: u64, ordinal: u64) -> bool {
        self.expired.iter().any(|(from, to)| (*from..=to + 1).contains(&ordinal) && next + 1 >= *from)
    }

    /// Goes on to an ordinal; `false` when it had been passed already.
    fn passed(&mut self, ordinal: u64) -> bool {
        let next = *self.next.get_or_insert(ordinal);
        if ordinal > next && !self.has_expired(next, ordinal) {
            self.fault(format!("elements {next} to {} are not there, and no gap tells of them", ordinal - 1));
        } else if ordinal < next {
            self.fault(format!("element {ordinal} comes after {}", next - 1));
            return false;
        }
        true
    }

    fn fault(&mut self, text: String) {
        self.wrong += 1;
        if self.faults.len() < MOST_TOLD {
            self.faults.push(text);
        }
    }

    /// Takes what the reader gave.
    pub(crate) fn take(&mut self, item: &Item<'_>) {
        match item {
            Item::Element(element) => self.element(element.ordinal.0, element.data),
            Item::Gap { ordinal, gap, .. } => {
                // A gap that began before what is looked for.
                let (first, end) = (ordinal.0.max(self.sent.from), ordinal.0.saturating_add(gap.ordinals));
                if end <= first || !self.passed(first) {
                    return;
                }
                self.gaps += 1;
                self.lost += end.min(self.sent.to).saturating_sub(first);
                self.next = Some(end);
                if gap.elements != Some(gap.ordinals) {
                    self.fault(format!("the gap at element {ordinal} does not know how many were lost"));
                } else if gap.bytes != Some(gap.ordinals * self.sent.element) {
                    let bytes =
                        gap.bytes.map_or("an unknown number of".to_owned(), |bytes| bytes.to_string());
                    let wanted = gap.ordinals * self.sent.element;
                    self.fault(format!(
                        "the gap at element {ordinal} is of {bytes} bytes instead of {wanted}"
                    ));
                }
            }
            Item::Partial { ordinal, why, .. } => self.partial(ordinal.0, *why),
            Item::Damaged { slot, sequence, place } => {
                self.fault(format!("slot {slot} (sequence {sequence}) is damaged: {place}"));
            }
            Item::Expired { from, to, .. } => {
                self.fault(format!("slots of sequence {from} to {to} were overwritten"));
            }
            Item::Preamble { .. } | Item::Note { .. } | Item::Progress { .. } => {}
        }
    }

    /// The oldest may have lost its beginning to what came later, and so may what lies across the bounds of something that
    /// is held: of that the rest is told when all else has been.
    fn partial(&mut self, ordinal: u64, why: Missing) {
        let across = self.expired.iter().any(|(from, to)| (from.saturating_sub(1)..=*to).contains(&ordinal));
        match self.next {
            None if why == Missing::Expired => {}
            Some(next) if across => {
                if ordinal >= next && self.has_expired(next, ordinal) {
                    self.next = Some(ordinal + 1);
                }
            }
            _ => {
                if self.passed(ordinal) {
                    self.next = Some(ordinal + 1);
                    self.fault(format!("element {ordinal} is not whole: {why}"));
                }
            }
        }
    }

    fn element(&mut self, ordinal: u64, data: &[u8]) {
        if !(self.sent.from..self.sent.to).contains(&ordinal) {
            self.fault(format!("element {ordinal} was never sent"));
            return;
        }
        if !self.passed(ordinal) {
            return;
        }
        self.next = Some(ordinal + 1);
        if let Some(fault) = wrong(&self.sent, ordinal, data) {
            self.fault(fault);
        } else {
            self.elements += 1;
            self.bytes += data.len() as u64;
        }
    }

    /// Nothing more comes: what is missing at the end.
    pub(crate) fn finish(mut self) -> Self {
        let from = self.next.unwrap_or(self.sent.from);
        if from < self.sent.to && !(self.next.is_some() && self.has_expired(from, self.sent.to)) {
            let last = self.sent.to - 1;
            self.fault(format!("elements {from} to {last} are not there, and no gap tells of them"));
        }
        self
    }
}

/// What is wrong with an element, if anything is.
pub(crate) fn wrong(sent: &Sent, ordinal: u64, data: &[u8]) -> Option<String> {
    if data.len() as u64 != sent.element {
        return Some(format!("element {ordinal} has {} bytes instead of {}", data.len(), sent.element));
    }
    let at = sent.pattern.first_wrong(ordinal, data)?;
    Some(format!("element {ordinal} is not what was sent, from byte {at} on"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use holdfast_base::{Ordinal, StreamId, Timestamp};
    use holdfast_format::{Cause, Flags, Gap};
    use holdfast_reader::Element;
    use proptest::prelude::*;

    const ELEMENT: usize = 100;

    fn sent(from: u64, to: u64) -> Sent {
        Sent { pattern: Pattern::new(7), element: ELEMENT as u64, from, to }
    }

    fn bytes(ordinal: u64) -> Vec<u8> {
        let mut bytes = vec![0; ELEMENT];
        Pattern::new(7).fill(ordinal, 0, &mut bytes);
        bytes
    }

    fn give(tally: &mut Tally, ordinal: u64, data: &[u8]) {
        let when = Timestamp(0);
        tally.take(&Item::Element(Element {
            stream: StreamId(1),
            ordinal: Ordinal(ordinal),
            first: when,
            arrival: when,
            event: None,
            flags: Flags::default(),
            tag: 0,
            extra: 0,
            meta: &[],
            data,
        }));
    }

    fn lose(tally: &mut Tally, ordinal: u64, count: u64, bytes: Option<u64>) {
        let gap = Gap {
            ordinals: count,
            elements: Some(count),
            bytes,
            first: Timestamp(0),
            last: Timestamp(0),
            cause: Cause::NoBuffer,
            note: 0,
        };
        tally.take(&Item::Gap { stream: StreamId(1), ordinal: Ordinal(ordinal), gap });
    }

    /// What is on a ring: elements and gaps in order.
    #[derive(Clone, Debug)]
    enum There {
        Element(u64),
        Gap(u64, u64),
    }

    fn ring(lengths: &[(u64, u64)]) -> (Vec<There>, u64) {
        let (mut all, mut next) = (Vec::new(), 0);
        for (elements, lost) in lengths {
            all.extend((next..next + elements).map(There::Element));
            next += elements;
            if *lost > 0 {
                all.push(There::Gap(next, *lost));
                next += lost;
            }
        }
        (all, next)
    }

    fn read(all: &[There], to: u64, begins: Begins) -> Tally {
        let mut tally = Tally::new(sent(0, to), begins);
        for there in all {
            match there {
                There::Element(ordinal) => give(&mut tally, *ordinal, &bytes(*ordinal)),
                There::Gap(ordinal, count) => {
                    lose(&mut tally, *ordinal, *count, Some(count * ELEMENT as u64));
                }
            }
        }
        tally.finish()
    }

    // Promise 2: loss is never silent, and a proof would see it if it were.
    proptest! {
        #[test]
        fn what_was_sent_is_what_is_there_and_what_gaps_tell_of(
            lengths in prop::collection::vec((0u64..9, 0u64..4), 1..12), dropped: prop::sample::Index,
        ) {
            let (mut all, to) = ring(&lengths);
            prop_assume!(!all.is_empty());
            let tally = read(&all, to, Begins::AtFirst);
            prop_assert_eq!((tally.wrong, tally.elements + tally.lost), (0, to), "{:?}", tally.faults);
            let lost = all.remove(dropped.index(all.len()));
            let tally = read(&all, to, Begins::AtFirst);
            let (There::Element(first) | There::Gap(first, _)) = lost;
            prop_assert_eq!(tally.wrong, 1, "{:?} {:?}", lost, tally.faults);
            prop_assert!(tally.faults[0].contains(&format!("elements {first} to ")), "{:?}", tally.faults);
        }

        #[test]
        fn a_flipped_byte_is_told_with_its_ordinal(count in 1u64..20, which: prop::sample::Index, at in 0..ELEMENT) {
            let which = which.index(count as usize) as u64;
            let mut tally = Tally::new(sent(0, count), Begins::AtFirst);
            for ordinal in 0..count {
                let mut data = bytes(ordinal);
                if ordinal == which {
                    data[at] ^= 0x80;
                }
                give(&mut tally, ordinal, &data);
            }
            let tally = tally.finish();
            prop_assert_eq!((tally.wrong, tally.elements), (1, count - 1));
            prop_assert_eq!(&tally.faults[0], &format!("element {which} is not what was sent, from byte {at} on"));
        }
    }

    // Promise 3: the oldest may have gone, and nothing else.
    #[test]
    fn only_the_beginning_may_have_expired() {
        let (all, to) = ring(&[(10, 2), (8, 0)]);
        let rest = &all[6..];
        let tally = read(rest, to, Begins::Anywhere);
        assert_eq!(
            (tally.wrong, tally.elements, tally.lost, tally.gaps),
            (0, 12, 2, 1),
            "{:?}",
            tally.faults
        );
        let tally = read(rest, to, Begins::AtFirst);
        assert_eq!(tally.faults, ["elements 0 to 5 are not there, and no gap tells of them"]);
        let tally = read(&[], to, Begins::Anywhere);
        assert_eq!(tally.faults, ["elements 0 to 19 are not there, and no gap tells of them"]);
    }

    #[test]
    fn behind_what_is_held_something_may_have_expired_and_nothing_else() {
        let all = [There::Element(0), There::Element(1), There::Element(7), There::Element(8)];
        let read = |expired: Vec<(u64, u64)>, to| {
            let mut tally = Tally::new(sent(0, to), Begins::AtFirst).without(expired);
            for there in &all {
                let There::Element(ordinal) = there else { continue };
                give(&mut tally, *ordinal, &bytes(*ordinal));
            }
            tally.finish().faults
        };
        assert_eq!(read(vec![(2, 7)], 9), [""; 0]);
        assert_eq!(read(vec![], 9), ["elements 2 to 6 are not there, and no gap tells of them"]);
        assert_eq!(read(vec![(2, 5)], 9), ["elements 2 to 6 are not there, and no gap tells of them"]);
        assert_eq!(read(vec![(2, 7)], 10), ["elements 9 to 9 are not there, and no gap tells of them"]);
        assert_eq!(read(vec![(2, 7), (9, 12)], 12), [""; 0]);
        // What lies across both ends of the hole; what is behind the first is told last.
        let partial = |tally: &mut Tally, ordinal, why| {
            tally.take(&Item::Partial { stream: StreamId(1), ordinal: Ordinal(ordinal), why });
        };
        let mut tally = Tally::new(sent(0, 9), Begins::AtFirst).without(vec![(2, 7)]);
        give(&mut tally, 0, &bytes(0));
        partial(&mut tally, 6, Missing::Expired);
        give(&mut tally, 7, &bytes(7));
        give(&mut tally, 8, &bytes(8));
        partial(&mut tally, 1, Missing::Expired);
        partial(&mut tally, 8, Missing::Unfinished);
        assert_eq!(tally.finish().faults, ["element 8 comes after 8"]);
    }

    #[test]
    fn what_comes_twice_was_never_sent_or_is_counted_wrongly_is_told() {
        let mut tally = Tally::new(sent(5, 10), Begins::AtFirst);
        // A gap that began before what is looked for.
        lose(&mut tally, 3, 3, Some(300));
        give(&mut tally, 6, &bytes(6));
        give(&mut tally, 6, &bytes(6));
        give(&mut tally, 7, &bytes(7)[1..]);
        lose(&mut tally, 8, 2, Some(199));
        give(&mut tally, 10, &bytes(10));
        let tally = tally.finish();
        assert_eq!((tally.elements, tally.lost, tally.gaps), (1, 3, 2));
        assert_eq!(
            tally.faults,
            [
                "element 6 comes after 6",
                "element 7 has 99 bytes instead of 100",
                "the gap at element 8 is of 199 bytes instead of 200",
                "element 10 was never sent",
            ]
        );
    }
}
