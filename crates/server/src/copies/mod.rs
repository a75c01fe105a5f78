//! Copies of versions at this site: those that policies of collections ask for, and those that are staged for a computation.
//!
//! A site fetches what it shall have by itself; no site orders another one. So a policy is carried out whatever sites are
//! away, and each site sees its own jobs. Reads of distant replicas are in `replication`.

mod copier;
mod fetch;
mod job;
mod policy;
mod stage_orders;

pub(crate) use copier::Copier;
pub(crate) use job::{Job, JobState};
pub(crate) use policy::{Policies, Policy, PolicyBody};
