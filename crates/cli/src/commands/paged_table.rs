//! Table of unlimited length, which is printed in pages so that it needs bounded memory.

use crate::out::Out;
use holdfast_base::failure::Result;
use holdfast_client::table::{Side, Table};

/// Rows that are aligned together.
const PAGE: usize = 1000;

/// Table that prints its rows page by page.
pub(crate) struct PagedTable {
    columns: &'static [(&'static str, Side)],
    table: Table,
    rows: usize,
}

impl PagedTable {
    /// Empty table with these columns.
    pub(crate) fn new(columns: &'static [(&'static str, Side)]) -> Self {
        Self { columns, table: Table::new(columns), rows: 0 }
    }

    /// Adds a row, and prints a page when it is full.
    pub(crate) fn row(&mut self, out: &mut Out, cells: impl IntoIterator<Item = String>) -> Result<()> {
        self.table.row(cells);
        self.rows += 1;
        if self.rows.is_multiple_of(PAGE) {
            out.table(&std::mem::replace(&mut self.table, Table::new(self.columns)))?;
        }
        Ok(())
    }

    /// Prints the last page.
    pub(crate) fn end(self, out: &mut Out) -> Result<()> {
        let is_printed = self.rows > 0 && self.rows.is_multiple_of(PAGE);
        if is_printed { Ok(()) } else { out.table(&self.table) }
    }
}
