//! Site: an archive over object stores and a catalog.
//!
//! A version is stored in this order, so that a crash at any step leaves it whole or absent:
//!
//! 1. The journal gets the key of its bytes.
//! 2. The first object store puts the bytes under the key, durably.
//! 3. The catalog gets object, version and replica in one transaction.
//! 4. The journal drops the key, and gets the tasks of the drivers in the same transaction.
//!
//! At a start, a key of the journal that the catalog has is completed by step 4. Another one is kept for an hour, as its
//! upload is stored again; then its bytes are removed.

mod attributes;
mod distant;
mod folder_store;
mod journal;
mod key;
mod listing;
mod object_store;
mod precondition;
mod reading;
mod registration;
mod shared_catalog;

use crate::archive::{Archive, ArchiveError, FinishedUpload, OpenVersion, StoredVersion, VersionId};
use crate::clock::{Clock, Timestamp};
use crate::drivers::DriverOptions;
use crate::drivers::tasks::NewTask;
use crate::error::ServerError;
use crate::log::Log;
use crate::object_path::{ObjectPath, ProjectName};
use crate::options::ServerOptions;
use attributes::upload_attributes;
use holdfast_catalog::{
    CatalogError, CatalogPath, ContentHash, Nanos, NewReplica, NewVersion, ObjectId, Put, ReplicaState, Tag,
    Version,
};
use key::{is_copy, key_of, project_of};
use precondition::Precondition;
use registration::{Registered, register, registered};
use std::sync::{Arc, OnceLock, Weak};
use std::time::Duration;
use tokio::sync::Notify;

pub(crate) use distant::DistantReplicas;
pub use folder_store::FolderStore;
pub(crate) use journal::Intent;
pub(crate) use journal::Journal;
pub(crate) use key::{copy_key, tag_of, version_of};
pub use object_store::{NamedStore, ObjectStore, OpenObject, Source};
pub use shared_catalog::CatalogSource;
pub(crate) use shared_catalog::{AnyStore, SharedCatalog};

/// Name of the default vault, and of its folder in the data folder.
const ARCHIVE: &str = "archive";

/// File of the default catalog in the data folder.
const CATALOG_FILE: &str = "catalog.db";

/// Age at which bytes without a version are removed at a start: longer than a restart and the first attempts after it.
const ORPHAN_AGE: Duration = Duration::from_hours(1);

/// Archive over object stores and a catalog.
pub struct SiteArchive {
    pub(crate) catalog: SharedCatalog,
    /// Vaults of this site; new versions go to the first.
    pub(crate) stores: Vec<NamedStore>,
    pub(crate) journal: Journal,
    /// Wakes the scheduler of drivers when there are new tasks.
    pub(crate) new_tasks: Notify,
    /// Replicas at other sites, once the exchange with these runs.
    distant: OnceLock<Weak<dyn DistantReplicas>>,
    drivers: Vec<DriverOptions>,
    clock: Clock,
    log: Log,
}

impl SiteArchive {
    /// Opens the site of a data folder, and completes or removes what an ended server has left.
    pub fn open(options: &ServerOptions) -> Result<Self, ServerError> {
        let data = &options.data;
        let source = options.catalog.clone();
        let source = source.unwrap_or_else(|| CatalogSource::sqlite(&data.join(CATALOG_FILE)));
        let mut stores = options.stores.clone();
        if stores.is_empty() {
            let store = Arc::new(FolderStore::new(data.join(ARCHIVE)));
            stores.push(NamedStore { name: ARCHIVE.to_owned(), store });
        }
        let names = stores.iter().map(|store| &store.name);
        if let Some((_, taken)) =
            names.enumerate().find(|(at, name)| stores[..*at].iter().any(|s| s.name == **name))
        {
            let action = format_args!("use the vault '{taken}'").to_string();
            return Err(ServerError::usage(action, "another one has its name", "choose another name"));
        }
        let failed = |error: &dyn std::fmt::Display| {
            ServerError::failed("open the archive", error, "correct the cause and start again")
        };
        let site = Self {
            catalog: SharedCatalog::open(source).map_err(|error| failed(&error))?,
            stores,
            journal: Journal::open(data)?,
            new_tasks: Notify::new(),
            distant: OnceLock::new(),
            drivers: options.drivers.clone(),
            clock: options.clock.clone(),
            log: options.log.clone(),
        };
        site.recover().map_err(|error| failed(&error))?;
        Ok(site)
    }

    /// Lets reads use the replicas of other sites.
    pub(crate) fn connect(&self, distant: Weak<dyn DistantReplicas>) {
        let _ = self.distant.set(distant);
    }

    /// Completes the keys of the journal that have a version, and removes the bytes of old ones that have none.
    fn recover(&self) -> Result<(), ArchiveError> {
        let now = self.clock.now();
        for Intent { vault, key, started } in self.journal.intents()? {
            let found = self.catalog.with(|catalog| catalog.replica_at(&vault, &key));
            if let Some((object, version)) = found.map_err(|error| failed(&error))? {
                if is_copy(&key) {
                    // The drivers have run where the version was made.
                    self.journal.forget(&vault, &key)?;
                } else {
                    self.finish(&vault, &key, object, version)?;
                }
            } else if now.since(started) >= ORPHAN_AGE
                && let Some(store) = self.store(&vault)
            {
                match store.store.remove(&key) {
                    Ok(()) => self.journal.forget(&vault, &key)?,
                    // The next start tries again.
                    Err(error) => self.log.trouble("archive", error),
                }
            }
        }
        Ok(())
    }

    /// Vault with a name.
    pub(crate) fn store(&self, name: &str) -> Option<&NamedStore> {
        self.stores.iter().find(|store| store.name == name)
    }

    /// Vault that gets new versions.
    pub(crate) fn primary(&self) -> &NamedStore {
        &self.stores[0]
    }

    /// Drops a key of the journal that has a version now, and adds the tasks of its drivers.
    fn finish(&self, vault: &str, key: &str, object: ObjectId, version: Tag) -> Result<(), ArchiveError> {
        let project = project_of(key);
        let drivers = self.drivers.iter().filter(|driver| driver.is_for(project));
        let tasks = drivers.map(|driver| NewTask {
            driver: driver.name.clone(),
            project: project.to_owned(),
            object,
            version: version_of(version),
        });
        self.journal.finish(vault, key, tasks.collect())?;
        self.new_tasks.notify_one();
        Ok(())
    }

    /// Removes the bytes of an upload that got no version of its own.
    fn withdraw(&self, key: &str) -> Result<(), ArchiveError> {
        let primary = self.primary();
        if self.journal.contains(&primary.name, key)? {
            primary.store.remove(key)?;
            self.journal.forget(&primary.name, key)?;
        }
        Ok(())
    }

    fn store_upload(&self, finished: &FinishedUpload) -> Result<StoredVersion, ArchiveError> {
        let (vault, key) = (&self.primary().name, key_of(finished));
        let (attributes, refused) = upload_attributes(&finished.metadata);
        for refused in refused {
            self.log.trouble("archive", refused);
        }
        let precondition = Precondition::of(&finished.metadata)?;
        let FinishedUpload { size, blake3, file, .. } = finished;
        let (size, blake3, started) = (*size, *blake3, self.clock.now());
        let time = Nanos(started.milliseconds().saturating_mul(1_000_000));
        let state = ReplicaState::Verified;
        let put = Put {
            path: catalog_path(&finished.project, &finished.path)?,
            version: NewVersion { size, hash: ContentHash(*blake3.as_bytes()), time },
            replicas: vec![NewReplica { vault: vault.clone(), key: key.clone(), state }],
            attributes,
        };
        let known = self.catalog.with(|catalog| registered(catalog, &put));
        let registered = if let Some(known) = known.map_err(|error| failed(&error))? {
            Ok(known)
        } else {
            self.journal.begin(Intent { vault: vault.clone(), key: key.clone(), started })?;
            self.primary().store.put(&key, &Source { file, size, blake3, is_temporary: true })?;
            self.catalog.with(|catalog| register(catalog, &put, precondition))
        };
        let Registered { object, version, is_own } = registered.or_else(|error| {
            let error = failed(&error);
            if error.is_refusal() {
                self.withdraw(&key)?;
            }
            Err(error)
        })?;
        if is_own {
            self.finish(vault, &key, object, version)?;
        } else {
            self.withdraw(&key)?;
            let added = self.catalog.with(|catalog| catalog.add_attributes(&put.path, &put.attributes));
            added.map_err(|error| failed(&error))?;
        }
        let (path, version) = (finished.path.clone(), version_of(version));
        Ok(StoredVersion { path, version, size, blake3, stored: started })
    }
}

impl Archive for SiteArchive {
    fn store(&self, finished: &FinishedUpload) -> Result<StoredVersion, ArchiveError> {
        self.store_upload(finished)
    }

    fn open(
        &self,
        project: &ProjectName,
        path: &ObjectPath,
        version: Option<&VersionId>,
    ) -> Result<Option<OpenVersion>, ArchiveError> {
        self.open_version(project, path, version)
    }

    fn list(
        &self,
        project: &ProjectName,
        after: Option<&ObjectPath>,
        most: usize,
    ) -> Result<Vec<StoredVersion>, ArchiveError> {
        let after: Vec<_> = after.map_or_else(Vec::new, |after| after.as_str().split('/').collect());
        let root = CatalogPath::root().child(project.as_str());
        let root = root.map_err(|error| failed(&error.into()))?;
        let list = self.catalog.with(|catalog| listing::objects_below(catalog, &root, &after, most));
        let list = list.map_err(|error| failed(&error))?;
        let stored = list.into_iter().filter_map(|(path, info)| {
            // Other sites of the catalog may use names that have no address here.
            let path = ObjectPath::parse(&path.components()[1..].join("/")).ok()?;
            let (size, blake3) = (info.size, blake3::Hash::from_bytes(info.hash.0));
            Some(StoredVersion {
                path,
                version: version_of(info.tag),
                size,
                blake3,
                stored: timestamp(info.time),
            })
        });
        Ok(stored.collect())
    }

    fn versions(&self, project: &ProjectName, path: &ObjectPath) -> Result<Vec<StoredVersion>, ArchiveError> {
        let mut versions = self.find(project, path)?.map(|stat| stat.versions).unwrap_or_default();
        versions.sort_by_key(|version| (version.time, version.tag));
        Ok(versions.iter().map(|version| stored_version(path, version)).collect())
    }
}

/// Path of an object in the catalog: `/PROJECT/PATH`.
fn catalog_path(project: &ProjectName, path: &ObjectPath) -> Result<CatalogPath, ArchiveError> {
    format!("/{project}/{path}").parse().map_err(|error: holdfast_catalog::NameError| failed(&error.into()))
}

/// Result of a look-up, in which a missing entry is no error.
pub(crate) fn found<T>(result: Result<T, CatalogError>) -> Result<Option<T>, CatalogError> {
    match result {
        Err(CatalogError::NotFound { .. }) => Ok(None),
        found => found.map(Some),
    }
}

fn failed(error: &CatalogError) -> ArchiveError {
    match error {
        CatalogError::Unsuitable { .. }
        | CatalogError::Name(_)
        | CatalogError::Value(_)
        | CatalogError::Invalid(_) => ArchiveError::refusal(error.to_string()),
        error => ArchiveError::new(error.to_string()),
    }
}

fn stored_version(path: &ObjectPath, version: &Version) -> StoredVersion {
    StoredVersion {
        path: path.clone(),
        version: version_of(version.tag),
        size: version.size,
        blake3: blake3::Hash::from_bytes(version.hash.0),
        stored: timestamp(version.time),
    }
}

/// Time of the catalog in the resolution of this server.
pub(crate) fn timestamp(time: Nanos) -> Timestamp {
    Timestamp::from_milliseconds(time.0.div_euclid(1_000_000))
}
