//! Argument groups that several commands share: what is typed, as options of the libraries.

mod audit;
mod find;
mod index;
mod limits;
mod load;
mod range;
mod ring;
mod scan;
mod site;
mod tree;

pub(crate) use audit::AuditArgs;
pub(crate) use find::FindArgs;
pub(crate) use index::IndexArg;
pub(crate) use limits::LimitArgs;
pub(crate) use load::{LoadArgs, MoreArgs};
pub(crate) use range::RangeArgs;
pub(crate) use ring::{RingArg, SiteRing};
pub(crate) use scan::ScanArgs;
pub(crate) use site::{SiteArgs, password, token};
pub(crate) use tree::{TreeArgs, check_written};
