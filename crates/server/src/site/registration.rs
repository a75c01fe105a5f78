//! Registration of a version in the catalog, safe to repeat.

use super::found;
use super::precondition::Precondition;
use super::shared_catalog::AnyStore;
use holdfast_catalog::{Catalog, CatalogError, ObjectId, Put, Tag};

/// Version that has the contents of an upload.
pub(super) struct Registered {
    pub(super) object: ObjectId,
    pub(super) version: Tag,
    /// True if the version was made for this upload.
    pub(super) is_own: bool,
}

/// Version that was made for the upload before, or the current version if its contents are the same.
pub(super) fn registered(
    catalog: &mut Catalog<AnyStore>,
    put: &Put,
) -> Result<Option<Registered>, CatalogError> {
    for replica in &put.replicas {
        if let Some((object, version)) = catalog.replica_at(&replica.vault, &replica.key)? {
            return Ok(Some(Registered { object, version, is_own: true }));
        }
    }
    let Some(stat) = found(catalog.stat(&put.path))? else { return Ok(None) };
    let current = stat.node.as_ref().and_then(|node| node.current).map(|current| current.version);
    let same = stat.versions.iter().find(|version| {
        Some(version.tag) == current && version.hash == put.version.hash && version.size == put.version.size
    });
    Ok(same.map(|same| Registered { object: same.object, version: same.tag, is_own: false }))
}

/// Adds a version, unless another upload has made the same one current meanwhile.
///
/// Nothing is added if the precondition is not met.
pub(super) fn register(
    catalog: &mut Catalog<AnyStore>,
    put: &Put,
    precondition: Option<Precondition>,
) -> Result<Registered, CatalogError> {
    if let Some(known) = registered(catalog, put)? {
        return Ok(known);
    }
    if let Some(precondition) = precondition {
        precondition.check(catalog, &put.path)?;
    }
    let stored = catalog.put_with_collections(put)?;
    Ok(Registered { object: stored.object, version: stored.version, is_own: true })
}
