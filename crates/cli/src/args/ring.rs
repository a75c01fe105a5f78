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

/// Ring of a site in the name space.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct SiteRing {
    /// Name of the site; empty for all sites.
    pub(crate) site: String,
    /// Name of the ring at its site; empty for all rings.
    pub(crate) ring: String,
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

    /// Ring of a site, if it is given as `hf://SITE/rings/RING`; the parts that are left out are empty.
    pub(crate) fn site_ring(&self) -> Result<Option<SiteRing>> {
        let Some(rest) = self.named.to_str().and_then(|named| named.strip_prefix("hf://")) else {
            return Ok(None);
        };
        let parts: Vec<&str> = rest.trim_end_matches('/').split('/').collect();
        let (site, ring) = match parts[..] {
            [site] | [site, "rings"] => (site, ""),
            [site, "rings", ring] => (site, ring),
            _ => {
                return Err(Failure::usage("this is no ring of a site")
                    .at_path(&self.named)
                    .advice("write hf://SITE/rings/RING"));
            }
        };
        Ok(Some(SiteRing { site: site.to_owned(), ring: ring.to_owned() }))
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
