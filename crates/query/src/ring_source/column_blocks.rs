//! Column blocks of a slot, all or selected ones: verified, and grouped by chunk.

use holdfast_base::Sequence;
use holdfast_format::{Block, Blocks, FormatError, Section};
use holdfast_reader::SlotView;
use std::collections::HashMap;
use std::ops::Range;

/// Blocks that lie nearer to each other are read in one go, and columns that are together smaller are read whole: 64 KiB in slots
/// of 64 MiB.
pub(super) fn near(view: &SlotView<'_>) -> usize {
    (view.slot_bytes() / 1024) as usize
}

/// The columns of a slot that were read.
pub(super) struct ColumnSections {
    /// By number of the attribute: the bytes of its section, and the section.
    pub(super) sections: HashMap<usize, (Section, Vec<u8>)>,
    /// The same of which only some blocks were read.
    pub(super) parts: HashMap<usize, (Section, PartialColumn)>,
}

impl ColumnSections {
    /// The blocks of all attributes, chunk by chunk.
    pub(super) fn blocks(&self, sequence: Sequence) -> Result<ChunkBlocks<'_>, FormatError> {
        let count = self.sections.values().map(|(section, _)| section.count as usize).sum();
        let mut all = Vec::with_capacity(count);
        for (number, (section, bytes)) in &self.sections {
            for block in Blocks::new(section, bytes, sequence) {
                all.push((*number, block?));
            }
        }
        let mut chunks: Option<Vec<u32>> = None;
        for (number, (section, parts)) in &self.parts {
            let blocks = parts.blocks(section, sequence)?;
            let of_these = blocks.iter().map(Block::chunk).collect();
            if chunks.replace(of_these).is_some_and(|others| chunks.as_ref() != Some(&others)) {
                return Err(damaged("columns of one stream have blocks of different chunks"));
            }
            all.extend(blocks.into_iter().map(|block| (*number, block)));
        }
        let all_chunks = chunks.is_none();
        if let Some(chunks) = chunks {
            all.retain(|(_, block)| chunks.binary_search(&block.chunk()).is_ok());
        }
        all.sort_by_key(|(_, block)| block.chunk());
        Ok(ChunkBlocks { blocks: all, all_chunks })
    }
}

/// Blocks with the numbers of their attributes, in the order of their chunks.
pub(super) struct ChunkBlocks<'a> {
    blocks: Vec<(usize, Block<'a>)>,
    /// Whether chunks without any have none, and are not just left out.
    pub(super) all_chunks: bool,
}

impl<'a> ChunkBlocks<'a> {
    /// Those of a chunk.
    pub(super) fn of(&self, chunk: u32) -> HashMap<usize, Block<'a>> {
        let first = self.blocks.partition_point(|(_, block)| block.chunk() < chunk);
        self.blocks[first..].iter().take_while(|(_, block)| block.chunk() == chunk).copied().collect()
    }

    /// Chunk by chunk.
    pub(super) fn each(&self) -> impl Iterator<Item = HashMap<usize, Block<'a>>> {
        self.blocks
            .chunk_by(|(_, one), (_, next)| one.chunk() == next.chunk())
            .map(|of| of.iter().copied().collect())
    }
}

/// Blocks in rising order, put together where no more than so many bytes lie between them.
pub(super) fn stretches(blocks: &[Range<usize>], near: usize) -> impl Iterator<Item = Range<usize>> {
    let together = blocks.chunk_by(move |one, next| next.start <= one.end + near);
    together.filter_map(|blocks| Some(blocks.first()?.start..blocks.last()?.end))
}

/// Some blocks of a column.
pub(super) struct PartialColumn {
    /// Where they are in its section.
    pub(super) blocks: Vec<Range<usize>>,
    /// What was read of it, and from where on, in rising order.
    pub(super) bytes: Vec<(usize, Vec<u8>)>,
}

impl PartialColumn {
    /// The blocks, checked.
    pub(super) fn blocks(
        &self,
        section: &Section,
        sequence: Sequence,
    ) -> Result<Vec<Block<'_>>, FormatError> {
        let block = |range: &Range<usize>| {
            let read = self.bytes.iter().rfind(|(start, _)| *start <= range.start);
            let bytes = read.and_then(|(start, bytes)| bytes.get(range.start - start..));
            let block = Block::read(bytes.unwrap_or_default())?;
            let right = (block.entry(), block.column()) == (section.entry, section.column)
                && block.bytes() == range.len()
                && block.belongs_to(sequence);
            if right { Ok(block) } else { Err(damaged("a block does not match its bounds")) }
        };
        let blocks = self.blocks.iter().map(block).collect::<Result<Vec<_>, _>>()?;
        if blocks.is_sorted_by(|one, next| one.chunk() < next.chunk()) {
            Ok(blocks)
        } else {
            Err(damaged("blocks are not in the order of their chunks"))
        }
    }
}

pub(super) fn damaged(what: &'static str) -> FormatError {
    FormatError::Malformed { structure: "attribute column", at: 0, what }
}
