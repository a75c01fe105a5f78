//! Writers of query results: text table, CSV, JSON lines, Arrow and Parquet.

mod display;
mod error_keeper;
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
use error_keeper::{ErrorKeeper, KeptError};
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
    to: FormatWriter<ErrorKeeper<W>>,
    kept: KeptError,
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
        let (to, kept) = ErrorKeeper::new(to);
        let to = kept.instead_of(FormatWriter::new(format, schema, to))?;
        Ok(Self { to, kept, schema: schema.clone(), rows: 0 })
    }

    /// Writes some rows of it.
    pub fn write(&mut self, batch: &RecordBatch) -> Result<(), OutputError> {
        self.rows += batch.num_rows() as u64;
        self.kept.instead_of(self.to.write(batch))
    }

    /// Ends the result; how many rows it has.
    pub fn finish(self) -> Result<u64, OutputError> {
        self.kept.instead_of(self.to.finish(self.rows, &self.schema))?;
        Ok(self.rows)
    }
}

impl<W: Write + Send> FormatWriter<W> {
    fn new(format: Format, schema: &SchemaRef, to: W) -> Result<Self, OutputError> {
        Ok(match format {
            Format::Table => Self::Table(TextTable::new(to)),
            Format::Csv => Self::Csv(Box::new(CsvBuilder::new().with_header(true).build(to))),
            Format::Jsonl => Self::Jsonl(Box::new(JsonBuilder::new().with_explicit_nulls(true).build(to))),
            Format::Arrow => Self::Arrow(Box::new(StreamWriter::try_new(to, schema)?)),
            Format::Parquet => {
                let compression = Compression::ZSTD(ZstdLevel::default());
                let properties = WriterProperties::builder().set_compression(compression).build();
                Self::Parquet(Box::new(ArrowWriter::try_new(to, schema.clone(), Some(properties))?))
            }
        })
    }

    fn write(&mut self, batch: &RecordBatch) -> Result<(), OutputError> {
        match self {
            Self::Table(table) => table.write(&shown(batch, BytesFormat::Short)?)?,
            Self::Csv(csv) => csv.write(&shown(batch, BytesFormat::Hex)?)?,
            Self::Jsonl(json) => json.write(&shown(batch, BytesFormat::Base64)?)?,
            // An Arrow stream has all that lies in a batch's buffers. Parquet has values only.
            Self::Arrow(arrow) => arrow.write(&compact(batch)?)?,
            Self::Parquet(parquet) => parquet.write(batch)?,
        }
        Ok(())
    }

    /// Ends a result of so many rows.
    fn finish(self, rows: u64, schema: &SchemaRef) -> Result<(), OutputError> {
        match self {
            Self::Table(mut table) => {
                if rows == 0 {
                    table.write(&RecordBatch::new_empty(shown_schema(schema)))?;
                }
                table.finish()?;
            }
            Self::Csv(mut csv) => {
                if rows == 0 {
                    csv.write(&RecordBatch::new_empty(shown_schema(schema)))?;
                }
                csv.into_inner().flush()?;
            }
            Self::Jsonl(mut json) => {
                json.finish()?;
                json.into_inner().flush()?;
            }
            Self::Arrow(mut arrow) => {
                arrow.finish()?;
                arrow.into_inner()?.flush()?;
            }
            Self::Parquet(parquet) => {
                parquet.into_inner()?.flush()?;
            }
        }
        Ok(())
    }
}
