//! The commands, one file each: arguments, what is done, what is said.

pub(crate) mod audit;
pub(crate) mod check;
pub(crate) mod format;
pub(crate) mod gaps;
pub(crate) mod grow;
pub(crate) mod hold;
pub(crate) mod holds;
pub(crate) mod index;
pub(crate) mod metrics;
pub(crate) mod plan;
pub(crate) mod profile;
pub(crate) mod prove;
pub(crate) mod purge;
pub(crate) mod query;
pub(crate) mod read;
pub(crate) mod record;
pub(crate) mod release;
pub(crate) mod slots;
pub(crate) mod sql;
pub(crate) mod status;
pub(crate) mod streams;
