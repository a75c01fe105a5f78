//! Vaults: places where datasets are stored, a folder, an S3 bucket or a folder of HDFS.
//!
//! Here belong uploads (create-only, read back and compared before they are visible), ranged and parallel reads, listing,
//! scrubbing and synchronisation, and the notation of places (`VAULT:PATH`). Not here: the file format of datasets (`dataset`),
//! the configuration file (`client`), and printing (`cli`). This is the lowest crate with an async runtime; its interface is
//! synchronous.
#![forbid(unsafe_code)]

mod archive;
mod archive_path;
mod folder;
mod object;
mod objects;
mod owner;
mod place;
mod retry;
mod roll;
mod runtime;
mod salvage;
mod scrub;
mod settings;
mod staging;
mod store;
mod sync;
mod target;
mod upload;
mod vault;

pub use archive::{Archive, Archived, archive};
pub use object::VaultObject;
pub use place::{Place, Source};
pub use scrub::{Damage, ScrubReport, Scrubbing, scrub};
pub use staging::{SHIPPING_OWNER, Staging, stage};
pub use store::Entry;
pub use sync::{SyncReport, sync};
pub use target::VaultTarget;
pub use upload::{Stored, Upload};
pub use vault::Vault;
