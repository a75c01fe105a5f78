//! Planning of data production: limits of the production rate, schedules, disk alarms.
//!
//! The formulas follow R. Plante, "A Performance Study of the BIMA Archiving System" (1996), section
//! "Limiting the Data Production Rate". Everything here is a pure function of its arguments. Measured
//! rates do not belong here (see `statistics`), nor does their presentation (see `report`).

mod alarm;
mod duration;
mod error;
mod limits;
mod schedule;
mod simulation;
mod units;

pub use alarm::{DiskAlarm, disk_alarm};
pub use duration::{CatchUp, ClockTime, Hours};
pub use error::PlanningError;
pub use limits::{
    OUTAGE, general_limit, maximum_limit, outage_catch_up, outage_space, proposed_general_limit,
};
pub use schedule::{MAX_PROJECTS, Project, Schedule};
pub use simulation::{Knee, Outcome, ProjectLimit, ProjectVerdict, Verdict, simulate};
pub(crate) use units::decimal_scale;
pub use units::{BitRate, ByteSize, UnitError};
