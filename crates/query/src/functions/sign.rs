//! SQL function `sign(x)`: -1, 0 or 1. It is a whole number of a whole number, and a float of a float.

use datafusion::arrow::array::{ArrayRef, AsArray, PrimitiveArray};
use datafusion::arrow::compute::cast;
use datafusion::arrow::datatypes::{DataType, Decimal128Type, Float64Type, Int64Type};
use datafusion::common::{Result, ScalarValue, exec_err, plan_err};
use datafusion::logical_expr::{ColumnarValue, ScalarFunctionArgs, ScalarUDFImpl, Signature, Volatility};
use std::sync::Arc;

/// The SQL function `sign`.
#[derive(Debug, PartialEq, Eq, Hash)]
pub(super) struct Sign {
    signature: Signature,
}

impl Sign {
    pub(super) fn new() -> Self {
        Self { signature: Signature::any(1, Volatility::Immutable) }
    }
}

fn signs(array: &ArrayRef) -> Result<ArrayRef> {
    if array.data_type().is_floating() {
        let array = cast(array, &DataType::Float64)?;
        // Zeros and NaN remain what they are.
        let sign = |value: f64| if value == 0.0 { value } else { value.signum() };
        let signs: PrimitiveArray<Float64Type> = array.as_primitive::<Float64Type>().unary(sign);
        return Ok(Arc::new(signs));
    }
    let wide = match array.data_type() {
        DataType::Decimal128(..) => Arc::clone(array),
        _ => cast(array, &DataType::Decimal128(38, 0))?,
    };
    let signs: PrimitiveArray<Int64Type> =
        wide.as_primitive::<Decimal128Type>().unary(|value| value.signum() as i64);
    Ok(Arc::new(signs))
}

impl ScalarUDFImpl for Sign {
    fn name(&self) -> &'static str {
        "sign"
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, types: &[DataType]) -> Result<DataType> {
        match types {
            [kind] if kind.is_floating() => Ok(DataType::Float64),
            [kind] if kind.is_integer() || kind.is_null() => Ok(DataType::Int64),
            [DataType::Decimal128(..)] => Ok(DataType::Int64),
            _ => plan_err!("cannot call sign: it takes a number, such as sign(x)"),
        }
    }

    fn is_strict(&self) -> bool {
        true
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let [value] = args.args.as_slice() else {
            return exec_err!("cannot call sign: it takes one argument");
        };
        Ok(match value {
            ColumnarValue::Array(array) => ColumnarValue::Array(signs(array)?),
            ColumnarValue::Scalar(scalar) => {
                ColumnarValue::Scalar(ScalarValue::try_from_array(&signs(&scalar.to_array()?)?, 0)?)
            }
        })
    }
}
