//! Functions of lengths of time, which analyzer rules put into a plan: the order of lengths as nanoseconds, and their
//! parts. As in `PostgreSQL`, a day has 24 hours and a month 30 days; in an epoch, twelve months have 365.25 days.

use datafusion::arrow::array::{ArrayRef, AsArray, Float64Array, Int32Array, Int64Array, PrimitiveArray};
use datafusion::arrow::compute::kernels::cast_utils::IntervalUnit as Part;
use datafusion::arrow::datatypes::{
    DataType, Decimal128Type, DurationMicrosecondType, DurationMillisecondType, DurationNanosecondType,
    DurationSecondType, Field, FieldRef, IntervalDayTimeType, IntervalMonthDayNanoType, IntervalUnit,
    IntervalYearMonthType, TimeUnit,
};
use datafusion::common::{Result, ScalarValue, exec_err, plan_err};
use datafusion::logical_expr::{
    ColumnarValue, ReturnFieldArgs, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature, Volatility,
};
use std::str::FromStr;
use std::sync::Arc;

const NANOS_OF_SECOND: i128 = 1_000_000_000;
const NANOS_OF_DAY: i128 = 86_400 * NANOS_OF_SECOND;
const DAYS_OF_MONTH: i128 = 30;
/// Twelve months of an epoch.
const NANOS_OF_YEAR: i128 = 365 * NANOS_OF_DAY + NANOS_OF_DAY / 4;
const MONTHS_OF_YEAR: i128 = 12;

/// Length of time by its fields.
#[derive(Clone, Copy, Debug, Default)]
struct Length {
    months: i128,
    days: i128,
    nanos: i128,
}

impl Length {
    fn of_nanos(nanos: i128) -> Self {
        Self { nanos, ..Self::default() }
    }

    /// The same length as days and what is left of one.
    fn split(self) -> Self {
        let Self { months, days, nanos } = self;
        Self { months, days: days + nanos / NANOS_OF_DAY, nanos: nanos % NANOS_OF_DAY }
    }

    fn nanoseconds(self) -> i128 {
        (self.months * DAYS_OF_MONTH + self.days) * NANOS_OF_DAY + self.nanos
    }

    fn epoch(self) -> f64 {
        let (years, months) = (self.months / MONTHS_OF_YEAR, self.months % MONTHS_OF_YEAR);
        let days = Self { months, ..self };
        (years * NANOS_OF_YEAR + days.nanoseconds()) as f64 / NANOS_OF_SECOND as f64
    }

    fn part(self, part: LengthPart) -> i128 {
        let seconds = self.nanos / NANOS_OF_SECOND;
        let of_minute = self.nanos % (60 * NANOS_OF_SECOND);
        let years = self.months / MONTHS_OF_YEAR;
        match part {
            LengthPart::Unit(Part::Century) => years / 100,
            LengthPart::Unit(Part::Decade) => years / 10,
            LengthPart::Unit(Part::Year) => years,
            LengthPart::Quarter => self.months % MONTHS_OF_YEAR / 3 + 1,
            LengthPart::Unit(Part::Month) => self.months % MONTHS_OF_YEAR,
            LengthPart::Unit(Part::Week) => self.days / 7,
            LengthPart::Unit(Part::Day) => self.days,
            LengthPart::Unit(Part::Hour) => seconds / 3600,
            LengthPart::Unit(Part::Minute) => seconds / 60 % 60,
            LengthPart::Unit(Part::Second) => seconds % 60,
            LengthPart::Unit(Part::Millisecond) => of_minute / 1_000_000,
            LengthPart::Unit(Part::Microsecond) => of_minute / 1000,
            LengthPart::Unit(Part::Nanosecond) | LengthPart::Epoch => of_minute,
        }
    }
}

/// Part of a length of time.
#[derive(Clone, Copy, Debug)]
enum LengthPart {
    Unit(Part),
    Quarter,
    Epoch,
}

impl LengthPart {
    fn named(name: &str) -> Result<Self> {
        let name = name.trim_matches(['\'', '"']);
        match (Part::from_str(name), name.to_ascii_lowercase().as_str()) {
            (Ok(part), _) => Ok(Self::Unit(part)),
            (_, "epoch") => Ok(Self::Epoch),
            (_, "quarter" | "qtr") => Ok(Self::Quarter),
            _ => plan_err!(
                "cannot extract `{name}` from a length of time: it has no such part; use epoch, year, month, day, hour, \
                 minute, second, millisecond, microsecond or nanosecond"
            ),
        }
    }
}

/// Returns true for types of lengths of time.
pub(crate) fn is_length(kind: &DataType) -> bool {
    matches!(kind, DataType::Interval(_) | DataType::Duration(_))
}

/// The lengths of an array.
fn lengths(array: &ArrayRef) -> Result<Vec<Option<Length>>> {
    macro_rules! durations {
        ($type:ty, $nanos:expr) => {{
            let nanos = |value: i64| Length::of_nanos(i128::from(value) * $nanos);
            array.as_primitive::<$type>().iter().map(|value| value.map(nanos)).collect()
        }};
    }
    Ok(match array.data_type() {
        DataType::Duration(TimeUnit::Second) => durations!(DurationSecondType, NANOS_OF_SECOND),
        DataType::Duration(TimeUnit::Millisecond) => durations!(DurationMillisecondType, 1_000_000),
        DataType::Duration(TimeUnit::Microsecond) => durations!(DurationMicrosecondType, 1000),
        DataType::Duration(TimeUnit::Nanosecond) => durations!(DurationNanosecondType, 1),
        DataType::Interval(IntervalUnit::YearMonth) => {
            let of = |months: i32| Length { months: months.into(), ..Length::default() };
            array.as_primitive::<IntervalYearMonthType>().iter().map(|value| value.map(of)).collect()
        }
        DataType::Interval(IntervalUnit::DayTime) => {
            let values = array.as_primitive::<IntervalDayTimeType>().iter();
            let of = |days: i32, milliseconds: i32| Length {
                months: 0,
                days: days.into(),
                nanos: i128::from(milliseconds) * 1_000_000,
            };
            values.map(|value| value.map(|value| of(value.days, value.milliseconds))).collect()
        }
        DataType::Interval(IntervalUnit::MonthDayNano) => {
            let values = array.as_primitive::<IntervalMonthDayNanoType>().iter();
            let of = |months: i32, days: i32, nanos: i64| Length {
                months: months.into(),
                days: days.into(),
                nanos: nanos.into(),
            };
            values.map(|value| value.map(|value| of(value.months, value.days, value.nanoseconds))).collect()
        }
        other => return exec_err!("cannot compute a length of time: {other} is none"),
    })
}

/// Applies a function to a column of lengths, or to one length.
fn over(
    value: &ColumnarValue,
    compute: impl Fn(Vec<Option<Length>>) -> Result<ArrayRef>,
) -> Result<ColumnarValue> {
    Ok(match value {
        ColumnarValue::Array(array) => ColumnarValue::Array(compute(lengths(array)?)?),
        ColumnarValue::Scalar(scalar) => {
            let array = compute(lengths(&scalar.to_array()?)?)?;
            ColumnarValue::Scalar(ScalarValue::try_from_array(&array, 0)?)
        }
    })
}

/// Function that gives a number in the order of lengths: their nanoseconds.
#[derive(Debug, PartialEq, Eq, Hash)]
pub(crate) struct LengthOrder {
    signature: Signature,
}

impl LengthOrder {
    /// Makes the function of lengths.
    pub(crate) fn function() -> ScalarUDF {
        ScalarUDF::from(Self { signature: Signature::any(1, Volatility::Immutable) })
    }
}

impl ScalarUDFImpl for LengthOrder {
    fn name(&self) -> &'static str {
        "length_order"
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, _types: &[DataType]) -> Result<DataType> {
        Ok(DataType::Decimal128(38, 0))
    }

    fn is_strict(&self) -> bool {
        true
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let [value] = args.args.as_slice() else {
            return exec_err!("cannot call length_order: it takes one argument");
        };
        over(value, |lengths| {
            let nanos = lengths.into_iter().map(|length| length.map(Length::nanoseconds));
            let nanos: PrimitiveArray<Decimal128Type> = nanos.collect();
            Ok(Arc::new(nanos.with_precision_and_scale(38, 0)?))
        })
    }
}

/// Function that gives a part of a length, in the place of the engine's `date_part`.
#[derive(Debug, PartialEq, Eq, Hash)]
pub(crate) struct PartOfLength {
    to: DataType,
    signature: Signature,
}

impl PartOfLength {
    /// Makes the function with the type that the engine's has.
    pub(crate) fn function(to: DataType) -> ScalarUDF {
        ScalarUDF::from(Self { to, signature: Signature::any(2, Volatility::Immutable) })
    }
}

impl ScalarUDFImpl for PartOfLength {
    fn name(&self) -> &'static str {
        "length_part"
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, _types: &[DataType]) -> Result<DataType> {
        Ok(self.to.clone())
    }

    fn return_field_from_args(&self, args: ReturnFieldArgs<'_>) -> Result<FieldRef> {
        let is_nullable = args.arg_fields.iter().any(|field| field.is_nullable());
        Ok(Arc::new(Field::new(self.name(), self.to.clone(), is_nullable)))
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let [ColumnarValue::Scalar(part), value] = args.args.as_slice() else {
            return exec_err!("cannot call length_part: it takes the name of a part and a length of time");
        };
        let Some(Some(part)) = part.try_as_str() else {
            return exec_err!("cannot call length_part: the name of a part is null");
        };
        let part = LengthPart::named(part)?;
        // A difference of times has no days of its own.
        let has_days = matches!(value.data_type(), DataType::Interval(_));
        let of = |length: Length| if has_days { length } else { length.split() };
        over(value, |lengths| {
            let lengths = lengths.into_iter().map(|length| length.map(of));
            Ok(match self.to {
                DataType::Float64 => {
                    Arc::new(lengths.map(|length| length.map(Length::epoch)).collect::<Float64Array>())
                }
                DataType::Int64 => {
                    let parts = lengths.map(|length| length.map(|length| length.part(part) as i64));
                    Arc::new(parts.collect::<Int64Array>())
                }
                _ => {
                    let parts = lengths.map(|length| length.map(|length| length.part(part) as i32));
                    Arc::new(parts.collect::<Int32Array>())
                }
            })
        })
    }
}
