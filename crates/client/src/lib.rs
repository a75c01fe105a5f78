//! Client library: the use of rings by commands, and later by a server, a mount and Python.
//!
//! Here belong sessions with a ring wherever it runs, orders, times and ranges, the configuration file, the SQL engine over a
//! ring, exports of ranges and of query hits, index copies, and the JSON shapes of all results. Not here: holds by condition
//! (`standing`), plans and proofs (`planning`), arguments and printing (`cli`). Nothing here prints: see [`Notices`].
#![forbid(unsafe_code)]

pub mod attribution;
pub mod config;
pub mod exports;
pub mod index_copies;
pub mod json;
pub mod losses;
mod notices;
pub mod orders;
pub mod programs;
pub mod random;
pub mod range;
pub mod rates;
pub mod schema_file;
pub mod session;
pub mod sql;
pub mod sql_errors;
pub mod sql_text;
pub mod table;
pub mod times;
pub mod words;

pub use notices::Notices;
