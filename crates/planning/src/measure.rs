//! Measurement of a device or file, and of the packer: the making of a profile.

use crate::identity;
use crate::packer_rate::{self, Packing};
use crate::subject::{Place, too_full};
use holdfast_base::SystemClock;
use holdfast_base::failure::{Failure, Result};
use holdfast_media::{Medium, Profile, ProfileError, Subject, profile as measure_device};
use std::path::Path;
use std::time::Duration;

/// Measures the packer, then the device, in so many zones and as long as was asked. `progress` is told what is under way, how
/// long it takes, and which part is done.
pub fn measure(
    place: Place,
    path: &Path,
    zones: u16,
    lasts: Duration,
    progress: &mut dyn FnMut(&str, Duration, f64),
) -> Result<Profile> {
    let Packing { elements: packer_elements, cells: packer_cells, bytes: packer_bytes } =
        packer_rate::measure()?;
    let Place { mut disk, buffers, bytes, described, writable, slots, ring, prefilled, .. } = place;
    let device = identity::of(path, bytes);
    let is_file = holdfast_media::Disk::info(&disk).medium == Medium::File;
    let subject = Subject {
        // Places of flash and of files that were never written are not what they will be.
        precondition: ring.is_none() && (is_file || device.rotational != Some(true)),
        preconditioned: prefilled,
        device,
        read_error: described.read_error,
        write_cache: described.write_cache,
        discard: described.discard,
        writable,
        slots,
        zones,
        lasts,
        packer_elements,
        packer_cells,
        packer_bytes,
        remarks: unlimited(described.unlimited, path).into_iter().collect(),
    };
    let found = measure_device(&mut disk, &SystemClock::new(), buffers, &subject, &mut |now| {
        progress(now.what, now.left, now.part);
    });
    found.map_err(|error| match (error, ring) {
        (ProfileError::Places { .. }, Some(ring)) => too_full(ring, path, bytes),
        (error, _) => Failure::failed(format_args!("cannot be measured: {error}")),
    })
}

/// What to do about a drive that tries for ever.
fn unlimited(so: bool, path: &Path) -> Option<String> {
    so.then(|| {
        format!(
            "its limit on read errors (SCT ERC) is switched off: it may try for minutes, and longer than is assumed; \
             `smartctl -l scterc,70,70 {}` sets 7 s until power is lost: then measure again",
            path.display()
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_drive_that_tries_for_ever_is_told_of() {
        assert_eq!(unlimited(false, Path::new("/dev/sdb")), None);
        assert!(unlimited(true, Path::new("/dev/sdb")).unwrap().contains("scterc,70,70 /dev/sdb"));
    }
}
