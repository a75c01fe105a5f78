//! Aggregates `sum` over whole numbers and lengths of time, and `avg` over lengths, in 128 bits. Those of the engine
//! wrap around; here a sum that does not fit its type is an error.

use datafusion::arrow::array::{Array, ArrayRef, AsArray, BooleanArray, PrimitiveArray};
use datafusion::arrow::compute::cast;
use datafusion::arrow::datatypes::{
    ArrowPrimitiveType, DataType, Decimal128Type, Field, FieldRef, Int64Type, UInt64Type,
};
use datafusion::common::{HashMap, Result, ScalarValue, exec_err};
use datafusion::logical_expr::expr::AggregateFunctionParams;
use datafusion::logical_expr::expr::WindowFunctionParams;
use datafusion::logical_expr::function::{AccumulatorArgs, StateFieldsArgs};
use datafusion::logical_expr::utils::{AggregateOrderSensitivity, format_state_name};
use datafusion::logical_expr::{
    Accumulator, AggregateUDF, AggregateUDFImpl, Documentation, EmitTo, GroupsAccumulator, ReversedUDAF,
    SetMonotonicity, Signature,
};
use std::sync::Arc;

/// Type of a partial total.
const STATE: DataType = DataType::Decimal128(38, 0);

/// Replacements of the engine's aggregates, under the same names.
pub(super) fn totals(engines: &[Arc<AggregateUDF>]) -> Vec<Arc<AggregateUDF>> {
    let exact = |inner: &Arc<AggregateUDF>| {
        let is_average = match inner.name() {
            "sum" => false,
            "avg" => true,
            _ => return None,
        };
        Some(Arc::new(AggregateUDF::from(ExactTotal { inner: Arc::clone(inner), is_average })))
    };
    engines.iter().filter_map(exact).collect()
}

/// The engine's aggregate, with totals of its own for numbers of 64 bits.
#[derive(Debug, PartialEq, Eq, Hash)]
struct ExactTotal {
    inner: Arc<AggregateUDF>,
    is_average: bool,
}

impl ExactTotal {
    /// Returns true for results whose totals are computed here.
    fn is_exact(&self, of: &DataType, is_distinct: bool) -> bool {
        match of {
            DataType::Duration(_) => !self.is_average || !is_distinct,
            DataType::Int64 | DataType::UInt64 => !self.is_average,
            _ => false,
        }
    }

    fn accumulator_of(&self, args: &AccumulatorArgs<'_>) -> Option<Box<dyn Accumulator>> {
        let of = args.return_field.data_type();
        if !self.is_exact(of, args.is_distinct) {
            return None;
        }
        let (of, is_average) = (of.clone(), self.is_average);
        if args.is_distinct {
            return Some(Box::new(DistinctTotal { of, counts: HashMap::default(), total: 0 }));
        }
        Some(Box::new(Total { of, amount: 0, values: 0, is_average }))
    }
}

impl AggregateUDFImpl for ExactTotal {
    fn name(&self) -> &str {
        self.inner.name()
    }

    fn aliases(&self) -> &[String] {
        self.inner.aliases()
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

    fn state_fields(&self, args: StateFieldsArgs<'_>) -> Result<Vec<FieldRef>> {
        if !self.is_exact(args.return_type(), args.is_distinct) {
            return self.inner.state_fields(args);
        }
        if args.is_distinct {
            let name = format_state_name(args.name, "sum distinct");
            return Ok(vec![Arc::new(Field::new_list(name, Field::new_list_field(STATE, true), false))]);
        }
        let mut fields = vec![Arc::new(Field::new(format_state_name(args.name, "sum"), STATE, true))];
        if self.is_average {
            let name = format_state_name(args.name, "count");
            fields.push(Arc::new(Field::new(name, DataType::UInt64, true)));
        }
        Ok(fields)
    }

    fn accumulator(&self, args: AccumulatorArgs<'_>) -> Result<Box<dyn Accumulator>> {
        match self.accumulator_of(&args) {
            Some(accumulator) => Ok(accumulator),
            None => self.inner.accumulator(args),
        }
    }

    fn create_sliding_accumulator(&self, args: AccumulatorArgs<'_>) -> Result<Box<dyn Accumulator>> {
        match self.accumulator_of(&args) {
            Some(accumulator) => Ok(accumulator),
            None => self.inner.create_sliding_accumulator(args),
        }
    }

    fn groups_accumulator_supported(&self, args: AccumulatorArgs<'_>) -> bool {
        if self.is_average && self.is_exact(args.return_field.data_type(), args.is_distinct) {
            return false;
        }
        self.inner.groups_accumulator_supported(args)
    }

    fn create_groups_accumulator(&self, args: AccumulatorArgs<'_>) -> Result<Box<dyn GroupsAccumulator>> {
        let of = args.return_field.data_type();
        if self.is_average || !self.is_exact(of, args.is_distinct) {
            return self.inner.create_groups_accumulator(args);
        }
        Ok(Box::new(GroupTotals { of: of.clone(), totals: Vec::new(), has_values: Vec::new() }))
    }

    fn coerce_types(&self, arg_types: &[DataType]) -> Result<Vec<DataType>> {
        self.inner.coerce_types(arg_types)
    }

    fn reverse_expr(&self) -> ReversedUDAF {
        ReversedUDAF::Identical
    }

    fn order_sensitivity(&self) -> AggregateOrderSensitivity {
        AggregateOrderSensitivity::Insensitive
    }

    fn documentation(&self) -> Option<&Documentation> {
        self.inner.documentation()
    }

    fn set_monotonicity(&self, data_type: &DataType) -> SetMonotonicity {
        self.inner.inner().set_monotonicity(data_type)
    }
}

/// Total of a type, if it fits.
fn scalar(total: Option<i128>, of: &DataType) -> Result<ScalarValue> {
    let fits = |total: i128| match of {
        DataType::UInt64 => u64::try_from(total).is_ok(),
        _ => i64::try_from(total).is_ok(),
    };
    if let Some(total) = total.filter(|total| !fits(*total)) {
        if matches!(of, DataType::Duration(_)) {
            return exec_err!(
                "cannot compute a sum: the total of the lengths of time exceeds 292 years; sum their seconds by \
                 extract(epoch from …)"
            );
        }
        return exec_err!(
            "cannot compute a sum: the total {total} exceeds 64 bits; convert the values to decimal(38, 0)"
        );
    }
    match of {
        DataType::UInt64 => Ok(ScalarValue::UInt64(total.map(|total| total as u64))),
        DataType::Int64 => Ok(ScalarValue::Int64(total.map(|total| total as i64))),
        _ => ScalarValue::Int64(total.map(|total| total as i64)).cast_to(of),
    }
}

/// State of a total.
fn state(total: Option<i128>) -> ScalarValue {
    ScalarValue::Decimal128(total, 38, 0)
}

/// Values as numbers of 64 bits, which are of a length of time its units.
fn numbers(array: &ArrayRef) -> Result<ArrayRef> {
    match array.data_type() {
        DataType::Duration(_) => Ok(cast(array, &DataType::Int64)?),
        _ => Ok(Arc::clone(array)),
    }
}

/// Sum of an array. Upper and lower halves are summed apart, which the processor does for several values at once.
fn total<T: ArrowPrimitiveType>(
    array: &PrimitiveArray<T>,
    upper: impl Fn(T::Native) -> i64,
    lower: impl Fn(T::Native) -> u64,
) -> i128 {
    /// The halves of so many values do not exceed 64 bits.
    const CHUNK: usize = 1 << 30;
    let sum = |values: &[T::Native]| {
        let chunks = values.chunks(CHUNK).map(|chunk| {
            let upper: i64 = chunk.iter().map(|value| upper(*value)).sum();
            let lower: u64 = chunk.iter().map(|value| lower(*value)).sum();
            (i128::from(upper) << 32) + i128::from(lower)
        });
        chunks.sum::<i128>()
    };
    match array.nulls().filter(|nulls| nulls.null_count() > 0) {
        None => sum(array.values()),
        Some(nulls) => nulls.valid_slices().map(|(from, to)| sum(&array.values()[from..to])).sum(),
    }
}

/// Sum of an array of values or states, and how many it has.
fn total_of(array: &ArrayRef) -> Result<(i128, usize)> {
    let array = numbers(array)?;
    let total = match array.data_type() {
        DataType::Int64 => {
            let lower = |value: i64| value as u64 & u64::from(u32::MAX);
            total(array.as_primitive::<Int64Type>(), |value| value >> 32, lower)
        }
        DataType::UInt64 => {
            let lower = |value: u64| value & u64::from(u32::MAX);
            total(array.as_primitive::<UInt64Type>(), |value| (value >> 32) as i64, lower)
        }
        _ => array.as_primitive::<Decimal128Type>().iter().flatten().sum(),
    };
    Ok((total, array.len() - array.null_count()))
}

/// Each value of an array, in 128 bits.
fn each(array: &ArrayRef, add: impl FnMut(usize, i128)) -> Result<()> {
    fn of<T: ArrowPrimitiveType<Native: Into<i128>>>(array: &ArrayRef, mut add: impl FnMut(usize, i128)) {
        let array = array.as_primitive::<T>();
        if array.null_count() == 0 {
            array.values().iter().enumerate().for_each(|(row, value)| add(row, (*value).into()));
            return;
        }
        for (row, value) in array.iter().enumerate() {
            if let Some(value) = value {
                add(row, value.into());
            }
        }
    }
    let array = numbers(array)?;
    match array.data_type() {
        DataType::Int64 => of::<Int64Type>(&array, add),
        DataType::UInt64 => of::<UInt64Type>(&array, add),
        _ => of::<Decimal128Type>(&array, add),
    }
    Ok(())
}

/// Total of one group, also over a sliding window.
#[derive(Debug)]
struct Total {
    of: DataType,
    amount: i128,
    values: u64,
    is_average: bool,
}

impl Total {
    fn some(&self) -> Option<i128> {
        (self.values > 0).then_some(self.amount)
    }
}

impl Accumulator for Total {
    fn update_batch(&mut self, values: &[ArrayRef]) -> Result<()> {
        for array in values {
            let (total, values) = total_of(array)?;
            self.amount += total;
            self.values += values as u64;
        }
        Ok(())
    }

    fn evaluate(&mut self) -> Result<ScalarValue> {
        let values = if self.is_average { i128::from(self.values) } else { 1 };
        scalar(self.some().map(|total| total / values), &self.of)
    }

    fn size(&self) -> usize {
        size_of_val(self)
    }

    fn state(&mut self) -> Result<Vec<ScalarValue>> {
        let mut states = vec![state(self.some())];
        if self.is_average {
            states.push(ScalarValue::UInt64(Some(self.values)));
        }
        Ok(states)
    }

    fn merge_batch(&mut self, states: &[ArrayRef]) -> Result<()> {
        let [totals, counts] = states else { return self.update_batch(states) };
        self.amount += total_of(totals)?.0;
        self.values += total_of(counts)?.0 as u64;
        Ok(())
    }

    fn retract_batch(&mut self, values: &[ArrayRef]) -> Result<()> {
        for array in values {
            let (total, values) = total_of(array)?;
            self.amount -= total;
            self.values -= values as u64;
        }
        Ok(())
    }

    fn supports_retract_batch(&self) -> bool {
        true
    }
}

/// Total of the distinct values of a group, also over a sliding window.
#[derive(Debug)]
struct DistinctTotal {
    of: DataType,
    counts: HashMap<i128, u64>,
    total: i128,
}

impl DistinctTotal {
    fn add(&mut self, value: i128) {
        let count = self.counts.entry(value).or_insert(0);
        if *count == 0 {
            self.total += value;
        }
        *count += 1;
    }
}

impl Accumulator for DistinctTotal {
    fn update_batch(&mut self, values: &[ArrayRef]) -> Result<()> {
        values.iter().try_for_each(|array| each(array, |_, value| self.add(value)))
    }

    fn evaluate(&mut self) -> Result<ScalarValue> {
        scalar((!self.counts.is_empty()).then_some(self.total), &self.of)
    }

    fn size(&self) -> usize {
        size_of_val(self) + self.counts.capacity() * size_of::<(i128, u64)>()
    }

    fn state(&mut self) -> Result<Vec<ScalarValue>> {
        let values: Vec<ScalarValue> = self.counts.keys().map(|value| state(Some(*value))).collect();
        Ok(vec![ScalarValue::List(ScalarValue::new_list_nullable(&values, &STATE))])
    }

    fn merge_batch(&mut self, states: &[ArrayRef]) -> Result<()> {
        for state in states {
            for values in state.as_list::<i32>().iter().flatten() {
                each(&values, |_, value| self.add(value))?;
            }
        }
        Ok(())
    }

    fn retract_batch(&mut self, values: &[ArrayRef]) -> Result<()> {
        let mut remove = |value: i128| {
            if let Some(count) = self.counts.get_mut(&value) {
                *count -= 1;
                if *count == 0 {
                    self.counts.remove(&value);
                    self.total -= value;
                }
            }
        };
        values.iter().try_for_each(|array| each(array, |_, value| remove(value)))
    }

    fn supports_retract_batch(&self) -> bool {
        true
    }
}

/// Totals of many groups.
struct GroupTotals {
    of: DataType,
    totals: Vec<i128>,
    has_values: Vec<bool>,
}

impl GroupTotals {
    /// Takes totals out as an array of states.
    fn take(&mut self, emit_to: EmitTo) -> Result<PrimitiveArray<Decimal128Type>> {
        let totals = emit_to.take_needed(&mut self.totals);
        let has_values = emit_to.take_needed(&mut self.has_values);
        let nulls = has_values.iter().any(|has| !has).then(|| has_values.into());
        Ok(PrimitiveArray::new(totals.into(), nulls).with_precision_and_scale(38, 0)?)
    }
}

impl GroupsAccumulator for GroupTotals {
    fn update_batch(
        &mut self,
        values: &[ArrayRef],
        group_indices: &[usize],
        opt_filter: Option<&BooleanArray>,
        total_num_groups: usize,
    ) -> Result<()> {
        self.totals.resize(total_num_groups, 0);
        self.has_values.resize(total_num_groups, false);
        for array in values {
            let (totals, has_values) = (&mut self.totals, &mut self.has_values);
            let mut add = |row: usize, value: i128| {
                let group = group_indices[row];
                totals[group] += value;
                has_values[group] = true;
            };
            match opt_filter {
                None => each(array, add)?,
                Some(filter) => each(array, |row, value| {
                    if filter.is_valid(row) && filter.value(row) {
                        add(row, value);
                    }
                })?,
            }
        }
        Ok(())
    }

    fn evaluate(&mut self, emit_to: EmitTo) -> Result<ArrayRef> {
        let totals = self.take(emit_to)?;
        if let Some(total) = totals.iter().flatten().find(|total| match self.of {
            DataType::UInt64 => u64::try_from(*total).is_err(),
            _ => i64::try_from(*total).is_err(),
        }) {
            scalar(Some(total), &self.of)?;
        }
        if self.of == DataType::UInt64 {
            let totals: PrimitiveArray<UInt64Type> = totals.unary(|total| total as u64);
            return Ok(Arc::new(totals));
        }
        let totals: PrimitiveArray<Int64Type> = totals.unary(|total| total as i64);
        Ok(if self.of == DataType::Int64 { Arc::new(totals) } else { cast(&totals, &self.of)? })
    }

    fn state(&mut self, emit_to: EmitTo) -> Result<Vec<ArrayRef>> {
        Ok(vec![Arc::new(self.take(emit_to)?)])
    }

    fn merge_batch(
        &mut self,
        values: &[ArrayRef],
        group_indices: &[usize],
        total_num_groups: usize,
    ) -> Result<()> {
        self.update_batch(values, group_indices, None, total_num_groups)
    }

    fn convert_to_state(
        &self,
        values: &[ArrayRef],
        opt_filter: Option<&BooleanArray>,
    ) -> Result<Vec<ArrayRef>> {
        let states = values.iter().map(|array| {
            let mut states: Vec<Option<i128>> = vec![None; array.len()];
            each(array, |row, value| {
                if opt_filter.is_none_or(|filter| filter.is_valid(row) && filter.value(row)) {
                    states[row] = Some(value);
                }
            })?;
            let states = PrimitiveArray::<Decimal128Type>::from(states).with_precision_and_scale(38, 0)?;
            Ok(Arc::new(states) as ArrayRef)
        });
        states.collect()
    }

    fn size(&self) -> usize {
        self.totals.capacity() * size_of::<i128>() + self.has_values.capacity()
    }
}
