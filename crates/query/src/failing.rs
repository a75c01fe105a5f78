//! Elements of which a condition fails: a number is divided by zero, a text is no number. A question ends with that. Whoever looks for
//! what a hold stands for passes them over, and is told of them.

use crate::columns::Fixed;
use datafusion::arrow::array::{Array, AsArray, BooleanArray, BooleanBuilder, RecordBatch};
use datafusion::arrow::datatypes::UInt64Type;
use datafusion::arrow::error::ArrowError;
use datafusion::error::{DataFusionError, Result};
use datafusion::physical_expr::PhysicalExpr;
use holdfast_base::Ordinal;
use std::collections::BTreeSet;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Elements that are told one by one.
const MOST: usize = 1 << 16;

/// Whether conditions may fail of elements, and of which they did.
#[derive(Debug, Default)]
pub struct Failing {
    passes: AtomicBool,
    failed: Mutex<Option<Failed>>,
}

/// Of what a condition failed.
#[derive(Debug)]
pub struct Failed {
    /// Of these, and maybe others.
    pub ordinals: BTreeSet<Ordinal>,
    /// Why, of the first that was come across.
    pub why: DataFusionError,
}

/// Whether an error is about a value of an element, and others may have none such.
pub fn is_of_a_value(error: &DataFusionError) -> bool {
    match error.find_root() {
        DataFusionError::ArrowError(cause, _) => matches!(
            **cause,
            ArrowError::DivideByZero
                | ArrowError::ArithmeticOverflow(_)
                | ArrowError::CastError(_)
                | ArrowError::ParseError(_)
                | ArrowError::ComputeError(_)
                | ArrowError::InvalidArgumentError(_)
        ),
        DataFusionError::Execution(_) => true,
        _ => false,
    }
}

impl Failing {
    /// Whether from here on such elements are passed over.
    pub fn pass(&self, passes: bool) {
        self.passes.store(passes, Ordering::Relaxed);
    }

    /// Of what conditions failed since it was asked last.
    pub fn take(&self) -> Option<Failed> {
        self.failed().take()
    }

    fn failed(&self) -> MutexGuard<'_, Option<Failed>> {
        self.failed.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Which elements of a batch meet a condition.
    pub(crate) fn met(&self, condition: &Arc<dyn PhysicalExpr>, batch: &RecordBatch) -> Result<BooleanArray> {
        let error = match met(condition, batch) {
            Err(error) if self.passes.load(Ordering::Relaxed) && is_of_a_value(&error) => error,
            met => return met,
        };
        let rows = batch.num_rows();
        if rows == 1 {
            self.fails_of(error, batch);
            return Ok(BooleanArray::from(vec![false]));
        }
        let mut all = BooleanBuilder::with_capacity(rows);
        for half in [batch.slice(0, rows / 2), batch.slice(rows / 2, rows - rows / 2)] {
            all.append_array(&self.met(condition, &half)?);
        }
        Ok(all.finish())
    }

    fn fails_of(&self, why: DataFusionError, element: &RecordBatch) {
        let ordinal = element.column_by_name(Fixed::Ordinal.name());
        let ordinal = ordinal.and_then(|column| column.as_primitive_opt::<UInt64Type>());
        let mut failed = self.failed();
        let Failed { ordinals, .. } = failed.get_or_insert_with(|| Failed { ordinals: BTreeSet::new(), why });
        if ordinals.len() < MOST {
            ordinals.extend(
                ordinal.filter(|ordinal| ordinal.is_valid(0)).map(|ordinal| Ordinal(ordinal.value(0))),
            );
        }
    }
}

/// The same, where none may fail.
pub(crate) fn met(condition: &Arc<dyn PhysicalExpr>, batch: &RecordBatch) -> Result<BooleanArray> {
    Ok(condition.evaluate(batch)?.into_array(batch.num_rows())?.as_boolean().clone())
}
