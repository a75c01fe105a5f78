//! Drivers: work on every new version of a project, such as a copy to another vault, extraction of attributes, or a command.
//!
//! A task is one driver on one version. Tasks and their runs are in the journal of the site, so they outlive the server. A
//! task is tried until it succeeds, with growing pauses; its version may be deleted meanwhile, which ends it.

mod command;
mod local_file;
mod options;
mod placeholder;
mod runner;
mod scheduler;
pub(crate) mod tasks;

pub(crate) use local_file::copy;
pub(crate) use options::check;
pub use options::{CommandOptions, DriverAction, DriverOptions, ExtractOptions};
pub(crate) use runner::Runner;
pub(crate) use scheduler::Scheduler;
