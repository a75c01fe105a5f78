//! Alarm of the local disk: compares the time until it is full with the catch-up time.
//!
//! Measuring free space does not belong here.

use super::duration::{CatchUp, Hours};
use super::limits::OUTAGE;
use super::units::{BitRate, ByteSize};

/// State of the local disk.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum DiskAlarm {
    /// The disk outlasts an outage of two days.
    Ok,
    /// The archive catches up in time, but the disk would not outlast an outage of two days.
    Warning {
        /// Time until the disk is full if nothing is freed.
        full_in: Hours,
    },
    /// The disk fills before the archive catches up.
    Alarm {
        /// Time until the disk is full if nothing is freed.
        full_in: Hours,
    },
}

/// Disk state from free space, production rate, archive rate and backlog.
///
/// No space is counted as freed before the backlog is archived, because files leave the disk only after
/// verification. Averages over an hour suit as rates; a burst of one minute raises false alarms.
pub fn disk_alarm(free: ByteSize, production: BitRate, archive: BitRate, backlog: ByteSize) -> DiskAlarm {
    if production.bits() <= 0.0 {
        return DiskAlarm::Ok;
    }
    let full_in = Hours::new(free.0 as f64 / production.bytes_per_hour());
    match CatchUp::new(production, archive, backlog) {
        CatchUp::After(caught_up) if caught_up < full_in => {
            if full_in < OUTAGE {
                DiskAlarm::Warning { full_in }
            } else {
                DiskAlarm::Ok
            }
        }
        _ => DiskAlarm::Alarm { full_in },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn alarm_compares_full_with_caught_up() {
        let archive = BitRate::from_bits(350e3);
        let production = BitRate::from_bits(256e3);
        let alarm = |free, backlog| disk_alarm(ByteSize(free), production, archive, ByteSize(backlog));
        assert_eq!(alarm(5_529_600_000, 0), DiskAlarm::Ok);
        // 115.2 MB are one hour of production; 42.3 MB are one hour of spare archive rate.
        assert_eq!(alarm(115_200_000, 42_000_000), DiskAlarm::Warning { full_in: Hours::new(1.0) });
        assert_eq!(alarm(115_200_000, 43_000_000), DiskAlarm::Alarm { full_in: Hours::new(1.0) });
        assert_eq!(alarm(0, 0), DiskAlarm::Alarm { full_in: Hours::new(0.0) });
        assert_eq!(disk_alarm(ByteSize(0), BitRate::default(), archive, ByteSize(9)), DiskAlarm::Ok);
        let faster = disk_alarm(ByteSize(115_200_000), production, BitRate::from_bits(1.0), ByteSize(0));
        assert_eq!(faster, DiskAlarm::Alarm { full_in: Hours::new(1.0) });
    }
}
