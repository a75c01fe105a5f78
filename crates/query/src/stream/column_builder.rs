//! Builder of Arrow columns from index cells of selected elements.

use crate::columns::arrow_type;
use datafusion::arrow::array::{
    ArrayRef, ArrowPrimitiveType, BinaryViewBuilder, BooleanBuilder, FixedSizeBinaryArray, Float64Builder,
    Int64Builder, NullBufferBuilder, PrimitiveBuilder, StringViewBuilder, TimestampNanosecondBuilder,
    UInt64Builder,
};
use datafusion::arrow::buffer::Buffer;
use datafusion::arrow::error::ArrowError;
use holdfast_attributes::Cell;
use holdfast_attributes::{Type, Value};
use holdfast_format::Cells;
use std::sync::Arc;

/// By which the order of numbers with signs becomes that of their cells.
const SIGN: u64 = 1 << 63;

/// Builder of one Arrow column from index cells.
pub struct ColumnBuilder {
    kind: Type,
    values: TypedBuilder,
}

enum TypedBuilder {
    Int(Int64Builder),
    Uint(UInt64Builder),
    Float(Float64Builder),
    Bool(BooleanBuilder),
    Time(TimestampNanosecondBuilder),
    Text(StringViewBuilder),
    Binary(BinaryViewBuilder),
    Address(AddressBuilder),
}

/// Builder of an address column: numbers of `width` bytes, big-endian.
struct AddressBuilder {
    width: usize,
    bytes: Vec<u8>,
    valid: NullBufferBuilder,
}

impl AddressBuilder {
    fn new(width: usize) -> Self {
        Self { width, bytes: Vec::new(), valid: NullBufferBuilder::new(0) }
    }

    /// What does not fit is null.
    #[inline]
    fn push(&mut self, number: Option<u128>) {
        let fits = |number: &u128| self.width == 16 || number >> (8 * self.width) == 0;
        let number = number.filter(fits);
        self.bytes.extend_from_slice(&number.unwrap_or(0).to_be_bytes()[16 - self.width..]);
        self.valid.append(number.is_some());
    }

    fn finish(&mut self) -> FixedSizeBinaryArray {
        let bytes = Buffer::from_vec(std::mem::take(&mut self.bytes));
        FixedSizeBinaryArray::new(self.width as i32, bytes, self.valid.finish())
    }
}

impl ColumnBuilder {
    /// An empty one.
    pub fn new(kind: Type) -> Self {
        let values = match kind {
            Type::Int => TypedBuilder::Int(Int64Builder::new()),
            Type::Uint => TypedBuilder::Uint(UInt64Builder::new()),
            Type::Float => TypedBuilder::Float(Float64Builder::new()),
            Type::Bool => TypedBuilder::Bool(BooleanBuilder::new()),
            Type::Time => {
                TypedBuilder::Time(TimestampNanosecondBuilder::new().with_data_type(arrow_type(kind)))
            }
            Type::Text => TypedBuilder::Text(StringViewBuilder::new()),
            Type::Binary => TypedBuilder::Binary(BinaryViewBuilder::new()),
            Type::Ipv4 => TypedBuilder::Address(AddressBuilder::new(4)),
            Type::Mac => TypedBuilder::Address(AddressBuilder::new(6)),
            Type::Ipv6 | Type::Ip => TypedBuilder::Address(AddressBuilder::new(16)),
        };
        Self { kind, values }
    }

    /// Adds the cells of the picked elements. `nulls` says which are none (not given: all are some).
    pub fn extend(
        &mut self,
        cells: Cells<'_>,
        nulls: Option<&[bool]>,
        picked: &[bool],
    ) -> Result<(), ArrowError> {
        if let Cells::Words(words) = cells
            && words.len() == picked.len()
            && self.numbers(words, nulls, picked)
        {
            return Ok(());
        }
        if let TypedBuilder::Address(to) = &mut self.values {
            addresses(to, cells, nulls, picked);
            return Ok(());
        }
        for (at, _) in picked.iter().enumerate().filter(|(_, picked)| **picked) {
            let null = nulls.is_some_and(|nulls| nulls.get(at).copied().unwrap_or(true));
            self.push(if null { None } else { cell(cells, at) })?;
        }
        Ok(())
    }

    /// The same for cells each of which is a number, all at once; `false`: they are not.
    fn numbers(&mut self, words: &[u64], nulls: Option<&[bool]>, picked: &[bool]) -> bool {
        match &mut self.values {
            TypedBuilder::Int(to) => append(to, words, nulls, picked, |word| (word ^ SIGN) as i64),
            TypedBuilder::Uint(to) => append(to, words, nulls, picked, |word| word),
            TypedBuilder::Time(to) => append(to, words, nulls, picked, |word| (word ^ SIGN) as i64),
            _ => return false,
        }
        true
    }

    /// Adds so many nulls.
    pub fn nulls(&mut self, count: usize) -> Result<(), ArrowError> {
        (0..count).try_for_each(|_| self.push(None))
    }

    /// Adds one. What is no value of its type is null.
    pub fn push(&mut self, cell: Option<Cell<'_>>) -> Result<(), ArrowError> {
        let value = cell.and_then(|cell| Value::from_cell(self.kind, cell));
        match (&mut self.values, value) {
            (TypedBuilder::Int(to), Some(Value::Int(value))) => to.append_value(value),
            (TypedBuilder::Int(to), _) => to.append_null(),
            (TypedBuilder::Uint(to), Some(Value::Uint(value))) => to.append_value(value),
            (TypedBuilder::Uint(to), _) => to.append_null(),
            // All NaN are one to a query.
            (TypedBuilder::Float(to), Some(Value::Float(value))) => {
                to.append_value(if value.is_nan() { f64::NAN } else { value });
            }
            (TypedBuilder::Float(to), _) => to.append_null(),
            (TypedBuilder::Bool(to), Some(Value::Bool(value))) => to.append_value(value),
            (TypedBuilder::Bool(to), _) => to.append_null(),
            (TypedBuilder::Time(to), Some(Value::Time(value))) => to.append_value(value.0),
            (TypedBuilder::Time(to), _) => to.append_null(),
            (TypedBuilder::Text(to), Some(Value::Text(value))) => to.append_value(value),
            (TypedBuilder::Text(to), _) => to.append_null(),
            (TypedBuilder::Binary(to), Some(Value::Binary(value))) => to.append_value(value),
            (TypedBuilder::Binary(to), _) => to.append_null(),
            (TypedBuilder::Address(to), _) => to.push(cell.and_then(as_address(to.width))),
        }
        Ok(())
    }

    /// The array.
    pub fn finish(mut self) -> ArrayRef {
        match &mut self.values {
            TypedBuilder::Int(values) => Arc::new(values.finish()),
            TypedBuilder::Uint(values) => Arc::new(values.finish()),
            TypedBuilder::Float(values) => Arc::new(values.finish()),
            TypedBuilder::Bool(values) => Arc::new(values.finish()),
            TypedBuilder::Time(values) => Arc::new(values.finish()),
            TypedBuilder::Text(values) => Arc::new(values.finish()),
            TypedBuilder::Binary(values) => Arc::new(values.finish()),
            TypedBuilder::Address(values) => Arc::new(values.finish()),
        }
    }
}

/// The number that a cell has, where it is one of addresses of so many bytes.
fn as_address(width: usize) -> impl Fn(Cell<'_>) -> Option<u128> {
    move |cell| match cell {
        Cell::Word(word) if width < 16 => Some(word.into()),
        Cell::Wide(wide) if width == 16 => Some(wide),
        _ => None,
    }
}

/// Adds what is picked of these cells, as addresses.
fn addresses(to: &mut AddressBuilder, cells: Cells<'_>, nulls: Option<&[bool]>, picked: &[bool]) {
    let number = as_address(to.width);
    let all = nulls.is_none() && !picked.contains(&false);
    if let (true, Cells::Wide(wide)) = (all && to.width == 16, cells)
        && wide.len() == picked.len()
    {
        let before = to.bytes.len();
        to.bytes.resize(before + 16 * wide.len(), 0);
        let places = to.bytes[before..].chunks_exact_mut(16);
        places.zip(wide).for_each(|(place, wide)| place.copy_from_slice(&wide.to_be_bytes()));
        to.valid.append_n_non_nulls(wide.len());
        return;
    }
    for (at, _) in picked.iter().enumerate().filter(|(_, picked)| **picked) {
        let null = nulls.is_some_and(|nulls| nulls.get(at).copied().unwrap_or(true));
        to.push(if null { None } else { cell(cells, at).and_then(&number) });
    }
}

/// Adds what is picked of these words, as numbers.
fn append<T: ArrowPrimitiveType>(
    to: &mut PrimitiveBuilder<T>,
    words: &[u64],
    nulls: Option<&[bool]>,
    picked: &[bool],
    number: impl Fn(u64) -> T::Native,
) {
    let mut numbers: Vec<T::Native> = if picked.contains(&false) {
        words.iter().zip(picked).filter(|(_, picked)| **picked).map(|(word, _)| number(*word)).collect()
    } else {
        words.iter().map(|word| number(*word)).collect()
    };
    match nulls {
        None => to.append_slice(&numbers),
        Some(nulls) => {
            // What nobody says anything of is null.
            let valid = nulls.iter().map(|null| !null).chain(std::iter::repeat(false));
            let valid: Vec<bool> =
                valid.zip(picked).filter(|(_, picked)| **picked).map(|(valid, _)| valid).collect();
            // Functions may compute with the number below a null, too, which must not overflow.
            let nulls = numbers.iter_mut().zip(&valid).filter(|(_, valid)| !**valid);
            nulls.for_each(|(number, _)| *number = T::Native::default());
            to.append_values(&numbers, &valid);
        }
    }
}

/// The cell of one element.
fn cell(cells: Cells<'_>, at: usize) -> Option<Cell<'_>> {
    match cells {
        Cells::Words(cells) => cells.get(at).map(|cell| Cell::Word(*cell)),
        Cells::Wide(cells) => cells.get(at).map(|cell| Cell::Wide(*cell)),
        Cells::Bytes(ends, bytes) => {
            let start = if at == 0 { 0 } else { *ends.get(at - 1)? as usize };
            bytes.get(start..*ends.get(at)? as usize).map(Cell::Bytes)
        }
    }
}
