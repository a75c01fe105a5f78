//! Standing holds: holds by condition, and the audit log as a file.
//!
//! Here belong the evaluator that searches what arrives, the extension of holds by what it finds, the distilling of slots, and
//! the file that keeps all acts of a ring. Not here: the search itself (`query`), the order of a plain hold (`client`), and what
//! a command prints (`cli`): an [`Observer`] hears of events.
#![forbid(unsafe_code)]

mod acts_file;
mod condition_hold;
mod distil_groups;
mod evaluator;
mod fit;
mod follow;
mod observer;
mod options;
mod retention_set;
mod tolerant_search;

pub use acts_file::{ActsFile, AddedActs};
pub use condition_hold::{hold, resume};
pub use observer::{Event, Observer, Unobserved};
pub use options::{Options, Quota, quota, sample};
