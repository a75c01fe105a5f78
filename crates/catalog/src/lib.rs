//! Catalog: names, versions, replicas and attributes of an archive, kept so that every site of a collaboration can
//! have a full copy.
//!
//! Here belong operations, the rules by which concurrent ones merge (pure: no I/O, no clock, no threads), the stores in
//! `SQLite` and `PostgreSQL`, and the condition language of searches. Not here: bytes of objects (`vault`), the exchange
//! of operations over a network, accounts (`server`), and printing (`cli`).
#![forbid(unsafe_code)]

mod catalog;
mod condition;
mod delivery;
mod digest;
mod dispute;
mod encoding;
mod error;
mod fact;
mod grant;
mod hlc;
mod ids;
mod ledger;
mod merge;
mod name;
mod name_pattern;
mod operation;
mod record;
mod reference;
mod snapshot;
mod state;
mod store;
mod value;
mod vector;

pub use catalog::{
    Applied, AttributeChange, Catalog, ConflictState, CopyBatch, Entry, FailedChange, Find, FindPage, Found,
    Host, LinkTarget, Listing, MAX_PAGE, NewReplica, NewVersion, OnlyReplica, Put, Quarantined,
    RecordedConflict, Stat, StatById, Stored, SystemHost, Trashed, VersionInfo, WrittenValue,
};
pub use condition::{Condition, ConditionError, Operator, Pattern};
pub use delivery::{Readiness, readiness};
pub use digest::StateDigest;
pub use dispute::{Choice, ConflictId, ConflictIdError, Dispute, DisputeKind, Settlement, Write};
pub use encoding::{DecodeError, FORMAT_VERSION, MAX_OPERATION_BYTES, decode, encode};
pub use error::{CatalogError, Result, StoreError};
pub use fact::{Fact, FactKind, MAX_FACT_BYTES, MAX_FACT_KEY_BYTES};
pub use grant::{Grant, Right};
pub use hlc::{Clock, ClockError, Hlc, HlcTime, MAX_LEAD_MS, Millis};
pub use ids::{ContentHash, Nanos, ObjectId, OpId, SiteId, Tag};
pub use merge::Conflict;
pub use name::{CatalogPath, MAX_NAME_BYTES, Name, NameError};
pub use name_pattern::NamePattern;
pub use operation::{Change, InvalidOperation, MAX_CHANGES, Operation, ReplicaPlace, ReplicaState};
pub use record::{
    Annotation, Current, Deletion, Kind, Move, Node, Record, Replica, SiteProgress, TaggedAttribute, Version,
};
pub use reference::Reference;
pub use snapshot::{SNAPSHOT_VERSION, SnapshotError};
pub use state::{CatalogState, Received};
pub use store::postgres::PostgresStore;
pub use store::sqlite::SqliteStore;
pub use store::{Access, CatalogStore, Dialect, SqlValue};
pub use value::{Attribute, Finite, MAX_TEXT_BYTES, Value, ValueError};
pub use vector::{VersionVector, VersionVectorError};
