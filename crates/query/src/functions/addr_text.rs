//! SQL function `addr_text(address)`: the text form of an address.

use crate::address;
use crate::columns::address_type;
use datafusion::arrow::array::{AsArray, StringViewArray};
use datafusion::arrow::datatypes::DataType;
use datafusion::common::{Result, ScalarValue, exec_err, plan_err};
use datafusion::logical_expr::{
    ColumnarValue, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature, Volatility,
};
use std::sync::Arc;

/// Function that shows addresses.
pub(crate) fn addr_text() -> ScalarUDF {
    ScalarUDF::from(AddrText::new())
}

#[derive(Debug, PartialEq, Eq, Hash)]
struct AddrText {
    signature: Signature,
}

impl AddrText {
    fn new() -> Self {
        Self { signature: Signature::any(1, Volatility::Immutable) }
    }
}

impl ScalarUDFImpl for AddrText {
    fn name(&self) -> &'static str {
        "addr_text"
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, types: &[DataType]) -> Result<DataType> {
        let [DataType::FixedSizeBinary(4 | 6 | 16)] = types else {
            return plan_err!("cannot call addr_text: it takes an address, such as addr_text(src)");
        };
        Ok(DataType::Utf8View)
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let ([addresses], [field]) = (args.args.as_slice(), args.arg_fields.as_slice()) else {
            return exec_err!("cannot call addr_text: it takes one argument");
        };
        let Some(kind) = address_type(field) else {
            return exec_err!("cannot call addr_text: it takes an address, not {}", field.data_type());
        };
        let array = addresses.to_array(args.number_rows)?;
        let shown: StringViewArray = array
            .as_fixed_size_binary()
            .iter()
            .map(|bytes| bytes.map(|bytes| address::show(kind, bytes)))
            .collect();
        if let ColumnarValue::Scalar(_) = addresses {
            return Ok(ColumnarValue::Scalar(ScalarValue::try_from_array(&shown, 0)?));
        }
        Ok(ColumnarValue::Array(Arc::new(shown)))
    }
}
