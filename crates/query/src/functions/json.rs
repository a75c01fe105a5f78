//! SQL functions `json_get(payload, 'a.b[0]')` and its typed forms: the value at a path of a JSON document, without a
//! schema. Paths are those of attributes (`json:a.b[0]`).

use datafusion::arrow::array::{
    Array, ArrayRef, AsArray, BooleanArray, Float64Array, Int64Array, StringViewBuilder,
};
use datafusion::arrow::compute::cast;
use datafusion::arrow::datatypes::{DataType, Field, FieldRef};
use datafusion::common::{Result, ScalarValue, exec_err, plan_datafusion_err, plan_err};
use datafusion::logical_expr::{
    ColumnarValue, ReturnFieldArgs, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature, Volatility,
};
use holdfast_attributes::{JsonLookup, JsonValue, Path};
use std::sync::Arc;

/// Values that a function gives.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum JsonKind {
    /// The text of any value.
    Any,
    Text,
    Int,
    Float,
    Bool,
}

#[derive(Debug, PartialEq, Eq, Hash)]
struct JsonGet {
    name: &'static str,
    kind: JsonKind,
    signature: Signature,
}

pub(super) fn all() -> Vec<ScalarUDF> {
    let functions = [
        ("json_get", JsonKind::Any),
        ("json_get_text", JsonKind::Text),
        ("json_get_int", JsonKind::Int),
        ("json_get_float", JsonKind::Float),
        ("json_get_bool", JsonKind::Bool),
    ];
    let function = |(name, kind)| {
        ScalarUDF::from(JsonGet { name, kind, signature: Signature::variadic_any(Volatility::Immutable) })
    };
    functions.into_iter().map(function).collect()
}

/// The text of a literal; null and other values have none.
fn literal(value: &ScalarValue) -> Option<&str> {
    match value {
        ScalarValue::Utf8(text) | ScalarValue::Utf8View(text) | ScalarValue::LargeUtf8(text) => {
            text.as_deref()
        }
        _ => None,
    }
}

impl JsonGet {
    fn path(&self, text: &str) -> Result<Path> {
        text.parse().map_err(|error| {
            plan_datafusion_err!("cannot call {}: the second argument is not a JSON path: {error}", self.name)
        })
    }
}

impl ScalarUDFImpl for JsonGet {
    fn name(&self) -> &str {
        self.name
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, types: &[DataType]) -> Result<DataType> {
        let [
            DataType::BinaryView
            | DataType::Binary
            | DataType::Utf8View
            | DataType::Utf8
            | DataType::LargeUtf8,
            DataType::Utf8 | DataType::Utf8View | DataType::LargeUtf8,
        ] = types
        else {
            return plan_err!(
                "cannot call {0}: it takes bytes or a text, and a path, such as {0}(payload, 'a.b[0]')",
                self.name
            );
        };
        Ok(match self.kind {
            JsonKind::Any | JsonKind::Text => DataType::Utf8View,
            JsonKind::Int => DataType::Int64,
            JsonKind::Float => DataType::Float64,
            JsonKind::Bool => DataType::Boolean,
        })
    }

    fn return_field_from_args(&self, args: ReturnFieldArgs<'_>) -> Result<FieldRef> {
        let types: Vec<DataType> = args.arg_fields.iter().map(|field| field.data_type().clone()).collect();
        let kind = self.return_type(&types)?;
        // A path that is none is refused before anything is read.
        match args.scalar_arguments.get(1).copied().flatten() {
            Some(value) => drop(literal(value).map(|text| self.path(text)).transpose()?),
            None => {
                return plan_err!("cannot call {}: the second argument must be a text literal", self.name);
            }
        }
        Ok(Arc::new(Field::new(self.name, kind, true)))
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let [documents, ColumnarValue::Scalar(path)] = args.args.as_slice() else {
            return exec_err!("cannot call {}: the second argument must be a text literal", self.name);
        };
        let path = literal(path).map(|text| self.path(text)).transpose()?;
        let mut lookup = path.as_ref().map(JsonLookup::new);
        let documents = match documents.to_array(args.number_rows)? {
            array if *array.data_type() == DataType::BinaryView => array,
            array => cast(&array, &DataType::BinaryView)?,
        };
        let documents = documents.as_binary_view();
        let values = documents.iter().map(|document| lookup.as_mut()?.find(document?));
        let found: ArrayRef = match self.kind {
            JsonKind::Any | JsonKind::Text => {
                let text = if self.kind == JsonKind::Any { JsonValue::text } else { JsonValue::string };
                let mut texts = StringViewBuilder::with_capacity(documents.len());
                values.for_each(|value| texts.append_option(value.and_then(text)));
                Arc::new(texts.finish())
            }
            JsonKind::Int => {
                Arc::new(values.map(|value| value.and_then(JsonValue::int)).collect::<Int64Array>())
            }
            JsonKind::Float => {
                Arc::new(values.map(|value| value.and_then(JsonValue::float)).collect::<Float64Array>())
            }
            JsonKind::Bool => {
                Arc::new(values.map(|value| value.and_then(JsonValue::bool)).collect::<BooleanArray>())
            }
        };
        Ok(ColumnarValue::Array(found))
    }
}
