//! List of all objects below a collection in the order of their paths, a page at a time.

use super::shared_catalog::AnyStore;
use holdfast_catalog::{Catalog, CatalogError, CatalogPath, Kind, Result, VersionInfo};

/// Entries of a collection that are read together.
const PAGE: usize = 1000;

/// Current versions of the objects below `root` that come after `after`, a path below it; at most `most`.
pub(crate) fn objects_below(
    catalog: &mut Catalog<AnyStore>,
    root: &CatalogPath,
    after: &[&str],
    most: usize,
) -> Result<Vec<(CatalogPath, VersionInfo)>> {
    let mut found = Vec::new();
    // Collections from the root down to the place of the walk, each with the name behind which it goes on.
    let mut places: Vec<(CatalogPath, Option<String>)> = Vec::new();
    let mut at = root.clone();
    for name in after {
        let inside = at.child(name)?;
        places.push((at, Some((*name).to_owned())));
        at = inside;
    }
    // The path `after` may be a collection by now; its objects follow.
    places.push((at, None));
    while let Some((collection, behind)) = places.pop() {
        let page = match catalog.list(&collection, behind.as_deref(), PAGE) {
            Err(CatalogError::NotFound { .. } | CatalogError::Unsuitable { .. }) => continue,
            page => page?,
        };
        let mut next = page.next;
        for entry in page.entries {
            if found.len() >= most {
                return Ok(found);
            }
            let path = collection.child(&entry.node.shown)?;
            if entry.node.kind == Kind::Collection {
                places.push((collection.clone(), Some(entry.node.shown)));
                places.push((path, None));
                next = None;
                break;
            }
            found.extend(entry.version.map(|version| (path, version)));
        }
        if next.is_some() {
            places.push((collection, next));
        }
    }
    Ok(found)
}
