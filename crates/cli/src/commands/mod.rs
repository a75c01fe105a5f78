//! The commands, one file each: arguments, what is done, what is said.

mod archive;
mod audit;
mod check;
mod command_line;
mod conversion;
mod dataset;
mod encrypt;
mod evacuate;
mod format;
mod gaps;
mod grep;
mod grow;
mod hash;
mod hold;
mod holds;
mod index;
mod metrics;
mod packed_folder;
mod plan;
mod profile;
mod prove;
mod purge;
mod query;
mod read;
mod record;
mod recovery;
mod release;
mod scan;
mod slots;
mod sql;
mod status;
mod streams;
mod vault;

pub(crate) use command_line::Cli;
