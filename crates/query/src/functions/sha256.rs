//! SQL function `sha256(payload)`: the SHA-256 of bytes or of a text, in hexadecimal digits.

use crate::address;
use datafusion::arrow::array::{Array, ArrayRef, AsArray, StringViewArray};
use datafusion::arrow::compute::cast;
use datafusion::arrow::datatypes::DataType;
use datafusion::common::{Result, ScalarValue, exec_err, plan_err};
use datafusion::logical_expr::{ColumnarValue, ScalarFunctionArgs, ScalarUDFImpl, Signature, Volatility};
use holdfast_attributes::Type;
use sha2::{Digest, Sha256 as Hasher};
use std::sync::Arc;

/// The SQL function `sha256`.
#[derive(Debug, PartialEq, Eq, Hash)]
pub(super) struct Sha256 {
    signature: Signature,
}

impl Sha256 {
    pub(super) fn new() -> Self {
        Self { signature: Signature::any(1, Volatility::Immutable) }
    }
}

/// Digest in hexadecimal digits.
fn digest(bytes: &[u8]) -> String {
    address::show(Type::Binary, &Hasher::digest(bytes))
}

fn digests(array: &ArrayRef) -> Result<ArrayRef> {
    let array = match array.data_type() {
        DataType::FixedSizeBinary(_) => Arc::clone(array),
        // The bytes of a text are those of its view.
        _ => cast(array, &DataType::BinaryView)?,
    };
    let digests: StringViewArray = match array.as_fixed_size_binary_opt() {
        Some(array) => array.iter().map(|bytes| bytes.map(digest)).collect(),
        None => array.as_binary_view().iter().map(|bytes| bytes.map(digest)).collect(),
    };
    Ok(Arc::new(digests))
}

impl ScalarUDFImpl for Sha256 {
    fn name(&self) -> &'static str {
        "sha256"
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, types: &[DataType]) -> Result<DataType> {
        match types {
            [kind] if kind.is_string() || kind.is_binary() || kind.is_null() => Ok(DataType::Utf8View),
            [DataType::FixedSizeBinary(_)] => Ok(DataType::Utf8View),
            _ => plan_err!("cannot call sha256: it takes bytes or a text, such as sha256(payload)"),
        }
    }

    fn is_strict(&self) -> bool {
        true
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let [value] = args.args.as_slice() else {
            return exec_err!("cannot call sha256: it takes one argument");
        };
        Ok(match value {
            ColumnarValue::Array(array) => ColumnarValue::Array(digests(array)?),
            ColumnarValue::Scalar(scalar) => {
                ColumnarValue::Scalar(ScalarValue::try_from_array(&digests(&scalar.to_array()?)?, 0)?)
            }
        })
    }
}
