//! Elements for which a condition fails to evaluate, such as a division by zero or a text that is no
//! number. A query ends with that error; the search for a hold skips these elements and reports them.

use crate::columns::CommonColumn;
use datafusion::arrow::array::{Array, AsArray, BooleanArray, BooleanBuilder, RecordBatch};
use datafusion::arrow::datatypes::UInt64Type;
use datafusion::arrow::error::ArrowError;
use datafusion::error::{DataFusionError, Result};
use datafusion::physical_expr::PhysicalExpr;
use holdfast_base::Ordinal;
use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Elements that are told one by one.
const MOST: usize = 1 << 16;

/// Whether conditions may fail of elements, and of which they did.
#[derive(Debug, Default)]
pub struct EvaluationFailures {
    state: Mutex<FailureState>,
}

#[derive(Debug, Default)]
struct FailureState {
    /// From the first, without the second: these are told of. Nothing where no condition may fail.
    among: Option<(Ordinal, Ordinal)>,
    failed: Option<FailedElements>,
}

/// Of what a condition failed.
#[derive(Debug)]
pub struct FailedElements {
    /// Of these, the first and the last among them; nothing where that is not known.
    pub ordinals: BTreeSet<Ordinal>,
    /// And of others.
    pub more: bool,
    /// Why, of the first that was come across.
    pub why: DataFusionError,
}

/// Whether an error is about a value of an element, and others may have none such.
pub fn is_value_error(error: &DataFusionError) -> bool {
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

impl EvaluationFailures {
    /// From here on such elements are passed over, and those among these told of; or they end a question.
    pub fn pass(&self, among: Option<(Ordinal, Ordinal)>) {
        self.state().among = among;
    }

    /// Of what conditions failed since it was asked last.
    pub fn take(&self) -> Option<FailedElements> {
        self.state().failed.take()
    }

    fn state(&self) -> MutexGuard<'_, FailureState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Which elements of a batch meet a condition.
    pub(crate) fn met(&self, condition: &Arc<dyn PhysicalExpr>, batch: &RecordBatch) -> Result<BooleanArray> {
        let error = match met(condition, batch) {
            Err(error) if self.state().among.is_some() && is_value_error(&error) => error,
            met => return met,
        };
        let rows = batch.num_rows();
        if rows <= 1 {
            self.fails_of(error, batch);
            return Ok(BooleanArray::from(vec![false; rows]));
        }
        let mut all = BooleanBuilder::with_capacity(rows);
        for half in [batch.slice(0, rows / 2), batch.slice(rows / 2, rows - rows / 2)] {
            all.append_array(&self.met(condition, &half)?);
        }
        Ok(all.finish())
    }

    fn fails_of(&self, why: DataFusionError, element: &RecordBatch) {
        let ordinal = element.column_by_name(CommonColumn::Ordinal.name());
        let ordinal = ordinal.and_then(|column| column.as_primitive_opt::<UInt64Type>());
        let ordinal = ordinal.filter(|column| !column.is_empty()).map(|column| Ordinal(column.value(0)));
        let mut state = self.state();
        let is_told =
            |ordinal: &Ordinal| state.among.is_some_and(|(first, end)| (first..end).contains(ordinal));
        if ordinal.is_some_and(|ordinal| !is_told(&ordinal)) {
            return;
        }
        let none = || FailedElements { ordinals: BTreeSet::new(), more: false, why };
        let FailedElements { ordinals, more, .. } = state.failed.get_or_insert_with(none);
        ordinals.extend(ordinal);
        if ordinals.len() > MOST {
            *more = true;
            // One between the ends, which are told.
            let inner = ordinals.iter().nth(1).copied();
            inner.map(|inner| ordinals.remove(&inner));
        }
    }
}

/// The same, where none may fail.
pub(crate) fn met(condition: &Arc<dyn PhysicalExpr>, batch: &RecordBatch) -> Result<BooleanArray> {
    Ok(condition.evaluate(batch)?.into_array(batch.num_rows())?.as_boolean().clone())
}

#[cfg(test)]
mod tests {
    use super::*;
    use datafusion::arrow::array::{ArrayRef, Int64Array, UInt64Array};
    use datafusion::arrow::datatypes::{DataType, Field, Schema};
    use datafusion::common::DFSchema;
    use datafusion::logical_expr::{col, lit};
    use datafusion::prelude::SessionContext;

    /// Elements from `first` on, and whether 12 divided by each of these numbers is 4.
    fn asked(failing: &EvaluationFailures, first: u64, numbers: &[i64], named: &str) -> Result<Vec<bool>> {
        let schema = Arc::new(Schema::new(vec![
            Field::new(named, DataType::UInt64, false),
            Field::new("n", DataType::Int64, false),
        ]));
        let ordinals: ArrayRef = Arc::new(UInt64Array::from_iter_values(first..first + numbers.len() as u64));
        let numbers: ArrayRef = Arc::new(Int64Array::from(numbers.to_vec()));
        let batch = RecordBatch::try_new(Arc::clone(&schema), vec![ordinals, numbers])?;
        let schema = DFSchema::try_from(schema)?;
        let condition =
            SessionContext::new().create_physical_expr((lit(12i64) / col("n")).eq(lit(4i64)), &schema)?;
        Ok(failing.met(&condition, &batch)?.iter().map(|met| met == Some(true)).collect())
    }

    #[test]
    fn elements_of_which_a_condition_fails_are_passed_over_and_told() {
        let failing = EvaluationFailures::default();
        assert!(is_value_error(&asked(&failing, 0, &[3, 0, 3], "ordinal").unwrap_err()));
        assert!(failing.take().is_none());
        failing.pass(Some((Ordinal(12), Ordinal(17))));
        let numbers = [3, 0, 0, 5, 3, 0, 3, 0];
        let wanted = [true, false, false, false, true, false, true, false];
        for _ in 0..2 {
            assert_eq!(asked(&failing, 10, &numbers, "ordinal").unwrap(), wanted);
        }
        // Each once, and of others nothing.
        let failed = failing.take().unwrap();
        assert_eq!(failed.ordinals.into_iter().collect::<Vec<_>>(), [Ordinal(12), Ordinal(15)]);
        assert_eq!(asked(&failing, 17, &numbers, "ordinal").unwrap(), wanted);
        assert!(failing.take().is_none());
        // Which ones is not known.
        assert_eq!(asked(&failing, 10, &numbers, "other").unwrap(), wanted);
        assert!(failing.take().unwrap().ordinals.is_empty());
        assert!(asked(&failing, 10, &[], "ordinal").unwrap().is_empty());
        failing.pass(None);
        assert!(asked(&failing, 10, &numbers, "ordinal").is_err());
    }
}
