//! Region of a device that a ring uses, as typed and in bytes.

use holdfast_base::failure::{Failure, Result};
use holdfast_base::{BLOCK, ByteSize};
use holdfast_format::Measured;
use holdfast_media::Profile;
use holdfast_ring::measured;
use std::str::FromStr;

/// Zones need not end at whole hundredths: a region that goes beyond the end of one by less than this part of the device
/// ends there instead.
const NEAR: u64 = 1000;

/// The first so many hundredths of a device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Region(pub(crate) u8);

impl Region {
    /// All of it.
    pub const WHOLE: Self = Self(100);
}

impl FromStr for Region {
    type Err = String;

    fn from_str(text: &str) -> std::result::Result<Self, String> {
        let wrong = || {
            format!(
                "`{text}` is not a region: give the part of the device from its beginning, such as 0..80%"
            )
        };
        let (from, to) = text.trim().split_once("..").unwrap_or(("0", text.trim()));
        let to = to.trim().strip_suffix('%').ok_or_else(wrong)?;
        let from = from.trim().trim_end_matches('%').parse::<u8>().map_err(|_| wrong())?;
        let to = to.trim_end().parse::<u8>().map_err(|_| wrong())?;
        if from != 0 {
            return Err(format!("a region begins at 0, since that is where the journal is: give 0..{to}%"));
        }
        if (1..=100).contains(&to) { Ok(Self(to)) } else { Err(wrong()) }
    }
}

/// Bytes of a region of a lane of `total` bytes.
pub(crate) fn bytes(profile: &Profile, total: u64, region: Region) -> u64 {
    let wanted = (u128::from(total) * u128::from(region.0) / 100) as u64;
    let ends = profile.zones.iter().map(|zone| zone.offset.saturating_add(zone.bytes));
    let near = ends.filter(|end| *end < wanted && wanted - end <= total / NEAR).max();
    near.unwrap_or(wanted) / BLOCK as u64 * BLOCK as u64
}

/// What was measured of a region.
pub(crate) fn known(profile: &Profile, total: u64, region: Region) -> Option<Measured> {
    measured(profile, bytes(profile, total, region))
}

/// The same, where the profile has to reach so far.
pub(crate) fn covered(profile: &Profile, total: u64, region: Region) -> Result<Measured> {
    if bytes(profile, total, region) == 0 {
        return Err(Failure::usage(format_args!("{} are too few for a ring", ByteSize(total)))
            .advice("give a larger --size, such as 10GiB"));
    }
    known(profile, total, region).ok_or_else(|| {
        let zones = profile.zones.last();
        let end = zones.map_or(0, |zone| zone.offset.saturating_add(zone.bytes));
        Failure::failed(format_args!(
            "the profile tells of the first {} only, and {} are to be used",
            ByteSize(end),
            ByteSize(bytes(profile, total, region))
        ))
        .advice(format_args!(
            "measure all of it with `holdfast profile`, or use less (--region 0..{}%)",
            (u128::from(end) * 100 / u128::from(total.max(1))).clamp(1, 99)
        ))
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::profile_file::tests::paper;

    #[test]
    fn regions_are_read_and_wrong_ones_refused() {
        for (text, percent) in [("0..80%", 80), ("0%..80%", 80), (" 0 .. 100 %", 100), ("5%", 5)] {
            assert_eq!(text.parse(), Ok(Region(percent)), "{text}");
        }
        for text in ["", "80", "0..80", "0..101%", "0..0%", "x..80%", "0..1e1%", "0..-1%"] {
            assert!(text.parse::<Region>().unwrap_err().contains("such as 0..80%"), "{text}");
        }
        assert!("20..80%".parse::<Region>().unwrap_err().contains("begins at 0"));
    }

    // Promise 1: a region is never said to be faster than its slowest place, and a zone that it hardly touches is left out.
    #[test]
    fn a_region_ends_with_a_zone_that_ends_nearby() {
        let paper = paper();
        let total = paper.device.bytes.0;
        let of = |percent| bytes(&paper, total, Region(percent));
        let zone = |number: usize| paper.zones[number].offset + paper.zones[number].bytes;
        assert_eq!(of(80), zone(15));
        assert!(of(81) > zone(15) && of(100) == total / 4096 * 4096);
        let write = |percent| known(&paper, total, Region(percent)).unwrap().write.0;
        assert_eq!(write(80), 65 << 20);
        assert!(write(81) < 65 << 20 && write(100) == 50 << 20);
        let said = covered(&paper, 2 * total, Region(60)).unwrap_err().to_string();
        assert!(said.contains("the first 1.4 TiB only") && said.contains("--region 0..50%"), "{said}");
        assert!(covered(&paper, 2 * total, Region(50)).is_ok());
    }
}
