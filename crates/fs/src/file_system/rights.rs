//! Rights of the token, asked when a file is opened for writing: a refusal comes before bytes are gathered, not at the close.

use super::{FileSystem, lock};
use crate::error::FsError;
use rustix::io::Errno;
use std::time::Instant;

/// Right to write that is the same for all paths, and the time at which the site told it.
#[derive(Clone, Copy, Debug)]
pub(super) struct KnownRight {
    write: bool,
    at: Instant,
}

impl FileSystem {
    /// Refuses to write a file for which the token has no right.
    pub(super) async fn check_right(&self, verb: &str, path: &str) -> Result<(), FsError> {
        let known = lock(&self.right).filter(|known| known.at.elapsed() < self.options.cache);
        let write = match known {
            Some(known) => known.write,
            None => self.ask_right(path).await?,
        };
        if write {
            return Ok(());
        }
        let message =
            format!("cannot {verb} `{path}`: the token has no right to write there; use another token");
        Err(FsError::new(Errno::ACCESS, message))
    }

    async fn ask_right(&self, path: &str) -> Result<bool, FsError> {
        let rights = match self.ask(|| self.site.catalog_rights(path)).await {
            Ok(rights) => rights,
            // An older site tells it at the close.
            Err(error) if error.errno == Errno::NOENT => return Ok(true),
            Err(error) => return Err(error),
        };
        let known = KnownRight { write: rights.write, at: Instant::now() };
        *lock(&self.right) = rights.everywhere.then_some(known);
        Ok(rights.write)
    }
}
