//! `in_net(address, '10.0.0.0/8')`: whether an address is in a network. It becomes a comparison with its edges, so that slots
//! are passed over by it like by any other.

use crate::address::network;
use crate::columns::in_words;
use crate::kinds::kind_of;
use crate::literals::{literal, text_of};
use datafusion::arrow::datatypes::DataType;
use datafusion::common::{Result, exec_err, plan_err};
use datafusion::logical_expr::simplify::{ExprSimplifyResult, SimplifyContext};
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
                plan_err!("in_net wants the network as a text, such as '10.0.0.0/8'")
            }
            [other, _] => plan_err!(
                "in_net wants an address and a network, such as in_net(src, '10.0.0.0/8'): {} is no address",
                in_words(&other.to_string())
            ),
            _ => plan_err!("in_net wants an address and a network, such as in_net(src, '10.0.0.0/8')"),
        }
    }

    fn simplify(&self, args: Vec<Expr>, info: &SimplifyContext) -> Result<ExprSimplifyResult> {
        let [address, net] = args.as_slice() else { return Ok(ExprSimplifyResult::Original(args)) };
        let Some(text) = text_of(net) else {
            return plan_err!("in_net wants the network as a text, such as '10.0.0.0/8'");
        };
        let Some(kind) = kind_of(address, info.schema()) else {
            return plan_err!("in_net wants an address, such as in_net(src, '10.0.0.0/8')");
        };
        let (first, last) = match network(kind, text) {
            Ok(edges) => edges,
            Err(error) => return plan_err!("in_net: {error}"),
        };
        let within = address.clone().gt_eq(literal(first)).and(address.clone().lt_eq(literal(last)));
        Ok(ExprSimplifyResult::Simplified(within))
    }

    fn invoke_with_args(&self, _args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        // It is a comparison by then.
        exec_err!("in_net wants the network as a text, such as '10.0.0.0/8'")
    }
}
