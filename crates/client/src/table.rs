//! Tables of text: columns that are aligned for people.

use holdfast_base::clean;
use std::fmt;

/// Alignment of a column.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Side {
    /// Alignment of texts: left.
    Left,
    /// Alignment of numbers: right.
    Right,
}

/// Rows of cells that stand below each other.
#[derive(Debug)]
pub struct Table {
    columns: Vec<(&'static str, Side)>,
    rows: Vec<Vec<String>>,
}

impl Table {
    /// A table with these columns.
    pub fn new(columns: &[(&'static str, Side)]) -> Self {
        Self { columns: columns.to_vec(), rows: Vec::new() }
    }

    /// Adds a row of cells.
    pub fn row(&mut self, cells: impl IntoIterator<Item = String>) {
        self.rows.push(cells.into_iter().map(|cell| clean(&cell)).collect());
    }
}

impl fmt::Display for Table {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let width = |at: usize| {
            let cells = self.rows.iter().filter_map(|row| row.get(at)).map(|cell| cell.chars().count());
            cells.chain(std::iter::once(self.columns[at].0.chars().count())).max().unwrap_or(0)
        };
        let widths: Vec<usize> = (0..self.columns.len()).map(width).collect();
        let heads: Vec<String> = self.columns.iter().map(|(name, _)| (*name).to_owned()).collect();
        for row in std::iter::once(&heads).chain(&self.rows) {
            let cells = row.iter().zip(&self.columns).zip(&widths);
            let line: Vec<String> = cells
                .map(|((cell, (_, side)), width)| match side {
                    Side::Left => format!("{cell:<width$}"),
                    Side::Right => format!("{cell:>width$}"),
                })
                .collect();
            writeln!(f, "{}", line.join("  ").trim_end())?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use holdfast_base::grouped;

    #[test]
    fn tables_stand_in_columns_and_do_not_move_the_cursor() {
        let mut table =
            Table::new(&[("stream", Side::Left), ("elements", Side::Right), ("note", Side::Left)]);
        table.row(["eth0".to_owned(), grouped(1_234_567), "a".to_owned()]);
        table.row(["\u{1b}[2Jü".to_owned(), grouped(7), String::new()]);
        assert_eq!(
            table.to_string(),
            "stream       elements  note\n\
             eth0        1 234 567  a\n\
             \\u{1b}[2Jü          7\n"
        );
    }
}
