//! Target of `cp`, `ln` and `mv`: the new path of each source.

use super::listing::{each_match, is_pattern};
use super::path::SitePath;
use super::session::{Session, failure};
use holdfast_base::failure::{Failure, Result};
use holdfast_remote::{CatalogKind, RemoteErrorKind};

/// New path of one entry, or the collection of several.
#[derive(Debug)]
pub(crate) struct Target<'a> {
    path: &'a SitePath,
    is_collection: bool,
}

impl<'a> Target<'a> {
    /// Passes the path and the new path of each entry that the sources name.
    pub(crate) fn each(
        session: &Session,
        sources: &[SitePath],
        path: &'a SitePath,
        work: &mut dyn FnMut(&str, &str) -> Result<()>,
    ) -> Result<()> {
        let target = Self::find(session, sources, path)?;
        sources.iter().try_for_each(|source| {
            each_match(session, source, &mut |found| work(&found.to_string(), &target.of(found)?.to_string()))
        })
    }

    /// Target of some sources: a collection if they are several, or if it is one already or written with a slash.
    fn find(session: &Session, sources: &[SitePath], path: &'a SitePath) -> Result<Self> {
        let is_collection = match sources {
            [source] if !is_pattern(source) && !path.ends_with_slash() => is_collection(session, path)?,
            _ => true,
        };
        Ok(Self { path, is_collection })
    }

    /// New path of a source.
    fn of(&self, source: &SitePath) -> Result<SitePath> {
        if !self.is_collection {
            return Ok(self.path.clone());
        }
        let name = source.name().ok_or_else(|| Failure::usage("the root has no name").at(source));
        Ok(self.path.child(name?))
    }
}

fn is_collection(session: &Session, path: &SitePath) -> Result<bool> {
    let at = path.to_string();
    session.run(async {
        match session.site().catalog_stat(&at).await {
            Ok(stat) => Ok(stat.kind == CatalogKind::Collection),
            Err(error) if error.kind == RemoteErrorKind::NotFound => Ok(false),
            Err(error) => Err(failure(&error)),
        }
    })
}
