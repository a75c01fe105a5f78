//! Helpers of the tests of sources: a capture side that checks while it collects.
#![allow(dead_code, unreachable_pub, reason = "each test uses a part")]

pub mod cells;
pub mod hand;
pub mod rig;

use holdfast_ingest::{Batch, Content, Inlet};

/// An element that was recorded whole.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Element {
    pub ordinal: u64,
    pub meta: Vec<u8>,
    pub data: Vec<u8>,
    pub tag: u16,
    pub event: Option<i64>,
    pub extra: u32,
    /// Whether its metadata is a header.
    pub headed: bool,
}

impl Element {
    pub fn header(&self) -> Option<&[u8]> {
        self.headed.then_some(&self.meta)
    }
}

/// A gap as recorded.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Gap {
    pub first: u64,
    pub ordinals: u64,
    pub elements: Option<u64>,
    pub bytes: Option<u64>,
    pub cause: u8,
    pub from: i64,
    pub to: i64,
}

/// Takes batches and checks, row by row, that every ordinal is accounted for exactly once and in order.
#[derive(Debug, Default)]
pub struct Collector {
    pub elements: Vec<Element>,
    /// Of each of them, where there are columns.
    pub cells: Vec<Vec<String>>,
    pub gaps: Vec<Gap>,
    /// Bytes of pieces whose element was given up: they are in its gap, too.
    pub aborted_bytes: u64,
    pub aborts: u64,
    pub next: u64,
    open: Option<Element>,
    /// What came ahead of the elements.
    pub preamble: Option<Vec<u8>>,
    /// Batches that are held back.
    pub held: Vec<Batch>,
    last_arrival: i64,
}

impl Collector {
    /// Takes what is there and gives it back, or keeps it.
    pub fn drain(&mut self, inlet: &mut Inlet, hold: bool) -> usize {
        let mut count = 0;
        while let Some(batch) = inlet.take() {
            self.read(&batch);
            count += 1;
            if hold { self.held.push(batch) } else { inlet.give_back(batch) }
        }
        count
    }

    /// Takes one batch and keeps it.
    pub fn hold_one(&mut self, inlet: &mut Inlet) -> bool {
        let Some(batch) = inlet.take() else { return false };
        self.read(&batch);
        self.held.push(batch);
        true
    }

    /// Gives back what was held.
    pub fn let_go(&mut self, inlet: &mut Inlet, most: usize) {
        for batch in self.held.drain(..most.min(self.held.len())) {
            inlet.give_back(batch);
        }
    }

    fn read(&mut self, batch: &Batch) {
        if !batch.cells().is_empty() {
            let completed = batch.rows().iter().filter(|row| row.completes_element()).count();
            assert!(batch.cells().iter().all(|column| column.len() == completed), "a cell an element");
            self.cells.extend((0..completed).map(|at| cells::cells_at(batch.cells(), at)));
        }
        for row in batch.rows() {
            let bytes = batch.bytes_of(row);
            assert_eq!(bytes.len(), row.bytes(), "the row's bytes are in the batch");
            let (meta, data) = bytes.split_at(usize::from(row.meta));
            assert!(row.arrival.0 >= self.last_arrival, "arrival times never go back");
            self.last_arrival = row.arrival.0;
            let element = || Element {
                ordinal: row.ordinal.0,
                meta: meta.to_vec(),
                data: data.to_vec(),
                tag: row.tag,
                event: row.flags.has(holdfast_ingest::Flags::EVENT).then_some(row.event.0),
                extra: row.extra,
                headed: row.flags.has(holdfast_ingest::Flags::HEADER),
            };
            match row.content {
                Content::Whole => {
                    assert!(self.open.is_none(), "pieces are not interrupted");
                    self.step(row.ordinal.0, 1);
                    self.elements.push(element());
                }
                Content::First { .. } => {
                    assert!(self.open.is_none(), "pieces are not interrupted");
                    self.step(row.ordinal.0, 1);
                    self.open = Some(element());
                }
                Content::Middle | Content::Last => {
                    let open = self.open.as_mut().expect("a piece continues what began");
                    assert_eq!(open.ordinal, row.ordinal.0);
                    open.meta.extend_from_slice(meta);
                    open.data.extend_from_slice(data);
                    open.tag = row.tag;
                    if row.flags.has(holdfast_ingest::Flags::EVENT) {
                        open.event = Some(row.event.0);
                    }
                    if row.content == Content::Last {
                        self.elements.extend(self.open.take());
                    }
                }
                Content::Abort => {
                    let open = self.open.take().expect("an abort ends what began");
                    assert_eq!(open.ordinal, row.ordinal.0);
                    self.aborted_bytes += open.data.len() as u64;
                    self.aborts += 1;
                    // The gap that follows counts it.
                    self.next -= 1;
                }
                Content::Gap => {
                    assert!(self.open.is_none(), "a gap does not interrupt an element");
                    let u64_at = |at: usize| u64::from_le_bytes(data[at..at + 8].try_into().unwrap());
                    let known = |n: u64| (n != u64::MAX).then_some(n);
                    let gap = Gap {
                        first: row.ordinal.0,
                        ordinals: u64_at(0),
                        elements: known(u64_at(8)),
                        bytes: known(u64_at(16)),
                        cause: data[40],
                        from: u64_at(24) as i64,
                        to: u64_at(32) as i64,
                    };
                    assert!(gap.from <= gap.to, "times of a gap are in order");
                    self.step(row.ordinal.0, gap.ordinals);
                    self.gaps.push(gap);
                }
                Content::Note => {}
            }
        }
    }

    fn step(&mut self, ordinal: u64, count: u64) {
        assert_eq!(ordinal, self.next, "every ordinal is accounted for once and in order");
        self.next = ordinal + count;
    }

    pub fn lost(&self, cause: u8) -> u64 {
        self.gaps.iter().filter(|gap| gap.cause == cause).filter_map(|gap| gap.elements).sum()
    }

    pub fn all_lost(&self) -> u64 {
        self.gaps.iter().filter_map(|gap| gap.elements).sum()
    }

    pub fn lost_bytes(&self) -> u64 {
        self.gaps.iter().filter_map(|gap| gap.bytes).sum()
    }

    /// Bytes of whole elements: those of an element that was given up are in its gap.
    pub fn recorded_bytes(&self) -> u64 {
        self.elements.iter().map(|element| element.data.len() as u64).sum()
    }
}
