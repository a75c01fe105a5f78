//! Attributes of simulated elements: made from their ordinals, so that a reader knows the expected values.

use holdfast_format::{
    Blocks, CellBuffer, Chunk, Class, Classes, Entry, FormatError, MAX_TEXT, Outline, PartHeader, Row,
    Summary,
};
use holdfast_media::Seed;
use holdfast_ring::NewSchema;
use std::collections::BTreeMap;

/// The schema of streams that have one: one column of each class, and one more.
pub fn schema() -> NewSchema<'static> {
    let classes = [Class::Word, Class::Bytes, Class::Wide, Class::Word].into_iter().collect::<Classes>();
    NewSchema { text: "made from ordinals", classes }
}

/// The cells that elements with these ordinals have in a column: many values, few, and none.
fn cells(ordinals: &[u64], column: usize, class: Class) -> CellBuffer {
    let mut buffer = CellBuffer::new(class, ordinals.len(), (ordinals.len() + 1) * MAX_TEXT);
    for ordinal in ordinals {
        let of_few = if column.is_multiple_of(2) { *ordinal } else { ordinal % 7 };
        let bits = Seed::new(of_few ^ (column as u64) << 40).bits();
        match class {
            _ if bits.is_multiple_of(11) => buffer.null(),
            Class::Word => buffer.word(bits >> (bits % 60)),
            Class::Wide => buffer.wide(u128::from(bits) << (bits % 64)),
            Class::Bytes => buffer.bytes(&bits.to_le_bytes()[..bits as usize % 8]),
        }
    }
    buffer
}

/// The cells of a row of a stream with such columns.
pub(crate) fn of_row(entry: &Entry, row: &Row) -> Vec<CellBuffer> {
    entry.classes.iter().enumerate().map(|(column, class)| cells(&[row.ordinal.0], column, class)).collect()
}

/// Whether the slot has all cells of all columns that it says it has, and what it tells of them in short is true.
///
/// # Panics
///
/// Where something else is there, though every check of it holds.
pub(crate) fn check(
    bytes: &[u8],
    header: &PartHeader,
    summary: &Summary,
    chunks: &[Chunk],
) -> Result<(), FormatError> {
    let kinds: Vec<Class> = schema().classes.iter().collect();
    for (number, entry) in (0u16..).zip(&summary.entries) {
        let whole = |chunk: &Chunk| -> Vec<u64> {
            let rows = chunk.rows().map(|(row, _)| row);
            rows.filter(|row| row.stream == number && row.completes_element())
                .map(|row| row.ordinal.0)
                .collect()
        };
        let by_chunk: BTreeMap<u32, Vec<u64>> =
            (0..).zip(chunks.iter().map(whole)).filter(|(_, ordinals)| !ordinals.is_empty()).collect();
        for column in 0..entry.schema as u16 {
            let class = kinds[usize::from(column)];
            let at = format!("column {column} of {:?} in {}", entry.stream, header.sequence);
            let (Some(section), Some(short)) =
                (summary.column(number, column), summary.filter(number, column))
            else {
                assert!(by_chunk.is_empty(), "{at} is missing");
                continue;
            };
            let outline = Outline::decode(&bytes[short.range()], short)?;
            let mut seen = BTreeMap::new();
            for block in Blocks::new(section, &bytes[section.range()], header.sequence) {
                let block = block?;
                assert_eq!(block.class(), class, "{at}");
                seen.insert(block.chunk(), CellBuffer::from(block.decode()?));
            }
            assert!(seen.keys().eq(by_chunk.keys()), "{at}: other chunks");
            let mut count = 0;
            for (found, ordinals) in seen.values().zip(by_chunk.values()) {
                let wanted = cells(ordinals, usize::from(column), class);
                assert_eq!((found.cells(), found.valid()), (wanted.cells(), wanted.valid()), "{at}");
                let there = |at: &usize| found.valid()[*at];
                let each = (0..found.len()).filter(there).filter_map(|at| found.cells().at(at));
                each.for_each(|cell| assert!(outline.may_have(cell), "{at}: {cell:?} is denied"));
                count += found.len();
            }
            assert_eq!(outline.cells as usize, count, "{at}");
        }
    }
    Ok(())
}
