//! Residual filter: the part of a condition that a predicate over cells cannot state (`like`, comparisons
//! of columns, functions) but that needs no payload. The engine evaluates it before payloads are read.

use crate::columns::{Columns, CommonColumn};
use crate::subqueries::has_subquery;
use datafusion::arrow::array::{Array, ArrayRef, AsArray, RecordBatch, RecordBatchOptions};
use datafusion::arrow::datatypes::SchemaRef;
use datafusion::catalog::Session;
use datafusion::common::DFSchema;
use datafusion::common::tree_node::TreeNode;
use datafusion::logical_expr::{Expr, utils::conjunction};
use datafusion::physical_expr::PhysicalExpr;
use holdfast_attributes::Type;
use std::fmt;
use std::sync::Arc;

/// Whether an expression can be asked before payloads are read.
pub(super) fn may_be_asked(filter: &Expr) -> bool {
    let is_of_others = filter.exists(|expr| Ok(matches!(expr, Expr::OuterReferenceColumn(..))));
    let is_of_rows = !filter.column_refs().is_empty() && !takes_payload(filter);
    is_of_rows && !filter.is_volatile() && !has_subquery(filter) && !is_of_others.unwrap_or(true)
}

/// Whether an expression takes an element's payload.
pub(crate) fn takes_payload(expr: &Expr) -> bool {
    expr.column_refs().iter().any(|column| column.name == CommonColumn::Payload.name())
}

/// Such a condition.
#[derive(Clone, Debug)]
pub(crate) struct ResidualFilter {
    /// The columns that it is about: their places in the table, and types.
    pub(super) columns: Vec<(usize, Type)>,
    schema: SchemaRef,
    condition: Arc<dyn PhysicalExpr>,
}

impl ResidualFilter {
    /// All of these filters; nothing where there are none, or the engine cannot ask them here.
    pub(super) fn of(state: &dyn Session, columns: &Columns, filters: Vec<Expr>) -> Option<Self> {
        let filter = conjunction(filters)?;
        let named = filter.column_refs();
        let mut places: Vec<usize> =
            named.iter().map(|column| columns.arrow().index_of(&column.name).ok()).collect::<Option<_>>()?;
        places.sort_unstable();
        places.dedup();
        let schema = Arc::new(columns.arrow().project(&places).ok()?);
        let of_these = DFSchema::try_from(Arc::clone(&schema)).ok()?;
        let condition = state.create_physical_expr(filter, &of_these).ok()?;
        let columns = places.into_iter().map(|place| Some((place, columns.at(place)?.1)));
        Some(Self { columns: columns.collect::<Option<_>>()?, schema, condition })
    }

    /// Takes out of `picked` what it leaves out; `arrays` are its columns of what is picked. Where the engine fails all is left: it
    /// will say so itself.
    pub(super) fn pick(&self, arrays: Vec<ArrayRef>, picked: &mut [bool]) {
        let rows = picked.iter().filter(|picked| **picked).count();
        let options = RecordBatchOptions::new().with_row_count(Some(rows));
        let batch = RecordBatch::try_new_with_options(Arc::clone(&self.schema), arrays, &options);
        let asked =
            batch.map_err(Into::into).and_then(|batch| self.condition.evaluate(&batch)?.into_array(rows));
        let Ok(asked) = asked else { return };
        let Some(asked) = asked.as_boolean_opt() else { return };
        for (at, picked) in picked.iter_mut().filter(|picked| **picked).enumerate() {
            *picked = asked.is_valid(at) && asked.value(at);
        }
    }
}

impl fmt::Display for ResidualFilter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.condition.fmt(f)
    }
}
