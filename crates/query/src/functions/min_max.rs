//! Aggregates `min` and `max`, in which NaN is greater than all numbers. Those of the engine lose values beside
//! NaN by the order of rows; here they compute over the ranks of floats, as whole numbers.

use datafusion::arrow::array::{Array, ArrayRef, AsArray, BooleanArray, PrimitiveArray};
use datafusion::arrow::datatypes::{DataType, Field, FieldRef, Float32Type, Float64Type, Int64Type};
use datafusion::common::ScalarValue;
use datafusion::error::Result;
use datafusion::logical_expr::expr::{AggregateFunctionParams, WindowFunctionParams};
use datafusion::logical_expr::function::AccumulatorArgs;
use datafusion::logical_expr::utils::AggregateOrderSensitivity;
use datafusion::logical_expr::{
    Accumulator, AggregateUDF, AggregateUDFImpl, Documentation, EmitTo, GroupsAccumulator, ReversedUDAF,
    SetMonotonicity, Signature, StatisticsArgs,
};
use std::sync::Arc;

/// Names of the aggregates that are replaced.
const NAMES: [&str; 2] = ["min", "max"];

/// Replacements of the engine's aggregates, under the same names.
pub(super) fn min_max(engines: &[Arc<AggregateUDF>]) -> Vec<Arc<AggregateUDF>> {
    let replaced = engines.iter().filter(|function| NAMES.contains(&function.name()));
    replaced.map(|function| Arc::new(AggregateUDF::from(Ranked { inner: Arc::clone(function) }))).collect()
}

/// Rank of a float: the total order of floats, with all NaN alike at the end.
fn rank(value: f64) -> i64 {
    let bits = if value.is_nan() { i64::MAX } else { value.to_bits() as i64 };
    flipped(bits)
}

/// Float of a rank. The rank of a NaN gives a quiet one.
fn float(rank: i64) -> f64 {
    let value = f64::from_bits(flipped(rank) as u64);
    if value.is_nan() { f64::NAN } else { value }
}

/// The bits of a negative number in reverse order, which is its own inverse.
const fn flipped(bits: i64) -> i64 {
    bits ^ (((bits >> 63) as u64) >> 1) as i64
}

/// Ranks of an array of floats; any other array as it is.
fn ranks(array: &ArrayRef) -> ArrayRef {
    match array.data_type() {
        DataType::Float64 => {
            let ranks: PrimitiveArray<Int64Type> = array.as_primitive::<Float64Type>().unary(rank);
            Arc::new(ranks)
        }
        DataType::Float32 => {
            let ranks: PrimitiveArray<Int64Type> =
                array.as_primitive::<Float32Type>().unary(|value| rank(value.into()));
            Arc::new(ranks)
        }
        _ => Arc::clone(array),
    }
}

fn all_ranks(arrays: &[ArrayRef]) -> Vec<ArrayRef> {
    arrays.iter().map(ranks).collect()
}

/// Floats of an array of ranks.
fn floats(ranks: &ArrayRef, data_type: &DataType) -> ArrayRef {
    let ranks = ranks.as_primitive::<Int64Type>();
    if *data_type == DataType::Float32 {
        let floats: PrimitiveArray<Float32Type> = ranks.unary(|rank| float(rank) as f32);
        return Arc::new(floats);
    }
    let floats: PrimitiveArray<Float64Type> = ranks.unary(float);
    Arc::new(floats)
}

fn scalar_float(rank: &ScalarValue, data_type: &DataType) -> ScalarValue {
    let value = match rank {
        ScalarValue::Int64(rank) => rank.map(float),
        _ => None,
    };
    match data_type {
        DataType::Float32 => ScalarValue::Float32(value.map(|value| value as f32)),
        _ => ScalarValue::Float64(value),
    }
}

/// Returns the type of the floats that an accumulator is over, and its arguments for their ranks.
fn of_ranks(
    args: AccumulatorArgs<'_>,
) -> std::result::Result<(DataType, AccumulatorArgs<'_>), AccumulatorArgs<'_>> {
    let data_type = args.return_field.data_type().clone();
    if !matches!(data_type, DataType::Float64 | DataType::Float32) {
        return Err(args);
    }
    let return_field = Arc::new(Field::new(args.return_field.name(), DataType::Int64, true));
    Ok((data_type, AccumulatorArgs { return_field, ..args }))
}

/// An aggregate of the engine, over ranks where its argument is a float.
#[derive(Debug, PartialEq, Eq, Hash)]
struct Ranked {
    inner: Arc<AggregateUDF>,
}

impl AggregateUDFImpl for Ranked {
    fn name(&self) -> &str {
        self.inner.name()
    }

    fn signature(&self) -> &Signature {
        self.inner.signature()
    }

    fn schema_name(&self, params: &AggregateFunctionParams) -> Result<String> {
        self.inner.schema_name(params)
    }

    fn window_function_schema_name(&self, params: &WindowFunctionParams) -> Result<String> {
        self.inner.window_function_schema_name(params)
    }

    fn return_type(&self, arg_types: &[DataType]) -> Result<DataType> {
        self.inner.return_type(arg_types)
    }

    fn return_field(&self, arg_fields: &[FieldRef]) -> Result<FieldRef> {
        self.inner.return_field(arg_fields)
    }

    fn accumulator(&self, args: AccumulatorArgs<'_>) -> Result<Box<dyn Accumulator>> {
        match of_ranks(args) {
            Ok((data_type, args)) => {
                Ok(Box::new(RankAccumulator { inner: self.inner.accumulator(args)?, data_type }))
            }
            Err(args) => self.inner.accumulator(args),
        }
    }

    fn create_sliding_accumulator(&self, args: AccumulatorArgs<'_>) -> Result<Box<dyn Accumulator>> {
        match of_ranks(args) {
            Ok((data_type, args)) => {
                let inner = self.inner.create_sliding_accumulator(args)?;
                Ok(Box::new(RankAccumulator { inner, data_type }))
            }
            Err(args) => self.inner.create_sliding_accumulator(args),
        }
    }

    fn groups_accumulator_supported(&self, args: AccumulatorArgs<'_>) -> bool {
        self.inner.groups_accumulator_supported(args)
    }

    fn create_groups_accumulator(&self, args: AccumulatorArgs<'_>) -> Result<Box<dyn GroupsAccumulator>> {
        match of_ranks(args) {
            Ok((data_type, args)) => {
                let inner = self.inner.create_groups_accumulator(args)?;
                Ok(Box::new(RankGroups { inner, data_type }))
            }
            Err(args) => self.inner.create_groups_accumulator(args),
        }
    }

    fn is_descending(&self) -> Option<bool> {
        self.inner.is_descending()
    }

    fn order_sensitivity(&self) -> AggregateOrderSensitivity {
        AggregateOrderSensitivity::Insensitive
    }

    fn coerce_types(&self, arg_types: &[DataType]) -> Result<Vec<DataType>> {
        self.inner.coerce_types(arg_types)
    }

    fn reverse_expr(&self) -> ReversedUDAF {
        ReversedUDAF::Identical
    }

    fn value_from_stats(&self, statistics_args: &StatisticsArgs<'_>) -> Option<ScalarValue> {
        self.inner.value_from_stats(statistics_args)
    }

    fn documentation(&self) -> Option<&Documentation> {
        self.inner.documentation()
    }

    fn set_monotonicity(&self, data_type: &DataType) -> SetMonotonicity {
        self.inner.inner().set_monotonicity(data_type)
    }
}

/// Accumulator of floats over that of their ranks. Its state is a float, too.
#[derive(Debug)]
struct RankAccumulator {
    inner: Box<dyn Accumulator>,
    data_type: DataType,
}

impl Accumulator for RankAccumulator {
    fn update_batch(&mut self, values: &[ArrayRef]) -> Result<()> {
        self.inner.update_batch(&all_ranks(values))
    }

    fn evaluate(&mut self) -> Result<ScalarValue> {
        Ok(scalar_float(&self.inner.evaluate()?, &self.data_type))
    }

    fn size(&self) -> usize {
        size_of_val(self) + self.inner.size()
    }

    fn state(&mut self) -> Result<Vec<ScalarValue>> {
        Ok(self.inner.state()?.iter().map(|state| scalar_float(state, &self.data_type)).collect())
    }

    fn merge_batch(&mut self, states: &[ArrayRef]) -> Result<()> {
        self.inner.merge_batch(&all_ranks(states))
    }

    fn retract_batch(&mut self, values: &[ArrayRef]) -> Result<()> {
        self.inner.retract_batch(&all_ranks(values))
    }

    fn supports_retract_batch(&self) -> bool {
        self.inner.supports_retract_batch()
    }
}

/// The same of many groups.
struct RankGroups {
    inner: Box<dyn GroupsAccumulator>,
    data_type: DataType,
}

impl RankGroups {
    fn states(&self, ranks: &[ArrayRef]) -> Vec<ArrayRef> {
        ranks.iter().map(|ranks| floats(ranks, &self.data_type)).collect()
    }
}

impl GroupsAccumulator for RankGroups {
    fn update_batch(
        &mut self,
        values: &[ArrayRef],
        group_indices: &[usize],
        opt_filter: Option<&BooleanArray>,
        total_num_groups: usize,
    ) -> Result<()> {
        self.inner.update_batch(&all_ranks(values), group_indices, opt_filter, total_num_groups)
    }

    fn evaluate(&mut self, emit_to: EmitTo) -> Result<ArrayRef> {
        Ok(floats(&self.inner.evaluate(emit_to)?, &self.data_type))
    }

    fn state(&mut self, emit_to: EmitTo) -> Result<Vec<ArrayRef>> {
        let ranks = self.inner.state(emit_to)?;
        Ok(self.states(&ranks))
    }

    fn merge_batch(
        &mut self,
        values: &[ArrayRef],
        group_indices: &[usize],
        total_num_groups: usize,
    ) -> Result<()> {
        self.inner.merge_batch(&all_ranks(values), group_indices, total_num_groups)
    }

    fn convert_to_state(
        &self,
        values: &[ArrayRef],
        opt_filter: Option<&BooleanArray>,
    ) -> Result<Vec<ArrayRef>> {
        Ok(self.states(&self.inner.convert_to_state(&all_ranks(values), opt_filter)?))
    }

    fn size(&self) -> usize {
        self.inner.size()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranks_have_the_order_of_floats_with_nan_at_the_end() {
        let ascending = [f64::NEG_INFINITY, f64::MIN, -1.5, -0.0, 0.0, f64::MIN_POSITIVE, 1.5, f64::INFINITY];
        assert!(ascending.windows(2).all(|pair| rank(pair[0]) < rank(pair[1])));
        assert!(ascending.iter().all(|value| float(rank(*value)).to_bits() == value.to_bits()));
        for nan in [f64::NAN, -f64::NAN, f64::from_bits(0x7FF0_0000_0000_0001)] {
            assert_eq!(rank(nan), i64::MAX);
            assert_eq!(float(rank(nan)).to_bits(), f64::NAN.to_bits());
        }
    }
}
