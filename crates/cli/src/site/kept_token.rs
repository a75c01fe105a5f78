//! Token of a log-in, kept in the user's configuration folder: one file of mode 0600 a site.

use crate::args::token;
use holdfast_base::failure::{Failure, Result};
use holdfast_client::config;
use holdfast_remote::Endpoint;
use std::fs::DirBuilder;
use std::io::{ErrorKind, Write as _};
use std::os::unix::fs::DirBuilderExt as _;
use std::path::{Path, PathBuf};

/// Place of the token of one site.
pub(crate) struct KeptToken {
    /// File of the token; nothing for a user without a home.
    file: Option<PathBuf>,
}

impl KeptToken {
    /// Place of the token for the address of a site.
    pub(crate) fn of(endpoint: &Endpoint) -> Self {
        let url = endpoint.url.as_str();
        // The name is for people, the hash keeps addresses apart.
        let name: String = endpoint.url.host_str().unwrap_or_default().replace([':', '[', ']'], "_");
        let hash = blake3::hash(url.as_bytes()).to_hex();
        let file = config::token_folder().map(|folder| folder.join(format!("{name}-{}", &hash[..16])));
        Self { file }
    }

    /// Token of this place; nothing if none is kept.
    pub(crate) fn read(&self) -> Result<Option<String>> {
        match &self.file {
            Some(file) if file.exists() => token(file).map(Some),
            _ => Ok(None),
        }
    }

    /// Keeps a token in the place of an earlier one, and returns its file.
    pub(crate) fn keep(&self, token: &str) -> Result<&Path> {
        let Some((file, folder)) = self.file.as_deref().and_then(|file| Some((file, file.parent()?))) else {
            return Err(Failure::failed("cannot keep the token: neither $HOME nor $XDG_CONFIG_HOME is set"));
        };
        let cannot = |error: &std::io::Error| Failure::io("cannot keep the token", file, error);
        let made = DirBuilder::new().recursive(true).mode(0o700).create(folder);
        made.map_err(|error| cannot(&error))?;
        // A temporary file has mode 0600, and no reader sees a part of the token.
        let written = tempfile::NamedTempFile::new_in(folder).and_then(|mut written| {
            writeln!(written, "{token}")?;
            written.as_file().sync_all()?;
            written.persist(file).map_err(|error| error.error)
        });
        written.map(|_| file).map_err(|error| cannot(&error))
    }

    /// Removes the token of this place, if one is kept.
    pub(crate) fn forget(&self) -> Result<()> {
        let Some(file) = &self.file else { return Ok(()) };
        match std::fs::remove_file(file) {
            Err(error) if error.kind() != ErrorKind::NotFound => {
                Err(Failure::io("cannot remove the token", file, &error))
            }
            _ => Ok(()),
        }
    }
}
