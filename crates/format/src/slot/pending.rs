//! The rows that are not a chunk yet, as columns of fixed size, allocated once.

use super::MAX_CHUNK_ROWS;
use super::row::{Kind, Row};

/// Makes an index that needs no bounds check.
const MASK: usize = MAX_CHUNK_ROWS - 1;

type Column<T> = Box<[T; MAX_CHUNK_ROWS]>;

#[allow(clippy::unnecessary_box_returns, reason = "a column does not fit the stack of a small thread")]
fn column<T: Copy + Default>() -> Column<T> {
    match vec![T::default(); MAX_CHUNK_ROWS].into_boxed_slice().try_into() {
        Ok(column) => column,
        // Cannot happen: the length is right. A column by way of the stack is the same column.
        Err(_) => Box::new([T::default(); MAX_CHUNK_ROWS]),
    }
}

/// Columns in the order of the format; `excess` is what ordinals exceed the expected one by.
#[derive(Debug)]
pub(super) struct Pending {
    pub(super) len: usize,
    pub(super) stream: Column<u16>,
    pub(super) kind: Column<u8>,
    pub(super) flags: Column<u8>,
    pub(super) bytes: Column<u32>,
    pub(super) excess: Column<u64>,
    pub(super) arrival: Column<u64>,
    pub(super) span: Column<u64>,
    pub(super) event: Column<u64>,
    pub(super) meta: Column<u16>,
    pub(super) tag: Column<u16>,
    pub(super) extra: Column<u32>,
    pub(super) number: Column<u32>,
    pub(super) offset: Column<u64>,
}

impl Pending {
    pub(super) fn new() -> Self {
        Self {
            len: 0,
            stream: column(),
            kind: column(),
            flags: column(),
            bytes: column(),
            excess: column(),
            arrival: column(),
            span: column(),
            event: column(),
            meta: column(),
            tag: column(),
            extra: column(),
            number: column(),
            offset: column(),
        }
    }

    /// Adds a row. The caller closes the chunk before it has more than [`MAX_CHUNK_ROWS`].
    #[inline]
    pub(super) fn push(&mut self, row: &Row, excess: u64, event: i64) {
        let at = self.len & MASK;
        self.stream[at] = row.stream;
        self.kind[at] = row.kind as u8;
        self.flags[at] = row.flags.0;
        self.bytes[at] = row.len;
        self.excess[at] = excess;
        self.arrival[at] = row.arrival.0 as u64;
        self.span[at] = row.span;
        self.event[at] = event as u64;
        self.meta[at] = row.meta;
        self.tag[at] = row.tag;
        self.extra[at] = row.extra;
        self.number[at] = row.number;
        self.offset[at] = row.offset;
        self.len += 1;
    }

    /// Bytes of payload that row `at` describes.
    pub(super) fn payload(&self, at: usize) -> u32 {
        self.bytes[at & MASK] + u32::from(self.meta[at & MASK])
    }

    /// Whether row `at` ends an element.
    pub(super) fn ends_element(&self, at: usize) -> bool {
        let kind = Kind::from_byte(self.kind[at & MASK]).unwrap_or_default();
        super::row::ends_element(kind, super::row::Flags(self.flags[at & MASK]))
    }
}
