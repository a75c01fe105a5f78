//! Scan of one slot: pruned if statistics exclude it, else read chunk by chunk with the fewest columns;
//! payloads only of hits.

use super::attribute_reads::{AttributeExtractor, attribute_predicate};
use super::block_selection::BlockSelection;
use super::column_blocks::{ChunkBlocks, ColumnSections, PartialColumn, near, stretches};
use super::pruning_stats::ChunkStatistics;
use super::read_plan::{self, ReadPlan, SlotFilters};
use super::rows::ElementRow;
use super::slot_chunk::SlotChunk;
use super::slot_state::{RecordedState, SlotScan};
use crate::predicate::Predicate;
use crate::stream::{ChunkSink, DecodedColumns, ScanStop, pick};
use holdfast_format::{
    Block, BlockBounds, BlocksComing, Chunk, DirectoryEntry, EntrySummary, Section, SectionKind,
};
use holdfast_reader::{PartialElements, SlotError, SlotView};
use std::collections::HashMap;
use std::ops::Range;
use std::sync::Arc;

impl<'r> SlotScan<'_, 'r> {
    /// Scans the slot. Returns false if rows are needed, which were not copied.
    pub(super) fn run(&mut self, sink: &mut ChunkSink<'_>) -> Result<bool, ScanStop> {
        let before = self.counters.bytes;
        self.counters.bytes += self.view.head_bytes();
        let Some((entry, number)) = read_plan::entry(self.view, self.spec) else {
            self.count_pruned(before);
            return Ok(true);
        };
        self.recorded =
            RecordedState { preamble: entry.preamble, attributes: entry.schema, back: entry.back };
        if let Some(cutoff) = self.cutoff
            && entry.ordinals.is_none_or(|(_, greatest)| greatest >= cutoff.next)
        {
            self.spec = &cutoff.spec;
        }
        let filters = if entry.rows == 0 { None } else { self.may_hold(&entry, number)? };
        let Some(filters) = filters else {
            self.count_pruned(before);
            return Ok(true);
        };
        let plan = ReadPlan::of(self.view, self.spec, &entry, number, &filters)?;
        // What ends here may have begun before.
        if (plan.rows || entry.back > 0) && !self.has_rows {
            return Ok(false);
        }
        let selection = self.select_blocks(&plan)?;
        if selection.as_ref().is_some_and(|selection| selection.blocks.is_empty()) {
            self.count_pruned(before);
            return Ok(true);
        }
        self.counters.searched += 1;
        let sequence = self.view.header().sequence;
        *self.back = (*self.back).max(entry.back);
        let asked = self.view.asked();
        let PartialElements { ordinals, expired } =
            self.view.partial_elements((&entry, number), self.planned)?;
        self.counters.bytes += self.view.asked() - asked;
        self.torn = ordinals.into();
        self.diagnostics.expired(expired);
        match &selection {
            Some(selection) => selection.ahead(self.view, &plan)?,
            None => plan.all_ahead(self.view, self.spec)?,
        }
        let ReadPlan { extracts, rows, columns: wanted, .. } = plan;
        if let ([(attribute, section)], false, true, None) =
            (&wanted[..], rows, self.torn.is_empty(), &selection)
        {
            self.one_column(*attribute, section, sink)?;
            return Ok(true);
        }
        let mut columns = ColumnSections { sections: HashMap::new(), parts: HashMap::new() };
        for (attribute, section) in wanted {
            if let Some(ranges) = selection.as_ref().and_then(|selection| selection.ranges(attribute)) {
                columns.parts.insert(attribute, (section, self.parts(&section, ranges)?));
            } else {
                columns.sections.insert(attribute, (section, self.section(&section)?));
            }
        }
        let blocks = columns.blocks(sequence)?;
        if !rows && self.torn.is_empty() {
            for blocks in blocks.each() {
                if self.spec.predicate.may_hold(&self.statistics(None, sequence.0, &blocks)) {
                    self.chunk(&blocks, None, &[], None, sink)?;
                }
            }
            return Ok(true);
        }
        self.with_rows(number, &blocks, extracts, sink)?;
        Ok(true)
    }

    /// Scans a single column while it is read.
    fn one_column(
        &mut self,
        attribute: usize,
        section: &Section,
        sink: &mut ChunkSink<'_>,
    ) -> Result<(), ScanStop> {
        let sequence = self.view.header().sequence;
        let mut blocks = BlocksComing::new(section, sequence);
        let Self { view, counters, back, .. } = self;
        let mut copied = view.copied();
        view.pieces(section, |view, bytes| {
            // Bytes from an index drive are not read from the ring.
            counters.bytes += (bytes.len() as u64).saturating_sub(view.copied() - copied);
            copied = view.copied();
            let mut scan = SlotScan {
                view,
                has_rows: self.has_rows,
                spec: self.spec,
                cutoff: self.cutoff,
                link_types: self.link_types,
                planned: self.planned,
                diagnostics: self.diagnostics,
                counters,
                unread_bytes: self.unread_bytes,
                back,
                torn: Arc::clone(&self.torn),
                recorded: self.recorded,
            };
            blocks.piece(bytes, |block| scan.block(attribute, block, sequence.0, sink))
        })?;
        Ok(blocks.end()?)
    }

    /// Scans one block of a single column.
    fn block(
        &mut self,
        attribute: usize,
        block: Block<'_>,
        sequence: u64,
        sink: &mut ChunkSink<'_>,
    ) -> Result<(), ScanStop> {
        let blocks = HashMap::from([(attribute, block)]);
        if self.spec.predicate.may_hold(&self.statistics(None, sequence, &blocks)) {
            self.chunk(&blocks, None, &[], None, sink)
        } else {
            Ok(())
        }
    }

    /// Returns the pruning statistics of a chunk.
    fn statistics<'b>(
        &'b self,
        entry: Option<&'b DirectoryEntry>,
        sequence: u64,
        blocks: &'b HashMap<usize, Block<'b>>,
    ) -> ChunkStatistics<'b> {
        ChunkStatistics { spec: self.spec, entry, sequence, attributes: self.recorded.attributes, blocks }
    }

    /// Counts an excluded slot; `before` bytes had been read before it.
    fn count_pruned(&mut self, before: u64) {
        self.counters.pruned += 1;
        self.counters.unread += u64::from(self.counters.bytes == before);
    }

    /// Returns the filters of the slot, or `None` if bounds and filters exclude it. Filters are read only if what is in
    /// memory does not exclude it.
    fn may_hold(&mut self, entry: &EntrySummary, number: u16) -> Result<Option<SlotFilters>, ScanStop> {
        let mut filters = SlotFilters::of(self.view, self.spec, number);
        while filters.may_hold(self.view, self.spec, entry)? {
            let missing: Vec<Section> = filters.missing().collect();
            if missing.is_empty() {
                return Ok(Some(filters));
            }
            for section in &missing {
                self.view.ahead(section)?;
            }
            for section in missing {
                filters.add(section, self.section(&section)?);
            }
        }
        Ok(None)
    }

    /// Selects the blocks to read, if their bounds leave few.
    fn select_blocks(&mut self, plan: &ReadPlan) -> Result<Option<BlockSelection>, ScanStop> {
        for (_, section) in &plan.bounds {
            self.view.ahead(section)?;
        }
        let mut bounds = HashMap::new();
        for (attribute, section) in &plan.bounds {
            let Some((_, column)) = plan.columns.iter().find(|(number, _)| number == attribute) else {
                continue;
            };
            // Bounds are optional: if they are damaged, which `check` reports, columns are read whole.
            let bytes = match self.section(section) {
                Err(ScanStop::Damaged(_)) => continue,
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

    /// Reads `len` bytes, and counts those that come from the ring.
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

    /// Scans the chunks of the slot with their rows.
    fn with_rows(
        &mut self,
        entry: u16,
        blocks: &ChunkBlocks<'_>,
        extracts: bool,
        sink: &mut ChunkSink<'_>,
    ) -> Result<(), ScanStop> {
        let sequence = self.view.header().sequence;
        let section = self.view.summary().section(SectionKind::Chunks).copied();
        let missing = || SlotError::Damaged("summary: a section is missing".to_owned());
        let section = section.ok_or_else(missing)?;
        let directory = self.view.directory()?.to_vec();
        let mut extractor = extracts.then(|| AttributeExtractor::new(self.spec, self.recorded.attributes));
        let predicate = if extracts { Predicate::Constant(true) } else { attribute_predicate(self.spec) };
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
            let statistics = self.statistics(Some(at), sequence.0, &blocks);
            if self.spec.predicate.may_hold(&statistics) && self.leaves(&predicate, &blocks) {
                left.push((at, blocks));
            }
        }
        // Few chunks are read one by one; many are read together with the others, in one reading turn.
        let bytes: u64 = left.iter().map(|(at, _)| u64::from(at.bytes)).sum();
        let whole = (2 * bytes >= section.bytes.into()).then(|| self.section(&section)).transpose()?;
        for (at, blocks) in left {
            let range = at.offset as usize..at.offset as usize + at.bytes as usize;
            let part;
            let bytes = if let Some(chunks) = &whole {
                chunks.get(range).ok_or_else(|| {
                    SlotError::Damaged("chunk directory: a chunk lies outside of its section".to_owned())
                })?
            } else {
                part = self.read(range.len(), |view| view.part(&section, range))?;
                &part[..]
            };
            let chunk = Chunk::decode_at(at, sequence, bytes)?;
            let rows: Vec<ElementRow> =
                chunk.rows_of(entry).filter(|(row, _)| row.completes_element()).collect();
            if !rows.is_empty() {
                self.chunk(&blocks, Some(at), &rows, extractor.as_mut(), sink)?;
            }
        }
        Ok(())
    }

    /// Scans the elements that end in one chunk. Without `entry` there are only columns.
    fn chunk(
        &mut self,
        blocks: &HashMap<usize, Block<'_>>,
        entry: Option<&DirectoryEntry>,
        rows: &[ElementRow],
        extractor: Option<&mut AttributeExtractor>,
        sink: &mut ChunkSink<'_>,
    ) -> Result<(), ScanStop> {
        let count = match entry {
            Some(_) => rows.len(),
            None => blocks.values().next().map_or(0, Block::cells),
        };
        if blocks.values().any(|block| block.cells() != count) {
            let place = "attribute column: the numbers of cells and elements differ".to_owned();
            return Err(ScanStop::Damaged(place));
        }
        let mut extracted = DecodedColumns::new();
        if let Some(extractor) = extractor {
            self.extract(rows, extractor, &mut extracted)?;
        }
        let spec = self.spec;
        sink(spec, &mut SlotChunk::new(self, blocks, rows, count, extracted))
    }

    /// Returns true if the attributes leave any element of a chunk, or if its columns are damaged, which its scan reports.
    fn leaves(&mut self, predicate: &Predicate, blocks: &HashMap<usize, Block<'_>>) -> bool {
        let Some(count) = blocks.values().next().map(Block::cells) else { return true };
        if *predicate == Predicate::Constant(true) || blocks.values().any(|block| block.cells() != count) {
            return true;
        }
        let mut picked = vec![true; count];
        let spec = self.spec;
        let chunk = SlotChunk::new(self, blocks, &[], count, DecodedColumns::new());
        let result = pick(predicate, spec, &chunk, &mut DecodedColumns::new(), &mut picked);
        result.is_err() || picked.contains(&true)
    }
}
