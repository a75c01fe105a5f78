//! Promise that a new ring is to keep: a profile and a rate, weighed against the place where the ring is to be.

use super::region::{self, Region};
use super::{Admitted, Ask, LoadOptions, Site};
use crate::identity;
use crate::profile_file;
use holdfast_base::failure::{Failure, Result};
use holdfast_format::{Geometry, Terms};
use holdfast_media::{Footing, Identity, Profile};
use std::path::{Path, PathBuf};

/// A promise that is asked for.
pub struct Promise {
    file: PathBuf,
    profile: Profile,
    ask: Ask,
    region: Region,
}

/// How a ring keeps it.
pub struct Kept {
    /// Where its slots are.
    pub geometry: Geometry,
    /// What the superblock is to keep.
    pub terms: Terms,
    /// What was admitted.
    pub admitted: Admitted,
}

impl Promise {
    /// Reads the profile.
    pub fn read(file: &Path, options: &LoadOptions) -> Result<Self> {
        let ask = options.ask()?;
        let profile = profile_file::read(file)?;
        Ok(Self { file: file.to_owned(), profile, ask, region: options.region })
    }

    /// The profile.
    pub fn profile(&self) -> &Profile {
        &self.profile
    }

    /// Refuses a device that is another than was measured.
    pub fn is_of(&self, here: &Identity) -> Result<()> {
        let Some(why) = identity::differs(&self.profile.device, here) else { return Ok(()) };
        Err(Failure::failed(format_args!("this profile is not of {}: {why}", here.path))
            .at_path(&self.file)
            .advice(format_args!("measure this device: `holdfast profile {}`", here.path)))
    }

    /// What is to be known where a file rests on the profile of a device.
    pub fn elsewhere(&self, path: &Path) -> Option<String> {
        let of = &self.profile.device;
        (Footing::of(path).file && of.medium == "device").then(|| {
            format!(
                "the profile is of {}: it counts only if this file lies there, and if nothing else writes there",
                of.path
            )
        })
    }

    /// Weighs it on a device or file of `total` bytes.
    pub fn weigh(&self, total: u64) -> Result<Kept> {
        let at = |failure: Failure| failure.at_path(&self.file);
        let measured = region::covered(&self.profile, total, self.region).map_err(at)?;
        let site = Site { profile: &self.profile, measured, total, region: self.region };
        let divide = |slot: u64| Geometry::for_lane(site.lane(), slot, Vec::new()).map_err(Failure::usage);
        // A slot size that cannot be is the caller's mistake, whatever is promised.
        if let Some(slot) = self.ask.slot {
            divide(slot.0)?;
        }
        let admitted = site.admit(&self.ask).map_err(at)?;
        let geometry = divide(admitted.shape.slot.0)?;
        Ok(Kept { geometry, terms: admitted.terms(&measured, &self.ask), admitted })
    }
}
