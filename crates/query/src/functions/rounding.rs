//! Functions that round before a conversion drops what is left, which an analyzer rule puts into a plan: numbers to
//! whole numbers, and times to multiples of a unit.

use datafusion::arrow::array::{ArrayRef, AsArray, PrimitiveArray};
use datafusion::arrow::compute::{cast, try_unary};
use datafusion::arrow::datatypes::{DataType, Float32Type, Float64Type, Int64Type, TimeUnit};
use datafusion::arrow::error::ArrowError;
use datafusion::common::{DataFusionError, Result, ScalarValue, exec_err};
use datafusion::logical_expr::{
    ColumnarValue, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature, Volatility,
};
use std::sync::Arc;

/// Value that a number or a time is rounded to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Rounding {
    /// Nearest whole number; of two, the even one.
    Even,
    /// Nearest whole number; of two, the one away from zero.
    Away,
    /// Nearest multiple of so many units of a time; of two, the one away from 1970.
    Multiple(i64),
}

impl Rounding {
    /// Makes the function that rounds so.
    pub(crate) fn function(self) -> ScalarUDF {
        ScalarUDF::from(Round { to: self, signature: Signature::any(1, Volatility::Immutable) })
    }

    /// Rounding of times to a coarser unit.
    pub(crate) fn between(from: TimeUnit, to: TimeUnit) -> Option<Self> {
        let units = |unit| match unit {
            TimeUnit::Second => 1,
            TimeUnit::Millisecond => 1000,
            TimeUnit::Microsecond => 1_000_000,
            TimeUnit::Nanosecond => 1_000_000_000,
        };
        let multiple = units(from) / units(to);
        (multiple > 1).then_some(Self::Multiple(multiple))
    }

    fn double(self, value: f64) -> f64 {
        if self == Self::Even { value.round_ties_even() } else { value.round() }
    }

    fn single(self, value: f32) -> f32 {
        if self == Self::Even { value.round_ties_even() } else { value.round() }
    }
}

/// Nearest multiple of a number of units.
fn multiple(value: i64, of: i64) -> std::result::Result<i64, ArrowError> {
    let rest = value % of;
    let near = value - rest;
    let rounded = if rest.abs() * 2 >= of { near.checked_add(of * rest.signum()) } else { Some(near) };
    rounded.ok_or_else(|| {
        ArrowError::ArithmeticOverflow(
            "cannot round a time: the result is not within 1677 and 2262; use date_trunc".to_owned(),
        )
    })
}

#[derive(Debug, PartialEq, Eq, Hash)]
struct Round {
    to: Rounding,
    signature: Signature,
}

impl Round {
    fn array(&self, array: &ArrayRef) -> Result<ArrayRef> {
        Ok(match (array.data_type(), self.to) {
            (DataType::Float64, to) => {
                let rounded: PrimitiveArray<Float64Type> =
                    array.as_primitive::<Float64Type>().unary(|value| to.double(value));
                Arc::new(rounded)
            }
            (DataType::Float32, to) => {
                let rounded: PrimitiveArray<Float32Type> =
                    array.as_primitive::<Float32Type>().unary(|value| to.single(value));
                Arc::new(rounded)
            }
            (DataType::Timestamp(..), Rounding::Multiple(of)) => {
                let units = cast(array, &DataType::Int64)?;
                let rounded = try_unary(units.as_primitive::<Int64Type>(), |value| multiple(value, of));
                let rounded: PrimitiveArray<Int64Type> = rounded.map_err(|error| match error {
                    ArrowError::ArithmeticOverflow(text) => DataFusionError::Execution(text),
                    error => error.into(),
                })?;
                cast(&rounded, array.data_type())?
            }
            (other, _) => return exec_err!("cannot round {other}: it is neither a fraction nor a time"),
        })
    }
}

impl ScalarUDFImpl for Round {
    fn name(&self) -> &'static str {
        match self.to {
            Rounding::Even => "round_even",
            Rounding::Away => "round_away",
            Rounding::Multiple(_) => "round_time",
        }
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, types: &[DataType]) -> Result<DataType> {
        let [of] = types else { return exec_err!("cannot call {}: it takes one argument", self.name()) };
        Ok(of.clone())
    }

    fn is_strict(&self) -> bool {
        true
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let [value] = args.args.as_slice() else {
            return exec_err!("cannot call {}: it takes one argument", self.name());
        };
        Ok(match value {
            ColumnarValue::Array(array) => ColumnarValue::Array(self.array(array)?),
            ColumnarValue::Scalar(scalar) => {
                let array = self.array(&scalar.to_array()?)?;
                ColumnarValue::Scalar(ScalarValue::try_from_array(&array, 0)?)
            }
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_rounded_to_the_nearest_multiple() {
        for (value, rounded) in
            [(0, 0), (499, 0), (500, 1000), (1499, 1000), (-499, 0), (-500, -1000), (-1501, -2000)]
        {
            assert_eq!(multiple(value, 1000).unwrap(), rounded);
        }
        assert!(multiple(i64::MAX, 1_000_000_000).is_err() && multiple(i64::MIN, 1000).is_err());
    }
}
