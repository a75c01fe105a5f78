//! Keys of the site's objects, and identities of versions as texts.
//!
//! The key of a version is `PROJECT/PATH/.holdfast/UPLOAD`: people find it by project and path, no two uploads share it, and
//! no object has a name with that prefix. A version is written `SITE-OPERATION-PLACE`, the parts of its tag in the catalog.

use crate::archive::{FinishedUpload, VersionId};
use holdfast_catalog::{CatalogPath, ObjectId, OpId, SiteId, Tag};

/// Folder of the versions of one object.
const VERSIONS: &str = ".holdfast";

/// Beginning of the names of copies.
const COPY: &str = "copy-";

/// Key of an upload's bytes.
pub(crate) fn key_of(finished: &FinishedUpload) -> String {
    format!("{}/{}/{VERSIONS}/{}", finished.project, finished.path, finished.id)
}

/// Key of a copy of another site's bytes. The id keeps copies of objects apart that had one path after the other.
pub(crate) fn copy_key(path: &CatalogPath, object: ObjectId, version: Tag) -> String {
    let path = path.to_string();
    let (path, version) = (path.trim_start_matches('/'), version_of(version));
    format!("{path}/{VERSIONS}/{COPY}{object}-{}", version.as_str())
}

/// True for the key of a copy.
pub(super) fn is_copy(key: &str) -> bool {
    key.rsplit('/').next().is_some_and(|name| name.starts_with(COPY))
}

/// Name of the project that a key belongs to.
pub(crate) fn project_of(key: &str) -> &str {
    key.split('/').next().unwrap_or_default()
}

/// Identity of the version with a tag.
pub(crate) fn version_of(tag: Tag) -> VersionId {
    VersionId::of_parts(tag.op.site.number(), tag.op.seq, tag.index)
}

/// Tag of a version, if the text is that of a tag.
pub(crate) fn tag_of(version: &VersionId) -> Option<Tag> {
    let mut parts = version.as_str().split('-');
    let (site, seq, index) = (parts.next()?, parts.next()?, parts.next()?);
    let site = SiteId::new(u64::from_str_radix(site, 16).ok()?).ok()?;
    let tag = Tag { op: OpId { site, seq: seq.parse().ok()? }, index: index.parse().ok()? };
    (parts.next().is_none() && version_of(tag) == *version).then_some(tag)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tag_survives_its_text() {
        let tag = Tag { op: OpId { site: SiteId::new(0xabc).unwrap(), seq: 12 }, index: 3 };
        let version = version_of(tag);
        assert_eq!((version.as_str(), tag_of(&version)), ("abc-12-3", Some(tag)));
        for bad in ["abc", "abc-12", "abc-12-3-4", "ABC-12-3", "0-1-1", "abc-012-3", "x-1-1"] {
            assert_eq!(tag_of(&VersionId::parse(bad).unwrap()), None, "{bad}");
        }
    }
}
