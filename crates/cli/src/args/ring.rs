//! `RING`: the ring that nearly every command begins with.

use holdfast_base::failure::{Failure, Result};
use holdfast_client::{config, session};
use holdfast_reader::RingReader;
use holdfast_vault::{Place, Source};
use std::path::PathBuf;

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

    /// Place of the one dataset that is meant; `None`: it is a ring.
    pub(crate) fn dataset(&self) -> Result<Option<Place>> {
        let place = Place::parse(&self.named)?;
        let mut sources = place.sources()?;
        match (sources.pop(), sources.is_empty()) {
            (Some(Source::Dataset(dataset)), true) => Ok(Some(dataset)),
            (Some(Source::Dataset(_)), false) => {
                Err(Failure::usage("there are several datasets at this place")
                    .at(place)
                    .advice("name one of them, or take `holdfast query`"))
            }
            _ => Ok(None),
        }
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
