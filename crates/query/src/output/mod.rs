//! Writers of query results: text table, CSV, JSON lines, Arrow and Parquet.

mod display;
mod output_error;
mod text_table;

pub use output_error::OutputError;

use crate::compact_batches::compact;
use datafusion::arrow::array::RecordBatch;
use datafusion::arrow::csv::{Writer as CsvWriter, WriterBuilder as CsvBuilder};
use datafusion::arrow::datatypes::SchemaRef;
use datafusion::arrow::ipc::writer::StreamWriter;
use datafusion::arrow::json::writer::{LineDelimited, Writer as JsonWriter, WriterBuilder as JsonBuilder};
use display::{BytesFormat, shown, shown_schema};
use parquet::arrow::ArrowWriter;
use parquet::basic::{Compression, ZstdLevel};
use parquet::file::properties::WriterProperties;
use std::io::Write;
use text_table::TextTable;

/// How results are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// Columns for people.
    Table,
    /// Comma-separated values, with a line of names; bytes in hexadecimal digits.
    Csv,
    /// A JSON object a line; bytes in base64.
    Jsonl,
    /// An Arrow IPC stream.
    Arrow,
    /// A Parquet file.
    Parquet,
}

impl Format {
    /// Whether a terminal can show it.
    pub fn is_text(self) -> bool {
        matches!(self, Self::Table | Self::Csv | Self::Jsonl)
    }
}

/// Writes batches of one result.
pub struct Output<W: Write + Send> {
    to: FormatWriter<W>,
    schema: SchemaRef,
    rows: u64,
}

enum FormatWriter<W: Write + Send> {
    Table(TextTable<W>),
    Csv(Box<CsvWriter<W>>),
    Jsonl(Box<JsonWriter<W, LineDelimited>>),
    Arrow(Box<StreamWriter<W>>),
    Parquet(Box<ArrowWriter<W>>),
}

impl<W: Write + Send> Output<W> {
    /// Begins a result with these columns.
    pub fn new(format: Format, schema: &SchemaRef, to: W) -> Result<Self, OutputError> {
        let to = match format {
            Format::Table => FormatWriter::Table(TextTable::new(to)),
            Format::Csv => FormatWriter::Csv(Box::new(CsvBuilder::new().with_header(true).build(to))),
            Format::Jsonl => {
                FormatWriter::Jsonl(Box::new(JsonBuilder::new().with_explicit_nulls(true).build(to)))
            }
            Format::Arrow => FormatWriter::Arrow(Box::new(StreamWriter::try_new(to, schema)?)),
            Format::Parquet => {
                let compression = Compression::ZSTD(ZstdLevel::default());
                let properties = WriterProperties::builder().set_compression(compression).build();
                FormatWriter::Parquet(Box::new(ArrowWriter::try_new(to, schema.clone(), Some(properties))?))
            }
        };
        Ok(Self { to, schema: schema.clone(), rows: 0 })
    }

    /// Writes some rows.
    pub fn write(&mut self, batch: &RecordBatch) -> Result<(), OutputError> {
        self.rows += batch.num_rows() as u64;
        match &mut self.to {
            FormatWriter::Table(table) => table.write(&shown(batch, BytesFormat::Short)?)?,
            FormatWriter::Csv(csv) => csv.write(&shown(batch, BytesFormat::Hex)?)?,
            FormatWriter::Jsonl(json) => json.write(&shown(batch, BytesFormat::Base64)?)?,
            // An Arrow stream has all that lies in a batch's buffers. Parquet has values only.
            FormatWriter::Arrow(arrow) => arrow.write(&compact(batch)?)?,
            FormatWriter::Parquet(parquet) => parquet.write(batch)?,
        }
        Ok(())
    }

    /// Ends the result; how many rows it has.
    pub fn finish(self) -> Result<u64, OutputError> {
        let rows = self.rows;
        match self.to {
            FormatWriter::Table(mut table) => {
                if rows == 0 {
                    table.write(&RecordBatch::new_empty(shown_schema(&self.schema)))?;
                }
                table.finish()?;
            }
            FormatWriter::Csv(mut csv) => {
                if rows == 0 {
                    csv.write(&RecordBatch::new_empty(shown_schema(&self.schema)))?;
                }
                csv.into_inner().flush()?;
            }
            FormatWriter::Jsonl(mut json) => {
                json.finish()?;
                json.into_inner().flush()?;
            }
            FormatWriter::Arrow(mut arrow) => {
                arrow.finish()?;
                arrow.into_inner()?.flush()?;
            }
            FormatWriter::Parquet(parquet) => {
                parquet.into_inner()?.flush()?;
            }
        }
        Ok(rows)
    }
}
