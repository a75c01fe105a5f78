//! Lists of entries, page by page: those of a collection, and those that a pattern means.

use super::path::SitePath;
use super::session::{Session, failure};
use holdfast_base::failure::{Failure, Result};
use holdfast_catalog::NamePattern;
use holdfast_remote::{CatalogEntry, RemoteErrorKind};

/// Visits the entries of a collection in the order of their names.
pub(crate) fn each_entry(
    session: &Session,
    path: &SitePath,
    visit: &mut dyn FnMut(CatalogEntry) -> Result<()>,
) -> Result<()> {
    let (at, mut after) = (path.to_string(), None);
    loop {
        let page = session.request(session.site().catalog_list(&at, after.as_deref()))?;
        page.entries.into_iter().try_for_each(&mut *visit)?;
        after = page.next;
        if after.is_none() {
            return Ok(());
        }
    }
}

/// Visits the entries that a path means: `*`, `?` and `[abc]` in its last name match names of the collection above.
///
/// An entry that has exactly this name is the only one that is meant.
pub(crate) fn each_match(
    session: &Session,
    path: &SitePath,
    visit: &mut dyn FnMut(&SitePath) -> Result<()>,
) -> Result<()> {
    let Some(name) = path.name().filter(|_| is_pattern(path)) else { return visit(path) };
    let at = path.to_string();
    let is_name = session.run(async {
        match session.site().catalog_stat(&at).await {
            Ok(_) => Ok(true),
            // The site refuses names of projects with these characters.
            Err(error) if matches!(error.kind, RemoteErrorKind::NotFound | RemoteErrorKind::Refused) => {
                Ok(false)
            }
            Err(error) => Err(failure(&error)),
        }
    })?;
    if is_name {
        return visit(path);
    }
    let pattern = NamePattern::new(name).map_err(Failure::usage)?;
    let (above, mut found) = (path.parent(), false);
    each_entry(session, &above, &mut |entry| {
        if !pattern.matches(&entry.name) {
            return Ok(());
        }
        found = true;
        visit(&above.child(&entry.name))
    })?;
    if found { Ok(()) } else { Err(Failure::nothing("no entry matches the pattern").at(path)) }
}

/// True if the last name of a path is a pattern.
pub(crate) fn is_pattern(path: &SitePath) -> bool {
    path.name().is_some_and(NamePattern::is_pattern)
}
