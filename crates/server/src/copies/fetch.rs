//! Fetch of one version: read at another site, verified, put into the first vault, and told to the catalog. Blocks.
//!
//! The order is that of an upload, so a crash at any step leaves the replica whole or absent.

use crate::archive::ArchiveError;
use crate::clock::Timestamp;
use crate::drivers;
use crate::site::{Intent, SiteArchive, Source, copy_key};
use holdfast_catalog::{CatalogError, ObjectId, ReplicaPlace, ReplicaState, Tag};
use std::path::Path;

/// Fetches a version. Returns false if this site does not need it any more.
pub(super) fn fetch(
    site: &SiteArchive,
    object: ObjectId,
    tag: Tag,
    folder: &Path,
    now: Timestamp,
) -> Result<bool, String> {
    let text = |error: CatalogError| error.to_string();
    let found = site.catalog.with(|catalog| match catalog.path_of(object)? {
        Some(path) => catalog.stat(&path).map(|stat| Some((path, stat))),
        None => Ok(None),
    });
    let Some((path, stat)) = found.map_err(text)? else { return Ok(false) };
    let Some(version) = stat.versions.iter().find(|version| version.tag == tag) else { return Ok(false) };
    if site.replicas(&stat, tag).next().is_some() {
        return Ok(true);
    }
    let archive = |error: ArchiveError| error.to_string();
    let Some(contents) = site.open_distant(&stat, version).map_err(archive)? else {
        return Err("cannot fetch the version: no site that has it is known here; add that site".to_owned());
    };
    let file = drivers::copy(contents.as_ref(), version, folder);
    let file = file.map_err(|error| format!("cannot fetch the version: {error}; it is tried again"))?;
    let blake3 = blake3::Hash::from_bytes(version.hash.0);
    let (vault, key) = (site.primary().name.clone(), copy_key(&path, object, tag));
    let intent = Intent { vault: vault.clone(), key: key.clone(), started: now };
    let journal = |error: crate::database::DatabaseError| format!("cannot write the journal: {error}");
    site.journal.begin(intent).map_err(journal)?;
    let source = Source { file: file.path(), size: version.size, blake3, is_temporary: true };
    site.primary().store.put(&key, &source).map_err(archive)?;
    let place = ReplicaPlace { site: site.catalog.site(), vault: vault.clone(), key: key.clone() };
    let told = site.catalog.with(|catalog| match catalog.path_of(object)? {
        Some(path) => catalog.set_replica(&path, tag, place, ReplicaState::Verified).map(|()| true),
        None => Ok(false),
    });
    let is_told = told.map_err(text)?;
    if !is_told {
        site.primary().store.remove(&key).map_err(archive)?;
    }
    site.journal.forget(&vault, &key).map_err(journal)?;
    Ok(is_told)
}
