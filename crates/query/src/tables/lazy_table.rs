//! Table whose rows are computed when it is scanned.

use datafusion::arrow::array::RecordBatch;
use datafusion::arrow::datatypes::SchemaRef;
use datafusion::catalog::{Session, TableProvider};
use datafusion::datasource::memory::MemorySourceConfig;
use datafusion::error::{DataFusionError, Result};
use datafusion::logical_expr::{Expr, TableType};
use datafusion::physical_plan::ExecutionPlan;
use std::fmt;
use std::sync::Arc;

/// Makes all rows.
type MakeRows = Arc<dyn Fn() -> Result<RecordBatch> + Send + Sync>;

/// A table that is made when it is scanned, anew each time.
pub struct LazyTable {
    schema: SchemaRef,
    make: MakeRows,
}

impl LazyTable {
    /// With the columns that `empty` has, and the rows that `make` makes; it may take its time.
    pub fn new(empty: &RecordBatch, make: impl Fn() -> Result<RecordBatch> + Send + Sync + 'static) -> Self {
        Self { schema: empty.schema(), make: Arc::new(make) }
    }
}

impl fmt::Debug for LazyTable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LazyTable").field("schema", &self.schema).finish_non_exhaustive()
    }
}

#[async_trait::async_trait]
impl TableProvider for LazyTable {
    fn schema(&self) -> SchemaRef {
        Arc::clone(&self.schema)
    }

    fn table_type(&self) -> TableType {
        TableType::Base
    }

    async fn scan(
        &self,
        _state: &dyn Session,
        projection: Option<&Vec<usize>>,
        _filters: &[Expr],
        _limit: Option<usize>,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        let make = Arc::clone(&self.make);
        let batch = tokio::task::spawn_blocking(move || make())
            .await
            .map_err(|error| DataFusionError::External(Box::new(error)))??;
        let exec =
            MemorySourceConfig::try_new_exec(&[vec![batch]], Arc::clone(&self.schema), projection.cloned())?;
        Ok(exec)
    }
}
