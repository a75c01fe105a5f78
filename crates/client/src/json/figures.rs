//! Figures of a status as JSON: one member for each row of its table.

use super::time;
use holdfast_base::Timestamp;
use holdfast_protocol::wire::{FigureValue, Figures};
use serde::ser::SerializeMap as _;
use serde::{Serialize, Serializer};

/// All figures of a status, to be flattened into an object or to be one of its own.
#[derive(Debug)]
pub struct FiguresJson<'a, T>(pub &'a T);

impl<T: Figures> Serialize for FiguresJson<'_, T> {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        /// A time in the form of all times in JSON.
        #[derive(Serialize)]
        #[serde(transparent)]
        struct Time(#[serde(serialize_with = "time")] Timestamp);

        let mut map = to.serialize_map(Some(T::TABLE.len()))?;
        for figure in T::TABLE {
            match (figure.value)(self.0) {
                FigureValue::Count(count) => map.serialize_entry(figure.key, &count)?,
                FigureValue::Span(span) => map.serialize_entry(figure.key, &span.as_secs_f64())?,
                FigureValue::Time(at) => map.serialize_entry(figure.key, &Time(at))?,
            }
        }
        map.end()
    }
}
