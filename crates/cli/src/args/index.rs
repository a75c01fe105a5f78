//! `--index`: the place of index copies.

use crate::args::RingArg;
use holdfast_base::failure::Result;
use std::path::PathBuf;

/// Where copies of the index are.
#[derive(clap::Args, Clone, Debug)]
pub(crate) struct IndexArg {
    /// Index drive: the folder or device of `holdfast index` [default: `index` of the ring in the
    /// configuration file]
    #[arg(long = "index", value_name = "PATH")]
    place: Option<PathBuf>,
}

impl IndexArg {
    /// Where, if that is known.
    pub(crate) fn place(&self, ring: &RingArg) -> Result<Option<PathBuf>> {
        match &self.place {
            Some(place) => Ok(Some(place.clone())),
            None => ring.index(),
        }
    }
}
