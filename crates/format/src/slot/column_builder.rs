//! Builder of one column of an open slot: its pending cells, its filter, and the statistics of its blocks.
//! `attribute_columns` stores the blocks.

use super::attribute_columns::Sizes;
use super::{Section, SectionKind};
use crate::column::{Filter, OUTLINE_BYTES, Spread, Stretches, most_bytes};
use crate::{Cell, CellBuffer, Cells, Class, OpenOutline};

/// One column of the slot.
#[derive(Debug)]
pub(super) struct ColumnBuilder {
    pub(super) entry: u16,
    pub(super) number: u16,
    pub(super) pending: CellBuffer,
    pub(super) filter: Filter,
    pub(super) stretches: Stretches,
    /// Of what is in blocks.
    pub(super) blocks: u32,
    pub(super) bytes: usize,
    pub(super) cells: u32,
    pub(super) nulls: u32,
    pub(super) bounds: Option<(u128, u128)>,
    /// How many values there are in the blocks, as its filter tells.
    pub(super) values: usize,
    /// Whether its blocks are told of, and where its sections are, known when the slot is sealed.
    pub(super) spread: Spread,
    pub(super) outline: Section,
    pub(super) told: Section,
    pub(super) column: Section,
}

impl ColumnBuilder {
    pub(super) fn new(entry: u16, number: u16, class: Class, sizes: Sizes) -> Self {
        let section = |kind| Section {
            kind,
            column: number,
            entry,
            encoding: 0,
            offset: 0,
            bytes: 0,
            count: 0,
            crc: 0,
        };
        Self {
            entry,
            number,
            pending: CellBuffer::new(class, sizes.cells, sizes.texts),
            filter: Filter::new(sizes.filter),
            stretches: Stretches::new(sizes.filter, sizes.rare),
            blocks: 0,
            bytes: 0,
            cells: 0,
            nulls: 0,
            bounds: None,
            values: 0,
            spread: Spread::default(),
            outline: section(SectionKind::Filter),
            told: section(SectionKind::Bounds),
            column: section(SectionKind::Attribute),
        }
    }

    pub(super) fn clear(&mut self) {
        self.pending.clear();
        self.filter.clear();
        self.stretches.clear();
        self.spread = Spread::default();
        (self.blocks, self.bytes, self.cells, self.nulls, self.bounds, self.values) = (0, 0, 0, 0, None, 0);
    }

    /// Most bytes of its outline, and of what is told of its blocks, when `more` cells are added to the pending ones. A filter tells
    /// values to a hundredth, and as it fills, each may seem to be up to two more.
    pub(super) fn outline_bytes(&self, more: usize) -> usize {
        let told = most_bytes(self.pending.class(), self.blocks as usize)
            + self.stretches.most_bytes(self.pending.len() + more);
        OUTLINE_BYTES + told + self.filter.bytes_for(self.values + 2 * (self.pending.len() + more))
    }

    /// Takes the pending cells for written.
    pub(super) fn written(&mut self, bytes: usize, bounds: Option<(u128, u128)>, firsts: &[u16]) {
        let block = self.blocks;
        self.blocks += 1;
        self.bytes += bytes;
        self.cells += self.pending.len() as u32;
        self.nulls += self.pending.nulls() as u32;
        self.bounds = match (self.bounds, bounds) {
            (Some((least, greatest)), Some((low, high))) => Some((least.min(low), greatest.max(high))),
            (known, None) => known,
            (None, new) => new,
        };
        let (pending, mut sink) =
            (&self.pending, Sink { filter: &mut self.filter, stretches: &mut self.stretches, block });
        match pending.cells() {
            Cells::Words(cells) => {
                sink.insert(pending, firsts, |at| cells[at], |cell| Cell::Word(cell).hash());
            }
            Cells::Wide(cells) => {
                sink.insert(pending, firsts, |at| cells[at], |cell| Cell::Wide(cell).hash());
            }
            cells @ Cells::Bytes(..) => {
                sink.insert(pending, firsts, |at| cells.at(at), |cell| cell.map_or(0, Cell::hash));
            }
        }
        self.stretches.end_block(block);
        self.values = self.filter.values();
        self.pending.clear();
    }

    /// What it has so far, in blocks and pending; whether any value with one of these hashes may be among it.
    pub(super) fn outline(&self, hashes: &[u64]) -> OpenOutline {
        let (mut bounds, mut may_have) = (self.bounds, hashes.iter().any(|hash| self.filter.may_have(*hash)));
        let (cells, valid) = (self.pending.cells(), self.pending.valid());
        for cell in (0..valid.len()).filter(|at| valid[*at]).filter_map(|at| cells.at(at)) {
            let rank = cell.rank();
            let (least, greatest) = bounds.unwrap_or((rank, rank));
            bounds = Some((least.min(rank), greatest.max(rank)));
            may_have = may_have || (!hashes.is_empty() && hashes.contains(&cell.hash()));
        }
        let cells = self.cells + self.pending.len() as u32;
        OpenOutline { cells, nulls: self.nulls + self.pending.nulls() as u32, bounds, may_have }
    }

    /// Ends its filter; none where bounds say as much.
    pub(super) fn fold(&mut self) -> usize {
        let one = self.bounds.is_none_or(|(least, greatest)| least == greatest);
        if one && self.pending.class() != Class::Bytes {
            self.filter.clear();
        }
        self.filter.fold()
    }
}

/// Where the values of a block go.
struct Sink<'a> {
    filter: &'a mut Filter,
    stretches: &'a mut Stretches,
    block: u32,
}

impl Sink<'_> {
    /// Puts each value of the pending cells in, once where it is known which they are.
    #[inline]
    fn insert<T: Copy + PartialEq>(
        &mut self,
        pending: &CellBuffer,
        firsts: &[u16],
        value: impl Fn(usize) -> T,
        hash: impl Fn(T) -> u64,
    ) {
        if !firsts.is_empty() {
            self.put(firsts.iter().map(|first| hash(value(usize::from(*first)))));
            return;
        }
        let (valid, all) = (pending.valid(), pending.nulls() == 0);
        let values = (0..valid.len()).filter(|at| all || valid[*at]).map(value);
        // What comes again at once is looked at once.
        let mut last = None;
        self.put(values.filter(|value| last.replace(*value) != Some(*value)).map(hash));
    }

    #[inline]
    fn put(&mut self, hashes: impl Iterator<Item = u64>) {
        if self.stretches.is_full() {
            self.filter.insert(hashes);
        } else {
            self.filter.insert(hashes.inspect(|hash| self.stretches.add(*hash, self.block)));
        }
    }
}
