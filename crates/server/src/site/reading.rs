//! Reads of a site: look-up of versions in the catalog, and opening of their replicas.

use super::{NamedStore, SiteArchive, catalog_path, failed, found, stored_version, tag_of, version_of};
use crate::archive::{ArchiveError, OpenVersion, ReadAt, VersionId};
use crate::object_path::{ObjectPath, ProjectName};
use holdfast_catalog::{CatalogPath, ObjectId, Replica, ReplicaState, Stat, Tag, Version};
use std::sync::Weak;

impl SiteArchive {
    /// Opens a version of an object, the current one if `version` is `None`.
    pub(super) fn open_version(
        &self,
        project: &ProjectName,
        path: &ObjectPath,
        version: Option<&VersionId>,
    ) -> Result<Option<OpenVersion>, ArchiveError> {
        let Some(stat) = self.find(project, path)? else { return Ok(None) };
        let current = stat.node.as_ref().and_then(|node| node.current).map(|current| current.version);
        let wanted = version.map_or(current, tag_of);
        let found = stat.versions.iter().find(|version| Some(version.tag) == wanted);
        let Some(version) = found else { return Ok(None) };
        let contents = self.open_anywhere(&stat, version)?;
        Ok(Some(OpenVersion { stored: stored_version(path, version), contents }))
    }

    /// Opens a version whose object is known by its id, at this site only.
    pub(crate) fn open_here(
        &self,
        object: ObjectId,
        version: &VersionId,
    ) -> Result<Option<OpenVersion>, ArchiveError> {
        let stat = self.catalog.with(|catalog| match catalog.path_of(object)? {
            Some(path) => catalog.stat(&path).map(|stat| Some((path, stat))),
            None => Ok(None),
        });
        let Some((path, stat)) = stat.map_err(|error| failed(&error))? else { return Ok(None) };
        let found = stat.versions.iter().find(|known| Some(known.tag) == tag_of(version));
        let Some(version) = found else { return Ok(None) };
        let contents = self.open_replica(&stat, version)?;
        Ok(Some(OpenVersion { stored: stored_version(&ObjectPath::of_entry(&path), version), contents }))
    }

    /// Opens a version of an object that was found by its id, with its path or its former one.
    pub(crate) fn open_found(
        &self,
        path: &CatalogPath,
        stat: &Stat,
        version: &VersionId,
    ) -> Result<Option<OpenVersion>, ArchiveError> {
        let found = stat.versions.iter().find(|known| Some(known.tag) == tag_of(version));
        let Some(version) = found else { return Ok(None) };
        let contents = self.open_anywhere(stat, version)?;
        Ok(Some(OpenVersion { stored: stored_version(&ObjectPath::of_entry(path), version), contents }))
    }

    /// Opens a replica of a version: one of this site, or else of the nearest site that has one.
    fn open_anywhere(&self, stat: &Stat, version: &Version) -> Result<Box<dyn ReadAt>, ArchiveError> {
        self.open_replica(stat, version).or_else(|here| self.open_distant(stat, version)?.ok_or(here))
    }

    /// Opens a replica of a version at the nearest other site that has one; nothing if no known site has one.
    pub(crate) fn open_distant(
        &self,
        stat: &Stat,
        version: &Version,
    ) -> Result<Option<Box<dyn ReadAt>>, ArchiveError> {
        let distant = self.distant.get().and_then(Weak::upgrade);
        Ok(distant.map(|distant| distant.open(stat, version)).transpose()?.flatten())
    }

    /// Opens the first replica of a version at this site that can be opened.
    pub(crate) fn open_replica(
        &self,
        stat: &Stat,
        version: &Version,
    ) -> Result<Box<dyn ReadAt>, ArchiveError> {
        let mut last = None;
        for (store, key) in self.replicas(stat, version.tag) {
            match store.store.open(key) {
                Ok(open) if open.size == version.size => return Ok(open.contents),
                Ok(open) => {
                    let (size, expected) = (open.size, version.size);
                    let reason = format!("it has {size} bytes and not {expected}; restore it");
                    last = Some(ArchiveError::new(format!("cannot open the file {key}: {reason}")));
                }
                Err(error) => last = Some(error),
            }
        }
        Err(last.unwrap_or_else(|| {
            let version = version_of(version.tag);
            ArchiveError::new(format!(
                "cannot open the version {version}: no vault of this site has it; fetch it from another site"
            ))
        }))
    }

    /// Verified replicas of a version at this site, with their keys, in the order of the vaults.
    pub(crate) fn replicas<'a>(
        &'a self,
        stat: &'a Stat,
        version: Tag,
    ) -> impl Iterator<Item = (&'a NamedStore, &'a str)> {
        let is_usable = move |replica: &&Replica| {
            replica.place.site == self.catalog.site()
                && replica.content == Some((version, ReplicaState::Verified))
        };
        self.stores.iter().flat_map(move |store| {
            let here = stat.replicas.iter().filter(is_usable);
            let here = here.filter(|replica| replica.place.vault == store.name);
            here.map(move |replica| (store, replica.place.key.as_str()))
        })
    }

    /// Entry of an object; nothing if it does not exist.
    pub(super) fn find(
        &self,
        project: &ProjectName,
        path: &ObjectPath,
    ) -> Result<Option<Stat>, ArchiveError> {
        let path = catalog_path(project, path)?;
        found(self.catalog.with(|catalog| catalog.stat(&path))).map_err(|error| failed(&error))
    }
}
