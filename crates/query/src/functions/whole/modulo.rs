//! SQL function `mod(a, b)`: the remainder of a division, as the operator `%`.

use super::{Whole, WholeOperator};
use datafusion::arrow::compute::kernels::numeric::rem;
use datafusion::arrow::datatypes::DataType;
use datafusion::common::{Result, ScalarValue, exec_err, plan_err};
use datafusion::logical_expr::binary::BinaryTypeCoercer;
use datafusion::logical_expr::{
    ColumnarValue, Operator, ScalarFunctionArgs, ScalarUDFImpl, Signature, Volatility,
};

/// The SQL function `mod`.
#[derive(Debug, PartialEq, Eq, Hash)]
pub(in super::super) struct Modulo {
    signature: Signature,
}

impl Modulo {
    pub(in super::super) fn new() -> Self {
        Self { signature: Signature::user_defined(Volatility::Immutable) }
    }
}

/// Type of the remainder of two whole numbers.
fn whole(left: &DataType, right: &DataType) -> Option<DataType> {
    match (left.is_integer(), right.is_integer()) {
        (true, true) if left.is_unsigned_integer() && right.is_unsigned_integer() => Some(DataType::UInt64),
        (true, true) => Some(DataType::Int64),
        _ => None,
    }
}

impl ScalarUDFImpl for Modulo {
    fn name(&self) -> &'static str {
        "mod"
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn coerce_types(&self, types: &[DataType]) -> Result<Vec<DataType>> {
        let [left, right] = types else {
            return plan_err!("cannot call mod: it takes two numbers, such as mod(ordinal, 100)");
        };
        if whole(left, right).is_some() {
            return Ok(types.to_vec());
        }
        let (left, right) = BinaryTypeCoercer::new(left, &Operator::Modulo, right).get_input_types()?;
        Ok(vec![left, right])
    }

    fn return_type(&self, types: &[DataType]) -> Result<DataType> {
        let [left, right] = types else {
            return plan_err!("cannot call mod: it takes two numbers, such as mod(ordinal, 100)");
        };
        match whole(left, right) {
            Some(of) => Ok(of),
            None => BinaryTypeCoercer::new(left, &Operator::Modulo, right).get_result_type(),
        }
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let [left, right] = args.args.as_slice() else {
            return exec_err!("cannot call mod: it takes two arguments");
        };
        if let Some(to) = whole(&left.data_type(), &right.data_type()) {
            let signature = Signature::any(2, Volatility::Immutable);
            return Whole { operator: WholeOperator::Remainder, to, signature }.compute(left, right);
        }
        let is_scalar = matches!((left, right), (ColumnarValue::Scalar(_), ColumnarValue::Scalar(_)));
        let rows = if is_scalar { 1 } else { args.number_rows };
        let computed = rem(&left.to_array(rows)?, &right.to_array(rows)?)?;
        if is_scalar {
            return Ok(ColumnarValue::Scalar(ScalarValue::try_from_array(&computed, 0)?));
        }
        Ok(ColumnarValue::Array(computed))
    }
}
