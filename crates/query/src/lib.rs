//! SQL over rings: tables of elements, pruned by bounds and filters, read by index columns, with payloads
//! only of hits.
//!
//! Does not belong here: extraction of attributes (`attributes`), access to slots (`reader`), messages of
//! commands (`cli`). The engine is `DataFusion`, set up for one query at a time.
#![forbid(unsafe_code)]

pub mod address;
mod address_literals;
mod address_types;
mod answer;
mod ast;
mod casts;
mod checked_arithmetic;
mod column_origin;
mod columns;
mod compact_batches;
pub mod condition_search;
mod cooperative_rule;
mod cross_joins;
mod dialect;
mod engine;
mod evaluation_failures;
mod float_order;
mod functions;
mod group;
mod grouping_sets;
mod hits;
mod input_schema;
mod latest_elements;
mod list_conditions;
mod memory_pool;
mod nearest;
mod offset_order;
mod order_keys;
pub mod output;
mod plan_scans;
pub mod predicate;
mod regex_literals;
mod result_names;
mod retry_smaller;
pub mod ring_source;
mod session;
mod set_operations;
pub mod stream;
mod streaming_filter;
mod subqueries;
pub mod tables;
mod time_lengths;
mod unordered_sets;
mod validation;
mod volatile_operands;
mod whole_numbers;
mod window_frames;
mod window_keys;

pub use answer::answer;
pub use columns::{Column, Columns, CommonColumn, address_type, arrow_type, describe_type};
pub use dialect::RingDialect;
pub use engine::{Engine, RingError, SourceStream, engine, engine_of};
pub use evaluation_failures::{EvaluationFailures, FailedElements, is_value_error};
pub use hits::{Hits, hits};
pub use memory_pool::is_join_memory;
pub use session::{Limits, ask, session};
pub use stream::IncompleteAnswer;
pub use tables::Tables;
