//! Arithmetic on whole numbers in 128 bits. The engine's own operators drop the bits that do not fit; here a result
//! is exact, or an error names the operands.

mod modulo;
mod operands;

pub(super) use modulo::Modulo;

use datafusion::arrow::array::{ArrayRef, AsArray, PrimitiveArray};
use datafusion::arrow::compute::kernels::numeric;
use datafusion::arrow::compute::{cast, try_binary};
use datafusion::arrow::datatypes::{DataType, Decimal128Type, Field, FieldRef, Int64Type, UInt64Type};
use datafusion::arrow::error::ArrowError;
use datafusion::common::{Result, exec_err};
use datafusion::logical_expr::expr::ScalarFunction;
use datafusion::logical_expr::{
    ColumnarValue, Expr, Operator, ReturnFieldArgs, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature,
    Volatility,
};
use operands::{Operand, Range};
use std::fmt;
use std::sync::Arc;

/// Type of results that have up to 38 digits.
pub(crate) const WIDE: DataType = DataType::Decimal128(38, 0);

/// Operator of two whole numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum WholeOperator {
    /// Sum of both operands.
    Add,
    /// Difference of both operands.
    Subtract,
    /// Product of both operands.
    Multiply,
    /// Quotient without its fraction.
    Divide,
    /// Remainder with the sign of the dividend.
    Remainder,
}

impl WholeOperator {
    /// Operator of this kind in an expression.
    pub(crate) fn of(operator: Operator) -> Option<Self> {
        Some(match operator {
            Operator::Plus => Self::Add,
            Operator::Minus => Self::Subtract,
            Operator::Multiply => Self::Multiply,
            Operator::Divide => Self::Divide,
            Operator::Modulo => Self::Remainder,
            _ => return None,
        })
    }

    fn name(self) -> &'static str {
        match self {
            Self::Add => "whole_add",
            Self::Subtract => "whole_subtract",
            Self::Multiply => "whole_multiply",
            Self::Divide => "whole_divide",
            Self::Remainder => "whole_remainder",
        }
    }

    /// Result in 128 bits, if it fits.
    fn apply(self, left: i128, right: i128) -> Option<i128> {
        match self {
            Self::Add => left.checked_add(right),
            Self::Subtract => left.checked_sub(right),
            Self::Multiply => left.checked_mul(right),
            Self::Divide => left.checked_div(right),
            Self::Remainder => left.checked_rem(right),
        }
    }
}

impl fmt::Display for WholeOperator {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Add => "+",
            Self::Subtract => "-",
            Self::Multiply => "*",
            Self::Divide => "/",
            Self::Remainder => "%",
        })
    }
}

/// Function of two whole numbers, with a type that its result has to fit.
#[derive(Debug, PartialEq, Eq, Hash)]
pub(crate) struct Whole {
    operator: WholeOperator,
    to: DataType,
    signature: Signature,
}

impl Whole {
    /// Calls the function with two expressions of whole numbers.
    pub(crate) fn call(operator: WholeOperator, to: DataType, left: Expr, right: Expr) -> Expr {
        let whole = Self { operator, to, signature: Signature::any(2, Volatility::Immutable) };
        let function = Arc::new(ScalarUDF::from(whole));
        Expr::ScalarFunction(ScalarFunction::new_udf(function, vec![left, right]))
    }

    /// Function of a call.
    pub(crate) fn of(call: &ScalarFunction) -> Option<&Self> {
        call.func.inner().downcast_ref::<Self>()
    }

    /// Operator of the function.
    pub(crate) fn operator(&self) -> WholeOperator {
        self.operator
    }

    /// Results by a kernel for two arrays of one type; `None` if there is none, or if a result does not fit.
    fn fast(&self, left: &ColumnarValue, right: &ColumnarValue) -> Result<Option<ArrayRef>> {
        let (DataType::Int64 | DataType::UInt64, true) = (&self.to, left.data_type() == right.data_type())
        else {
            return Ok(None);
        };
        if self.to == DataType::Int64
            && self.operator == WholeOperator::Subtract
            && let (ColumnarValue::Array(left), ColumnarValue::Array(right)) = (left, right)
            && *left.data_type() == DataType::UInt64
        {
            let difference = |left: u64, right: u64| {
                let difference = left.wrapping_sub(right) as i64;
                // It has the wrong sign if it does not fit.
                if (left >= right) == (difference >= 0) {
                    Ok(difference)
                } else {
                    Err(ArrowError::DivideByZero)
                }
            };
            let (left, right) = (left.as_primitive::<UInt64Type>(), right.as_primitive::<UInt64Type>());
            let computed: std::result::Result<PrimitiveArray<Int64Type>, _> =
                try_binary(left, right, difference);
            return Ok(computed.ok().map(|computed| Arc::new(computed) as ArrayRef));
        }
        if left.data_type() != self.to {
            return Ok(None);
        }
        let kernel = match self.operator {
            WholeOperator::Add => numeric::add,
            WholeOperator::Subtract => numeric::sub,
            WholeOperator::Multiply => numeric::mul,
            WholeOperator::Divide | WholeOperator::Remainder => return Ok(None),
        };
        let computed = match (left, right) {
            (ColumnarValue::Array(left), ColumnarValue::Array(right)) => kernel(left, right),
            (ColumnarValue::Array(left), ColumnarValue::Scalar(right)) => kernel(left, &right.to_scalar()?),
            (ColumnarValue::Scalar(left), ColumnarValue::Array(right)) => kernel(&left.to_scalar()?, right),
            (ColumnarValue::Scalar(_), ColumnarValue::Scalar(_)) => return Ok(None),
        };
        Ok(computed.ok())
    }

    /// Computes the results of all rows.
    fn compute(&self, left: &ColumnarValue, right: &ColumnarValue) -> Result<ColumnarValue> {
        if let Some(computed) = self.fast(left, right)? {
            return Ok(ColumnarValue::Array(computed));
        }
        let Some(range) = Range::of(&self.to) else {
            return exec_err!("cannot compute {}: no whole numbers of type {}", self.operator, self.to);
        };
        let (left, right) = (Operand::of(left)?, Operand::of(right)?);
        let operator = self.operator;
        Ok(match operands::combined(&left, &right, |left, right| range.result(operator, left, right))? {
            Operand::Scalar(value) => ColumnarValue::Scalar(range.scalar(value)),
            Operand::Array(array) => {
                let array = array.with_precision_and_scale(38, 0)?;
                let array: ArrayRef = match self.to {
                    DataType::Int64 => {
                        let array: PrimitiveArray<Int64Type> = array.unary(|value| value as i64);
                        Arc::new(array)
                    }
                    DataType::UInt64 => {
                        let array: PrimitiveArray<UInt64Type> = array.unary(|value| value as u64);
                        Arc::new(array)
                    }
                    DataType::Decimal128(..) => Arc::new(array),
                    _ => cast(&array, &self.to)?,
                };
                ColumnarValue::Array(array)
            }
        })
    }
}

impl ScalarUDFImpl for Whole {
    fn name(&self) -> &str {
        self.operator.name()
    }

    fn schema_name(&self, args: &[Expr]) -> Result<String> {
        let [left, right] = args else {
            return exec_err!("cannot name {}: it takes two arguments", self.name());
        };
        Ok(format!("{} {} {}", left.schema_name(), self.operator, right.schema_name()))
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, _types: &[DataType]) -> Result<DataType> {
        Ok(self.to.clone())
    }

    fn return_field_from_args(&self, args: ReturnFieldArgs<'_>) -> Result<FieldRef> {
        let is_nullable = args.arg_fields.iter().any(|field| field.is_nullable());
        Ok(Arc::new(Field::new(self.name(), self.to.clone(), is_nullable)))
    }

    fn is_strict(&self) -> bool {
        true
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let [left, right] = args.args.as_slice() else {
            return exec_err!("cannot call {}: it takes two arguments", self.name());
        };
        self.compute(left, right)
    }
}

/// Values of 128 bits.
type Wide = PrimitiveArray<Decimal128Type>;
