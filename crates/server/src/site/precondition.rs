//! Precondition of an upload: the pair `replaces` of the header `Upload-Metadata` names the version that must be current.
//!
//! It lets a client change an object without losing the work of another one. Without the pair the latest upload is current.

use super::found;
use super::key::tag_of;
use super::shared_catalog::AnyStore;
use crate::archive::{ArchiveError, VersionId};
use holdfast_catalog::{Catalog, CatalogError, CatalogPath, Tag};

/// Key of the pair.
const KEY: &str = "replaces";

/// Value of the pair for a path that no entry may have.
const NOTHING: &str = "none";

/// State of a path that an upload needs when it is stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Precondition {
    /// Version that must be current; nothing if the path must be free.
    version: Option<Tag>,
}

impl Precondition {
    /// Reads the precondition of an upload, if it has one.
    pub(super) fn of(metadata: &[(String, Vec<u8>)]) -> Result<Option<Self>, ArchiveError> {
        let Some((_, value)) = metadata.iter().find(|(key, _)| key == KEY) else { return Ok(None) };
        let text = String::from_utf8_lossy(value);
        if text == NOTHING {
            return Ok(Some(Self { version: None }));
        }
        let version = VersionId::parse(&text).and_then(|version| tag_of(&version));
        if version.is_some() {
            return Ok(Some(Self { version }));
        }
        let text = text.escape_debug();
        Err(ArchiveError::refusal(format!(
            "cannot replace the version '{text}': it is not the text of a version; copy it from a listing"
        )))
    }

    /// Refuses to store at a path whose state is another one.
    pub(super) fn check(
        self,
        catalog: &mut Catalog<AnyStore>,
        path: &CatalogPath,
    ) -> Result<(), CatalogError> {
        let entry = found(catalog.stat(path))?.and_then(|stat| stat.node);
        let is_met = match (self.version, entry) {
            (None, None) => true,
            (Some(version), Some(node)) => node.current.is_some_and(|current| current.version == version),
            _ => false,
        };
        if is_met {
            return Ok(());
        }
        let (reason, remedy) = ("it has changed since the version that this one replaces", "read it again");
        Err(CatalogError::Unsuitable { verb: "store", object: format!("`{path}`"), reason, remedy })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_version_or_none_is_read() {
        let of = |value: &str| Precondition::of(&[(KEY.to_owned(), value.as_bytes().to_vec())]);
        assert_eq!(of("none").unwrap(), Some(Precondition { version: None }));
        assert!(of("abc-12-3").unwrap().unwrap().version.is_some());
        assert_eq!(Precondition::of(&[]).unwrap(), None);
        for bad in ["", "abc", "None"] {
            assert!(of(bad).unwrap_err().is_refusal(), "{bad}");
        }
    }
}
