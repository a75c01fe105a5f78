//! Server of Holdfast: receives files by resumable uploads, lets them be read while they grow, and hands them to an archive.
//!
//! Here belong the HTTP interface (tus 1.0.0, reads, the catalog, tokens, metrics), TLS, the durable state of uploads, the
//! site (versions in object stores and the catalog), drivers, and extraction of attributes. Not here: the catalog itself
//! (`catalog`), object stores besides folders (`vault`), configuration files, and printing (`cli`). The interface is synchronous; a running server owns its threads.
#![forbid(unsafe_code)]

mod access;
mod account;
mod app;
mod archive;
mod audit;
mod authorization;
mod background;
mod body_buffer;
mod checksum;
mod clock;
mod concatenation;
mod connection;
mod contents;
mod copies;
mod cross_site;
mod data_folder;
mod database;
mod delivery;
mod directory;
mod drivers;
mod durable;
mod error;
mod extract;
mod growing_file;
mod holds;
mod live_upload;
mod log;
mod log_in;
mod metadata;
mod metrics;
mod object_path;
mod options;
mod overload;
mod password;
mod principal;
mod problem;
mod random;
mod range;
mod rate_limiter;
mod receiver;
mod recovery;
mod replication;
mod routes;
mod searches;
mod server;
mod site;
mod store_error;
mod strangers;
mod timing;
mod tls;
mod token;
mod token_store;
mod upload_id;
mod upload_record;
mod upload_store;
mod upload_table;

pub use account::AccountName;
pub use archive::{Archive, ArchiveError, FinishedUpload, OpenVersion, ReadAt, StoredVersion, VersionId};
pub use clock::{Clock, Timestamp};
pub use drivers::{CommandOptions, DriverAction, DriverOptions, ExtractOptions};
pub use error::{ErrorKind, ServerError};
pub use extract::Extractor;
pub use holdfast_remote::Fingerprint;
pub use holds::{HoldOutcome, HoldTaker, OrderedHold};
pub use log::{Event, Log};
pub use object_path::{NameError, ObjectPath, ProjectName};
pub use options::{DEFAULT_PORT, Limits, ServerOptions, Transport};
pub use routes::openapi;
pub use searches::{Search, SearchProgram};
pub use server::{RunningServer, Server};
pub use site::{CatalogSource, FolderStore, NamedStore, ObjectStore, OpenObject, SiteArchive, Source};
pub use token::{NewToken, Scope, Scopes, TokenId, TokenInfo};
pub use token_store::{TOKENS_FILE, TokenRefusal, TokenStore};
pub use upload_id::UploadId;
pub use upload_record::BLOCK_BYTES;
