//! HTTP client of sites: resumable uploads, reads of growing objects, listings and the catalog of a site.
//!
//! Here belong requests, their timeouts, and errors by kinds that a caller decides on. Not here: retries, queues, rate limits and
//! files (`ship`), configuration files, and printing (`cli`). The interface is asynchronous and needs a Tokio runtime. The same
//! client sends to foreign tus 1.0.0 servers; it uses an extension only when the server announces it.
#![forbid(unsafe_code)]

mod abilities;
mod accounts;
mod append;
mod audit;
mod catalog;
mod checksum;
mod concatenation;
mod conflicts;
mod copies;
mod create;
mod endpoint;
mod error;
mod fingerprint;
mod holds;
mod objects;
mod problem;
mod progress;
mod read;
mod replication;
mod searches;
mod send;
mod site;
mod sites;
mod timings;
mod tls;
mod tree;
mod upload_address;

pub use abilities::{Abilities, Extension, SiteExtension};
pub use accounts::{LoggedIn, Membership, SiteAccount, SiteGrant};
pub use append::{Appended, MOST_AHEAD_BYTES, MOST_COMPRESSED_BYTES, Segment};
pub use audit::{AuditPage, AuditRecord};
pub use catalog::{
    AttributeChange, AttributeValue, CatalogAttribute, CatalogEntry, CatalogKind, CatalogPage,
    CatalogReplica, CatalogStat, CatalogVersion, ChangedEntries, EntryChange, FindRequest, FoundEntry,
    MOST_BATCH_ATTRIBUTES, MOST_BATCH_ENTRIES, NewAttribute, PathRights,
};
pub use conflicts::{ConflictWrite, SiteConflict};
pub use copies::{NewPolicy, SiteJob, SitePolicy};
pub use create::{Created, NewUpload};
pub use endpoint::{DEFAULT_IDLE, Endpoint};
pub use error::{RemoteError, RemoteErrorKind};
pub use fingerprint::{Fingerprint, FingerprintError};
pub use holds::{NewHoldOrder, SiteHoldOrder};
pub use objects::{GrowingObject, ObjectVersion, ObjectsPage};
pub use progress::{BlockPage, Progress, UploadState};
pub use read::{ByteRange, ObjectReader, ReadRequest};
pub use replication::{CatalogDigest, PushAnswer, ReplicationState};
pub use searches::{LOSSY, NewSearch, RunningSearch, SearchPart};
pub use site::Site;
pub use sites::{PeerChange, PeerState};
pub use timings::Timings;
pub use tls::pinned;
pub use tree::{CopiedEntries, EntryId, PlacedReplica, TrashedEntry};
pub use upload_address::UploadAddress;
