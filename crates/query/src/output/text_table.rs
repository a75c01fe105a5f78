//! Text table for terminals. The first batch sets the column widths, so that rows appear without waiting
//! for the last. Plans of `EXPLAIN` are printed as indented lines.

use super::output_error::OutputError;
use datafusion::arrow::array::{Array, RecordBatch};
use datafusion::arrow::util::display::{ArrayFormatter, FormatOptions};
use std::io::Write;

/// A table that is being written.
pub(super) struct TextTable<W> {
    to: W,
    /// Of each column, once the head is written; and whether it leans to the right.
    widths: Option<Vec<(usize, bool)>>,
}

/// What would move a terminal's cursor is shown as it is written.
fn clean(text: &str) -> String {
    if text.chars().any(char::is_control) {
        return text
            .chars()
            .flat_map(|c| if c.is_control() { c.escape_default().collect::<Vec<_>>() } else { vec![c] })
            .collect();
    }
    text.to_owned()
}

/// Whether rows are plans, as `EXPLAIN` gives them.
fn is_plan(batch: &RecordBatch) -> bool {
    batch.schema_ref().fields().iter().map(|field| field.name().as_str()).eq(["plan_type", "plan"])
}

/// Plans, each under its name.
fn plans(to: &mut impl Write, batch: &RecordBatch) -> Result<(), OutputError> {
    let options = FormatOptions::default();
    let [name, plan] = [0, 1].map(|at| ArrayFormatter::try_new(batch.column(at), &options));
    let (name, plan) = (name?, plan?);
    for row in 0..batch.num_rows() {
        writeln!(to, "{}", clean(&name.value(row).try_to_string()?))?;
        for line in plan.value(row).try_to_string()?.lines() {
            writeln!(to, "  {}", clean(line))?;
        }
    }
    to.flush()?;
    Ok(())
}

impl<W: Write> TextTable<W> {
    pub(super) fn new(to: W) -> Self {
        Self { to, widths: None }
    }

    pub(super) fn write(&mut self, batch: &RecordBatch) -> Result<(), OutputError> {
        if is_plan(batch) {
            return plans(&mut self.to, batch);
        }
        let options = FormatOptions::default().with_null("–");
        let mut columns: Vec<Vec<String>> = Vec::with_capacity(batch.num_columns());
        for array in batch.columns() {
            let format = ArrayFormatter::try_new(array, &options)?;
            let cell = |at| format.value(at).try_to_string().map(|text| clean(&text));
            columns.push((0..array.len()).map(cell).collect::<Result<_, _>>()?);
        }
        if self.widths.is_none() {
            let schema = batch.schema();
            let width = |(at, cells): (usize, &Vec<String>)| {
                let name = schema.field(at).name().chars().count();
                let widest = cells.iter().map(|cell| cell.chars().count()).max().unwrap_or(0);
                (name.max(widest), schema.field(at).data_type().is_numeric())
            };
            let widths: Vec<_> = columns.iter().enumerate().map(width).collect();
            let names = schema.fields().iter().map(|field| field.name().as_str());
            line(&mut self.to, &widths, names)?;
            self.widths = Some(widths);
        }
        let widths = self.widths.as_deref().unwrap_or_default();
        for row in 0..batch.num_rows() {
            line(&mut self.to, widths, columns.iter().map(|cells| cells[row].as_str()))?;
        }
        self.to.flush()?;
        Ok(())
    }

    pub(super) fn finish(mut self) -> Result<(), OutputError> {
        self.to.flush()?;
        Ok(())
    }
}

fn line<'a>(
    to: &mut impl Write,
    widths: &[(usize, bool)],
    cells: impl Iterator<Item = &'a str>,
) -> std::io::Result<()> {
    let mut text = String::new();
    for ((width, right), cell) in widths.iter().zip(cells) {
        let space = " ".repeat(width.saturating_sub(cell.chars().count()));
        if !text.is_empty() {
            text.push_str("  ");
        }
        let (before, behind) = if *right { (space.as_str(), "") } else { ("", space.as_str()) };
        text.extend([before, cell, behind]);
    }
    writeln!(to, "{}", text.trim_end())
}
