//! Attribute cells of a slot, read chunk by chunk so that copies of its rows keep them. The cells are copied
//! as stored; this module does not interpret them.

use crate::job::{Job, JobError, STEP};
use holdfast_base::BLOCK;
use holdfast_format::{
    Block, CellBuffer, CellsAt, Chunk, Class, Classes, PartHeader, Row, Section, SectionKind, Summary,
};

/// Bytes of a column that are read ahead: some blocks.
const AHEAD: usize = 64 << 10;

/// The rows of a chunk, where their payload is, and of those that complete an element how many of the same stream did so before them
/// in the chunk: where their cells are.
pub(crate) fn numbered(chunk: &Chunk) -> impl Iterator<Item = (Row, u32, usize)> {
    let mut ended: Vec<usize> = Vec::new();
    chunk.rows().map(move |(row, at)| {
        let entry = usize::from(row.stream);
        if ended.len() <= entry {
            ended.resize(entry + 1, 0);
        }
        let before = ended[entry];
        ended[entry] += usize::from(row.completes_element());
        (row, at, before)
    })
}

/// Bytes of the columns of a dictionary entry that a slot has, and of what tells of them in short.
pub(crate) fn column_bytes(summary: &Summary, entry: usize) -> u64 {
    let is_column = |kind| matches!(kind, SectionKind::Attribute | SectionKind::Filter | SectionKind::Bounds);
    let of_entry = summary.sections.iter().filter(|at| is_column(at.kind) && usize::from(at.entry) == entry);
    of_entry.map(|section| u64::from(section.bytes)).sum()
}

/// The cells of a slot's chunks, one chunk after the other.
pub(crate) struct SlotCells<'h> {
    header: &'h PartHeader,
    /// The columns of each dictionary entry, in the order of its schema; none where the slot has none of it.
    entries: Vec<Vec<CellReader>>,
    /// The cells of the chunk that was come to last, where they are wanted.
    cells: Vec<Vec<CellBuffer>>,
}

impl<'h> SlotCells<'h> {
    /// Those of the dictionary entries for which `wanted` says so.
    pub(crate) fn of(header: &'h PartHeader, summary: &Summary, wanted: impl Fn(usize) -> bool) -> Self {
        let columns = |entry: usize| {
            let column = |number| summary.column(entry as u16, number).map(CellReader::new);
            let schema = summary.entries[entry].schema as u16;
            let readers: Option<Vec<CellReader>> = (0..schema).map(column).collect();
            readers.filter(|_| wanted(entry)).unwrap_or_default()
        };
        let entries: Vec<Vec<CellReader>> = (0..summary.entries.len()).map(columns).collect();
        let cells = entries.iter().map(|_| Vec::new()).collect();
        Self { header, entries, cells }
    }

    /// What the cells of each dictionary entry are; none where the slot has no columns of it, because nothing of it ended there or
    /// because they were not kept.
    pub(crate) fn classes(&mut self, job: &mut Job<'_, '_>) -> Result<Vec<Classes>, JobError> {
        let header = self.header;
        let of_entry = |columns: &mut Vec<CellReader>| {
            columns.iter_mut().map(|column| column.class(job, header)).collect()
        };
        self.entries.iter_mut().map(of_entry).collect()
    }

    /// Comes to chunk number `number`; of these dictionary entries the cells are wanted.
    pub(crate) fn come_to(
        &mut self,
        job: &mut Job<'_, '_>,
        number: u32,
        wanted: impl Fn(usize) -> bool,
    ) -> Result<(), JobError> {
        let header = self.header;
        for (entry, (columns, cells)) in self.entries.iter_mut().zip(&mut self.cells).enumerate() {
            cells.clear();
            if !wanted(entry) {
                continue;
            }
            for column in columns {
                cells.push(column.cells(job, header, number)?);
            }
        }
        Ok(())
    }

    /// The cells of the row of that entry before which so many have completed an element in the chunk.
    pub(crate) fn at(&self, entry: u16, before: usize) -> CellsAt<'_> {
        let columns = self.cells.get(usize::from(entry)).map_or(&[][..], Vec::as_slice);
        CellsAt { columns, first: before }
    }
}

/// Reads the blocks of one column.
struct CellReader {
    section: Section,
    /// How far it has come in the section, and what of it has been read from there on.
    at: usize,
    window: Vec<u8>,
}

impl CellReader {
    fn new(section: &Section) -> Self {
        Self { section: *section, at: 0, window: Vec::new() }
    }

    /// What its cells are.
    fn class(&mut self, job: &mut Job<'_, '_>, header: &PartHeader) -> Result<Class, JobError> {
        self.block(job, header, BLOCK).map(|block| block.class())
    }

    /// The cells that the elements have which end in chunk number `number`. It has some.
    fn cells(
        &mut self,
        job: &mut Job<'_, '_>,
        header: &PartHeader,
        number: u32,
    ) -> Result<CellBuffer, JobError> {
        loop {
            let block = self.block(job, header, AHEAD)?;
            let (bytes, chunk) = (block.bytes(), block.chunk());
            if chunk > number {
                return Err(damaged(header, &"a column lacks a block"));
            }
            let column = (chunk == number).then(|| block.decode()).transpose();
            self.at += bytes;
            self.window.drain(..bytes);
            if let Some(column) = column.map_err(|error| damaged(header, &error))? {
                return Ok(column.into());
            }
        }
    }

    /// The next block; so many bytes are read at once, or more where it has more.
    fn block(
        &mut self,
        job: &mut Job<'_, '_>,
        header: &PartHeader,
        ahead: usize,
    ) -> Result<Block<'_>, JobError> {
        let bytes = loop {
            let bytes = Block::length(&self.window).map_err(|error| damaged(header, &error))?;
            match bytes {
                Some(bytes) if bytes > STEP => return Err(damaged(header, &"a block that none can be")),
                Some(bytes) if bytes <= self.window.len() => break bytes,
                bytes => self.read(job, header, bytes.unwrap_or(0).max(ahead))?,
            }
        };
        let block = Block::read(&self.window[..bytes]).map_err(|error| damaged(header, &error))?;
        let mine = (block.entry(), block.column()) == (self.section.entry, self.section.column);
        if mine && block.belongs_to(header.sequence) {
            Ok(block)
        } else {
            Err(damaged(header, &"a column has a block of another"))
        }
    }

    /// Reads on until so many bytes are in the window, or all that are left.
    fn read(&mut self, job: &mut Job<'_, '_>, header: &PartHeader, wanted: usize) -> Result<(), JobError> {
        let start = self.section.range().start + self.at + self.window.len();
        let len = wanted.saturating_sub(self.window.len()).min(self.section.range().end - start);
        if len == 0 {
            return Err(damaged(header, &"a column ends early"));
        }
        self.window.extend_from_slice(job.read_slot(header, start, len)?);
        Ok(())
    }
}

fn damaged(header: &PartHeader, why: &dyn std::fmt::Display) -> JobError {
    JobError::Damaged { slot: header.slot, why: why.to_string() }
}
