//! Operands of whole-number arithmetic in 128 bits, and the ranges of its results.

use super::{WIDE, WholeOperator, Wide};
use datafusion::arrow::array::{Array, ArrayRef, AsArray, PrimitiveArray};
use datafusion::arrow::compute::{cast, try_binary};
use datafusion::arrow::datatypes::{DataType, Decimal128Type, Int64Type, UInt64Type};
use datafusion::arrow::error::ArrowError;
use datafusion::common::{DataFusionError, Result, ScalarValue};
use datafusion::logical_expr::ColumnarValue;

/// Greatest number of 38 digits.
const DIGITS: i128 = 10_i128.pow(38) - 1;

/// Values of one side of an operator.
pub(super) enum Operand {
    /// One value for all rows.
    Scalar(Option<i128>),
    /// A value for each row.
    Array(Wide),
}

/// Values of an array in 128 bits.
fn wide(array: &ArrayRef) -> Result<Wide> {
    Ok(match array.data_type() {
        DataType::Int64 => array.as_primitive::<Int64Type>().unary(i128::from),
        DataType::UInt64 => array.as_primitive::<UInt64Type>().unary(i128::from),
        _ => cast(array, &WIDE)?.as_primitive::<Decimal128Type>().clone(),
    })
}

impl Operand {
    /// Operand of a value.
    pub(super) fn of(value: &ColumnarValue) -> Result<Self> {
        Ok(match value {
            ColumnarValue::Scalar(scalar) => Self::Scalar(wide(&scalar.to_array()?)?.iter().next().flatten()),
            ColumnarValue::Array(array) => Self::Array(wide(array)?),
        })
    }
}

/// Results of two operands.
pub(super) fn combined(
    left: &Operand,
    right: &Operand,
    result: impl Fn(i128, i128) -> std::result::Result<i128, ArrowError>,
) -> Result<Operand> {
    let computed = match (left, right) {
        (Operand::Array(left), Operand::Array(right)) => try_binary(left, right, result).map(Operand::Array),
        (Operand::Array(left), Operand::Scalar(Some(right))) => {
            left.try_unary(|left| result(left, *right)).map(Operand::Array)
        }
        (Operand::Scalar(Some(left)), Operand::Array(right)) => {
            right.try_unary(|right| result(*left, right)).map(Operand::Array)
        }
        (Operand::Array(array), Operand::Scalar(None)) | (Operand::Scalar(None), Operand::Array(array)) => {
            Ok(Operand::Array(PrimitiveArray::new_null(array.len())))
        }
        (Operand::Scalar(Some(left)), Operand::Scalar(Some(right))) => {
            result(*left, *right).map(|value| Operand::Scalar(Some(value)))
        }
        (Operand::Scalar(_), Operand::Scalar(_)) => Ok(Operand::Scalar(None)),
    };
    computed.map_err(|error| match error {
        ArrowError::ArithmeticOverflow(text) => DataFusionError::Execution(text),
        error => error.into(),
    })
}

/// Numbers that a type has.
pub(super) struct Range {
    least: i128,
    greatest: i128,
    of: DataType,
}

impl Range {
    /// Range of a type of whole numbers.
    pub(super) fn of(of: &DataType) -> Option<Self> {
        let (least, greatest) = match of {
            DataType::Int8 => (i8::MIN.into(), i8::MAX.into()),
            DataType::Int16 => (i16::MIN.into(), i16::MAX.into()),
            DataType::Int32 => (i32::MIN.into(), i32::MAX.into()),
            DataType::Int64 => (i64::MIN.into(), i64::MAX.into()),
            DataType::UInt8 => (0, u8::MAX.into()),
            DataType::UInt16 => (0, u16::MAX.into()),
            DataType::UInt32 => (0, u32::MAX.into()),
            DataType::UInt64 => (0, u64::MAX.into()),
            DataType::Decimal128(38, 0) => (-DIGITS, DIGITS),
            _ => return None,
        };
        Some(Self { least, greatest, of: of.clone() })
    }

    /// Result of an operator, or the reason why there is none.
    pub(super) fn result(
        &self,
        operator: WholeOperator,
        left: i128,
        right: i128,
    ) -> std::result::Result<i128, ArrowError> {
        match operator.apply(left, right) {
            Some(value) if (self.least..=self.greatest).contains(&value) => Ok(value),
            None if right == 0 => Err(ArrowError::DivideByZero),
            _ => Err(ArrowError::ArithmeticOverflow(self.failure(operator, left, right))),
        }
    }

    fn failure(&self, operator: WholeOperator, left: i128, right: i128) -> String {
        let (least, greatest) = (self.least, self.greatest);
        let remedy = match self.of {
            DataType::Decimal128(..) => "convert one side to double",
            _ => "convert one side to decimal(38, 0)",
        };
        format!(
            "cannot compute {left} {operator} {right}: the result is not within {least} and {greatest}; {remedy}"
        )
    }

    /// A number of the range as a value of its type.
    pub(super) fn scalar(&self, value: Option<i128>) -> ScalarValue {
        match self.of {
            DataType::Int8 => ScalarValue::Int8(value.map(|value| value as i8)),
            DataType::Int16 => ScalarValue::Int16(value.map(|value| value as i16)),
            DataType::Int32 => ScalarValue::Int32(value.map(|value| value as i32)),
            DataType::UInt8 => ScalarValue::UInt8(value.map(|value| value as u8)),
            DataType::UInt16 => ScalarValue::UInt16(value.map(|value| value as u16)),
            DataType::UInt32 => ScalarValue::UInt32(value.map(|value| value as u32)),
            DataType::UInt64 => ScalarValue::UInt64(value.map(|value| value as u64)),
            DataType::Decimal128(precision, scale) => ScalarValue::Decimal128(value, precision, scale),
            _ => ScalarValue::Int64(value.map(|value| value as i64)),
        }
    }
}
