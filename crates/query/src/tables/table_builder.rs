//! Builder of a small record batch from a list of values.

use crate::columns::arrow_type;
use datafusion::arrow::array::{
    ArrayRef, BooleanArray, Float64Array, RecordBatch, StringViewArray, TimestampNanosecondArray, UInt64Array,
};
use datafusion::arrow::datatypes::{Field, Schema};
use datafusion::arrow::error::ArrowError;
use holdfast_attributes::Type;
use holdfast_base::Timestamp;
use std::sync::Arc;
use std::time::Duration;

/// Columns over the same things.
pub(super) struct TableBuilder<'a, T> {
    things: &'a [T],
    columns: Vec<(Field, ArrayRef)>,
}

impl<'a, T> TableBuilder<'a, T> {
    pub(super) fn of(things: &'a [T]) -> Self {
        Self { things, columns: Vec::new() }
    }

    fn column(mut self, name: &str, kind: Type, array: ArrayRef) -> Self {
        self.columns.push((Field::new(name, arrow_type(kind), true), array));
        self
    }

    pub(super) fn number(self, name: &str, of: impl Fn(&T) -> Option<u64>) -> Self {
        let array = self.things.iter().map(of).collect::<UInt64Array>();
        self.column(name, Type::Uint, Arc::new(array))
    }

    /// A span, which is kept in nanoseconds.
    pub(super) fn seconds(self, name: &str, of: impl Fn(&T) -> Option<u64>) -> Self {
        let seconds = |thing| of(thing).map(|nanos| Duration::from_nanos(nanos).as_secs_f64());
        let array = self.things.iter().map(seconds).collect::<Float64Array>();
        self.column(name, Type::Float, Arc::new(array))
    }

    pub(super) fn text<S: AsRef<str>>(self, name: &str, of: impl Fn(&'a T) -> Option<S>) -> Self {
        let array = self.things.iter().map(of).collect::<StringViewArray>();
        self.column(name, Type::Text, Arc::new(array))
    }

    pub(super) fn time(self, name: &str, of: impl Fn(&T) -> Option<Timestamp>) -> Self {
        let times = self.things.iter().map(|thing| of(thing).map(|time| time.0));
        let array = times.collect::<TimestampNanosecondArray>().with_timezone("UTC");
        self.column(name, Type::Time, Arc::new(array))
    }

    pub(super) fn truth(self, name: &str, of: impl Fn(&T) -> bool) -> Self {
        let array = self.things.iter().map(|thing| Some(of(thing))).collect::<BooleanArray>();
        self.column(name, Type::Bool, Arc::new(array))
    }

    pub(super) fn finish(self) -> Result<RecordBatch, ArrowError> {
        let (fields, columns): (Vec<Field>, Vec<ArrayRef>) = self.columns.into_iter().unzip();
        RecordBatch::try_new(Arc::new(Schema::new(fields)), columns)
    }
}
