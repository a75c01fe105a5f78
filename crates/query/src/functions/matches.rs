//! SQL function `matches(payload, 'regular expression')` over bytes, which need not be text.

use datafusion::arrow::array::{Array, AsArray, BooleanArray};
use datafusion::arrow::datatypes::DataType;
use datafusion::common::{Result, ScalarValue, exec_datafusion_err, exec_err, plan_err};
use datafusion::logical_expr::{ColumnarValue, ScalarFunctionArgs, ScalarUDFImpl, Signature, Volatility};
use regex::bytes::{Regex, RegexBuilder};
use std::sync::{Arc, Mutex, PoisonError};

/// Bytes that a compiled expression may take: one that is larger is refused.
const MOST: usize = 16 << 20;

#[derive(Debug)]
pub(super) struct Matches {
    signature: Signature,
    /// The expression compiled last: a query has one, as a rule.
    last: Mutex<Option<(String, Arc<Regex>)>>,
}

impl PartialEq for Matches {
    fn eq(&self, other: &Self) -> bool {
        self.signature == other.signature
    }
}

impl Eq for Matches {}

impl std::hash::Hash for Matches {
    fn hash<H: std::hash::Hasher>(&self, state: &mut H) {
        self.signature.hash(state);
    }
}

impl Matches {
    pub(super) fn new() -> Self {
        Self { signature: Signature::variadic_any(Volatility::Immutable), last: Mutex::new(None) }
    }

    fn compiled(&self, text: &str) -> Result<Arc<Regex>> {
        let mut last = self.last.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((known, regex)) = &*last
            && known == text
        {
            return Ok(Arc::clone(regex));
        }
        let regex = RegexBuilder::new(text).unicode(false).size_limit(MOST).build();
        let wrong = |error| exec_datafusion_err!("cannot compile `{text}` as a regular expression: {error}");
        let regex = Arc::new(regex.map_err(wrong)?);
        *last = Some((text.to_owned(), Arc::clone(&regex)));
        Ok(regex)
    }
}

impl ScalarUDFImpl for Matches {
    fn name(&self) -> &'static str {
        "matches"
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, types: &[DataType]) -> Result<DataType> {
        let [
            DataType::BinaryView | DataType::Utf8View,
            DataType::Utf8 | DataType::Utf8View | DataType::LargeUtf8,
        ] = types
        else {
            return plan_err!(
                "cannot call matches: it takes bytes and a regular expression, such as matches(payload, 'GET /[a-z]+')"
            );
        };
        Ok(DataType::Boolean)
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let [bytes, expression] = args.args.as_slice() else {
            return exec_err!("cannot call matches: it takes two arguments");
        };
        let ColumnarValue::Scalar(
            ScalarValue::Utf8(text) | ScalarValue::Utf8View(text) | ScalarValue::LargeUtf8(text),
        ) = expression
        else {
            return exec_err!("cannot call matches: the second argument must be a text literal");
        };
        let Some(text) = text else {
            return Ok(ColumnarValue::Scalar(ScalarValue::Boolean(None)));
        };
        let regex = self.compiled(text)?;
        let array = bytes.to_array(args.number_rows)?;
        let found: BooleanArray = match array.data_type() {
            DataType::BinaryView => {
                array.as_binary_view().iter().map(|b| b.map(|b| regex.is_match(b))).collect()
            }
            DataType::Utf8View => {
                array.as_string_view().iter().map(|b| b.map(|b| regex.is_match(b.as_bytes()))).collect()
            }
            other => return exec_err!("cannot call matches: it takes bytes, not {other}"),
        };
        Ok(ColumnarValue::Array(Arc::new(found)))
    }
}
