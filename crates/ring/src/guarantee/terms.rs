//! Terms of the admission inequality, computed from a profile and declarations.

use super::Load;
use holdfast_base::{ByteSize, Rate};
use holdfast_format::{Coming, ElementLoad, Measured, on_medium};
use holdfast_media::Profile;

/// What one stream declares, as payload.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Declared {
    /// Bytes a second.
    pub rate: Rate,
    /// Elements a second.
    pub elements: u64,
    /// Bytes that may come at once beyond the rate.
    pub burst: ByteSize,
    /// What an element takes beside its payload.
    pub each: ElementLoad,
}

impl Declared {
    /// Who declares nothing.
    pub const NOTHING: Self =
        Self { rate: Rate(0), elements: 0, burst: ByteSize(0), each: ElementLoad::NONE };

    /// What an element of the size that is declared takes.
    fn each(&self) -> ElementLoad {
        self.each.of_size(self.rate.0.div_ceil(self.elements.max(1)))
    }
}

/// What all streams together come to on the medium, with slots of `slot` bytes.
pub fn load(streams: &[Declared], slot: ByteSize) -> Load {
    let sum = |of: fn(&Declared) -> u64| streams.iter().map(of).fold(0u64, u64::saturating_add);
    let (payload, elements, burst) = (sum(|s| s.rate.0), sum(|s| s.elements), sum(|s| s.burst.0));
    // A burst has elements of the size that the rate has.
    let more = if payload == 0 { 0.0 } else { burst as f64 / payload as f64 };
    let medium = |share: f64| {
        let coming = |stream: &Declared| Coming {
            payload: stream.rate.0 as f64 * share,
            elements: stream.elements as f64 * share,
            each: stream.each(),
        };
        let bytes = on_medium(slot.0, &streams.iter().map(coming).collect::<Vec<_>>());
        // A float that is too large becomes the largest integer.
        bytes.ceil() as u64
    };
    let cells = |stream: &Declared| stream.elements.saturating_mul(stream.each.columns.into());
    Load {
        rate: Rate(medium(1.0)),
        elements,
        cells: streams.iter().map(cells).fold(0, u64::saturating_add),
        burst: ByteSize(if burst == 0 { 0 } else { medium(more) }),
    }
}

/// What holds for a ring that uses the first `bytes` of a device; `None` when the profile does not cover them.
pub fn measured(profile: &Profile, bytes: u64) -> Option<Measured> {
    let used = || profile.zones.iter().filter(|zone| zone.offset < bytes);
    let covered = used().map(|zone| zone.offset.saturating_add(zone.bytes)).max()? >= bytes;
    let write = used().map(|zone| zone.write_worst).min().filter(|_| covered)?;
    let read = used().map(|zone| zone.read_worst).min()?;
    // What reads cost the writes beside them was measured at the beginning: the same share is taken off everywhere.
    let beside = match (profile.parallel, used().next().map(|zone| zone.write_mean.0)) {
        (2.., Some(alone)) if alone > 0 => (profile.write_beside_reads.0 as f64 / alone as f64).min(1.0),
        _ => 1.0,
    };
    Some(Measured {
        at: profile.at,
        // Arithmetic that follows divides by it.
        write: Rate(((write.0 as f64 * beside) as u64).max(1)),
        read,
        reposition: profile.reposition.worst,
        commit: profile.commit,
        read_error: profile.read_error.limit(),
        stall: profile.stalls.sigma,
        stalled: profile.stalls.rho,
        parallel: profile.parallel,
        elements: profile.packer_elements,
        cells: profile.packer_cells,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use holdfast_base::Timestamp;
    use holdfast_format::Class;
    use holdfast_media::{Identity, ReadError, Reposition, Stalls, Zone};
    use std::time::Duration;

    fn profile() -> Profile {
        let zone = |number: u64, write: u64, read: u64| Zone {
            offset: number << 30,
            bytes: 1 << 30,
            write_worst: Rate(write << 20),
            write_mean: Rate((write + 1) << 20),
            read_worst: Rate(read << 20),
            read_mean: Rate(read << 20),
        };
        Profile {
            device: Identity::default(),
            at: Timestamp(1),
            zones: vec![zone(0, 68, 115), zone(1, 65, 70), zone(2, 50, 50)],
            reposition: Reposition { worst: Duration::from_millis(30), ..Reposition::default() },
            commit: Duration::ZERO,
            read_error: ReadError::Assumed(Duration::from_secs(7)),
            stalls: Stalls::default(),
            by_block: Vec::new(),
            by_depth: Vec::new(),
            parallel: 1,
            write_beside_reads: Rate(30 << 20),
            write_cache: Some(false),
            discard: false,
            preconditioned: true,
            packer_elements: 100,
            packer_cells: 100,
            packer_bytes: Rate(1),
            remarks: Vec::new(),
        }
    }

    #[test]
    fn the_slowest_zone_in_use_counts_and_no_other() {
        let profile = profile();
        let write = |bytes| measured(&profile, bytes).map(|measured| measured.write.0 >> 20);
        assert_eq!(write(1 << 30), Some(68));
        assert_eq!(write((1 << 30) + 1), Some(65));
        assert_eq!(write(3 << 30), Some(50));
        assert_eq!(write((3 << 30) + 1), None, "nobody has measured that far");
        let flash = Profile { parallel: 8, ..profile.clone() };
        assert_eq!(measured(&flash, 1 << 30).map(|m| m.write.0 >> 20), Some(68 * 30 / 69));
    }

    #[test]
    fn streams_add_up_and_a_burst_brings_its_rows() {
        let one = Declared {
            rate: Rate(30_000_000),
            elements: 20_000,
            burst: ByteSize(15_000_000),
            ..Declared::NOTHING
        };
        let both = load(&[one, one], ByteSize::mib(64));
        assert_eq!(both.elements, 40_000);
        // 60 MB of payload, 40,000 rows of up to 60 bytes, heads and checks.
        assert!((62_400_000..62_800_000).contains(&both.rate.0), "{both:?}");
        assert!(both.burst.0.abs_diff(both.rate.0 / 2) < 2, "{both:?}");
        assert_eq!(load(&[Declared { burst: ByteSize(0), ..one }], ByteSize::mib(64)).burst, ByteSize(0));
        // Three columns more, of which one is a text as long as an element of 1500 bytes may have.
        let each = ElementLoad::NONE.with(Class::Word, 0).with(Class::Wide, 0).with(Class::Bytes, 2000);
        let told = Declared { each, ..one };
        let with = load(&[told, one], ByteSize::mib(64));
        assert_eq!((with.cells, both.cells), (60_000, 0));
        let more = (9 + 17 + 3 + 1024) * 20_000;
        assert!((more..more * 11 / 10).contains(&(with.rate.0 - both.rate.0)), "{with:?} {both:?}");
    }
}
