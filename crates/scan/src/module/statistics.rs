//! Module `stats`: counts, byte histogram, entropy and type, of each file or of all elements of a stream.

use crate::item::{Item, ItemId};
use crate::module::{Block, Division, Flow, Module, ModuleError, Outputs};

/// Module that counts bytes.
#[derive(Clone, Copy, Debug, Default)]
pub struct Statistics;

/// Statistics of one file, or of several elements of one stream.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StatisticsRow {
    /// The item; the first of several elements.
    pub item: ItemId,
    /// Number of items counted together.
    pub items: u64,
    /// Number of each byte value.
    pub histogram: Box<[u64; 256]>,
    /// Media type by the first bytes; `None` if unknown, or if elements differ.
    pub kind: Option<&'static str>,
}

impl StatisticsRow {
    /// Adds the statistics of further elements.
    pub fn merge(&mut self, other: &Self) {
        self.items += other.items;
        for (sum, more) in self.histogram.iter_mut().zip(&*other.histogram) {
            *sum += more;
        }
        if self.kind != other.kind {
            self.kind = None;
        }
    }

    /// Number of bytes counted.
    pub fn bytes(&self) -> u64 {
        self.histogram.iter().sum()
    }

    /// Shannon entropy in bits a byte, from 0 to 8.
    pub fn entropy(&self) -> f64 {
        let all = self.bytes() as f64;
        let terms = self.histogram.iter().filter(|count| **count > 0).map(|count| {
            let share = *count as f64 / all;
            -share * share.log2()
        });
        terms.sum::<f64>() + 0.0
    }
}

/// Byte histogram of a block, and the type where it is the first.
#[derive(Debug)]
pub struct Partial {
    histogram: Box<[u64; 256]>,
    kind: Option<&'static str>,
}

impl Module for Statistics {
    type Worker = ();
    type Partial = Partial;
    type State = Option<Partial>;
    type Output = StatisticsRow;

    fn division(&self) -> Division {
        Division::Blocks { before: 0, behind: 0 }
    }

    fn worker(&self) -> Result<(), ModuleError> {
        Ok(())
    }

    fn examine(&self, (): &mut (), block: &Block<'_>) -> Result<Partial, ModuleError> {
        // Four tables: equal bytes in a row do not wait for each other's counter.
        let mut tables = [[0_u64; 256]; 4];
        let bytes = block.own_bytes();
        let (words, rest) = bytes.as_chunks::<4>();
        for word in words {
            for (table, byte) in tables.iter_mut().zip(word) {
                table[usize::from(*byte)] += 1;
            }
        }
        for byte in rest {
            tables[0][usize::from(*byte)] += 1;
        }
        let sum = |value: usize| tables.iter().map(|table| table[value]).sum();
        let histogram = Box::new(std::array::from_fn(sum));
        let kind = if block.first { infer::get(bytes).map(|kind| kind.mime_type()) } else { None };
        Ok(Partial { histogram, kind })
    }

    fn start(&self, _: &Item<'_>) -> Result<Option<Partial>, ModuleError> {
        Ok(None)
    }

    fn fold(
        &self,
        state: &mut Option<Partial>,
        _: &Block<'_>,
        partial: Partial,
        _: &mut Outputs<'_, StatisticsRow>,
    ) -> Result<Flow, ModuleError> {
        match state {
            Some(state) => {
                for (sum, more) in state.histogram.iter_mut().zip(&*partial.histogram) {
                    *sum += more;
                }
            }
            None => *state = Some(partial),
        }
        Ok(Flow::Continue)
    }

    fn end(
        &self,
        item: &Item<'_>,
        state: Option<Partial>,
        out: &mut Outputs<'_, StatisticsRow>,
    ) -> Result<(), ModuleError> {
        let Some(Partial { histogram, kind }) = state else { return Ok(()) };
        let row = StatisticsRow { item: item.id(), items: 1, histogram, kind };
        match out.last_mut() {
            // Elements of one batch become one row.
            Some(last) if item.ordinal.is_some() && last.item.container == *item.container => {
                last.merge(&row);
            }
            _ => out.push(row),
        }
        Ok(())
    }
}
