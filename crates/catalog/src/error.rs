//! Errors of a catalog, each with its object, its reason and its remedy.

use crate::condition::ConditionError;
use crate::encoding::DecodeError;
use crate::hlc::ClockError;
use crate::ids::{ObjectId, OpId, SiteId};
use crate::name::{CatalogPath, NameError};
use crate::operation::InvalidOperation;
use crate::snapshot::SnapshotError;
use crate::value::ValueError;

/// Result of an operation of a catalog.
pub type Result<T, E = CatalogError> = std::result::Result<T, E>;

/// Failure of the database below a catalog.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("cannot {verb} the catalog in {place}: {reason}; {remedy}")]
pub struct StoreError {
    /// Action that has failed.
    pub verb: &'static str,
    /// Database, without its secrets.
    pub place: String,
    /// Text of the database, in one line.
    pub reason: String,
    /// Advice to the reader.
    pub remedy: &'static str,
}

/// Reason why a catalog did not do as asked. Nothing is changed then.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CatalogError {
    /// Path that names nothing.
    #[error("cannot {verb} `{path}`: `{missing}` is not there; list the collection above it")]
    NotFound {
        /// Action that was asked for.
        verb: &'static str,
        /// Path that was given.
        path: CatalogPath,
        /// First part of the path that is missing.
        missing: CatalogPath,
    },
    /// Id that names nothing, or something else than needed.
    #[error("cannot {verb} {object}: {reason}; {remedy}")]
    Unsuitable {
        /// Action that was asked for.
        verb: &'static str,
        /// Object or collection, by path or id.
        object: String,
        /// Rule that forbids the action.
        reason: &'static str,
        /// Advice to the reader.
        remedy: &'static str,
    },
    /// New path that another entry has.
    #[error("cannot {verb} `{path}`: it exists already; {remedy}")]
    Exists {
        /// Action that was asked for.
        verb: &'static str,
        /// Path that is taken.
        path: CatalogPath,
        /// Advice to the reader.
        remedy: &'static str,
    },
    /// Name or path that cannot be.
    #[error(transparent)]
    Name(#[from] NameError),
    /// Attribute or annotation that cannot be kept.
    #[error(transparent)]
    Value(#[from] ValueError),
    /// Condition that cannot be read.
    #[error(transparent)]
    Condition(#[from] ConditionError),
    /// Glob that cannot be read.
    #[error("cannot read the name pattern `{pattern}`: {reason}; use * ? [abc] as in a shell")]
    Glob {
        /// Pattern that was given.
        pattern: String,
        /// Rule that it breaks.
        reason: String,
    },
    /// Stamp or time that the clock refuses.
    #[error(transparent)]
    Clock(#[from] ClockError),
    /// Operation that no site can have made.
    #[error(transparent)]
    Invalid(#[from] InvalidOperation),
    /// Bytes of an operation that cannot be read, or an operation too long to write.
    #[error(transparent)]
    Decode(#[from] DecodeError),
    /// Bytes of a snapshot that cannot be read, or a snapshot that does not fit the catalog.
    #[error(transparent)]
    Snapshot(#[from] SnapshotError),
    /// Operations that are no longer in the log.
    #[error(
        "cannot list the operations of site {site} after number {after}: the log begins after {removed}; \
         import a snapshot instead"
    )]
    Compacted {
        /// Site that made the operations.
        site: SiteId,
        /// Number after which they were asked for.
        after: u64,
        /// Number of the last one that is removed from the log.
        removed: u64,
    },
    /// Operation whose site had not seen operations that are no longer in the log.
    #[error(
        "cannot apply operation {id}: its site had not seen changes that are no longer in the log; \
         start site {} again from a snapshot", id.site
    )]
    Stale {
        /// Operation that was refused.
        id: OpId,
    },
    /// Entry of the trash whose deletion some sites may not know yet.
    #[error(
        "cannot purge {object}: its deletion is not acknowledged by {}; try again after these sites were in touch",
        listed(sites)
    )]
    Unacknowledged {
        /// Entry of the trash.
        object: ObjectId,
        /// Sites that have not acknowledged the deletion.
        sites: Vec<SiteId>,
    },
    /// Two different operations with one id: a site was restored from a backup and went on.
    #[error(
        "cannot apply operation {id}: the log holds another one with this id; give site {} a new id", id.site
    )]
    Forked {
        /// Id that two operations share.
        id: OpId,
    },
    /// Database that belongs to another site.
    #[error(
        "cannot open the catalog as site {asked}: it belongs to site {found}; use that id, or another database"
    )]
    OtherSite {
        /// Site that was given.
        asked: SiteId,
        /// Site that the database belongs to.
        found: SiteId,
    },
    /// Database written by newer software.
    #[error(
        "cannot open the catalog: its schema has version {found}, and this software knows {known}; update it"
    )]
    NewerSchema {
        /// Version in the database.
        found: i64,
        /// Newest version that is known.
        known: i64,
    },
    /// Row that breaks a rule of the schema.
    #[error("cannot read the catalog: {0}; restore it from another site")]
    Damaged(String),
    /// Failure of the database.
    #[error(transparent)]
    Store(#[from] StoreError),
}

fn listed(sites: &[SiteId]) -> String {
    let sites: Vec<String> = sites.iter().map(|site| format!("site {site}")).collect();
    sites.join(", ")
}

impl CatalogError {
    /// Refusal of an action on a path.
    pub(crate) fn unsuitable(
        verb: &'static str,
        object: &CatalogPath,
        reason: &'static str,
        remedy: &'static str,
    ) -> Self {
        Self::Unsuitable { verb, object: format!("`{object}`"), reason, remedy }
    }

    /// Refusal of a new path that another entry has.
    pub(crate) fn exists(verb: &'static str, path: &CatalogPath, remedy: &'static str) -> Self {
        Self::Exists { verb, path: path.clone(), remedy }
    }

    /// Refusal of an action on an id.
    pub(crate) fn unsuitable_id(
        verb: &'static str,
        object: ObjectId,
        reason: &'static str,
        remedy: &'static str,
    ) -> Self {
        Self::Unsuitable { verb, object: object.to_string(), reason, remedy }
    }
}
