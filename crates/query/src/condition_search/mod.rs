//! Evaluation of a hold's condition: matching slots and times, and the elements of a slot that a hold
//! keeps.

mod span;
mod window;

pub use span::{Roll, Sample, Span, merged};

use crate::columns::CommonColumn;
use crate::session::STREAM;
use crate::validation;
use datafusion::arrow::array::{AsArray, PrimitiveArray, RecordBatch};
use datafusion::arrow::datatypes::{Int64Type, TimestampNanosecondType, UInt64Type};
use datafusion::common::tree_node::TreeNode;
use datafusion::common::{TableReference, plan_err};
use datafusion::dataframe::DataFrame;
use datafusion::error::Result;
use datafusion::functions_aggregate::expr_fn::{count, max, min};
use datafusion::logical_expr::{Expr, Volatility, lit};
use datafusion::prelude::SessionContext;
use datafusion::scalar::ScalarValue;
use futures::StreamExt;
use holdfast_base::{Ordinal, Sequence, Timestamp};
use std::time::Duration;

/// A column that every stream has.
fn column(fixed: CommonColumn) -> Expr {
    Expr::Column(datafusion::common::Column::from_name(fixed.name()))
}

fn instant(time: Timestamp) -> Expr {
    lit(ScalarValue::TimestampNanosecond(Some(time.0), Some("UTC".into())))
}

/// A condition to search for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Search {
    /// In SQL, over the columns of a stream's table.
    pub condition: String,
    /// A condition with aggregates over what was found in so long a time: only where it holds, something counts as found.
    pub when: Option<(String, Duration)>,
}

/// Elements that a search considers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SearchScope {
    /// Arrived in this time.
    pub times: Span,
    /// From the first, without the second.
    pub ordinals: (Ordinal, Ordinal),
    /// In slots from this one on.
    pub slots: Sequence,
}

impl SearchScope {
    /// All there are.
    pub const ALL: Self = Self {
        times: (Timestamp::MIN, Timestamp::MAX),
        ordinals: (Ordinal(0), Ordinal(u64::MAX)),
        slots: Sequence(0),
    };
}

/// Matches of a search in one slot.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SlotMatches {
    /// The slot's sequence.
    pub slot: Sequence,
    /// So many elements.
    pub elements: u64,
    /// When the first and the last of them arrived; the first with the time over which a window looks back.
    pub span: Span,
    /// The first of them.
    pub first: Ordinal,
}

impl Search {
    /// Whether a stream can be asked for it at all.
    pub async fn check(&self, context: &SessionContext, stream: &str) -> Result<()> {
        let table = context.table(TableReference::partial(STREAM, stream)).await?;
        let condition = self.parsed(context, &table)?;
        table.filter(condition).map(|_| ())
    }

    /// The same of the condition over several, where there is one.
    pub async fn check_when(&self, context: &SessionContext, stream: &str) -> Result<()> {
        let Some((when, back)) = &self.when else { return Ok(()) };
        let table = context.table(TableReference::partial(STREAM, stream)).await?;
        let condition = self.parsed(context, &table)?;
        window::check(context, table, &condition, when, *back).await
    }

    fn parsed(&self, context: &SessionContext, table: &DataFrame) -> Result<Expr> {
        let condition = validation::condition(context, &self.condition, table.schema())?;
        let of_several =
            |expr: &Expr| Ok(matches!(expr, Expr::AggregateFunction(_) | Expr::WindowFunction(_)));
        if condition.exists(of_several)? {
            return plan_err!(
                "cannot use `{}` as a condition on an element: it has an aggregate or a window function; use --when",
                self.condition
            );
        }
        // What was found must be found again, whenever somebody looks.
        let changes = |expr: &Expr| {
            Ok(
                matches!(expr, Expr::ScalarFunction(call) if call.func.signature().volatility != Volatility::Immutable),
            )
        };
        if condition.exists(changes)? {
            return plan_err!(
                "cannot use `{}` in a hold: non-deterministic function not allowed; use --from or --last",
                self.condition
            );
        }
        Ok(condition)
    }

    /// What there is of it among a stream's elements, slot by slot.
    pub async fn found(
        &self,
        context: &SessionContext,
        stream: &str,
        among: &SearchScope,
    ) -> Result<Vec<SlotMatches>> {
        let frame = self.hits(context, stream, among).await?;
        let (slot, time, ordinal) =
            (column(CommonColumn::Slot), column(CommonColumn::Time), column(CommonColumn::Ordinal));
        let frame = frame.aggregate(
            vec![slot],
            vec![
                count(lit(1)).alias("elements"),
                min(time.clone()).alias("first_time"),
                max(time).alias("last_time"),
                min(ordinal).alias("first_ordinal"),
            ],
        )?;
        let back = self.when.as_ref().map_or(Duration::ZERO, |(_, within)| *within);
        let mut found = Vec::new();
        for batch in frame.collect().await? {
            let times = |at: usize| batch.column(at).as_primitive::<TimestampNanosecondType>();
            let (slots, first, last) = (words(&batch, 0), times(2), times(3));
            let (elements, ordinals) = (batch.column(1).as_primitive::<Int64Type>(), words(&batch, 4));
            found.extend((0..batch.num_rows()).map(|row| SlotMatches {
                slot: Sequence(slots.value(row)),
                elements: elements.value(row) as u64,
                span: (Timestamp(first.value(row)) - back, Timestamp(last.value(row))),
                first: Ordinal(ordinals.value(row)),
            }));
        }
        found.sort_unstable_by_key(|found| found.slot);
        Ok(found)
    }

    /// When each of them arrived, with the time over which a window looks back and with what is around; in order, and apart
    /// from each other.
    pub async fn spans(
        &self,
        context: &SessionContext,
        stream: &str,
        among: &SearchScope,
        roll: Roll,
    ) -> Result<Vec<Span>> {
        let back = self.when.as_ref().map_or(Duration::ZERO, |(_, back)| *back);
        let hits = self.hits(context, stream, among).await?;
        let mut batches = hits.select(vec![column(CommonColumn::Time)])?.execute_stream().await?;
        let mut spans = Vec::new();
        while let Some(batch) = batches.next().await {
            let batch = batch?;
            let times = batch.column(0).as_primitive::<TimestampNanosecondType>().values().iter();
            spans.extend(times.map(|time| roll.around((Timestamp(*time) - back, Timestamp(*time)))));
            spans = merged(spans);
        }
        Ok(spans)
    }

    /// The elements that were found.
    async fn hits(&self, context: &SessionContext, stream: &str, among: &SearchScope) -> Result<DataFrame> {
        let table = context.table(TableReference::partial(STREAM, stream)).await?;
        let condition = self.parsed(context, &table)?;
        let own = among.of(table.clone())?.filter(condition.clone())?;
        let Some((when, back)) = &self.when else { return Ok(own) };
        // What came shortly before the first of them counts, too, and what came after the last does not.
        // With the ordinals: whoever passes over what the condition fails of tells them.
        let (time, ordinal) = (column(CommonColumn::Time), column(CommonColumn::Ordinal));
        let ends = vec![min(time.clone()), max(time), max(ordinal)];
        let ends = own.aggregate(Vec::new(), ends)?.collect().await?;
        let end = |at: usize| {
            let end = ends.first()?.column(at).as_primitive_opt::<TimestampNanosecondType>()?;
            end.iter().next().flatten().map(Timestamp)
        };
        let (first, last) = end(0).zip(end(1)).unwrap_or((Timestamp::MAX, Timestamp::MAX));
        let around = timed(table, (first - *back, last))?;
        among.of(window::fires(context, around, &condition, when, *back)?)
    }
}

impl SearchScope {
    /// What of a frame is among them.
    fn of(&self, frame: DataFrame) -> Result<DataFrame> {
        let mut frame = timed(frame, self.times)?;
        let (ordinal, (first, end)) = (column(CommonColumn::Ordinal), self.ordinals);
        if first > Ordinal(0) {
            frame = frame.filter(ordinal.clone().gt_eq(lit(first.0)))?;
        }
        if end < Ordinal(u64::MAX) {
            frame = frame.filter(ordinal.lt(lit(end.0)))?;
        }
        if self.slots > Sequence(0) {
            frame = frame.filter(column(CommonColumn::Slot).gt_eq(lit(self.slots.0)))?;
        }
        Ok(frame)
    }
}

/// Elements of some slots that a hold keeps.
#[derive(Clone, Copy, Debug)]
pub struct ElementSelection<'a> {
    /// The slots, in order and apart: the first and the last of those that follow each other.
    pub slots: &'a [(Sequence, Sequence)],
    /// When what is in them arrived.
    pub times: Span,
    /// Only those that meet it.
    pub condition: Option<&'a str>,
    /// Only those that arrived in one of these stretches.
    pub spans: Option<&'a [Span]>,
}

impl ElementSelection<'_> {
    /// Those of a stream, by slot and ordinal, and their bytes together.
    pub async fn elements(
        &self,
        context: &SessionContext,
        stream: &str,
    ) -> Result<(Vec<(Sequence, Ordinal)>, u64)> {
        let mut frame = timed(context.table(TableReference::partial(STREAM, stream)).await?, self.times)?;
        let (slot, ordinal) = (column(CommonColumn::Slot), column(CommonColumn::Ordinal));
        let within = |(first, last): &(Sequence, Sequence)| slot.clone().between(lit(first.0), lit(last.0));
        frame = frame.filter(any_of(self.slots, &within))?;
        if let Some(condition) = self.condition {
            let condition = validation::condition(context, condition, frame.schema())?;
            frame = frame.filter(condition)?;
        }
        if let Some(spans) = self.spans {
            let within =
                |(first, last): &Span| column(CommonColumn::Time).between(instant(*first), instant(*last));
            frame = frame.filter(any_of(spans, &within))?;
        }
        let columns = vec![slot, ordinal, column(CommonColumn::Size)];
        let mut batches = frame.select(columns)?.execute_stream().await?;
        let (mut kept, mut bytes) = (Vec::new(), 0);
        while let Some(batch) = batches.next().await {
            let batch = batch?;
            bytes += words(&batch, 2).values().iter().sum::<u64>();
            let pairs = words(&batch, 0).values().iter().zip(words(&batch, 1).values());
            kept.extend(pairs.map(|(slot, ordinal)| (Sequence(*slot), Ordinal(*ordinal))));
        }
        kept.sort_unstable();
        Ok((kept, bytes))
    }
}

/// The last element of a stream that ends in a slot.
pub async fn last_of_slot(context: &SessionContext, stream: &str, slot: Sequence) -> Result<Option<Ordinal>> {
    let frame = context.table(TableReference::partial(STREAM, stream)).await?;
    let frame = frame.filter(column(CommonColumn::Slot).eq(lit(slot.0)))?;
    let last = frame.aggregate(Vec::new(), vec![max(column(CommonColumn::Ordinal))])?.collect().await?;
    let last = last.iter().find_map(|batch| words(batch, 0).iter().next().flatten());
    Ok(last.map(Ordinal))
}

fn words(batch: &RecordBatch, at: usize) -> &PrimitiveArray<UInt64Type> {
    batch.column(at).as_primitive::<UInt64Type>()
}

/// Whether an element is within one of these: as a tree that is no deeper than it must be.
fn any_of<T>(spans: &[T], within: &dyn Fn(&T) -> Expr) -> Expr {
    match spans {
        [] => lit(false),
        [one] => within(one),
        many => {
            let (left, right) = many.split_at(many.len() / 2);
            any_of(left, within).or(any_of(right, within))
        }
    }
}

/// What of a frame arrived in a stretch of time.
fn timed(frame: DataFrame, (from, to): Span) -> Result<DataFrame> {
    let mut frame = frame;
    if from != Timestamp::MIN {
        frame = frame.filter(column(CommonColumn::Time).gt_eq(instant(from)))?;
    }
    if to != Timestamp::MAX {
        frame = frame.filter(column(CommonColumn::Time).lt_eq(instant(to)))?;
    }
    Ok(frame)
}
