//! Scan of one slot: pruned if statistics exclude it, else read chunk by chunk with the fewest columns;
//! payloads only of hits.

use super::block_selection::BlockSelection;
use super::column_blocks::{ChunkBlocks, ColumnSections, PartialColumn, near, stretches};
use super::column_builder::ColumnBuilder;
use super::pruning_stats::ChunkStatistics;
use super::read_plan::{self, ReadPlan, SlotFilters};
use super::rows::{ElementRow, LoadedColumn, by_size, of_rows};
use super::scan_cutoff::StreamCutoff;
use super::scan_diagnostics::ScanDiagnostics;
use super::scan_spec::{AttributeMaker, ScanSpec};
use crate::columns::{Column, CommonColumn};
use crate::predicate::{ColumnCells, Predicate};
use datafusion::arrow::array::{ArrayRef, RecordBatch, RecordBatchOptions};
use datafusion::arrow::datatypes::SchemaRef;
use datafusion::arrow::error::ArrowError;
use holdfast_attributes::Type;
use holdfast_base::Ordinal;
use holdfast_format::{
    Block, BlockBounds, BlocksComing, Chunk, DirectoryEntry, EntrySummary, FormatError, Kind, Row, Section,
    SectionKind,
};
use holdfast_reader::{PartialElements, PlannedSlot, SlotError, SlotView};
use std::collections::HashMap;
use std::ops::{ControlFlow, Range};
use std::sync::Arc;

/// Why a slot was not searched to its end.
#[derive(Debug)]
pub(super) enum ScanStop {
    /// See there.
    Slot(SlotError),
    /// A value has no form in Arrow.
    Arrow(ArrowError),
    /// Nobody wants more.
    Enough,
    /// It takes rows, which were not taken.
    Rows,
}

impl From<SlotError> for ScanStop {
    fn from(error: SlotError) -> Self {
        Self::Slot(error)
    }
}

impl From<ArrowError> for ScanStop {
    fn from(error: ArrowError) -> Self {
        Self::Arrow(error)
    }
}

impl From<FormatError> for ScanStop {
    fn from(error: FormatError) -> Self {
        Self::Slot(SlotError::Damaged(error.to_string()))
    }
}

/// What was done to find what was found.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct ScanCounters {
    /// Slots that were passed over by their bounds and filters.
    pub(super) pruned: u64,
    /// Those of them of which nothing was read: the recorder's bird's-eye view told enough, or the recorder of its open slot.
    pub(super) unread: u64,
    /// Slots that were looked into.
    pub(super) searched: u64,
    /// Bytes of them that were read from the ring.
    pub(super) bytes: u64,
    /// Bytes of them that were read from an index drive.
    pub(super) copied: u64,
    /// Elements that were found, but of which not all is there any more.
    pub(super) partial: u64,
    /// How many ages before a slot's an element began that ends there, at most.
    pub(super) back: u64,
}

/// A search of one slot.
pub(super) struct SlotScan<'a, 'r> {
    pub(super) view: &'a mut SlotView<'r>,
    /// Whether its rows can be had.
    pub(super) has_rows: bool,
    pub(super) spec: &'a ScanSpec,
    /// What is wanted instead of slots that have elements from some ordinal on.
    pub(super) cutoff: Option<&'a StreamCutoff>,
    /// The slots that were there when the search began, by its list.
    pub(super) planned: &'a [PlannedSlot],
    pub(super) diagnostics: &'a ScanDiagnostics,
    pub(super) schema: &'a SchemaRef,
    pub(super) counters: &'a mut ScanCounters,
    /// Takes what is found, with what was done until then.
    pub(super) sink: &'a mut dyn FnMut(RecordBatch, &ScanCounters) -> ControlFlow<()>,
    /// Elements that end here and whose beginning has expired: they are none any more.
    pub(super) torn: Arc<[Ordinal]>,
    /// What the stream was like when this was recorded.
    pub(super) recorded: RecordedState,
}

/// What a stream was like when a slot was recorded.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct RecordedState {
    /// Version of its preamble.
    pub(super) preamble: u32,
    /// How many attributes it had.
    pub(super) attributes: u32,
    /// How many ages before the slot's the element began that ends there first.
    pub(super) back: u64,
}

impl<'r> SlotScan<'_, 'r> {
    /// Searches it.
    pub(super) fn run(&mut self) -> Result<(), ScanStop> {
        let before = self.counters.bytes;
        self.counters.bytes += self.view.head_bytes();
        let Some((entry, number)) = read_plan::entry(self.view, self.spec) else {
            self.passed_over(before);
            return Ok(());
        };
        self.recorded =
            RecordedState { preamble: entry.preamble, attributes: entry.schema, back: entry.back };
        if let Some(cutoff) = self.cutoff
            && entry.ordinals.is_none_or(|(_, greatest)| greatest >= cutoff.next)
        {
            self.spec = &cutoff.spec;
        }
        let told = if entry.rows == 0 { None } else { self.may_hold(&entry, number)? };
        let Some(told) = told else {
            self.passed_over(before);
            return Ok(());
        };
        let needed = ReadPlan::of(self.view, self.spec, &entry, number, &told)?;
        // What ends here may have begun before.
        if (needed.rows || entry.back > 0) && !self.has_rows {
            return Err(ScanStop::Rows);
        }
        let few = self.few(&needed)?;
        if few.as_ref().is_some_and(|few| few.blocks.is_empty()) {
            self.passed_over(before);
            return Ok(());
        }
        self.counters.searched += 1;
        let sequence = self.view.header().sequence;
        self.counters.back = self.counters.back.max(entry.back);
        let asked = self.view.asked();
        let PartialElements { ordinals, expired } =
            self.view.partial_elements((&entry, number), self.planned)?;
        self.counters.bytes += self.view.asked() - asked;
        self.torn = ordinals.into();
        self.diagnostics.expired(expired);
        match &few {
            Some(few) => few.ahead(self.view, &needed)?,
            None => needed.all_ahead(self.view, self.spec)?,
        }
        let ReadPlan { made, rows, columns: wanted, .. } = needed;
        if let ([(attribute, section)], false, true, None) = (&wanted[..], rows, self.torn.is_empty(), &few) {
            return self.one_column(*attribute, section);
        }
        let mut columns = ColumnSections { sections: HashMap::new(), parts: HashMap::new() };
        for (attribute, section) in wanted {
            if let Some(ranges) = few.as_ref().and_then(|few| few.ranges(attribute)) {
                columns.parts.insert(attribute, (section, self.parts(&section, ranges)?));
            } else {
                columns.sections.insert(attribute, (section, self.section(&section)?));
            }
        }
        let blocks = columns.blocks(sequence)?;
        if !rows && self.torn.is_empty() {
            for blocks in blocks.each() {
                if self.spec.predicate.may_hold(&self.known(None, sequence.0, &blocks)) {
                    self.chunk(&blocks, None, &[], None)?;
                }
            }
            return Ok(());
        }
        self.with_rows(number, &blocks, made)
    }

    /// Searches a single column while it comes.
    fn one_column(&mut self, attribute: usize, section: &Section) -> Result<(), ScanStop> {
        let sequence = self.view.header().sequence;
        let mut blocks = BlocksComing::new(section, sequence);
        let Self {
            view,
            spec,
            cutoff,
            planned,
            diagnostics,
            schema,
            counters,
            sink,
            has_rows,
            torn,
            recorded,
        } = self;
        let mut copied = view.copied();
        view.pieces(section, |view, bytes| {
            // What an index drive had was not read.
            counters.bytes += (bytes.len() as u64).saturating_sub(view.copied() - copied);
            copied = view.copied();
            let mut search = SlotScan {
                view,
                spec,
                cutoff: *cutoff,
                planned,
                diagnostics,
                schema,
                counters,
                sink: &mut **sink,
                has_rows: *has_rows,
                torn: Arc::clone(torn),
                recorded: *recorded,
            };
            blocks.piece(bytes, |block| search.block(attribute, block, sequence.0))
        })?;
        Ok(blocks.end()?)
    }

    /// What a chunk has of a single column.
    fn block(&mut self, attribute: usize, block: Block<'_>, sequence: u64) -> Result<(), ScanStop> {
        let blocks = HashMap::from([(attribute, block)]);
        if self.spec.predicate.may_hold(&self.known(None, sequence, &blocks)) {
            self.chunk(&blocks, None, &[], None)
        } else {
            Ok(())
        }
    }

    /// What is known of a chunk.
    fn known<'b>(
        &'b self,
        entry: Option<&'b DirectoryEntry>,
        sequence: u64,
        blocks: &'b HashMap<usize, Block<'b>>,
    ) -> ChunkStatistics<'b> {
        ChunkStatistics { spec: self.spec, entry, sequence, attributes: self.recorded.attributes, blocks }
    }

    /// Counts a slot that is passed over, where so many bytes had been read before it.
    fn passed_over(&mut self, before: u64) {
        self.counters.pruned += 1;
        self.counters.unread += u64::from(self.counters.bytes == before);
    }

    /// What bounds and filters tell where they leave something to be looked for. What is not known without reading is read only if
    /// the rest does not exclude the slot.
    fn may_hold(&mut self, entry: &EntrySummary, number: u16) -> Result<Option<SlotFilters>, ScanStop> {
        let mut told = SlotFilters::of(self.view, self.spec, number);
        while told.may_hold(self.view, self.spec, entry)? {
            let missing: Vec<Section> = told.missing().collect();
            if missing.is_empty() {
                return Ok(Some(told));
            }
            for section in &missing {
                self.view.ahead(section)?;
            }
            for section in missing {
                told.tell(section, self.section(&section)?);
            }
        }
        Ok(None)
    }

    /// Which blocks are to be read, where these are few.
    fn few(&mut self, needed: &ReadPlan) -> Result<Option<BlockSelection>, ScanStop> {
        for (_, section) in &needed.bounds {
            self.view.ahead(section)?;
        }
        let mut bounds = HashMap::new();
        for (attribute, section) in &needed.bounds {
            let Some((_, column)) = needed.columns.iter().find(|(number, _)| number == attribute) else {
                continue;
            };
            // Nothing depends on them: where they are damaged, which `check` tells, columns are read whole.
            let bytes = match self.section(section) {
                Err(ScanStop::Slot(SlotError::Damaged(_))) => continue,
                other => other?,
            };
            if let Ok(told) = BlockBounds::decode(&bytes, section, column) {
                bounds.insert(*attribute, told);
            }
        }
        Ok(BlockSelection::of(self.spec, bounds, near(self.view)))
    }

    /// Reads some blocks of a column.
    fn parts(&mut self, section: &Section, blocks: Vec<Range<usize>>) -> Result<PartialColumn, ScanStop> {
        let mut bytes = Vec::new();
        for stretch in stretches(&blocks, near(self.view)) {
            let read = self.read(stretch.len(), |view| view.part(section, stretch.clone()))?;
            bytes.push((stretch.start, read));
        }
        Ok(PartialColumn { blocks, bytes })
    }

    fn section(&mut self, section: &Section) -> Result<Vec<u8>, ScanStop> {
        self.read(section.bytes as usize, |view| view.section(section))
    }

    /// Reads so many bytes, and counts what of them comes from the ring.
    fn read(
        &mut self,
        len: usize,
        read: impl FnOnce(&mut SlotView<'r>) -> Result<Vec<u8>, SlotError>,
    ) -> Result<Vec<u8>, ScanStop> {
        let before = self.view.copied();
        let bytes = read(self.view)?;
        self.counters.bytes += len as u64 - (self.view.copied() - before);
        Ok(bytes)
    }

    /// The same where rows are needed, too.
    fn with_rows(&mut self, entry: u16, blocks: &ChunkBlocks<'_>, made: bool) -> Result<(), ScanStop> {
        let sequence = self.view.header().sequence;
        let section = self.view.summary().section(SectionKind::Chunks).copied();
        let missing = || SlotError::Damaged("summary: a section is missing".to_owned());
        let section = section.ok_or_else(missing)?;
        let directory = self.view.directory()?.to_vec();
        let mut maker = made.then(|| self.spec.maker(self.recorded.attributes));
        let told = if made { Predicate::Constant(true) } else { self.spec.told_by_attributes() };
        let mut left = Vec::new();
        for (number, at) in directory.iter().enumerate() {
            if !at.may_have(entry) {
                continue;
            }
            let all_chunks = blocks.all_chunks;
            let blocks = blocks.of(number as u32);
            if blocks.is_empty() && !all_chunks {
                continue;
            }
            let known = self.known(Some(at), sequence.0, &blocks);
            if self.spec.predicate.may_hold(&known) && self.leaves(&told, &blocks) {
                left.push((at, blocks));
            }
        }
        // A few chunks are read one by one; of many all are, which takes one turn at reading.
        let bytes: u64 = left.iter().map(|(at, _)| u64::from(at.bytes)).sum();
        let whole = (2 * bytes >= section.bytes.into()).then(|| self.section(&section)).transpose()?;
        for (at, blocks) in left {
            let range = at.offset as usize..at.offset as usize + at.bytes as usize;
            let part;
            let bytes = if let Some(chunks) = &whole {
                chunks.get(range).ok_or_else(|| SlotError::Damaged("chunk directory: outside".to_owned()))?
            } else {
                part = self.read(range.len(), |view| view.part(&section, range))?;
                &part[..]
            };
            let chunk = Chunk::decode_at(at, sequence, bytes)?;
            let rows: Vec<ElementRow> =
                chunk.rows_of(entry).filter(|(row, _)| row.completes_element()).collect();
            if !rows.is_empty() {
                self.chunk(&blocks, Some(at), &rows, maker.as_mut())?;
            }
        }
        Ok(())
    }

    /// The elements that end in one chunk. Without rows there are only columns.
    fn chunk(
        &mut self,
        blocks: &HashMap<usize, Block<'_>>,
        entry: Option<&DirectoryEntry>,
        rows: &[ElementRow],
        maker: Option<&mut AttributeMaker>,
    ) -> Result<(), ScanStop> {
        let count = match entry {
            Some(_) => rows.len(),
            None => blocks.values().next().map_or(0, Block::cells),
        };
        if blocks.values().any(|block| block.cells() != count) {
            return Err(SlotError::Damaged(
                "attribute column: it has not a cell for each element".to_owned(),
            )
            .into());
        }
        let mut loaded: HashMap<usize, LoadedColumn> = HashMap::new();
        if let Some(maker) = maker {
            self.extract(rows, maker, &mut loaded)?;
        }
        let mut picked = vec![true; count];
        if !self.torn.is_empty() {
            let is_torn = |row: &Row| row.kind == Kind::Fragment && self.torn.contains(&row.ordinal);
            picked.iter_mut().zip(rows).for_each(|(picked, (row, _))| *picked = !is_torn(row));
        }
        self.pick(&self.spec.predicate, blocks, rows, &mut loaded, &mut picked)?;
        if !picked.contains(&true) {
            return Ok(());
        }
        self.load(&self.spec.projection, blocks, rows, &mut loaded)?;
        self.pick_by_rest(&loaded, &mut picked)?;
        for some in by_size(rows, picked, self.spec.payload()) {
            self.give(rows, &some, &loaded)?;
        }
        Ok(())
    }

    /// Takes out of `picked` what the rest of the condition leaves out, for the sake of payloads that need not be read then. The engine
    /// asks for it again: where it cannot be told here, it is left.
    fn pick_by_rest(
        &self,
        loaded: &HashMap<usize, LoadedColumn>,
        picked: &mut [bool],
    ) -> Result<(), ScanStop> {
        let Some(residual) = &self.spec.residual else { return Ok(()) };
        let mut arrays: Vec<ArrayRef> = Vec::with_capacity(residual.columns.len());
        for column in &residual.columns {
            arrays.push(array_of(*column, loaded, picked)?);
        }
        residual.pick(arrays, picked);
        Ok(())
    }

    /// Gives away what was picked.
    fn give(
        &mut self,
        rows: &[ElementRow],
        picked: &[bool],
        loaded: &HashMap<usize, LoadedColumn>,
    ) -> Result<(), ScanStop> {
        let hits = picked.iter().filter(|picked| **picked).count();
        if hits == 0 {
            return Ok(());
        }
        let mut arrays: Vec<ArrayRef> = Vec::with_capacity(self.spec.projection.len());
        for place in &self.spec.projection {
            let Some((column, kind)) = self.spec.columns.at(*place) else { continue };
            if column == Column::Common(CommonColumn::Payload) {
                let mut array = ColumnBuilder::new(kind);
                self.payloads(rows, picked, &mut array)?;
                arrays.push(array.finish());
            } else {
                arrays.push(array_of((*place, kind), loaded, picked)?);
            }
        }
        let options = RecordBatchOptions::new().with_row_count(Some(hits));
        let batch = RecordBatch::try_new_with_options(SchemaRef::clone(self.schema), arrays, &options)?;
        let so_far = ScanCounters { copied: self.counters.copied + self.view.copied(), ..*self.counters };
        match (self.sink)(batch, &so_far) {
            ControlFlow::Continue(()) => Ok(()),
            ControlFlow::Break(()) => Err(ScanStop::Enough),
        }
    }

    /// Whether a condition on attributes leaves any element of a chunk; true where its columns are damaged, which whoever goes on
    /// finds.
    fn leaves(&self, told: &Predicate, blocks: &HashMap<usize, Block<'_>>) -> bool {
        let Some(count) = blocks.values().next().map(Block::cells) else { return true };
        if *told == Predicate::Constant(true) || blocks.values().any(|block| block.cells() != count) {
            return true;
        }
        let mut picked = vec![true; count];
        let looked = self.pick(told, blocks, &[], &mut HashMap::new(), &mut picked);
        looked.is_err() || picked.contains(&true)
    }

    /// Takes out of `picked` the elements of a chunk that do not fulfil a condition.
    fn pick(
        &self,
        predicate: &Predicate,
        blocks: &HashMap<usize, Block<'_>>,
        rows: &[ElementRow],
        loaded: &mut HashMap<usize, LoadedColumn>,
        picked: &mut [bool],
    ) -> Result<(), ScanStop> {
        let mut looked_at = predicate.columns();
        // What is only looked at need not be made.
        let mut lent = HashMap::new();
        for (place, number) in self.spec.attributes(&looked_at) {
            if !loaded.contains_key(&place)
                && !self.spec.projection.contains(&place)
                && let Some(words) = blocks.get(&number).map(Block::packed).transpose()?.flatten()
            {
                lent.insert(place, words);
            }
        }
        looked_at.retain(|place| !lent.contains_key(place));
        self.load(&looked_at, blocks, rows, loaded)?;
        let cells = |place: usize| {
            if let Some(words) = lent.get(&place) {
                return Some(ColumnCells::Packed(words));
            }
            let (cells, nulls) = loaded.get(&place)?;
            Some(ColumnCells::Cells(cells.lent(), nulls.as_deref()))
        };
        predicate.pick(picked, &cells);
        Ok(())
    }

    /// Decodes columns that are not there yet.
    fn load(
        &self,
        places: &[usize],
        blocks: &HashMap<usize, Block<'_>>,
        rows: &[ElementRow],
        loaded: &mut HashMap<usize, LoadedColumn>,
    ) -> Result<(), ScanStop> {
        for (place, number) in self.spec.attributes(places) {
            if loaded.contains_key(&place) {
                continue;
            }
            if let Some(block) = blocks.get(&number) {
                let column = block.decode()?;
                loaded.insert(place, (column.cells, column.nulls));
            }
        }
        let sequence = self.view.header().sequence.0;
        for (place, fixed) in self.spec.fixed(places) {
            if fixed != CommonColumn::Payload && !loaded.contains_key(&place) {
                loaded.insert(place, of_rows(fixed, rows, sequence));
            }
        }
        Ok(())
    }
}

/// What was picked has of a column that is no payload.
fn array_of(
    (place, kind): (usize, Type),
    loaded: &HashMap<usize, LoadedColumn>,
    picked: &[bool],
) -> Result<ArrayRef, ScanStop> {
    let mut array = ColumnBuilder::new(kind);
    match loaded.get(&place) {
        Some((cells, nulls)) => array.extend(cells.lent(), nulls.as_deref(), picked)?,
        None => array.nulls(picked.iter().filter(|picked| **picked).count())?,
    }
    Ok(array.finish())
}
