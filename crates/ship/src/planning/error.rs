//! Errors of planning. Errors of reading a unit stand in `units.rs`.

use super::units::BitRate;

/// Reason why a limit or a schedule cannot be computed.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum PlanningError {
    /// The general limit leaves no spare archive rate.
    #[error(
        "cannot use general limit {general}: it is not below the archive rate {archive}, so a backlog never \
         shrinks; choose a lower limit, such as {proposed}"
    )]
    GeneralLimit {
        /// General limit as asked for.
        general: BitRate,
        /// Long-term archive rate of the site.
        archive: BitRate,
        /// General limit that the crate proposes.
        proposed: BitRate,
    },
    /// The general limit of a maximum limit exceeds the archive rate.
    #[error(
        "cannot compute maximum limit: general limit {general} exceeds archive rate {archive}; lower the \
         general limit to {archive} or less"
    )]
    MaximumLimit {
        /// General limit as asked for.
        general: BitRate,
        /// Long-term archive rate of the site.
        archive: BitRate,
    },
    /// An observing time is not a time within one day.
    #[error("cannot use observing time {hours} h: it is not above 0 h and at most 24 h; correct `hours`")]
    ObservingTime {
        /// Observing time in hours.
        hours: f64,
    },
    /// The schedule text is not valid TOML or has a wrong field.
    #[error("cannot read schedule: {reason}; correct the schedule")]
    Toml {
        /// Message of the TOML reader with the line and the offending text.
        reason: String,
    },
    /// One project of the schedule is not valid.
    #[error("cannot read project {name:?}: `hours` is {hours}; write a number above 0 and at most 24")]
    Project {
        /// Name of the project.
        name: String,
        /// Observing time in hours.
        hours: f64,
    },
    /// The schedule has more projects than the limit.
    #[error("cannot read schedule: it has {count} projects; keep to {limit} or fewer")]
    Projects {
        /// Number of projects in the schedule.
        count: usize,
        /// Greatest number of projects.
        limit: usize,
    },
}
