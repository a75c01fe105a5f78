//! Optimizer rule that hides the order of rows from rollups, cubes and grouping sets. The engine takes a key that is
//! sorted or constant in the input for sorted beyond the first step, although a set without the key has null there: a
//! group then comes out twice.

use datafusion::common::config::ConfigOptions;
use datafusion::common::tree_node::{Transformed, TransformedResult, TreeNode, TreeNodeRecursion};
use datafusion::error::Result;
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::physical_expr::{EquivalenceProperties, PhysicalExpr};
use datafusion::physical_optimizer::PhysicalOptimizerRule;
use datafusion::physical_plan::aggregates::AggregateExec;
use datafusion::physical_plan::execution_plan::replace_children_if_necessary;
use datafusion::physical_plan::{DisplayAs, DisplayFormatType, ExecutionPlan, PlanProperties};
use std::any::Any;
use std::fmt;
use std::sync::Arc;

/// Puts [`UnorderedExec`] below both steps of grouping sets, before the engine plans sorts.
#[derive(Debug)]
pub(crate) struct UnorderedSets;

impl PhysicalOptimizerRule for UnorderedSets {
    fn optimize(
        &self,
        plan: Arc<dyn ExecutionPlan>,
        _config: &ConfigOptions,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        let put = |node: Arc<dyn ExecutionPlan>| {
            let aggregate = (node.as_ref() as &dyn Any).downcast_ref::<AggregateExec>();
            if aggregate.is_none_or(|aggregate| aggregate.group_expr().is_single()) {
                return Ok(Transformed::no(node));
            }
            let inputs = node.children().into_iter().map(|input| UnorderedExec::over(input)).collect();
            Ok(Transformed::yes(replace_children_if_necessary(node, inputs)?))
        };
        plan.transform_up(put).data()
    }

    fn name(&self) -> &'static str {
        "UnorderedSets"
    }

    fn schema_check(&self) -> bool {
        true
    }
}

/// Operator that passes its input through, and claims neither an order nor constant columns.
#[derive(Debug)]
struct UnorderedExec {
    input: Arc<dyn ExecutionPlan>,
    properties: Arc<PlanProperties>,
}

impl UnorderedExec {
    fn over(input: &Arc<dyn ExecutionPlan>) -> Arc<dyn ExecutionPlan> {
        let of_input = input.properties();
        let properties = PlanProperties::new(
            EquivalenceProperties::new(input.schema()),
            of_input.partitioning.clone(),
            of_input.emission_type,
            of_input.boundedness,
        );
        Arc::new(Self { input: Arc::clone(input), properties: Arc::new(properties) })
    }
}

impl DisplayAs for UnorderedExec {
    fn fmt_as(&self, _kind: DisplayFormatType, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "UnorderedExec")
    }
}

impl ExecutionPlan for UnorderedExec {
    fn name(&self) -> &'static str {
        "UnorderedExec"
    }

    fn properties(&self) -> &Arc<PlanProperties> {
        &self.properties
    }

    fn children(&self) -> Vec<&Arc<dyn ExecutionPlan>> {
        vec![&self.input]
    }

    fn apply_expressions(
        &self,
        _f: &mut dyn FnMut(&Arc<dyn PhysicalExpr>) -> Result<TreeNodeRecursion>,
    ) -> Result<TreeNodeRecursion> {
        Ok(TreeNodeRecursion::Continue)
    }

    fn with_new_children(
        self: Arc<Self>,
        children: Vec<Arc<dyn ExecutionPlan>>,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        Ok(Self::over(children.first().unwrap_or(&self.input)))
    }

    fn execute(&self, partition: usize, context: Arc<TaskContext>) -> Result<SendableRecordBatchStream> {
        self.input.execute(partition, context)
    }
}
