//! SQL over rings: tables of elements, pruned by bounds and filters, read by index columns, with payloads only of hits.
//!
//! What an attribute is belongs to `attributes`, how a slot is reached to `link`; the engine is `DataFusion`'s, set up for one
//! query at a time. What a command prints beside results is the `cli` crate's.
#![forbid(unsafe_code)]

pub mod address;
mod answer;
mod asked;
mod columns;
mod failing;
pub mod find;
mod functions;
mod group;
mod hits;
mod joins;
mod kinds;
mod latest;
mod literals;
mod memory;
mod nearest;
pub mod output;
pub mod predicate;
mod refused;
mod ring;
mod session;
mod sift;
pub mod stream;
pub mod tables;
mod tight;

pub use answer::{Lacking, answer};
pub use columns::{Column, Columns, Fixed, address_type, arrow_type, in_words};
pub use failing::{Failed, Failing, is_of_a_value};
pub use hits::{Hits, hits};
pub use ring::{Engine, RingError, engine};
pub use session::{Limits, Tables, ask, session};
