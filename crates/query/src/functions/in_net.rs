//! SQL function `in_net(address, '10.0.0.0/8')`: true if a network contains the address. The optimizer
//! replaces it by comparisons with the edges of the network, which prunes slots.

use crate::address::network_ranges;
use crate::address_literals::{literal, text_of};
use crate::address_types::address_type_of;
use crate::columns::describe_type;
use datafusion::arrow::datatypes::DataType;
use datafusion::common::{Result, exec_err, plan_err};
use datafusion::logical_expr::simplify::{ExprSimplifyResult, SimplifyContext};
use datafusion::logical_expr::utils::disjunction;
use datafusion::logical_expr::{
    ColumnarValue, Expr, ScalarFunctionArgs, ScalarUDFImpl, Signature, Volatility,
};

#[derive(Debug, PartialEq, Eq, Hash)]
pub(super) struct InNet {
    signature: Signature,
}

impl InNet {
    pub(super) fn new() -> Self {
        Self { signature: Signature::variadic_any(Volatility::Immutable) }
    }
}

impl ScalarUDFImpl for InNet {
    fn name(&self) -> &'static str {
        "in_net"
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, types: &[DataType]) -> Result<DataType> {
        match types {
            [
                DataType::FixedSizeBinary(4 | 6 | 16),
                DataType::Utf8 | DataType::Utf8View | DataType::LargeUtf8,
            ] => Ok(DataType::Boolean),
            [DataType::FixedSizeBinary(4 | 6 | 16), _] => {
                plan_err!(
                    "cannot call in_net: the second argument must be a text literal, such as '10.0.0.0/8'"
                )
            }
            [other, _] => plan_err!(
                "cannot call in_net: the first argument is {}, not an address; write a call such as in_net(src, '10.0.0.0/8')",
                describe_type(&other.to_string())
            ),
            _ => plan_err!(
                "cannot call in_net: it takes an address and a network, such as in_net(src, '10.0.0.0/8')"
            ),
        }
    }

    fn simplify(&self, args: Vec<Expr>, info: &SimplifyContext) -> Result<ExprSimplifyResult> {
        let [address, net] = args.as_slice() else { return Ok(ExprSimplifyResult::Original(args)) };
        let Some(text) = text_of(net) else {
            return plan_err!(
                "cannot call in_net: the second argument must be a text literal, such as '10.0.0.0/8'"
            );
        };
        let Some(kind) = address_type_of(address, info.schema()) else {
            return plan_err!(
                "cannot call in_net: the first argument is not an address; write a call such as in_net(src, '10.0.0.0/8')"
            );
        };
        let ranges = match network_ranges(kind, text) {
            Ok(ranges) => ranges,
            Err(error) => return plan_err!("{error}"),
        };
        let within = |(first, last): (Vec<u8>, Vec<u8>)| {
            address.clone().gt_eq(literal(first)).and(address.clone().lt_eq(literal(last)))
        };
        let within = disjunction(ranges.into_iter().map(within));
        Ok(within.map_or(ExprSimplifyResult::Original(args), ExprSimplifyResult::Simplified))
    }

    fn invoke_with_args(&self, _args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        // It is a comparison by then.
        exec_err!("cannot call in_net: the second argument must be a text literal, such as '10.0.0.0/8'")
    }
}
