//! Attribute columns of an open slot: the pending cells, the blocks of closed chunks, and the filters over
//! them. At the seal blocks are put together by column. All memory is allocated by
//! [`AttributeColumns::prepare`]; a slot without columns needs none and costs nothing.

use super::column_builder::ColumnBuilder;
use super::{Entry, Section, chunk_rows, max_chunks, max_columns};
use crate::bytes::SliceWriter;
use crate::column::{
    BESIDE, BLOCK_BYTES, BlockAddress, ColumnWriter, Filter, OUTLINE_BYTES, Shape, Stretches, bounds_of,
    cell_bytes, place_of, put_bounds, put_outline,
};
use crate::{CellBuffer, Class, Classes, FormatError, MAX_TEXT, OpenOutline, crc32c};
use std::ops::Range;

/// Where the cells of some rows are: those of the first one that completes an element stand at `first`, those of the next
/// one behind them.
#[derive(Clone, Copy, Debug)]
pub struct CellsAt<'a> {
    /// A buffer for each column of the stream, in the order of its schema.
    pub columns: &'a [CellBuffer],
    /// The place of the first cell in each.
    pub first: usize,
}

impl CellsAt<'static> {
    /// For rows of a stream without columns.
    pub const NONE: Self = Self { columns: &[], first: 0 };
}

impl CellsAt<'_> {
    /// The same from `elements` further on.
    #[must_use]
    pub fn after(self, elements: usize) -> Self {
        Self { first: self.first + elements, ..self }
    }

    fn range(&self, rows: usize) -> Range<usize> {
        self.first..self.first + rows
    }
}

/// Bytes of texts in a column of a chunk, at most.
pub(super) fn texts(slot_bytes: u64) -> usize {
    (slot_bytes as usize / 16).min(256 << 10)
}

/// Bytes of a column's filter, at most: no filter takes more than 1/64 of a slot, all together no more than 1/16.
pub(super) fn filter(slot_bytes: u64, columns: usize) -> usize {
    (slot_bytes as usize / 16 / columns.max(4)).max(BLOCK_BYTES)
}

/// Values of a column of which the slot tells where they are, at most: together they take no more than 1/128 of it. Where there would be
/// few of them columns are small, and read whole.
pub(super) fn rare(slot_bytes: u64, columns: usize) -> usize {
    let most = slot_bytes as usize / 1024 / columns.max(4);
    if most < 32 { 0 } else { most }
}

/// Bytes of blocks in a slot, at most.
pub(super) fn arena(slot_bytes: u64) -> usize {
    slot_bytes as usize / 2
}

/// How much memory the columns of a builder take, by the size of its slots and how many there are.
#[derive(Clone, Copy, Debug)]
pub(super) struct Sizes {
    pub(super) cells: usize,
    pub(super) texts: usize,
    pub(super) filter: usize,
    pub(super) rare: usize,
    arena: usize,
}

impl Sizes {
    fn new(slot_bytes: u64, classes: impl Iterator<Item = Classes> + Clone) -> Result<Self, FormatError> {
        let columns: usize = classes.clone().map(|classes| classes.len()).sum();
        let limit = max_columns(slot_bytes);
        if columns > limit {
            let (count, limit) = (columns as u64, limit as u64);
            return Err(FormatError::TooMany { what: "attributes in slots of this size", count, limit });
        }
        // Room is kept for one row of every kind.
        let widest = classes.map(|classes| Owner::new(0, classes).widest()).max().unwrap_or(0) as u64;
        if widest > slot_bytes / 8 {
            let what = "bytes that the attributes of an element may take in slots of this size";
            return Err(FormatError::TooMany { what, count: widest, limit: slot_bytes / 8 });
        }
        Ok(Self {
            cells: chunk_rows(slot_bytes),
            texts: texts(slot_bytes),
            filter: filter(slot_bytes, columns),
            rare: rare(slot_bytes, columns),
            arena: if columns > 0 { arena(slot_bytes) } else { 0 },
        })
    }

    fn memory(&self, class: Class) -> usize {
        CellBuffer::memory(class, self.cells, self.texts)
            + Filter::memory(self.filter)
            + Stretches::memory(self.filter)
    }
}

/// The columns of a dictionary entry.
#[derive(Clone, Debug, Default)]
struct Owner {
    classes: Classes,
    columns: Range<usize>,
    /// What a row's cells take at most, their texts left out.
    row: usize,
    /// What its blocks take beside that.
    beside: usize,
    /// Bytes of texts in a row, at most.
    texts: usize,
    /// Whether the open slot has them.
    active: bool,
}

impl Owner {
    fn new(first: usize, classes: Classes) -> Self {
        let texts = classes.iter().filter(|class| *class == Class::Bytes).count();
        Self {
            classes,
            columns: first..first + classes.len(),
            row: classes.iter().map(cell_bytes).sum(),
            beside: BESIDE * classes.len(),
            texts: MAX_TEXT * texts,
            active: false,
        }
    }

    /// What one row takes at most where it is the first of its chunk.
    fn widest(&self) -> usize {
        self.row + self.beside + self.texts
    }
}

/// What some cells to come take.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Cost {
    /// Most bytes of blocks.
    pub(super) cells: usize,
    /// Bytes that their outlines grow by.
    outlines: usize,
}

/// The cells of an open slot.
#[derive(Debug)]
pub(super) struct AttributeColumns {
    owners: Vec<Owner>,
    columns: Vec<ColumnBuilder>,
    writer: ColumnWriter,
    /// Blocks, one behind the other as their chunks were closed. It grows only where that was asked for.
    arena: Vec<u8>,
    used: usize,
    /// Where the blocks of each closed chunk begin in it; nothing without columns.
    chunks: Vec<u32>,
    /// Bytes that the arena may take; without columns there is no limit, and nothing in it.
    most: usize,
    /// Most bytes that the pending cells come to.
    pending: usize,
    /// Most bytes that the outlines come to, their filters included, with the cells of one more row.
    outlines: usize,
    /// Most bytes that the cells of one more row come to.
    widest: usize,
    /// Whether the text of one more row may find no room.
    full: bool,
}

impl AttributeColumns {
    /// Without columns.
    pub(super) fn none() -> Self {
        Self {
            owners: Vec::new(),
            columns: Vec::new(),
            writer: ColumnWriter::new(),
            arena: Vec::new(),
            used: 0,
            chunks: Vec::new(),
            most: usize::MAX,
            pending: 0,
            outlines: 0,
            widest: 0,
            full: false,
        }
    }

    /// Bytes of memory that [`AttributeColumns::prepare`] takes.
    pub(super) fn memory(
        slot_bytes: u64,
        classes: impl Iterator<Item = Classes> + Clone,
    ) -> Result<usize, FormatError> {
        let sizes = Sizes::new(slot_bytes, classes.clone())?;
        let columns =
            classes.flat_map(Classes::iter).map(|class| size_of::<ColumnBuilder>() + sizes.memory(class));
        let columns = columns.sum::<usize>();
        let chunks = if columns == 0 { 0 } else { size_of::<u32>() * max_chunks(slot_bytes as usize) };
        Ok(sizes.arena + chunks + columns)
    }

    /// With the columns of these dictionary entries, in place of those that it had.
    pub(super) fn prepare(
        slot_bytes: u64,
        classes: impl Iterator<Item = Classes> + Clone,
    ) -> Result<Self, FormatError> {
        let mut columns = Self::prepare_within(slot_bytes, classes, usize::MAX)?;
        if !columns.columns.is_empty() {
            // Written, not just reserved: pages must not be found missing while elements arrive.
            columns.arena = vec![1; columns.most];
            columns.arena.fill(0);
        }
        Ok(columns)
    }

    /// The same with no more than `most` bytes of memory, as far as they go, of which the blocks take theirs as they come.
    pub(super) fn prepare_within(
        slot_bytes: u64,
        classes: impl Iterator<Item = Classes> + Clone,
        most: usize,
    ) -> Result<Self, FormatError> {
        let sizes = Sizes::new(slot_bytes, classes.clone())?;
        let beside = Self::memory(slot_bytes, classes.clone())? - sizes.arena;
        let mut owners = Vec::new();
        let mut columns = Vec::with_capacity(classes.clone().map(|classes| classes.len()).sum());
        for (entry, classes) in classes.enumerate() {
            owners.push(Owner::new(columns.len(), classes));
            for (number, class) in classes.iter().enumerate() {
                columns.push(ColumnBuilder::new(entry as u16, number as u16, class, sizes));
            }
        }
        let most = if columns.is_empty() { usize::MAX } else { sizes.arena.min(most.saturating_sub(beside)) };
        let chunks = Vec::with_capacity(if columns.is_empty() { 0 } else { max_chunks(slot_bytes as usize) });
        Ok(Self { owners, columns, chunks, most, ..Self::none() })
    }

    /// Bytes that blocks may take.
    pub(super) fn most(&self) -> usize {
        self.most
    }

    /// Begins a slot with this dictionary. Each entry has the columns that were prepared for it, or none.
    pub(super) fn open(&mut self, entries: &[Entry]) -> Result<(), FormatError> {
        (self.used, self.pending, self.outlines, self.widest, self.full) = (0, 0, 0, 0, false);
        self.chunks.clear();
        self.columns.iter_mut().for_each(ColumnBuilder::clear);
        self.owners.iter_mut().for_each(|owner| owner.active = false);
        for (number, entry) in entries.iter().enumerate().filter(|(_, entry)| !entry.classes.is_empty()) {
            let Some(owner) = self.owners.get_mut(number).filter(|owner| owner.classes == entry.classes)
            else {
                let what = "a stream has attributes that no memory was prepared for";
                return Err(FormatError::Malformed { structure: "slot", at: 0, what });
            };
            owner.active = true;
            self.widest = self.widest.max(owner.widest());
        }
        let active = self.owners.iter().filter(|owner| owner.active);
        self.outlines = active.map(|owner| self.outlines_of(owner, 1)).sum();
        Ok(())
    }

    /// Most bytes of the outlines of an owner's columns with so many more rows.
    fn outlines_of(&self, owner: &Owner, more: usize) -> usize {
        self.columns[owner.columns.clone()].iter().map(|column| column.outline_bytes(more)).sum()
    }

    /// Bytes that all outlines may grow by with so many rows.
    pub(super) fn growth(&self, rows: usize) -> usize {
        let active = self.owners.iter().filter(|owner| owner.active);
        active.map(|owner| self.outlines_of(owner, rows + 1) - self.outlines_of(owner, 1)).sum()
    }

    /// Bytes of the index that are kept for columns when `more` is added to what is pending, and for one row to come.
    #[inline]
    pub(super) fn reserved(&self, more: Cost) -> usize {
        self.used + self.outlines + self.pending + self.widest + more.cells + more.outlines
    }

    /// Bytes of blocks that there is room for beyond that; `None`: not even for that.
    #[inline]
    pub(super) fn left(&self, more: Cost) -> Option<usize> {
        self.most.checked_sub(self.used + self.pending + self.widest + more.cells)
    }

    /// Most bytes that the pending cells come to.
    #[inline]
    pub(super) fn pending(&self) -> usize {
        self.pending
    }

    /// Most bytes that the cells of one row come to.
    #[inline]
    pub(super) fn widest(&self) -> usize {
        self.widest
    }

    /// The same for a row of that entry beside others of it.
    pub(super) fn row(&self, entry: u16) -> usize {
        self.owners.get(usize::from(entry)).map_or(0, |owner| owner.row + owner.texts)
    }

    /// Whether the chunk must be closed before another row.
    #[inline]
    pub(super) fn is_full(&self) -> bool {
        self.full
    }

    /// What the cells of so many rows add to what is pending.
    pub(super) fn cost(&self, entry: u16, cells: CellsAt<'_>, rows: usize) -> Cost {
        let owner = &self.owners[usize::from(entry)];
        let columns = &self.columns[owner.columns.clone()];
        let range = cells.range(rows);
        let fits = |(column, cells): (&ColumnBuilder, &CellBuffer)| {
            cells.len() >= range.end && cells.class() == column.pending.class()
        };
        assert!(
            columns.len() == cells.columns.len() && columns.iter().zip(cells.columns).all(fits),
            "rows that complete elements of a stream with attributes come with their cells"
        );
        let mut bytes = rows * owner.row;
        if columns.first().is_some_and(|column| column.pending.is_empty()) {
            bytes += owner.beside;
        }
        if owner.texts > 0 {
            bytes += cells.columns.iter().map(|cells| cells.text_bytes(&range)).sum::<usize>();
        }
        Cost { cells: bytes, outlines: self.outlines_of(owner, rows + 1) - self.outlines_of(owner, 1) }
    }

    /// Whether the cells of so many rows find a place before the chunk must be closed, except perhaps with the last of them.
    /// They are there.
    pub(super) fn takes(&self, entry: u16, cells: CellsAt<'_>, rows: usize) -> bool {
        let owner = &self.owners[usize::from(entry)];
        let before_last = cells.range(rows.saturating_sub(1));
        let columns = self.columns[owner.columns.clone()].iter().zip(cells.columns);
        owner.texts == 0
            || columns
                .into_iter()
                .all(|(column, cells)| column.pending.has_room_with(cells.text_bytes(&before_last)))
    }

    /// Takes the cells of so many rows, which take `cost`.
    pub(super) fn add(&mut self, entry: u16, cells: CellsAt<'_>, rows: usize, cost: Cost) {
        let owner = &self.owners[usize::from(entry)];
        for (column, cells_of) in self.columns[owner.columns.clone()].iter_mut().zip(cells.columns) {
            column.pending.extend(cells_of, cells.range(rows));
            self.full |= !column.pending.has_room_with(0);
        }
        self.pending += cost.cells;
        self.outlines += cost.outlines;
    }

    /// Makes blocks of the pending cells, which are those of chunk number `chunk`.
    pub(super) fn close(&mut self, sequence: u32, chunk: u32) {
        if !self.columns.is_empty() {
            self.chunks.push(self.used as u32);
        }
        if self.pending == 0 {
            return;
        }
        // No block comes to more than what is counted for its cells.
        let end = self.used + self.pending;
        if self.arena.len() < end {
            self.arena.resize(end, 0);
        }
        for column in self.columns.iter_mut().filter(|column| !column.pending.is_empty()) {
            let place = BlockAddress { sequence, chunk, entry: column.entry, column: column.number };
            let Some(block) = self.writer.write(&mut self.arena[self.used..], place, &column.pending) else {
                panic!("there is room for every block of cells that found room");
            };
            self.used += block.bytes;
            self.outlines -= column.outline_bytes(1);
            column.written(block.bytes, block.bounds, self.writer.firsts());
            self.outlines += column.outline_bytes(1);
        }
        (self.pending, self.full) = (0, false);
    }

    /// The blocks of a closed chunk that belong to some columns of an entry.
    pub(super) fn blocks_of(&self, chunk: usize, entry: u16, columns: &[u16]) -> impl Iterator<Item = &[u8]> {
        let at = |chunk: usize| self.chunks.get(chunk).map_or(self.used, |at| *at as usize);
        let mut rest = if columns.is_empty() { &[] } else { &self.arena[at(chunk)..at(chunk + 1)] };
        let next = move || {
            while !rest.is_empty() {
                let (owner, number, len) = place_of(rest);
                let (block, behind) = rest.split_at(len);
                rest = behind;
                if owner == entry && columns.contains(&number) {
                    return Some(block);
                }
            }
            None
        };
        std::iter::from_fn(next)
    }

    /// Writes what the blocks of the pending cells would be, of some columns of the entry that `place` names; whether there was room.
    pub(super) fn pending_blocks(
        &mut self,
        place: BlockAddress,
        columns: &[u16],
        put: &mut SliceWriter<'_>,
    ) -> bool {
        let Some(owner) = self.owners.get(usize::from(place.entry)).filter(|owner| owner.active) else {
            return true;
        };
        for column in &self.columns[owner.columns.clone()] {
            if column.pending.is_empty() || !columns.contains(&column.number) {
                continue;
            }
            let place = BlockAddress { column: column.number, ..place };
            let Some(block) = self.writer.write(put.rest(), place, &column.pending) else { return false };
            put.space(block.bytes);
        }
        true
    }

    /// What a column of an entry has so far; `None`: the open slot has no such column.
    pub(super) fn outline(&self, entry: u16, number: u16, hashes: &[u64]) -> Option<OpenOutline> {
        let owner = self.owners.get(usize::from(entry)).filter(|owner| owner.active)?;
        let column = self.columns[owner.columns.clone()].get(usize::from(number))?;
        Some(column.outline(hashes))
    }

    fn with_cells(&mut self) -> impl Iterator<Item = &mut ColumnBuilder> {
        self.columns.iter_mut().filter(|column| column.cells > 0)
    }

    /// Decides where everything goes in the slot: outlines from `start` on, then what is told of blocks, then these, column by
    /// column. Where they end.
    pub(super) fn lay_out(&mut self, start: usize) -> usize {
        let columns = &mut self.columns;
        for (at, block) in blocks(&self.arena[..self.used], &self.owners) {
            let column = &mut columns[at];
            if let Some(bounds) = column.bounds {
                column.spread.add(bounds_of(block), bounds);
            }
        }
        let mut at = start;
        for column in self.with_cells() {
            let filter = column.fold();
            column.outline.offset = at as u32;
            column.outline.bytes = (OUTLINE_BYTES + filter) as u32;
            column.outline.count = (filter / BLOCK_BYTES) as u32;
            at = column.outline.range().end;
        }
        for owner in &self.owners {
            at = tell_of_blocks(&mut self.columns[owner.columns.clone()], at);
        }
        for column in self.with_cells() {
            column.column.offset = at as u32;
            column.column.bytes = column.bytes as u32;
            column.column.count = column.blocks;
            at = column.column.range().end;
        }
        at
    }

    /// Writes all that to the slot's buffer.
    pub(super) fn put(&mut self, buffer: &mut [u8]) {
        for column in self.with_cells() {
            let space = &mut buffer[column.outline.range()];
            let mut put = SliceWriter::new(space);
            put_outline(&mut put, column.pending.class(), column.cells, column.nulls, column.bounds);
            column.filter.put(&mut put);
            column.outline.crc = crc32c(space);
            // From here on: how much of it has been written.
            (column.bytes, column.blocks) = (0, 0);
        }
        for (at, block) in blocks(&self.arena[..self.used], &self.owners) {
            let column = &mut self.columns[at];
            let (at, len) = (column.column.offset as usize + column.bytes, block.len());
            buffer[at..at + len].copy_from_slice(block);
            column.bytes += len;
            if column.told.bytes > 0 {
                let told = &mut buffer[column.told.range()];
                let (number, bounds) = (column.blocks as usize, column.bounds.unwrap_or_default());
                put_bounds(told, &column.told, bounds, number, (column.bytes as u32, bounds_of(block)));
            }
            column.blocks += 1;
        }
        for column in self.with_cells().filter(|column| column.told.bytes > 0) {
            let shape = Shape::of(&column.told);
            if shape.bits > 0 {
                column.stretches.put(&mut buffer[column.told.range()][shape.bytes(column.blocks as usize)..]);
            }
            column.told.crc = crc32c(&buffer[column.told.range()]);
        }
    }

    /// The sections that it has, once it is laid out and written: first all outlines.
    pub(super) fn sections(&self) -> impl Iterator<Item = Section> + Clone {
        let with_cells = self.columns.iter().filter(|column| column.cells > 0);
        let told = with_cells.clone().map(|column| column.told).filter(|told| told.bytes > 0);
        let outlines = with_cells.clone().map(|column| column.outline);
        outlines.chain(told).chain(with_cells.map(|column| column.column))
    }
}

/// Decides what is told of the blocks of an entry's columns, from `start` of the slot on; where that ends. Where it is told of one of them,
/// it is told where those of the others end: they are read in part, too.
fn tell_of_blocks(columns: &mut [ColumnBuilder], start: usize) -> usize {
    let shape = |column: &ColumnBuilder| {
        let width = column.bounds.and_then(|bounds| column.spread.told(bounds)).unwrap_or(0);
        let (rare, bits) = column.stretches.told(column.blocks).unwrap_or_default();
        (Shape { width, bits }, rare)
    };
    let any = columns.iter().any(|column| shape(column).0 != Shape::default());
    let mut at = start;
    for column in columns {
        let (shape, rare) = shape(column);
        let is_told = any && column.cells > 0;
        let bytes = if is_told { shape.bytes(column.blocks as usize) + rare } else { 0 };
        column.told.offset = at as u32;
        column.told.bytes = bytes as u32;
        column.told.encoding = if is_told { shape.encoding() } else { 0 };
        column.told.count = if is_told { column.blocks } else { 0 };
        at = column.told.range().end;
    }
    at
}

/// Blocks one behind the other as their chunks were closed, each with the place of its column.
fn blocks<'a>(arena: &'a [u8], owners: &'a [Owner]) -> impl Iterator<Item = (usize, &'a [u8])> {
    let mut rest = arena;
    std::iter::from_fn(move || {
        let (entry, number, len) = (!rest.is_empty()).then(|| place_of(rest))?;
        let (block, behind) = rest.split_at(len);
        rest = behind;
        Some((owners[usize::from(entry)].columns.start + usize::from(number), block))
    })
}

#[cfg(test)]
mod tests {
    use super::super::SectionKind;
    use super::*;

    // Promise 1: what is laid out when a slot is sealed takes no more than what was kept while elements arrived.
    #[test]
    fn room_is_kept_for_what_is_told_of_blocks() {
        for class in [Class::Word, Class::Wide, Class::Bytes] {
            let classes: Classes = [class, class].into_iter().collect();
            let entries = [Entry { classes, ..Entry::default() }];
            let mut columns =
                AttributeColumns::prepare(1 << 20, entries.iter().map(|entry| entry.classes)).unwrap();
            columns.open(&entries).unwrap();
            let mut kept = 0;
            for number in 0..250u64 {
                let mut cells = [CellBuffer::new(class, 1, 8), CellBuffer::new(class, 1, 8)];
                for buffer in &mut cells {
                    match class {
                        Class::Word => buffer.word(number << 40),
                        Class::Wide => buffer.wide(u128::from(number) << 100),
                        Class::Bytes => buffer.bytes(&number.to_be_bytes()),
                    }
                }
                let cells = CellsAt { columns: &cells, first: 0 };
                let cost = columns.cost(0, cells, 1);
                kept = columns.reserved(cost);
                columns.add(0, cells, 1, cost);
                // A chunk of its own for each.
                columns.close(1, number as u32);
                let now = columns.reserved(Cost::default());
                assert!(now <= kept, "{class:?} {number}: {now} of {kept}");
            }
            // One more row of each could have come.
            let (end, most) = (columns.lay_out(0), kept - columns.widest());
            let told: usize =
                columns.sections().filter(|s| s.kind == SectionKind::Bounds).map(|s| s.range().len()).sum();
            assert!(told > 4000 && end <= most, "{class:?}: {end} of {most}, of which {told} of bounds");
        }
    }
}
