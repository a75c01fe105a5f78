//! Batch: the unit that a source hands to the capture thread. Fixed memory, filled front to back, reused.
//!
//! The bytes are as they were read; rows say which of them are whose. Bytes between rows (newlines, length
//! prefixes) belong to nobody. How batches travel is `queue`'s, how they are filled is `producer`'s.

use crate::auto_schema::NewAttributes;
use holdfast_base::{ByteSize, Ordinal, Timestamp};
use holdfast_format::{CellBuffer, Class, Classes, Flags, MAX_TEXT};

/// Bytes of a batch unless said otherwise: large enough that a lock and a wake-up per batch do not count,
/// small enough that a few dozen of them are no burden.
pub const BATCH_BYTES: ByteSize = ByteSize::kib(256);

/// Largest batch: a source's pool stays within some MiB.
pub const MAX_BATCH_BYTES: ByteSize = ByteSize::mib(1);

/// Rows of a batch: at 64 B an element and below the rows fill up first.
pub const BATCH_ROWS: usize = 4096;

/// Bytes at least in a batch: one datagram of the largest size, and a gap in front of it.
pub const MIN_BATCH_BYTES: ByteSize = ByteSize::kib(128);

/// What a row of a batch is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Content {
    /// An element that is here from its first byte to its last.
    Whole,
    /// The first piece of an element that goes on in a later row; its size, where it is known already.
    First {
        /// Bytes of the whole element, metadata not counted.
        total: Option<u64>,
    },
    /// A further piece of the element that the row before belongs to.
    Middle,
    /// The last piece; it may be empty.
    Last,
    /// The element whose pieces came before will get no more of them.
    Abort,
    /// A loss: the row's bytes are the gap's 64.
    Gap,
    /// Metadata of the stream, without an ordinal.
    Note,
}

/// What a batch knows about some of its bytes: a row of a slot in the making.
///
/// The rows of a stream are in the order of their ordinals, and nothing of the same stream comes between the
/// pieces of an element.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BatchRow {
    /// What it is.
    pub content: Content,
    /// Event time, direction, kind of metadata.
    pub flags: Flags,
    /// Bytes of metadata in front of the data.
    pub meta: u16,
    /// Chosen by the source: a packet's interface, or a mark of the framing.
    pub tag: u16,
    /// Where the row's bytes start in the batch.
    pub at: u32,
    /// Bytes of data.
    pub len: u32,
    /// Bytes the element had beyond `len` when it arrived.
    pub extra: u32,
    /// The element's ordinal; the first lost one's for a gap.
    pub ordinal: Ordinal,
    /// When its last byte arrived.
    pub arrival: Timestamp,
    /// Nanoseconds from the first byte of the element to the last one here.
    pub span: u64,
    /// The event time, where the flags say that there is one.
    pub event: Timestamp,
}

impl BatchRow {
    /// Bytes of the row in its batch: metadata and data.
    pub fn bytes(&self) -> usize {
        usize::from(self.meta) + self.len as usize
    }

    /// True for the row that an element is whole with: it has cells.
    pub fn completes_element(&self) -> bool {
        matches!(self.content, Content::Whole | Content::Last)
    }

    /// True for the row that ends an element, well or not.
    pub fn ends_element(&self) -> bool {
        matches!(self.content, Content::Whole | Content::Last | Content::Abort)
    }
}

/// Rows and their bytes, of one stream.
#[derive(Debug)]
pub struct Batch {
    rows: Vec<BatchRow>,
    bytes: Box<[u8]>,
    /// Bytes in use.
    filled: usize,
    /// Bytes that belong to rows, and elements that begin.
    claimed: u64,
    elements: u64,
    /// What is known of the elements that end here, a buffer a column; filled when the batch is sent.
    cells: Vec<CellBuffer>,
    /// The schema that these cells are the first of, if it is new.
    attributes: Option<Box<NewAttributes>>,
}

/// Bytes of texts in a column of a batch: each is a part of its element, or a word of a few letters.
fn text_bytes(bytes: usize, rows: usize) -> usize {
    bytes + rows * WORD_BYTES + MAX_TEXT
}

/// Bytes at most of a text that is not taken from its element, such as a protocol's name.
const WORD_BYTES: usize = 16;

impl Batch {
    /// An empty batch, all of whose memory is allocated (and touched) here.
    pub fn new(bytes: ByteSize, rows: usize) -> Self {
        let bytes = bytes.0.clamp(MIN_BATCH_BYTES.0, MAX_BATCH_BYTES.0) as usize;
        // Written, not just reserved: pages must not be found missing while packets arrive.
        let mut all = vec![1u8; bytes];
        all.fill(0);
        let rows = Vec::with_capacity(rows.max(16));
        let bytes = all.into_boxed_slice();
        Self { rows, bytes, filled: 0, claimed: 0, elements: 0, cells: Vec::new(), attributes: None }
    }

    /// With a place for the cells of its elements in columns of these classes.
    #[must_use]
    pub fn with_columns(self, classes: Classes) -> Self {
        let mut batch = self;
        batch.set_columns(classes);
        batch
    }

    /// Gives it a place for the cells of its elements in columns of these classes, if it has others.
    pub(crate) fn set_columns(&mut self, classes: Classes) {
        if self.cells.len() != classes.len() {
            let (rows, texts) = (self.rows.capacity(), text_bytes(self.bytes.len(), self.rows.capacity()));
            self.cells = classes.iter().map(|class| CellBuffer::new(class, rows, texts)).collect();
        }
    }

    /// Leaves out the cells of all columns but the first ones.
    pub fn limit_columns(&mut self, columns: usize) {
        self.cells.truncate(columns);
    }

    /// Says that its cells are the first of a new schema.
    pub(crate) fn begin_attributes(&mut self, new: NewAttributes) {
        self.attributes = Some(Box::new(new));
    }

    /// The schema that its cells are the first of, if it is new.
    pub fn new_attributes(&self) -> Option<&NewAttributes> {
        self.attributes.as_deref()
    }

    /// Takes the new schema: it is in force, or refused.
    pub fn take_attributes(&mut self) -> Option<Box<NewAttributes>> {
        self.attributes.take()
    }

    /// Bytes that columns of these classes add to a batch.
    pub fn column_bytes(classes: Classes, bytes: usize, rows: usize) -> u64 {
        let of = |class| match class {
            Class::Word => 8 * rows,
            Class::Wide => 16 * rows,
            Class::Bytes => 4 * rows + text_bytes(bytes, rows),
        };
        classes.iter().map(|class| (of(class) + rows) as u64).sum()
    }

    /// What is known of the elements that end in it, a buffer a column.
    pub fn cells(&self) -> &[CellBuffer] {
        &self.cells
    }

    /// Rows, bytes and cells at once.
    pub(crate) fn parts(&mut self) -> (&mut [BatchRow], &[u8], &mut [CellBuffer]) {
        (&mut self.rows, &self.bytes[..self.filled], &mut self.cells)
    }

    /// The rows, in the order of arrival.
    pub fn rows(&self) -> &[BatchRow] {
        &self.rows
    }

    /// The bytes of one of its rows: metadata, then data.
    pub fn bytes_of(&self, row: &BatchRow) -> &[u8] {
        self.bytes.get(row.at as usize..row.at as usize + row.bytes()).unwrap_or(&[])
    }

    /// All bytes in use, those of nobody included.
    pub fn filled(&self) -> &[u8] {
        &self.bytes[..self.filled]
    }

    /// What its stream pays for with its rate: bytes of rows, and elements that begin.
    pub fn weight(&self) -> (u64, u64) {
        (self.claimed, self.elements)
    }

    /// When the last of it arrived.
    pub fn arrived(&self) -> Option<Timestamp> {
        Some(self.rows.last()?.arrival)
    }

    /// Bytes that it can take.
    pub fn capacity(&self) -> usize {
        self.bytes.len()
    }

    /// True when it has no row.
    pub fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }

    /// Forgets what is in it.
    pub fn clear(&mut self) {
        self.rows.clear();
        self.cells.iter_mut().for_each(CellBuffer::clear);
        (self.filled, self.claimed, self.elements) = (0, 0, 0);
        self.attributes = None;
    }

    /// Rows that it can still take without allocating.
    pub fn rows_left(&self) -> usize {
        self.rows.capacity() - self.rows.len()
    }

    /// The bytes not in use.
    pub fn free(&mut self) -> &mut [u8] {
        &mut self.bytes[self.filled..]
    }

    /// Number of bytes not in use.
    pub fn room(&self) -> usize {
        self.bytes.len() - self.filled
    }

    /// Says that `n` of the free bytes were written.
    pub fn fill(&mut self, n: usize) {
        self.filled = (self.filled + n).min(self.bytes.len());
    }

    /// Writes a gap's bytes into the part that was set aside for them.
    pub(crate) fn put_gap(&mut self, at: usize, gap: &[u8]) {
        if let Some(place) = self.bytes.get_mut(at..at + gap.len()) {
            place.copy_from_slice(gap);
        }
    }

    /// Takes the bytes behind `at` out of use.
    pub(crate) fn truncate(&mut self, at: usize) {
        self.filled = self.filled.min(at);
    }

    /// Adds a row over bytes that are in use. False when there is no place for it.
    pub fn push(&mut self, row: BatchRow) -> bool {
        let fits = self.rows_left() > 0 && row.at as usize + row.bytes() <= self.filled;
        if fits {
            self.claimed += row.bytes() as u64;
            self.elements += u64::from(matches!(row.content, Content::Whole | Content::First { .. }));
            self.rows.push(row);
        }
        fits
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_batch_never_grows_and_takes_no_row_over_bytes_it_does_not_have() {
        let mut batch = Batch::new(MIN_BATCH_BYTES, 16);
        let row = BatchRow {
            content: Content::Whole,
            flags: Flags::default(),
            meta: 0,
            tag: 0,
            at: 0,
            len: 4,
            extra: 0,
            ordinal: Ordinal(0),
            arrival: Timestamp(0),
            span: 0,
            event: Timestamp(0),
        };
        assert!(!batch.push(row));
        batch.free()[..4].copy_from_slice(b"data");
        batch.fill(4);
        let limit = batch.rows_left();
        assert_eq!((0..limit + 5).filter(|_| batch.push(row)).count(), limit);
        assert_eq!(batch.bytes_of(&batch.rows()[0]), b"data");
        assert_eq!(batch.weight(), (4 * limit as u64, limit as u64));
        batch.clear();
        assert_eq!(batch.weight(), (0, 0));
        assert!(batch.is_empty() && batch.room() == batch.capacity() && batch.rows_left() == limit);
    }
}
