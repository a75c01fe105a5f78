//! Buffers of a column's cells, allocated once: cells on their way from a source to a slot.

use super::Cell;
use std::ops::Range;

/// Most columns of a stream: their classes fit a number, and a slot's summary stays small.
pub const MAX_COLUMNS: usize = 64;

/// Most bytes of a text: what is longer belongs into the payload.
pub const MAX_TEXT: usize = 1024;

/// What the cells of a column are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Class {
    /// Numbers, times and short addresses, in an order that is that of their values.
    Word = 0,
    /// Long addresses, the first byte highest.
    Wide = 1,
    /// Texts and bytes.
    Bytes = 2,
}

impl Class {
    /// The class with this number.
    pub fn from_number(number: u8) -> Option<Self> {
        [Self::Word, Self::Wide, Self::Bytes].get(usize::from(number)).copied()
    }
}

/// The classes of a stream's columns, in the order of its schema.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Classes {
    /// Two bits each.
    bits: u128,
    count: u8,
}

impl Classes {
    /// One more at the end; `false` when there are [`MAX_COLUMNS`].
    pub fn push(&mut self, class: Class) -> bool {
        let fits = self.len() < MAX_COLUMNS;
        if fits {
            self.bits |= (class as u128) << (2 * self.count);
            self.count += 1;
        }
        fits
    }

    /// How many.
    pub fn len(&self) -> usize {
        usize::from(self.count)
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// All of them.
    pub fn iter(self) -> impl ExactSizeIterator<Item = Class> {
        (0..self.len()).map(move |at| match self.bits >> (2 * at) & 3 {
            0 => Class::Word,
            1 => Class::Wide,
            _ => Class::Bytes,
        })
    }
}

impl FromIterator<Class> for Classes {
    /// The first [`MAX_COLUMNS`].
    fn from_iter<I: IntoIterator<Item = Class>>(classes: I) -> Self {
        let mut all = Self::default();
        classes.into_iter().take_while(|class| all.push(*class)).for_each(drop);
        all
    }
}

/// Some cells, one for each element. Where one is null, what stands there means nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cells<'a> {
    /// See [`Class::Word`].
    Words(&'a [u64]),
    /// See [`Class::Wide`].
    Wide(&'a [u128]),
    /// See [`Class::Bytes`]: where each ends, and all of them one behind the other.
    Bytes(&'a [u32], &'a [u8]),
}

impl<'a> Cells<'a> {
    /// How many.
    pub fn len(&self) -> usize {
        match self {
            Self::Words(cells) => cells.len(),
            Self::Wide(cells) => cells.len(),
            Self::Bytes(ends, _) => ends.len(),
        }
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// What they are.
    pub fn class(&self) -> Class {
        match self {
            Self::Words(_) => Class::Word,
            Self::Wide(_) => Class::Wide,
            Self::Bytes(..) => Class::Bytes,
        }
    }

    /// The cell number `at`, as if it were not null.
    #[inline]
    pub fn at(&self, at: usize) -> Option<Cell<'a>> {
        Some(match self {
            Self::Words(cells) => Cell::Word(*cells.get(at)?),
            Self::Wide(cells) => Cell::Wide(*cells.get(at)?),
            Self::Bytes(ends, bytes) => {
                let end = *ends.get(at)? as usize;
                Cell::Bytes(bytes.get(start_of(ends, at)..end)?)
            }
        })
    }
}

#[derive(Debug)]
enum Store {
    Words(Vec<u64>),
    Wide(Vec<u128>),
    Bytes(Vec<u32>, Vec<u8>),
}

/// The cells of one column, in memory that never grows.
#[derive(Debug)]
pub struct CellBuffer {
    store: Store,
    valid: Vec<bool>,
    nulls: usize,
    /// Most cells, and most bytes of texts.
    most: usize,
    most_bytes: usize,
}

impl CellBuffer {
    /// An empty one for so many cells, and so many bytes of texts; at least one of each size.
    pub fn new(class: Class, cells: usize, bytes: usize) -> Self {
        let (cells, bytes) = (cells.max(1), bytes.max(MAX_TEXT));
        let store = match class {
            Class::Word => Store::Words(Vec::with_capacity(cells)),
            Class::Wide => Store::Wide(Vec::with_capacity(cells)),
            Class::Bytes => Store::Bytes(Vec::with_capacity(cells), Vec::with_capacity(bytes)),
        };
        Self { store, valid: Vec::with_capacity(cells), nulls: 0, most: cells, most_bytes: bytes }
    }

    /// Bytes of memory of one that is made so.
    pub(crate) fn memory(class: Class, cells: usize, bytes: usize) -> usize {
        let (cells, bytes) = (cells.max(1), bytes.max(MAX_TEXT));
        match class {
            Class::Word => 9 * cells,
            Class::Wide => 17 * cells,
            Class::Bytes => 5 * cells + bytes,
        }
    }

    /// What its cells are.
    pub fn class(&self) -> Class {
        self.cells().class()
    }

    /// Bytes of the texts among the cells `range`; they must be there.
    #[inline]
    pub(crate) fn text_bytes(&self, range: &Range<usize>) -> usize {
        match &self.store {
            Store::Bytes(ends, _) => start_of(ends, range.end) - start_of(ends, range.start),
            Store::Words(_) | Store::Wide(_) => 0,
        }
    }

    /// Whether one more fits, whatever it is, when so many bytes of texts were added.
    #[inline]
    pub(crate) fn has_room_with(&self, text: usize) -> bool {
        match &self.store {
            Store::Bytes(_, bytes) => bytes.len() + text + MAX_TEXT <= self.most_bytes,
            Store::Words(_) | Store::Wide(_) => true,
        }
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.valid.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.valid.is_empty()
    }

    /// How many are null.
    pub fn nulls(&self) -> usize {
        self.nulls
    }

    /// The cells.
    pub fn cells(&self) -> Cells<'_> {
        match &self.store {
            Store::Words(cells) => Cells::Words(cells),
            Store::Wide(cells) => Cells::Wide(cells),
            Store::Bytes(ends, bytes) => Cells::Bytes(ends, bytes),
        }
    }

    /// Which of them are not null.
    pub fn valid(&self) -> &[bool] {
        &self.valid
    }

    /// Forgets them.
    pub fn clear(&mut self) {
        match &mut self.store {
            Store::Words(cells) => cells.clear(),
            Store::Wide(cells) => cells.clear(),
            Store::Bytes(ends, bytes) => {
                ends.clear();
                bytes.clear();
            }
        }
        self.valid.clear();
        self.nulls = 0;
    }

    /// Whether one more fits, whatever it is.
    #[inline]
    pub fn has_room(&self) -> bool {
        self.has_room_with(0) && self.valid.len() < self.most
    }

    /// Adds a word. What is of another class, or finds no room, is a null, or nothing.
    #[inline]
    pub fn word(&mut self, cell: u64) {
        match &mut self.store {
            Store::Words(cells) if self.valid.len() < self.most => {
                cells.push(cell);
                self.valid.push(true);
            }
            _ => self.null(),
        }
    }

    /// Adds a wide word.
    #[inline]
    pub fn wide(&mut self, cell: u128) {
        match &mut self.store {
            Store::Wide(cells) if self.valid.len() < self.most => {
                cells.push(cell);
                self.valid.push(true);
            }
            _ => self.null(),
        }
    }

    /// Adds a text, of [`MAX_TEXT`] at most.
    #[inline]
    pub fn bytes(&mut self, cell: &[u8]) {
        match &mut self.store {
            Store::Bytes(ends, bytes)
                if self.valid.len() < self.most
                    && cell.len() <= (self.most_bytes - bytes.len()).min(MAX_TEXT) =>
            {
                bytes.extend_from_slice(cell);
                ends.push(bytes.len() as u32);
                self.valid.push(true);
            }
            _ => self.null(),
        }
    }

    /// Adds a null.
    #[inline]
    pub fn null(&mut self) {
        if self.valid.len() < self.most {
            match &mut self.store {
                Store::Words(cells) => cells.push(0),
                Store::Wide(cells) => cells.push(0),
                Store::Bytes(ends, bytes) => ends.push(bytes.len() as u32),
            }
            self.valid.push(false);
            self.nulls += 1;
        }
    }

    /// How many of the cells `range` of another buffer of the same class fit.
    pub fn fitting(&self, other: &Self, range: &Range<usize>) -> usize {
        let places = range.len().min(self.most - self.valid.len());
        match (&self.store, &other.store) {
            (Store::Bytes(_, mine), Store::Bytes(ends, _)) => {
                let start = start_of(ends, range.start);
                let room = self.most_bytes - mine.len();
                let ends = &ends[range.start..range.start + places];
                ends.partition_point(|end| *end as usize - start <= room)
            }
            _ => places,
        }
    }

    /// Adds the cells `range` of another buffer of the same class, which fit ([`CellBuffer::fitting`]).
    #[inline]
    pub fn extend(&mut self, other: &Self, range: Range<usize>) {
        match (&mut self.store, &other.store) {
            (Store::Words(mine), Store::Words(cells)) => mine.extend_from_slice(&cells[range.clone()]),
            (Store::Wide(mine), Store::Wide(cells)) => mine.extend_from_slice(&cells[range.clone()]),
            (Store::Bytes(my_ends, mine), Store::Bytes(ends, bytes)) => {
                let (start, base) = (start_of(ends, range.start), mine.len());
                let end = start_of(ends, range.end);
                mine.extend_from_slice(&bytes[start..end]);
                my_ends.extend(ends[range.clone()].iter().map(|end| (*end as usize - start + base) as u32));
            }
            _ => {
                range.for_each(|_| self.null());
                return;
            }
        }
        let valid = &other.valid[range];
        self.valid.extend_from_slice(valid);
        if other.nulls > 0 {
            self.nulls += valid.iter().filter(|valid| !**valid).count();
        }
    }
}

impl From<Column> for CellBuffer {
    /// The cells that a block had; nothing more fits.
    fn from(column: Column) -> Self {
        let count = column.cells.lent().len();
        let nulls = column.nulls.unwrap_or_default();
        let valid =
            if nulls.is_empty() { vec![true; count] } else { nulls.iter().map(|null| !null).collect() };
        let (store, most_bytes) = match column.cells {
            OwnCells::Words(cells) => (Store::Words(cells), 0),
            OwnCells::Wide(cells) => (Store::Wide(cells), 0),
            OwnCells::Bytes(ends, bytes) => {
                let most = bytes.len();
                (Store::Bytes(ends, bytes), most)
            }
        };
        Self { store, valid, nulls: nulls.iter().filter(|null| **null).count(), most: count, most_bytes }
    }
}

/// Where the text number `at` begins.
fn start_of(ends: &[u32], at: usize) -> usize {
    if at == 0 { 0 } else { ends[at - 1] as usize }
}

/// The cells of a block: everything about it has been checked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Column {
    /// Number of the chunk in its slot.
    pub chunk: u32,
    /// The cells, where a null is a zero or empty.
    pub cells: OwnCells,
    /// Which cells are none, if any is.
    pub nulls: Option<Vec<bool>>,
}

impl Column {
    /// The cells one by one.
    pub fn iter(&self) -> impl Iterator<Item = Option<Cell<'_>>> {
        let cells = self.cells.lent();
        let is_null = |at: usize| self.nulls.as_ref().is_some_and(|nulls| nulls[at]);
        (0..cells.len()).map(move |at| if is_null(at) { None } else { cells.at(at) })
    }
}

/// As [`Cells`], but owned.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum OwnCells {
    /// See [`Cells::Words`](Cells::Words).
    Words(Vec<u64>),
    /// See [`Cells::Wide`](Cells::Wide).
    Wide(Vec<u128>),
    /// See [`Cells::Bytes`](Cells::Bytes).
    Bytes(Vec<u32>, Vec<u8>),
}

impl OwnCells {
    /// The same, lent.
    pub fn lent(&self) -> Cells<'_> {
        match self {
            Self::Words(cells) => Cells::Words(cells),
            Self::Wide(cells) => Cells::Wide(cells),
            Self::Bytes(ends, bytes) => Cells::Bytes(ends, bytes),
        }
    }

    /// Makes nulls zeros; `false` where one has a text.
    pub(super) fn blank(&mut self, nulls: &[bool]) -> bool {
        match self {
            Self::Words(cells) => {
                cells.iter_mut().zip(nulls).for_each(|(cell, null)| *cell = if *null { 0 } else { *cell });
            }
            Self::Wide(cells) => {
                cells.iter_mut().zip(nulls).for_each(|(cell, null)| *cell = if *null { 0 } else { *cell });
            }
            Self::Bytes(ends, _) => {
                let starts = std::iter::once(&0).chain(ends.iter());
                return starts.zip(ends.iter()).zip(nulls).all(|((start, end), null)| !null || start == end);
            }
        }
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[derive(Clone, Debug)]
    enum Cell {
        Null,
        Word(u64),
        Wide(u128),
        Bytes(Vec<u8>),
    }

    fn cell(class: Class) -> BoxedStrategy<Cell> {
        let some = match class {
            Class::Word => any::<u64>().prop_map(Cell::Word).boxed(),
            Class::Wide => any::<u128>().prop_map(Cell::Wide).boxed(),
            Class::Bytes => {
                proptest::collection::vec(any::<u8>(), 0..MAX_TEXT + 9).prop_map(Cell::Bytes).boxed()
            }
        };
        prop_oneof![1 => Just(Cell::Null), 4 => some].boxed()
    }

    fn push(buffer: &mut CellBuffer, cell: &Cell) {
        match cell {
            Cell::Null => buffer.null(),
            Cell::Word(cell) => buffer.word(*cell),
            Cell::Wide(cell) => buffer.wide(*cell),
            Cell::Bytes(cell) => buffer.bytes(cell),
        }
    }

    fn all() -> impl Strategy<Value = (Class, Vec<Cell>)> {
        prop_oneof![Just(Class::Word), Just(Class::Wide), Just(Class::Bytes)]
            .prop_flat_map(|class| (Just(class), proptest::collection::vec(cell(class), 0..40)))
    }

    proptest! {
        #[test]
        fn cells_that_are_copied_are_those_that_were_pushed(
            (class, cells) in all(), from in 0..40usize, count in 0..40usize, room in 1..40usize, bytes in 0..9000usize
        ) {
            let mut source = CellBuffer::new(class, 40, 40 * MAX_TEXT);
            for cell in &cells {
                push(&mut source, cell);
            }
            prop_assert_eq!(source.len(), cells.len());
            prop_assert_eq!(source.nulls(), source.valid().iter().filter(|valid| !**valid).count());
            let from = from.min(cells.len());
            let range = from..(from + count).min(cells.len());

            let mut target = CellBuffer::new(class, room, bytes);
            push(&mut target, &Cell::Null);
            let fitting = target.fitting(&source, &range);
            target.extend(&source, range.start..range.start + fitting);

            // One by one comes to the same, and the next one would not have fitted.
            let mut single = CellBuffer::new(class, room, bytes);
            push(&mut single, &Cell::Null);
            for cell in &cells[range.start..range.start + fitting] {
                push(&mut single, cell);
            }
            prop_assert_eq!(target.cells(), single.cells());
            prop_assert_eq!(target.valid(), single.valid());
            prop_assert_eq!(target.nulls(), single.nulls());
            if fitting < range.len() {
                prop_assert!(!target.has_room());
            }
        }
    }

    #[test]
    fn what_finds_no_room_is_left_out_and_what_is_of_another_class_or_too_long_is_null() {
        let mut buffer = CellBuffer::new(Class::Bytes, 3, 0);
        buffer.word(1);
        buffer.bytes(&[7; MAX_TEXT + 1]);
        assert!(buffer.has_room());
        buffer.bytes(&[7; MAX_TEXT]);
        assert_eq!(buffer.valid(), [false, false, true]);
        buffer.bytes(b"x");
        assert_eq!((buffer.len(), buffer.nulls(), buffer.has_room()), (3, 2, false));
    }

    #[test]
    fn classes_are_told_in_order_up_to_as_many_as_there_may_be() {
        let some = [Class::Wide, Class::Word, Class::Bytes, Class::Word];
        assert_eq!(some.into_iter().collect::<Classes>().iter().collect::<Vec<_>>(), some);
        assert_eq!(std::iter::repeat_n(Class::Bytes, 99).collect::<Classes>().len(), MAX_COLUMNS);
    }
}
