//! Tests of `query` through its public interface; one module a subject.
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test fails by panicking")]

mod addresses;
mod clauses;
mod comparison;
mod conditions;
mod engine_faults;
mod exact_answers;
mod memory_source;
mod nearest;
mod precedence;
mod spill;
mod streams;
mod subqueries;
mod turns;
mod values;
mod written;
