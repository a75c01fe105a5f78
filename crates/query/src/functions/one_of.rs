//! Wrapper for engine functions that return one of their arguments (`coalesce`, `greatest`): accepts texts
//! beside addresses, and delegates to the engine's own function.

use datafusion::arrow::datatypes::{DataType, Field, FieldRef};
use datafusion::common::{Result, plan_err};
use datafusion::logical_expr::simplify::{ExprSimplifyResult, SimplifyContext};
use datafusion::logical_expr::type_coercion::functions::fields_with_udf;
use datafusion::logical_expr::{
    ColumnarValue, Expr, ReturnFieldArgs, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature,
};
use std::sync::Arc;

#[derive(Debug, PartialEq, Eq, Hash)]
pub(super) struct OneOf {
    engines: Arc<ScalarUDF>,
    signature: Signature,
}

impl OneOf {
    pub(super) fn new(engines: Arc<ScalarUDF>) -> Self {
        let signature = Signature::user_defined(engines.signature().volatility);
        Self { engines, signature }
    }
}

impl ScalarUDFImpl for OneOf {
    fn name(&self) -> &str {
        self.engines.name()
    }

    fn aliases(&self) -> &[String] {
        self.engines.aliases()
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn coerce_types(&self, types: &[DataType]) -> Result<Vec<DataType>> {
        let field = |kind: &DataType| Arc::new(Field::new("", kind.clone(), true));
        let fields: Vec<FieldRef> = types.iter().map(field).collect();
        let coerced = fields_with_udf(&as_addresses(&fields), self.engines.as_ref())?;
        let types = coerced.iter().zip(types);
        // A text stays one until it is made an address.
        Ok(types
            .map(|(field, kind)| if is_text(kind) && is_address(field) { kind } else { field.data_type() })
            .cloned()
            .collect())
    }

    fn return_type(&self, types: &[DataType]) -> Result<DataType> {
        self.engines.return_type(types)
    }

    fn return_field_from_args(&self, args: ReturnFieldArgs<'_>) -> Result<FieldRef> {
        let ReturnFieldArgs { arg_fields, scalar_arguments } = args;
        let addresses = as_addresses(arg_fields);
        let mut all = arg_fields.iter().zip(&addresses).zip(scalar_arguments);
        if all.any(|((given, address), literal)| given != address && literal.is_none()) {
            return plan_err!("cannot call {}: a text beside an address must be a literal", self.name());
        }
        self.engines.return_field_from_args(ReturnFieldArgs { arg_fields: &addresses, scalar_arguments })
    }

    fn simplify(&self, args: Vec<Expr>, info: &SimplifyContext) -> Result<ExprSimplifyResult> {
        self.engines.simplify(args, info)
    }

    fn short_circuits(&self) -> bool {
        self.engines.short_circuits()
    }

    fn conditional_arguments<'a>(&self, args: &'a [Expr]) -> Option<(Vec<&'a Expr>, Vec<&'a Expr>)> {
        self.engines.conditional_arguments(args)
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        self.engines.invoke_with_args(args)
    }
}

fn is_text(kind: &DataType) -> bool {
    matches!(kind, DataType::Utf8 | DataType::Utf8View | DataType::LargeUtf8)
}

fn is_address(field: &FieldRef) -> bool {
    matches!(field.data_type(), DataType::FixedSizeBinary(4 | 6 | 16))
}

/// The same with addresses in the place of texts, where there is one.
fn as_addresses(fields: &[FieldRef]) -> Vec<FieldRef> {
    let Some(address) = fields.iter().find(|field| is_address(field)) else { return fields.to_vec() };
    let as_address = |field: &FieldRef| {
        if is_text(field.data_type()) {
            Arc::new(field.as_ref().clone().with_data_type(address.data_type().clone()))
        } else {
            Arc::clone(field)
        }
    };
    fields.iter().map(as_address).collect()
}
