//! SQL functions over payload bytes: numbers at an offset (`u16be`), text forms (`hex`, `text`), and a part
//! of the bytes (`bytes`).

use datafusion::arrow::array::{
    Array, ArrayRef, AsArray, BinaryViewArray, Float64Array, Int64Array, StringViewArray, UInt64Array,
};
use datafusion::arrow::datatypes::{DataType, Int64Type};
use datafusion::common::{Result, ScalarValue, exec_err, plan_err};
use datafusion::logical_expr::{
    ColumnarValue, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature, Volatility,
};
use std::fmt::Write;
use std::sync::Arc;

/// What bits stand for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum NumberKind {
    Uint,
    Int,
    Float,
}

/// A number at an offset: so many bytes, and which comes first.
#[derive(Debug, PartialEq, Eq, Hash)]
struct NumberAt {
    name: &'static str,
    number: NumberKind,
    bytes: usize,
    little: bool,
    signature: Signature,
}

/// Bytes as text.
#[derive(Debug, PartialEq, Eq, Hash)]
struct BytesToText {
    name: &'static str,
    signature: Signature,
}

/// Some of the bytes.
#[derive(Debug, PartialEq, Eq, Hash)]
struct BytesSlice {
    signature: Signature,
}

pub(super) fn all() -> Vec<ScalarUDF> {
    use NumberKind::{Float, Int, Uint};
    let numbers = [
        ("u8", Uint, 1, false),
        ("u16be", Uint, 2, false),
        ("u16le", Uint, 2, true),
        ("u32be", Uint, 4, false),
        ("u32le", Uint, 4, true),
        ("u64be", Uint, 8, false),
        ("u64le", Uint, 8, true),
        ("i8", Int, 1, false),
        ("i16be", Int, 2, false),
        ("i16le", Int, 2, true),
        ("i32be", Int, 4, false),
        ("i32le", Int, 4, true),
        ("i64be", Int, 8, false),
        ("i64le", Int, 8, true),
        ("f32be", Float, 4, false),
        ("f32le", Float, 4, true),
        ("f64be", Float, 8, false),
        ("f64le", Float, 8, true),
    ];
    let number = |(name, number, bytes, little)| {
        let signature = Signature::variadic_any(Volatility::Immutable);
        ScalarUDF::from(NumberAt { name, number, bytes, little, signature })
    };
    let shown = |name| {
        ScalarUDF::from(BytesToText { name, signature: Signature::variadic_any(Volatility::Immutable) })
    };
    let slice = ScalarUDF::from(BytesSlice { signature: Signature::variadic_any(Volatility::Immutable) });
    numbers.into_iter().map(number).chain(["hex", "text"].map(shown)).chain([slice]).collect()
}

impl ScalarUDFImpl for NumberAt {
    fn name(&self) -> &str {
        self.name
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, types: &[DataType]) -> Result<DataType> {
        match types {
            [DataType::BinaryView, offset] if offset.is_integer() => Ok(match self.number {
                NumberKind::Uint => DataType::UInt64,
                NumberKind::Int => DataType::Int64,
                NumberKind::Float => DataType::Float64,
            }),
            _ => {
                plan_err!("cannot call {0}: it takes bytes and an offset, such as {0}(payload, 4)", self.name)
            }
        }
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let [bytes, offset] = args.args.as_slice() else {
            return exec_err!("cannot call {}: it takes two arguments", self.name);
        };
        let bytes = bytes.to_array(args.number_rows)?;
        let offset = offset.cast_to(&DataType::Int64, None)?.to_array(args.number_rows)?;
        let offsets = offset.as_primitive::<Int64Type>();
        let numbers = bytes.as_binary_view().iter().zip(offsets).map(|(bytes, offset)| {
            // Behind the end there is no number.
            let start = usize::try_from(offset?).ok()?;
            let bytes = bytes?.get(start..start.checked_add(self.bytes)?)?;
            let digit = |number: u64, byte: &u8| number << 8 | u64::from(*byte);
            Some(if self.little { bytes.iter().rev().fold(0, digit) } else { bytes.iter().fold(0, digit) })
        });
        let unused = 64 - 8 * self.bytes as u32;
        let signed = |bits: u64| (bits << unused) as i64 >> unused;
        let float = |bits: u64| match self.bytes {
            4 => f64::from(f32::from_bits(bits as u32)),
            _ => f64::from_bits(bits),
        };
        Ok(ColumnarValue::Array(match self.number {
            NumberKind::Uint => Arc::new(numbers.collect::<UInt64Array>()),
            NumberKind::Int => Arc::new(numbers.map(|bits| bits.map(signed)).collect::<Int64Array>()),
            NumberKind::Float => Arc::new(numbers.map(|bits| bits.map(float)).collect::<Float64Array>()),
        }))
    }
}

impl BytesToText {
    fn show(&self, bytes: &[u8]) -> String {
        if self.name == "text" {
            return String::from_utf8_lossy(bytes).into_owned();
        }
        bytes.iter().fold(String::with_capacity(2 * bytes.len()), |mut text, byte| {
            // Writing to a string does not fail.
            let _ = write!(text, "{byte:02x}");
            text
        })
    }
}

impl ScalarUDFImpl for BytesToText {
    fn name(&self) -> &str {
        self.name
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, types: &[DataType]) -> Result<DataType> {
        let [DataType::BinaryView | DataType::Binary | DataType::FixedSizeBinary(_)] = types else {
            return plan_err!("cannot call {0}: it takes bytes, such as {0}(payload)", self.name);
        };
        Ok(DataType::Utf8View)
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let [bytes] = args.args.as_slice() else {
            return exec_err!("cannot call {}: it takes one argument", self.name);
        };
        let array: ArrayRef = bytes.to_array(args.number_rows)?;
        let shown: StringViewArray = match array.data_type() {
            DataType::BinaryView => array.as_binary_view().iter().map(|b| b.map(|b| self.show(b))).collect(),
            DataType::Binary => array.as_binary::<i32>().iter().map(|b| b.map(|b| self.show(b))).collect(),
            DataType::FixedSizeBinary(_) => {
                array.as_fixed_size_binary().iter().map(|b| b.map(|b| self.show(b))).collect()
            }
            other => return exec_err!("cannot call {}: it takes bytes, not {other}", self.name),
        };
        if let ColumnarValue::Scalar(_) = bytes {
            return Ok(ColumnarValue::Scalar(ScalarValue::try_from_array(&shown, 0)?));
        }
        Ok(ColumnarValue::Array(Arc::new(shown)))
    }
}

impl ScalarUDFImpl for BytesSlice {
    fn name(&self) -> &'static str {
        "bytes"
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, types: &[DataType]) -> Result<DataType> {
        match types {
            [DataType::BinaryView, from, count] if from.is_integer() && count.is_integer() => {
                Ok(DataType::BinaryView)
            }
            _ => plan_err!(
                "cannot call bytes: it takes bytes, an offset and a count, such as bytes(payload, 14, 20)"
            ),
        }
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let [bytes, from, count] = args.args.as_slice() else {
            return exec_err!("cannot call bytes: it takes three arguments");
        };
        let bytes = bytes.to_array(args.number_rows)?;
        let number =
            |value: &ColumnarValue| value.cast_to(&DataType::Int64, None)?.to_array(args.number_rows);
        let (from, count) = (number(from)?, number(count)?);
        let (from, count) = (from.as_primitive::<Int64Type>(), count.as_primitive::<Int64Type>());
        let slices = bytes.as_binary_view().iter().zip(from).zip(count).map(|((bytes, from), count)| {
            let (bytes, from, count) = (bytes?, usize::try_from(from?).ok()?, usize::try_from(count?).ok()?);
            // As many as there are: behind the end is none.
            let rest = bytes.get(from..).unwrap_or_default();
            Some(&rest[..rest.len().min(count)])
        });
        Ok(ColumnarValue::Array(Arc::new(slices.collect::<BinaryViewArray>())))
    }
}
