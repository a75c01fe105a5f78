//! Head, checks and chunk directory of a slot, decoded and verified. Bytes in, values out.

use super::item::Selection;
use holdfast_base::{BLOCK, CHECK_BLOCK, Ordinal, Sequence, SlotNo, StreamId, Timestamp};
use holdfast_format::{
    DirectoryEntry, EntrySummary, FormatError, Geometry, PartHeader, Section, SectionKind, Summary,
    Superblock, check_payload_block, crc32c, decode_directory,
};
use std::ops::Range;

/// Checks, directory and chunks that are no more than this are read in one go: a drive with a head reads so much in less
/// time than it takes to get there.
const TOGETHER: usize = 256 << 10;

/// Bytes to read for the head of a slot: header and summary, whatever is in it.
pub(crate) fn head_bytes(geometry: &Geometry) -> usize {
    (BLOCK + geometry.summary_bytes()).next_multiple_of(BLOCK)
}

/// Why a slot cannot be used as it is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum SlotDefect {
    /// A check failed.
    Damaged(String),
    /// It holds another sequence.
    OtherSequence(Sequence),
}

impl From<FormatError> for SlotDefect {
    fn from(error: FormatError) -> Self {
        Self::Damaged(error.to_string())
    }
}

/// Header and summary.
#[derive(Clone, Debug)]
pub(crate) struct SlotHead {
    pub(crate) header: PartHeader,
    pub(crate) summary: Summary,
}

impl SlotHead {
    /// Reads the head of the slot that should hold `sequence` (at `slot`, where it has a place).
    pub(crate) fn decode(
        bytes: &[u8],
        superblock: &Superblock,
        slot: Option<SlotNo>,
        sequence: Sequence,
    ) -> Result<Self, SlotDefect> {
        let header = PartHeader::decode(bytes, &superblock.key, superblock.ring)?;
        if header.sequence != sequence {
            return Err(SlotDefect::OtherSequence(header.sequence));
        }
        if let Some(slot) = slot.filter(|slot| header.slot != *slot) {
            return Err(SlotDefect::Damaged(format!(
                "part header: it is that of slot {}, not {slot}",
                header.slot
            )));
        }
        if header.bytes() as u64 > superblock.geometry.slot_bytes {
            return Err(SlotDefect::Damaged("part header: it speaks of a larger slot".to_owned()));
        }
        let end = BLOCK + header.summary_bytes as usize;
        let summary = bytes.get(BLOCK..end).ok_or_else(|| {
            SlotDefect::Damaged(format!("summary: {} bytes are more than there can be", header.summary_bytes))
        })?;
        let summary = Summary::decode(&header, summary)?;
        Ok(Self { header, summary })
    }

    /// Where checks and directory are: one range, in whole blocks.
    pub(crate) fn directory_range(&self) -> Result<Range<usize>, SlotDefect> {
        let (checks, directory) =
            (self.section(SectionKind::PayloadChecks)?, self.section(SectionKind::ChunkDirectory)?);
        let start = checks.offset.min(directory.offset) as usize;
        let end = checks.range().end.max(directory.range().end);
        Ok(start / BLOCK * BLOCK..end.next_multiple_of(BLOCK).max(start / BLOCK * BLOCK + BLOCK))
    }

    /// The same with the chunks, where all that is little: they lie side by side, and to each a drive with a head would go
    /// by itself.
    pub(crate) fn index_range(&self) -> Result<Range<usize>, SlotDefect> {
        let (directory, chunks) = (self.directory_range()?, self.section(SectionKind::Chunks)?.range());
        let start = directory.start.min(chunks.start / BLOCK * BLOCK);
        let all = start..directory.end.max(chunks.end.next_multiple_of(BLOCK));
        Ok(if all.len() <= TOGETHER { all } else { directory })
    }

    pub(crate) fn section(&self, kind: SectionKind) -> Result<&Section, SlotDefect> {
        let missing = || SlotDefect::Damaged("summary: a section is missing".to_owned());
        self.summary.section(kind).ok_or_else(missing)
    }

    /// Reads checks and directory; `bytes` begins at `start` in the slot.
    pub(crate) fn index(&self, bytes: &[u8], start: usize) -> Result<SlotIndex, SlotDefect> {
        let part = |section: &Section| {
            let from = section.offset as usize;
            let range = from.wrapping_sub(start)..section.range().end.wrapping_sub(start);
            bytes.get(range).ok_or_else(|| SlotDefect::Damaged("index: it reaches outside".to_owned()))
        };
        let checks_section = self.section(SectionKind::PayloadChecks)?;
        let checks = part(checks_section)?;
        if crc32c(checks) != checks_section.crc {
            return Err(SlotDefect::Damaged("payload checks: the checksum does not hold".to_owned()));
        }
        let payload = self.header.payload_bytes as usize;
        if checks.len() != payload.div_ceil(CHECK_BLOCK) * 4 {
            return Err(SlotDefect::Damaged(
                "payload checks: there are not as many as the payload needs".to_owned(),
            ));
        }
        let directory_section = self.section(SectionKind::ChunkDirectory)?;
        let directory = decode_directory(part(directory_section)?, directory_section.crc)?;
        let chunks = self.section(SectionKind::Chunks)?;
        // The builder puts the youngest first; the order of their places means nothing.
        let outside = |entry: &DirectoryEntry| {
            u64::from(entry.offset) + u64::from(entry.bytes) > u64::from(chunks.bytes)
        };
        if directory.iter().any(outside) {
            return Err(SlotDefect::Damaged("chunk directory: a chunk reaches outside".to_owned()));
        }
        let covered =
            directory.last().map_or(0, |last| last.payload_offset as usize + last.payload_bytes as usize);
        if covered > payload {
            return Err(SlotDefect::Damaged("chunk directory: it covers more than the payload".to_owned()));
        }
        Ok(SlotIndex { checks: checks.to_vec(), directory })
    }
}

/// Checks and directory.
#[derive(Clone, Debug, Default)]
pub(crate) struct SlotIndex {
    pub(crate) checks: Vec<u8>,
    pub(crate) directory: Vec<DirectoryEntry>,
}

impl SlotIndex {
    /// Verifies payload that begins at `start`, a multiple of a check block; adds what is damaged to `bad`.
    pub(crate) fn verify(&self, start: usize, bytes: &[u8], bad: &mut Vec<Range<usize>>) {
        for (number, block) in bytes.chunks(CHECK_BLOCK).enumerate() {
            let at = start + number * CHECK_BLOCK;
            if check_payload_block(&self.checks, at / CHECK_BLOCK, block).is_err() {
                bad.push(at..at + block.len());
            }
        }
    }
}

/// Whether what a dictionary entry tells of may have something of a selection. Fragments of an element that ends
/// elsewhere are not looked at.
pub(crate) fn may_have(entry: &EntrySummary, selection: &Selection) -> bool {
    let range = &selection.range;
    if entry.rows == 0 || !selection.wants(entry.stream) {
        return false;
    }
    if let Some((first, end)) = range.ordinals
        && !entry.ordinals.is_some_and(|(least, greatest)| least < end && greatest >= first)
    {
        return false;
    }
    let times = if range.by_event { entry.events } else { entry.arrivals };
    // Gaps have spans of their own, which no bounds tell of.
    !range.is_timed() || entry.gaps > 0 || times.is_some_and(|times| overlaps(times, range.from, range.to))
}

/// Whether a chunk may have something of a selection, by time.
pub(crate) fn chunk_may_have(entry: &DirectoryEntry, selection: &Selection, gaps: bool) -> bool {
    let range = &selection.range;
    if !range.is_timed() || gaps {
        return true;
    }
    let times = if range.by_event {
        (entry.first_event, entry.last_event)
    } else {
        (entry.first_arrival, entry.last_arrival)
    };
    overlaps(times, range.from, range.to)
}

fn overlaps((first, last): (Timestamp, Timestamp), from: Timestamp, to: Timestamp) -> bool {
    first <= last && first <= to && last >= from
}

/// A slot's bounds: what a plan must know of it.
#[derive(Clone, Debug, Default)]
pub(crate) struct SlotBounds {
    pub(crate) first: Option<Timestamp>,
    pub(crate) last: Option<Timestamp>,
    /// Least and greatest ordinal by stream, rising.
    pub(crate) ordinals: Vec<(StreamId, Ordinal, Ordinal)>,
}

impl SlotBounds {
    pub(crate) fn of(head: &SlotHead) -> Self {
        let arrivals = || head.summary.entries.iter().filter_map(|entry| entry.arrivals);
        let ordinals = head
            .summary
            .entries
            .iter()
            .filter_map(|entry| entry.ordinals.map(|(least, greatest)| (entry.stream, least, greatest)));
        Self {
            first: arrivals().map(|(first, _)| first).min(),
            last: arrivals().map(|(_, last)| last).max(),
            ordinals: ordinals.collect(),
        }
    }

    /// Least and greatest ordinal of a stream.
    pub(crate) fn of_stream(&self, stream: StreamId) -> Option<(Ordinal, Ordinal)> {
        self.ordinals.iter().find(|(id, ..)| *id == stream).map(|(_, least, greatest)| (*least, *greatest))
    }
}
