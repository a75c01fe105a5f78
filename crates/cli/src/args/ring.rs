//! `RING`: the ring that nearly every command begins with.

use holdfast_base::failure::Result;
use holdfast_client::{config, session};
use holdfast_reader::RingReader;
use std::path::{Path, PathBuf};

/// A ring, as it is named on the command line.
#[derive(clap::Args, Clone, Debug)]
pub(crate) struct RingArg {
    #[arg(
        value_name = "RING",
        help = "path of a ring (file or device), or its name in the configuration file"
    )]
    named: PathBuf,
}

impl RingArg {
    /// Ring with this path or name.
    pub(crate) fn of(named: PathBuf) -> Self {
        Self { named }
    }

    /// The file, where it is a dataset.
    pub(crate) fn dataset(&self) -> Option<&Path> {
        holdfast_dataset::is_mcap(&self.named).then_some(&*self.named)
    }

    /// Path of the index copies that the configuration file names.
    pub(crate) fn index(&self) -> Result<Option<PathBuf>> {
        Ok(config::ring(&self.named)?.index)
    }

    /// Path of the ring.
    pub(crate) fn path(&self) -> Result<PathBuf> {
        session::ring_path(&self.named)
    }

    /// Opens the ring for reading.
    pub(crate) fn open(&self) -> Result<(PathBuf, RingReader)> {
        let path = self.path()?;
        let reader = session::open(&path)?;
        Ok((path, reader))
    }
}
