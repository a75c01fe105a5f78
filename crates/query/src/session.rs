//! `DataFusion` session of one query: its resource limits, tables and optimizer rules, without access to
//! files or network.

use crate::address_literals::AddressLiterals;
use crate::ast;
use crate::casts::Casts;
use crate::checked_arithmetic::CheckedArithmetic;
use crate::compact_batches::CompactBatches;
use crate::cooperative_rule::CooperativeRule;
use crate::cross_joins::optimizer_rules;
use crate::dialect;
use crate::evaluation_failures::EvaluationFailures;
use crate::float_order::FloatOrder;
use crate::functions;
use crate::group::GroupByRule;
use crate::grouping_sets::GroupingSets;
use crate::list_conditions::ListConditions;
use crate::memory_pool::QueryMemoryPool;
use crate::nearest::NearestFunction;
use crate::offset_order::OffsetOrder;
use crate::order_keys::OrderKeys;
use crate::plan_scans::stream_scans;
use crate::regex_literals::RegexLiterals;
use crate::set_operations::exact_set_operations;
use crate::stream::{ExplainOnly, ScanCutoff};
use crate::streaming_filter::StreamingFilter;
use crate::subqueries::exact_subqueries;
use crate::tables::Tables;
use crate::time_lengths::TimeLengths;
use crate::unordered_sets::UnorderedSets;
use crate::validation;
use crate::volatile_operands;
use crate::whole_numbers::WholeNumbers;
use crate::window_frames::WindowFrames;
use crate::window_keys::WindowKeys;
use datafusion::catalog::{CatalogProvider, MemoryCatalogProvider, MemorySchemaProvider, SchemaProvider};
use datafusion::common::config::ConfigNonZeroUsize;
use datafusion::dataframe::DataFrame;
use datafusion::error::Result;
use datafusion::execution::SessionStateBuilder;
use datafusion::execution::disk_manager::{DiskManagerBuilder, DiskManagerMode};
use datafusion::execution::memory_pool::TrackConsumersPool;
use datafusion::execution::runtime_env::RuntimeEnvBuilder;
use datafusion::logical_expr::LogicalPlan;
use datafusion::optimizer::{Analyzer, AnalyzerRule};
use datafusion::physical_optimizer::PhysicalOptimizerRule;
use datafusion::physical_optimizer::optimizer::PhysicalOptimizer;
use datafusion::prelude::{SQLOptions, SessionConfig, SessionContext};
use holdfast_base::ByteSize;
use std::collections::HashMap;
use std::num::NonZeroUsize;
use std::path::PathBuf;
use std::sync::Arc;

/// Who is told of first when memory runs out.
const TOLD: NonZeroUsize = NonZeroUsize::MIN.saturating_add(2);

/// The part of a sorting thread's memory that is kept for merging: one in so many.
const MERGING: usize = 8;

/// The rows of a batch have one part in so many of a thread's memory.
const MERGED: usize = 4;
/// Rows of a batch at least: with less, more time goes into batches than into rows.
const LEAST_ROWS: usize = 128;
/// What a row is taken to have, where batches are to be small.
const ROW_BYTES: usize = 2048;
/// A batch that is sorted, or merged with others, has one part in so many of a thread's memory.
const SORTING: usize = 32;

/// What a query may use.
#[derive(Clone, Debug)]
pub struct Limits {
    /// Memory of sorts, groups and joins; what does not fit is put aside on disk.
    pub memory: ByteSize,
    /// Where that is; none: the system's folder for such things.
    pub spill: Option<PathBuf>,
    /// How much of it.
    pub spill_bytes: ByteSize,
    /// Threads.
    pub threads: NonZeroUsize,
}

impl Default for Limits {
    /// 256 MiB of memory, 4 GiB of disk, all processors.
    fn default() -> Self {
        Self {
            memory: ByteSize::mib(256),
            spill: None,
            spill_bytes: ByteSize::mib(4096),
            threads: std::thread::available_parallelism().unwrap_or(NonZeroUsize::MIN),
        }
    }
}

/// The name that stands before every table, if one wants to say it.
pub(crate) const CATALOG: &str = "holdfast";
/// Where all tables are, and where the streams are.
pub(crate) const RING: &str = "ring";
pub(crate) const STREAM: &str = "stream";

/// An engine with these tables and nothing else: no files, no network, no settings that a query could change. A stream that
/// is called as one of the ring's `own` tables is found by `stream.NAME`, as all are.
pub fn session(limits: &Limits, own: Tables, streams: Tables) -> Result<SessionContext> {
    let mode = match &limits.spill {
        Some(folder) => DiskManagerMode::Directories(vec![folder.clone()]),
        None => DiskManagerMode::OsTmpDirectory,
    };
    let disk =
        DiskManagerBuilder::default().with_mode(mode).with_max_temp_directory_size(limits.spill_bytes.0);
    let pool = TrackConsumersPool::new(QueryMemoryPool::new(limits.memory.0 as usize, limits.threads), TOLD);
    let runtime = RuntimeEnvBuilder::new().with_disk_manager_builder(disk).with_memory_pool(Arc::new(pool));
    let runtime = runtime.build_arc()?;
    let mut config = SessionConfig::new()
        .with_target_partitions(limits.threads.get())
        .with_information_schema(true)
        .with_create_default_catalog_and_schema(false)
        .with_default_catalog_and_schema(CATALOG, RING)
        .with_extension(Arc::new(EvaluationFailures::default()));
    let share = limits.memory.0 as usize / limits.threads.get();
    // What is merged is held for as many rows as a batch has.
    let rows = (share / MERGED / ROW_BYTES).max(LEAST_ROWS);
    let usual = config.batch_size();
    config = config.with_batch_size(rows.min(usual));
    // Its errors tell where what they are about stands.
    config.options_mut().sql_parser.collect_spans = true;
    let execution = &mut config.options_mut().execution;
    execution.time_zone = Some("UTC".to_owned());
    // The check fails on `select distinct (x between 1 and 2) is true`: the physical plan allows nulls there, the logical
    // plan does not.
    execution.skip_physical_aggregate_schema_check = true;
    // Every thread that sorts keeps so much for merging what it has put aside; the usual 10 MB each are more than all where memory
    // is short.
    execution.sort_spill_reservation_bytes = execution.sort_spill_reservation_bytes.min(share / MERGING);
    // Each batch that is put aside between threads has a file of its own: where two threads have files open, the engine waits for more
    // in the first, while what it needs is in the second (its pull request 24891).
    execution.max_spill_file_size_bytes = ConfigNonZeroUsize::try_new(1)?;
    // What is sorted at once comes in several batches, each of which counts as all of their bytes.
    execution.sort_in_place_threshold_bytes = execution.sort_in_place_threshold_bytes.min(share / SORTING);
    let most = (share / SORTING).clamp(LEAST_ROWS * ROW_BYTES / 4, LEAST_ROWS * ROW_BYTES * 16);
    let mut state = SessionStateBuilder::new()
        .with_config(config)
        .with_runtime_env(runtime)
        .with_analyzer_rules(analyzer_rules())
        .with_optimizer_rules(optimizer_rules())
        // Asked before those of the engine, which come behind it.
        .with_expr_planners(vec![Arc::new(AddressLiterals), Arc::new(WholeNumbers)])
        .with_default_features()
        .with_physical_optimizer_rules(sound_rules())
        .with_physical_optimizer_rule(Arc::new(GroupByRule::default()))
        .with_physical_optimizer_rule(Arc::new(CompactBatches { most }))
        .with_physical_optimizer_rule(Arc::new(StreamingFilter))
        .with_physical_optimizer_rule(Arc::new(CooperativeRule))
        // Nothing of what reads files.
        .with_table_factories(HashMap::new())
        .with_file_formats(Vec::new());
    let functions = state.scalar_functions().get_or_insert_default();
    functions.extend(functions::all(functions));
    let aggregates = state.aggregate_functions().get_or_insert_default();
    aggregates.extend(functions::aggregates(aggregates));
    let context = SessionContext::new_with_state(state.build());
    context.register_udtf("nearest", Arc::new(NearestFunction::new(streams.clone())));
    let (all, of_streams) = (MemorySchemaProvider::new(), MemorySchemaProvider::new());
    for (name, table) in streams {
        of_streams.register_table(name.clone(), Arc::clone(&table))?;
        all.register_table(name, table)?;
    }
    for (name, table) in own {
        all.deregister_table(&name)?;
        all.register_table(name, table)?;
    }
    let catalog = MemoryCatalogProvider::new();
    catalog.register_schema(RING, Arc::new(all))?;
    catalog.register_schema(STREAM, Arc::new(of_streams))?;
    context.register_catalog(CATALOG, Arc::new(catalog));
    Ok(context)
}

/// Rules of the engine that give names their types, between ours.
fn analyzer_rules() -> Vec<Arc<dyn AnalyzerRule + Send + Sync>> {
    let mut rules: Vec<Arc<dyn AnalyzerRule + Send + Sync>> = vec![
        Arc::new(GroupingSets),
        Arc::new(AddressLiterals),
        Arc::new(WindowFrames),
        Arc::new(OrderKeys),
        Arc::new(Casts),
        Arc::new(RegexLiterals),
        Arc::new(OffsetOrder),
    ];
    rules.extend(Analyzer::new().rules);
    // Types are known here.
    rules.extend::<[Arc<dyn AnalyzerRule + Send + Sync>; 5]>([
        Arc::new(CheckedArithmetic),
        Arc::new(TimeLengths::default()),
        Arc::new(ListConditions),
        Arc::new(FloatOrder::default()),
        Arc::new(WindowKeys),
    ]);
    rules
}

/// Physical rules of the engine without its push-down of filters. That takes columns by their names behind a projection: over a join
/// of two tables it turns a condition on `a.u` and `b.u` into one on `a.u` alone. Scans have got their conditions before.
fn sound_rules() -> Vec<Arc<dyn PhysicalOptimizerRule + Send + Sync>> {
    let rules = PhysicalOptimizer::new().rules.into_iter();
    let sound = rules.filter(|rule| !rule.name().starts_with("FilterPushdown"));
    let first: Arc<dyn PhysicalOptimizerRule + Send + Sync> = Arc::new(UnorderedSets);
    std::iter::once(first).chain(sound).collect()
}

/// What may be asked: questions. Orders of any kind are refused.
pub async fn ask(context: &SessionContext, sql: &str) -> Result<DataFrame> {
    let questions =
        SQLOptions::new().with_allow_ddl(false).with_allow_dml(false).with_allow_statements(false);
    validation::too_long(sql)?;
    let mut state = context.state();
    let mut statement = dialect::statement(context, sql)?;
    ast::prepare_statement(context, &mut statement)?;
    let plan = state.statement_to_plan(statement).await?;
    questions.verify_plan(&plan)?;
    validation::wrong_plans(&plan)?;
    volatile_operands::refuse_repeated(&plan)?;
    let plan = exact_subqueries(exact_set_operations(plan)?)?;
    if matches!(plan, LogicalPlan::Explain(_)) {
        state.config_mut().set_extension(Arc::new(ExplainOnly));
    }
    let looks = stream_scans(&plan)?;
    if let Some(moment) = ScanCutoff::of(&looks).await? {
        state.config_mut().set_extension(Arc::new(moment));
    }
    state.config_mut().set_extension(Arc::new(looks));
    Ok(DataFrame::new(state, plan))
}
