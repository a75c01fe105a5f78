//! Overhead of payload on the medium: heads, summary, checks, rows and cells at their widest, and the unused
//! end of a slot.

use super::build::FEW_ROWS;
use super::columns::{ROW_BYTES, worst};
use super::directory::DirectoryEntry;
use super::{attribute_columns, chunk_rows, summary};
use crate::column::{BESIDE, OUTLINE_BYTES, TOLD_BYTES, cell_bytes, most_bytes};
use crate::{Class, MAX_TEXT};
use holdfast_base::{BLOCK, CHECK_BLOCK};

/// Bytes that may stay empty at the end of a slot because an element does not fit: a larger one goes on in the next slot.
pub fn splinter(slot_bytes: u64) -> u64 {
    slot_bytes / 1024
}

/// What an element takes beside its payload, at most.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct ElementLoad {
    /// Bytes of every element, where all are of one size, come as they are, and carry no time of their own: their rows are narrow.
    pub frame: Option<u32>,
    /// Attributes.
    pub columns: u16,
    /// Those of them that are texts or bytes.
    pub texts: u16,
    /// Bytes of their cells, texts left out.
    pub bytes: u32,
    /// Bytes of their texts.
    pub text_bytes: u32,
}

/// Bytes of a text that may not be in the element: `icmpv6`, or a station's number.
const WORD: u32 = 8;

impl ElementLoad {
    /// Of elements of any size without attributes.
    pub const NONE: Self = Self { frame: None, columns: 0, texts: 0, bytes: 0, text_bytes: 0 };

    /// With one more column of such a class, whose texts are at most so long.
    #[must_use]
    pub fn with(mut self, class: Class, text: usize) -> Self {
        self.columns += 1;
        self.bytes += cell_bytes(class) as u32;
        if class == Class::Bytes {
            self.texts += 1;
            self.text_bytes += text.min(MAX_TEXT) as u32;
        }
        self
    }

    /// With one more column, of numbers that differ by less than so many bytes can tell, and none of which is null.
    #[must_use]
    pub fn with_numbers(self, bytes: usize) -> Self {
        let bytes = bytes.next_power_of_two() as u32;
        Self { columns: self.columns + 1, bytes: self.bytes + bytes, ..self }
    }

    /// The same for elements of `size` bytes on average: a text is part of its element.
    #[must_use]
    pub fn of_size(self, size: u64) -> Self {
        let text = u32::try_from(size).unwrap_or(u32::MAX).max(WORD);
        Self { text_bytes: self.text_bytes.min(text.saturating_mul(self.texts.into())), ..self }
    }

    /// The same without attributes.
    #[must_use]
    pub fn plain(self) -> Self {
        Self { frame: self.frame, ..Self::NONE }
    }

    /// Of an element that is of either stream, with the columns of both.
    #[must_use]
    pub fn beside(self, other: Self) -> Self {
        Self {
            frame: None,
            columns: self.columns.saturating_add(other.columns),
            texts: self.texts.saturating_add(other.texts),
            bytes: self.bytes.max(other.bytes),
            text_bytes: self.text_bytes.max(other.text_bytes),
        }
    }

    /// Bytes of an element's cells.
    pub fn total(&self) -> u64 {
        u64::from(self.bytes) + u64::from(self.text_bytes)
    }

    /// What room is kept for: cells that are the first of their chunk, with the longest texts.
    fn widest(&self) -> usize {
        self.bytes as usize + BESIDE * usize::from(self.columns) + MAX_TEXT * usize::from(self.texts)
    }
}

/// What comes of one stream in a second.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Coming {
    /// Bytes of payload.
    pub payload: f64,
    /// Elements.
    pub elements: f64,
    /// What each of them takes beside that.
    pub each: ElementLoad,
}

/// Bytes of a row of such elements: when its last byte came, and how long after the first.
const ROW_ALIKE: usize = 8;

/// Seconds for which half of these are enough, each: nanoseconds in 32 bits.
const ALIKE_SECONDS: f64 = 4.29;

/// Bytes of such an element at most.
const MOST_ALIKE: u64 = 4096;

/// What rows take.
struct RowBytes {
    /// Bytes of each, at most.
    each: usize,
    /// Bytes a slot has beside that: a chunk's rows are as wide as its widest, such as a gap's.
    a_slot: usize,
    /// Bytes a second.
    a_second: f64,
}

impl RowBytes {
    /// Of whatever elements.
    const ANY: Self = Self { each: ROW_BYTES, a_slot: 0, a_second: 0.0 };

    /// Of elements that are alike, where these come and no others: rows of several streams stand side by side. Larger elements may be
    /// cut, and have little to gain.
    fn alike(slot_bytes: u64, streams: &[Coming]) -> Option<Self> {
        let [Coming { each: ElementLoad { frame: Some(bytes), .. }, .. }] = streams else { return None };
        let rows = chunk_rows(slot_bytes);
        (u64::from(*bytes) <= splinter(slot_bytes).min(MOST_ALIKE)).then(|| Self {
            each: ROW_ALIKE,
            a_slot: (ROW_BYTES - ROW_ALIKE) * rows,
            a_second: (ROW_ALIKE * rows) as f64 / ALIKE_SECONDS,
        })
    }
}

/// Chunks that are closed early, near the end of a slot: each time half of the room that was left is used.
const EARLY: usize = 8;

/// Bytes a second that a ring with slots of `slot_bytes` writes into them, at most, for what comes of its streams;
/// infinite when the slots are too small for them.
pub fn on_medium(slot_bytes: u64, streams: &[Coming]) -> f64 {
    let any = with_rows(&RowBytes::ANY, slot_bytes, streams);
    RowBytes::alike(slot_bytes, streams).map_or(any, |rows| any.min(with_rows(&rows, slot_bytes, streams)))
}

/// The same where rows take so much.
fn with_rows(taken: &RowBytes, slot_bytes: u64, streams: &[Coming]) -> f64 {
    let slot = slot_bytes as usize;
    let sum = |of: &dyn Fn(&Coming) -> f64| streams.iter().map(of).sum::<f64>();
    let columns: usize = streams.iter().map(|stream| usize::from(stream.each.columns)).sum();
    let widest = streams.iter().map(|stream| stream.each.widest()).max().unwrap_or(0);
    let blocks = BESIDE * columns;
    let chunk = worst(0, streams.len() + 1) + DirectoryEntry::BYTES + blocks;
    // Header, footer, payload and index on blocks of their own; what the last rows might have taken.
    let heads = 4 * BLOCK + summary::summary_bytes(streams.len(), columns).next_multiple_of(BLOCK);
    let fixed = heads + worst(FEW_ROWS + 1, streams.len() + 1) + slot / CHECK_BLOCK * 4 + taken.a_slot;
    let (fixed, early) = if columns == 0 { (fixed, 0) } else { (fixed + widest, EARLY * chunk) };
    // A chunk ends with so many rows, or with as many texts as there is a place for.
    let texts = (attribute_columns::texts(slot_bytes).saturating_sub(MAX_TEXT)).max(1) as f64;
    let rows = chunk_rows(slot_bytes);
    let chunks =
        |stream: &Coming| stream.elements * (1.0 / rows as f64 + f64::from(stream.each.text_bytes) / texts);
    let cells = |stream: &Coming| stream.elements * stream.each.total() as f64;
    let bytes = |stream: &Coming| stream.payload + stream.elements * taken.each as f64 + cells(stream);
    let all = taken.a_second + sum(&bytes) + sum(&chunks) * chunk as f64;
    // Filters are bounded by the slot, and by what is in them: two bytes for what seems to be a value, which all cells may be.
    // Where rare values are is told of so many, at most.
    let rare = TOLD_BYTES * attribute_columns::rare(slot_bytes, columns);
    let outline = OUTLINE_BYTES + most_bytes(Class::Wide, 0) + rare;
    let most = columns * (outline + attribute_columns::filter(slot_bytes, columns));
    let few = columns * (outline + 16 * (rows + 1));
    let filled = sum(&|stream| stream.elements * f64::from(stream.each.columns) * FILTER_BYTES);
    let splinter = splinter(slot_bytes) as f64;
    let of =
        |bytes: f64, room: f64| if room > 0.0 { bytes * slot_bytes as f64 / room } else { f64::INFINITY };
    let room = |outlines: usize| slot_bytes as f64 - (fixed + early + outlines) as f64 - splinter;
    let space = of(all, room(most)).min(of(all + filled, room(few)));
    if columns == 0 {
        return space;
    }
    let arena = attribute_columns::arena(slot_bytes) as f64 - (2 * widest + early) as f64 - splinter;
    space.max(of(sum(&cells) + sum(&chunks) * blocks as f64, arena))
}

/// Bytes of a filter for a cell that is in it: it is folded to less than two bytes a value, and how many there are is told to a
/// tenth.
const FILTER_BYTES: f64 = 2.2;

#[cfg(test)]
mod tests {
    use super::*;

    fn columns(class: Class, count: usize) -> ElementLoad {
        (0..count).fold(ElementLoad::NONE, |load, _| load.with(class, 0))
    }

    fn of(slot: u64, payload: f64, elements: f64, each: ElementLoad) -> f64 {
        on_medium(slot, &[Coming { payload, elements, each }])
    }

    #[test]
    fn large_elements_cost_little_and_small_ones_their_rows() {
        let share = |payload, elements| of(64 << 20, payload, elements, ElementLoad::NONE) / payload;
        assert!(share(1e8, 1.0) < 1.0015 && share(1e8, 1.0) > 1.0, "{}", share(1e8, 1.0));
        assert!((share(2e8, 1e7) - 4.0).abs() < 0.02, "20 bytes take up to 60 more: {}", share(2e8, 1e7));
        let many = [Coming { payload: 1.0, elements: 0.0, each: ElementLoad::NONE }; 256];
        assert!(on_medium(64 << 10, &many).is_infinite());
    }

    #[test]
    fn cells_cost_what_they_take_at_their_widest() {
        let four = columns(Class::Word, 4);
        assert_eq!((four.total(), four.columns), (36, 4));
        // 60 of a row, 36 of cells, some 9 of filters, on 1500; and what tells where rare values are, in each slot.
        let share = of(64 << 20, 1.5e9, 1e6, four) / 1.5e9;
        assert!((1.076..1.086).contains(&share), "{share}");
        // Of 20 bytes the filters take no more than a sixteenth of the slot, whatever is in them.
        let share = of(64 << 20, 2e8, 1e7, four) / 2e8;
        assert!((6.1..6.3).contains(&share), "{share}");
        // More than half of a slot is never cells.
        let wide = columns(Class::Wide, 64);
        let share = of(64 << 20, 1e7, 1e7, wide) / (64.0 * 17.0 * 1e7);
        assert!((2.0..2.2).contains(&share), "{share}");
        // Of elements that are alike 8 of a row, and as many of cells as their numbers have.
        let cells = ElementLoad::NONE.with_numbers(8).with_numbers(8).with_numbers(3).with_numbers(4);
        assert_eq!((cells.bytes, cells.columns), (24, 4));
        let alike = |frame| of(64 << 20, 2e8, 1e7, ElementLoad { frame: Some(frame), ..cells }) / 2e8;
        assert!((2.75..2.9).contains(&alike(20)), "{}", alike(20));
        assert!(alike(4097) > 5.0, "large ones may be cut: {}", alike(4097));
        // A text is no longer than its element.
        let text = ElementLoad::NONE.with(Class::Bytes, 2000);
        assert_eq!((text.total(), text.of_size(100).total(), text.of_size(0).total()), (1027, 103, 11));
    }
}
