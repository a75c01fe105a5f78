//! Table function `nearest('trigger', 'samples', interval '20 milliseconds')`: each element of one stream
//! beside the element of another that is nearest in time. The engine has no such join in this release.

mod exec;

use crate::address_literals::text_of;
use crate::columns::CommonColumn;
use crate::tables::Tables;
use datafusion::arrow::datatypes::{Field, Schema as ArrowSchema, SchemaRef};
use datafusion::catalog::{Session, TableFunctionArgs, TableFunctionImpl, TableProvider};
use datafusion::common::{Column, DataFusionError, Result, ScalarValue, plan_datafusion_err, plan_err};
use datafusion::logical_expr::{
    BinaryExpr, Expr, Operator, TableProviderFilterPushDown, TableType, binary_expr, lit,
};
use datafusion::physical_plan::ExecutionPlan;
use exec::{JoinSide, NearestExec};
use std::fmt;
use std::sync::Arc;

const USAGE: &str = "cannot call nearest: it takes two streams, and optionally a maximum distance and 'event_time', such as \
     nearest('trigger', 'samples', interval '20 milliseconds')";

const NANOS_A_DAY: i64 = 86_400_000_000_000;

/// The function.
pub(crate) struct NearestFunction {
    streams: Tables,
}

impl fmt::Debug for NearestFunction {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("NearestFunction").finish_non_exhaustive()
    }
}

impl NearestFunction {
    pub(crate) fn new(streams: Tables) -> Self {
        Self { streams }
    }

    fn stream(&self, name: &Expr) -> Result<(String, Arc<dyn TableProvider>)> {
        let Some(name) = text_of(name) else { return plan_err!("{USAGE}") };
        let known = || self.streams.iter().map(|(name, _)| name.as_str()).collect::<Vec<_>>().join(", ");
        let found = self.streams.iter().find(|(known, _)| known == name).cloned();
        found.ok_or_else(|| plan_datafusion_err!("cannot find stream `{name}`: the streams are {}", known()))
    }
}

/// How far apart two elements may be, in nanoseconds.
fn within(expression: &Expr) -> Result<Option<i64>> {
    let span = match expression {
        Expr::Literal(ScalarValue::Null, _) => return Ok(None),
        Expr::Literal(ScalarValue::IntervalMonthDayNano(Some(span)), _) if span.months == 0 => {
            i64::from(span.days).checked_mul(NANOS_A_DAY).and_then(|days| days.checked_add(span.nanoseconds))
        }
        _ => None,
    };
    match span {
        Some(span) if span >= 0 => Ok(Some(span)),
        _ => plan_err!("{USAGE}"),
    }
}

impl TableFunctionImpl for NearestFunction {
    fn call_with_args(&self, args: TableFunctionArgs) -> Result<Arc<dyn TableProvider>> {
        let (left, right, more) = match args.exprs() {
            [left, right, more @ ..] if more.len() <= 2 => (self.stream(left)?, self.stream(right)?, more),
            _ => return plan_err!("{USAGE}"),
        };
        let within = more.first().map_or(Ok(None), within)?;
        let by = match more.get(1).map(text_of) {
            None => CommonColumn::Time,
            Some(Some(name)) if name == CommonColumn::EventTime.name() => CommonColumn::EventTime,
            Some(Some(name)) if name == CommonColumn::Time.name() => CommonColumn::Time,
            _ => return plan_err!("{USAGE}"),
        };
        let mut fields: Vec<Field> =
            left.1.schema().fields().iter().map(|field| field.as_ref().clone()).collect();
        for field in right.1.schema().fields() {
            let name = format!("{}_{}", right.0, field.name());
            if fields.iter().any(|known| *known.name() == name) {
                return plan_err!(
                    "cannot join `{}` and `{}`: both would have a column `{name}`",
                    left.0,
                    right.0
                );
            }
            fields.push(field.as_ref().clone().with_name(name).with_nullable(true));
        }
        let schema = Arc::new(ArrowSchema::new(fields));
        Ok(Arc::new(NearestTable { left: left.1, right: right.1, schema, within, by }))
    }
}

/// The table that the function makes.
pub(crate) struct NearestTable {
    left: Arc<dyn TableProvider>,
    right: Arc<dyn TableProvider>,
    /// The columns of the one, then those of the other.
    schema: SchemaRef,
    within: Option<i64>,
    by: CommonColumn,
}

impl NearestTable {
    /// The tables of both streams.
    pub(crate) fn sides(&self) -> [&Arc<dyn TableProvider>; 2] {
        [&self.left, &self.right]
    }
}

impl fmt::Debug for NearestTable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("NearestTable").field("within", &self.within).finish_non_exhaustive()
    }
}

impl NearestTable {
    /// Whether a condition is one on elements of the first stream alone.
    fn is_left(&self, filter: &Expr) -> bool {
        let left = self.left.schema();
        filter.column_refs().iter().all(|column| left.index_of(&column.name).is_ok())
    }

    /// What elements of the other stream have to be like for a condition on the first one's time.
    fn beside(&self, filter: &Expr) -> Option<Expr> {
        let within = self.within?;
        let Expr::BinaryExpr(BinaryExpr { left, op, right }) = filter else { return None };
        let (Expr::Column(column), Expr::Literal(ScalarValue::TimestampNanosecond(Some(time), zone), _)) =
            (left.as_ref(), right.as_ref())
        else {
            return None;
        };
        if column.name != self.by.name() {
            return None;
        }
        let (op, time) = match op {
            Operator::Gt | Operator::GtEq => (Operator::GtEq, time.saturating_sub(within)),
            Operator::Lt | Operator::LtEq => (Operator::LtEq, time.saturating_add(within)),
            _ => return None,
        };
        let time = lit(ScalarValue::TimestampNanosecond(Some(time), zone.clone()));
        Some(binary_expr(Expr::Column(Column::new_unqualified(self.by.name())), op, time))
    }

    /// One of the two as it is to be read: the columns that are wanted, its time and its ordinal.
    async fn side(
        &self,
        state: &dyn Session,
        table: &Arc<dyn TableProvider>,
        wanted: Vec<usize>,
        filters: &[Expr],
        limit: Option<usize>,
    ) -> Result<JoinSide> {
        let mut projection = wanted.clone();
        let mut place = |column: CommonColumn| {
            let wanted = table.schema().index_of(column.name())?;
            let known = projection.iter().position(|place| *place == wanted);
            Ok::<_, DataFusionError>(known.unwrap_or_else(|| {
                projection.push(wanted);
                projection.len() - 1
            }))
        };
        let (time, ordinal) = (place(self.by)?, place(CommonColumn::Ordinal)?);
        let plan = table.scan(state, Some(&projection), filters, limit).await?;
        Ok(JoinSide { plan, columns: wanted.len(), time, ordinal })
    }
}

#[async_trait::async_trait]
impl TableProvider for NearestTable {
    fn schema(&self) -> SchemaRef {
        Arc::clone(&self.schema)
    }

    fn table_type(&self) -> TableType {
        TableType::Temporary
    }

    fn supports_filters_pushdown(&self, filters: &[&Expr]) -> Result<Vec<TableProviderFilterPushDown>> {
        // Each element of the first stream is one row: what is not wanted of them need not be looked for.
        let support = |filter: &&Expr| {
            if self.is_left(filter) {
                Ok(self.left.supports_filters_pushdown(&[*filter])?.remove(0))
            } else {
                Ok(TableProviderFilterPushDown::Unsupported)
            }
        };
        filters.iter().map(support).collect()
    }

    async fn scan(
        &self,
        state: &dyn Session,
        projection: Option<&Vec<usize>>,
        filters: &[Expr],
        limit: Option<usize>,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        let split = self.left.schema().fields().len();
        let projection = projection.cloned().unwrap_or_else(|| (0..self.schema.fields().len()).collect());
        let left: Vec<usize> = projection.iter().copied().filter(|place| *place < split).collect();
        let right: Vec<usize> =
            projection.iter().filter(|place| **place >= split).map(|place| place - split).collect();
        // Columns come in the order of the table, those of the first stream first.
        let schema = Arc::new(self.schema.project(&projection)?);
        let beside: Vec<Expr> = filters.iter().filter_map(|filter| self.beside(filter)).collect();
        let left = self.side(state, &self.left, left, filters, limit).await?;
        let right = self.side(state, &self.right, right, &beside, None).await?;
        Ok(Arc::new(NearestExec::new(left, right, schema, self.within)))
    }
}
