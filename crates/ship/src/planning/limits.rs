//! Limits of the production rate: general limit, maximum limit, outage space.
//!
//! R is the long-term archive rate, g the general limit and t the observing time of one project.
//! Schedules of several projects do not belong here (see `simulation.rs`).

use super::duration::{CatchUp, Hours};
use super::error::PlanningError;
use super::units::{BitRate, ByteSize};

/// Outage that the local disk must outlast.
///
/// The study allows one to two days until a person notices and mends a fault and the archive catches up.
pub const OUTAGE: Hours = Hours::DAY_PAIR;

/// General limit that the study recommends, as a share of the archive rate: 256 kb/s of 350 kb/s.
const GENERAL_SHARE: f64 = 256.0 / 350.0;

/// Proposed general limit for archive rate R: 256/350 of R.
///
/// The general limit must stay below R, because data must be archived faster than produced. It should stay
/// well below R, because near R the shipper competes with the instrument for the machine. At 256/350 the
/// shipper is busy for less than three quarters of the time.
pub fn proposed_general_limit(archive: BitRate) -> BitRate {
    BitRate::from_bits(archive.bits() * GENERAL_SHARE)
}

/// General limit: `wanted` if it is below R, and the proposed limit if `wanted` is absent.
pub fn general_limit(archive: BitRate, wanted: Option<BitRate>) -> Result<BitRate, PlanningError> {
    let proposed = proposed_general_limit(archive);
    let general = wanted.unwrap_or(proposed);
    if general < archive {
        Ok(general)
    } else {
        Err(PlanningError::GeneralLimit { general, archive, proposed })
    }
}

/// Maximum limit of a project of `time` hours: (24·R − 24·g)/t + g.
///
/// A project at this rate, among others at the general limit, is archived within 24 hours of its start:
/// t·maximum + (24 − t)·g = 24·R. The time must be above 0 h and at most 24 h, and g at most R.
///
/// For R = 350 kb/s and t = 8 h, g = 256 kb/s gives 538 kb/s and g = 128 kb/s gives 794 kb/s. The study
/// prints 538 kb/s beside a general limit of 128 kb/s; by its own formula that figure belongs to 256 kb/s.
pub fn maximum_limit(archive: BitRate, general: BitRate, time: Hours) -> Result<BitRate, PlanningError> {
    let hours = time.get();
    if hours <= 0.0 || hours > 24.0 {
        return Err(PlanningError::ObservingTime { hours });
    }
    if general > archive {
        return Err(PlanningError::MaximumLimit { general, archive });
    }
    Ok(BitRate::from_bits(24.0 * (archive.bits() - general.bits()) / hours + general.bits()))
}

/// Disk space for the data of an outage of `hours` at the general limit: g·h.
///
/// Two days at 256 kb/s are 5.53 GB (1 kb = 1000 bit, 1 GB = 10⁹ bytes). The study asks for "at least
/// 5.6 GB": either 5.53 rounded up, or 5.66 GB cut off, which follows from 1 kb = 1024 bit. It does not say.
pub fn outage_space(general: BitRate, hours: Hours) -> ByteSize {
    general.volume(hours)
}

/// Catch-up time after an outage of `hours`: a backlog of g·h at the spare rate R − g.
pub fn outage_catch_up(archive: BitRate, general: BitRate, hours: Hours) -> CatchUp {
    CatchUp::new(general, archive, outage_space(general, hours))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn kilobits(value: f64) -> BitRate {
        BitRate::from_bits(value * 1e3)
    }

    #[test]
    fn figures_of_the_study() {
        let (archive, time) = (kilobits(350.0), Hours::new(8.0));
        assert_eq!(maximum_limit(archive, kilobits(256.0), time), Ok(kilobits(538.0)));
        assert_eq!(maximum_limit(archive, kilobits(128.0), time), Ok(kilobits(794.0)));
        assert_eq!(general_limit(archive, None).unwrap().to_string(), "256 kb/s");
        assert_eq!(outage_space(kilobits(256.0), OUTAGE), ByteSize(5_529_600_000));
        assert_eq!(outage_space(kilobits(256.0 * 1.024), OUTAGE).to_string(), "5.66 GB");
    }

    #[test]
    fn domain_errors() {
        let archive = kilobits(350.0);
        for hours in [0.0, 24.01, f64::INFINITY] {
            assert!(maximum_limit(archive, kilobits(1.0), Hours::new(hours)).is_err());
        }
        assert!(maximum_limit(archive, kilobits(351.0), Hours::DAY).is_err());
        assert_eq!(maximum_limit(archive, archive, Hours::DAY), Ok(archive));
        let message = general_limit(archive, Some(archive)).unwrap_err().to_string();
        assert!(message.starts_with("cannot use general limit 350 kb/s: it is not below"), "{message}");
        assert!(general_limit(BitRate::default(), None).is_err());
    }

    proptest! {
        #[test]
        fn maximum_limit_fills_the_day(archive in 1.0..1e12f64, share in 0.0..1.0f64, time in 0.01..24.0f64) {
            let general = archive * share;
            let (r, g) = (BitRate::from_bits(archive), BitRate::from_bits(general));
            let limit = maximum_limit(r, g, Hours::new(time)).unwrap().bits();
            let produced = time * limit + (24.0 - time) * general;
            prop_assert!((produced - 24.0 * archive).abs() < 1e-6 * archive);
            prop_assert!(limit >= general);
        }

        #[test]
        fn catch_up_drains_the_outage(archive in 1e3..1e9f64, share in 0.0..0.99f64, hours in 0.0..1000.0f64) {
            let (r, g) = (BitRate::from_bits(archive), BitRate::from_bits(archive * share));
            let CatchUp::After(after) = outage_catch_up(r, g, Hours::new(hours)) else { panic!("never") };
            // All data of outage and catch-up passes at the archive rate during the catch-up.
            let produced = g.bits() * (hours + after.get());
            prop_assert!((produced - r.bits() * after.get()).abs() <= 1e-6 * produced + 8.0);
        }
    }
}
