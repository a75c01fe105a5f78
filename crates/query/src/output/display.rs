//! Conversion of addresses and bytes in result batches to text.

use crate::address;
use crate::columns::address_type;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use datafusion::arrow::array::{Array, ArrayRef, AsArray, LargeStringArray, ListArray, RecordBatch};
use datafusion::arrow::datatypes::{DataType, Field, Schema, SchemaRef};
use datafusion::arrow::error::ArrowError;
use holdfast_attributes::Type;
use std::fmt::Write;
use std::sync::Arc;

/// Maximum number of bytes of a binary value in a text table.
const SHORT: usize = 24;

/// Text form of binary values.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum BytesFormat {
    /// In hexadecimal digits, the first few.
    Short,
    /// In hexadecimal digits.
    Hex,
    /// In base64.
    Base64,
}

impl BytesFormat {
    fn show(self, bytes: &[u8]) -> String {
        match self {
            Self::Base64 => STANDARD.encode(bytes),
            Self::Short if bytes.len() > SHORT => format!("{}…", hex(&bytes[..SHORT])),
            Self::Hex | Self::Short => hex(bytes),
        }
    }
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::with_capacity(2 * bytes.len()), |mut text, byte| {
        // Writing to a string does not fail.
        let _ = write!(text, "{byte:02x}");
        text
    })
}

fn is_bytes(kind: &DataType) -> bool {
    matches!(
        kind,
        DataType::Binary | DataType::LargeBinary | DataType::BinaryView | DataType::FixedSizeBinary(_)
    )
}

/// What is shown of values of a type, where it is not they themselves.
fn shown_type(kind: &DataType) -> Option<DataType> {
    match kind {
        DataType::List(items) => {
            let shown = shown_type(items.data_type())?;
            Some(DataType::List(Arc::new(Field::new(items.name(), shown, true))))
        }
        // One payload alone may be 1 GiB: twice that in digits.
        kind => is_bytes(kind).then_some(DataType::LargeUtf8),
    }
}

fn shown_field(field: &Arc<Field>) -> Arc<Field> {
    match shown_type(field.data_type()) {
        Some(shown) => Arc::new(Field::new(field.name(), shown, true)),
        None => Arc::clone(field),
    }
}

/// The columns of what is shown.
pub(super) fn shown_schema(schema: &Schema) -> SchemaRef {
    Arc::new(Schema::new(schema.fields().iter().map(shown_field).collect::<Vec<_>>()))
}

/// The same rows with addresses and bytes as text.
pub(super) fn shown(batch: &RecordBatch, bytes: BytesFormat) -> Result<RecordBatch, ArrowError> {
    let schema = batch.schema();
    let column = |(field, array): (&Arc<Field>, &ArrayRef)| shown_array(array, address_type(field), bytes);
    let columns: Vec<ArrayRef> =
        schema.fields().iter().zip(batch.columns()).map(column).collect::<Result<_, _>>()?;
    if columns.is_empty() {
        return Ok(batch.clone());
    }
    RecordBatch::try_new(shown_schema(&schema), columns)
}

fn shown_array(array: &ArrayRef, kind: Option<Type>, bytes: BytesFormat) -> Result<ArrayRef, ArrowError> {
    let show = |value: &[u8]| match kind {
        Some(kind) => address::show(kind, value),
        None => bytes.show(value),
    };
    let all = |values: &mut dyn Iterator<Item = Option<&[u8]>>| -> ArrayRef {
        Arc::new(values.map(|value| value.map(show)).collect::<LargeStringArray>())
    };
    Ok(match (array.data_type(), shown_type(array.data_type())) {
        (DataType::Binary, _) => all(&mut array.as_binary::<i32>().iter()),
        (DataType::LargeBinary, _) => all(&mut array.as_binary::<i64>().iter()),
        (DataType::BinaryView, _) => all(&mut array.as_binary_view().iter()),
        (DataType::FixedSizeBinary(_), _) => all(&mut array.as_fixed_size_binary().iter()),
        (DataType::List(_), Some(DataType::List(items))) => {
            let list = array.as_list::<i32>();
            let shown = shown_array(list.values(), kind, bytes)?;
            Arc::new(ListArray::try_new(items, list.offsets().clone(), shown, list.nulls().cloned())?)
        }
        _ => Arc::clone(array),
    })
}
