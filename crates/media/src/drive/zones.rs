//! Shingled zones: which writes stream, which go to the media cache, and when that is cleaned.

use super::arm::{Arm, HeadDirection};
use super::{Nanos, Shingles};
use std::ops::Range;

/// What is known of a zone.
#[derive(Clone, Copy, Debug, Default)]
struct ZoneFill {
    /// The write pointer, counted from its start.
    written: u64,
    /// Bytes of it that stand in the media cache.
    cached: u64,
}

/// All zones and the media cache. What a read finds where is not followed: reads go to the zone.
#[derive(Clone, Debug)]
pub(super) struct Zones {
    size: u64,
    bytes: u64,
    list: Vec<ZoneFill>,
    room: u64,
    cached: u64,
    /// Where cleaning looks next.
    next: usize,
}

impl Zones {
    pub(super) fn new(shingles: &Shingles, bytes: u64) -> Self {
        let size = shingles.zone.max(1 << 20);
        let list = vec![ZoneFill::default(); bytes.div_ceil(size) as usize];
        Self { size, bytes, list, room: shingles.cache, cached: 0, next: 0 }
    }

    fn range(&self, zone: usize) -> Range<u64> {
        let begin = zone as u64 * self.size;
        begin..(begin + self.size).min(self.bytes)
    }

    /// Writes; when it is done.
    pub(super) fn write(&mut self, arm: &mut Arm, offset: u64, len: u64, arrived: Nanos) -> Nanos {
        let (mut at, end, mut done) = (offset, offset + len, arrived);
        while at < end {
            let zone = (at / self.size) as usize;
            let range = self.range(zone);
            let stop = range.end.min(end);
            done = self.piece(arm, zone, &range, at..stop, arrived);
            at = stop;
        }
        done
    }

    fn piece(
        &mut self,
        arm: &mut Arm,
        zone: usize,
        range: &Range<u64>,
        piece: Range<u64>,
        arrived: Nanos,
    ) -> Nanos {
        let (from, len) = (piece.start - range.start, piece.end - piece.start);
        if from == 0 {
            // The drive begins the zone anew; what stood there is not asked for again by a ring.
            self.cached -= std::mem::take(&mut self.list[zone]).cached;
        }
        if from == self.list[zone].written {
            self.list[zone].written += len;
            return arm.write(piece.start, len, arrived);
        }
        if len > self.room {
            let whole = &mut self.list[zone];
            whole.written = whole.written.max(from + len);
            self.cached -= std::mem::take(&mut whole.cached);
            return arm.rewrite(range, arrived);
        }
        while self.cached + len > self.room {
            let Some(dirty) = self.dirty() else { break };
            let whole = self.range(dirty);
            arm.rewrite(&whole, arrived);
            self.cached -= std::mem::take(&mut self.list[dirty].cached);
        }
        self.list[zone].cached += len;
        self.cached += len;
        arm.log(len, arrived)
    }

    /// The next zone with something in the media cache, round and round.
    fn dirty(&mut self) -> Option<usize> {
        let count = self.list.len();
        let found = (0..count).map(|n| (self.next + n) % count).find(|zone| self.list[*zone].cached > 0)?;
        self.next = found + 1;
        Some(found)
    }

    /// Cleans as many zones as fit into the time that nobody asked for anything.
    pub(super) fn tidy(&mut self, arm: &mut Arm, arrived: Nanos) {
        let mut left = (arrived - arm.free()) as f64;
        while self.cached > 0 && left > 0.0 {
            let Some(dirty) = self.dirty() else { return };
            let Range { start, end } = self.range(dirty);
            left -=
                arm.stream(HeadDirection::Read, start, end) + arm.stream(HeadDirection::Write, start, end);
            if left < 0.0 {
                self.next = dirty;
                return;
            }
            self.cached -= std::mem::take(&mut self.list[dirty].cached);
            arm.rest(end);
        }
    }
}
