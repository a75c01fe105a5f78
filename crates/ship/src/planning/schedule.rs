//! Schedule of an observing day, read from TOML.
//!
//! ```toml
//! general = "128kb/s"   # rate outside projects; default: 256/350 of the archive rate
//! disk = "4GB"          # space for unarchived data; default: unlimited
//!
//! [[project]]
//! name = "n102a110"
//! from = "08:00"        # time of day, HH:MM
//! hours = 8             # above 0, at most 24; may pass midnight
//! rate = "538kb/s"
//! ```
//!
//! Rates of overlapping projects add up. The effect of a schedule is computed in `simulation.rs`.

use serde::Deserialize;

use super::duration::{ClockTime, Hours};
use super::error::PlanningError;
use super::units::{BitRate, ByteSize};

/// Greatest number of projects, far more than one day holds; bounds the work of a simulation.
pub const MAX_PROJECTS: usize = 1000;

/// Observing day: projects, the rate outside projects, and the disk.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Schedule {
    /// Production rate outside projects; the proposed general limit if absent.
    pub general: Option<BitRate>,
    /// Disk space for unarchived data; unlimited if absent.
    pub disk: Option<ByteSize>,
    /// Projects in the order of the text.
    #[serde(default, rename = "project")]
    pub projects: Vec<Project>,
}

/// One project of a schedule.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Project {
    /// Name of the project.
    pub name: String,
    /// Start, on the first day.
    pub from: ClockTime,
    hours: f64,
    /// Production rate of the project.
    pub rate: BitRate,
}

impl Project {
    /// Project that starts at `from`; the time must be above 0 h and at most 24 h.
    pub fn new(name: String, from: ClockTime, time: Hours, rate: BitRate) -> Result<Self, PlanningError> {
        Self { name, from, hours: time.get(), rate }.checked()
    }

    /// Observing time of the project.
    pub fn time(&self) -> Hours {
        Hours::new(self.hours)
    }

    /// Start and end in hours since 00:00 of the first day.
    pub(super) fn span(&self) -> (f64, f64) {
        let start = self.from.since_midnight().get();
        (start, start + self.hours)
    }

    fn checked(self) -> Result<Self, PlanningError> {
        if self.hours > 0.0 && self.hours <= 24.0 {
            Ok(self)
        } else {
            Err(PlanningError::Project { name: self.name, hours: self.hours })
        }
    }
}

impl Schedule {
    /// Schedule from TOML text.
    pub fn from_toml(text: &str) -> Result<Self, PlanningError> {
        let schedule: Self =
            toml::from_str(text).map_err(|error| PlanningError::Toml { reason: error.to_string() })?;
        if schedule.projects.len() > MAX_PROJECTS {
            return Err(PlanningError::Projects { count: schedule.projects.len(), limit: MAX_PROJECTS });
        }
        let projects = schedule.projects.into_iter().map(Project::checked).collect::<Result<_, _>>()?;
        Ok(Self { projects, ..schedule })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PROJECT: &str = "[[project]]\nname = 'a'\nfrom = '08:00'\nrate = '538kb/s'\n";

    #[test]
    fn schedule_is_read() {
        let schedule = Schedule::from_toml(&format!("disk = '4GB'\n{PROJECT}hours = 8\n")).unwrap();
        assert_eq!(schedule.general, None);
        assert_eq!(schedule.disk, Some(ByteSize(4_000_000_000)));
        assert_eq!(schedule.projects[0].span(), (8.0, 16.0));
        assert!(Schedule::from_toml("").unwrap().projects.is_empty());
    }

    #[test]
    fn wrong_fields_are_named() {
        let fail = |text: String| Schedule::from_toml(&text).unwrap_err().to_string();
        let message = fail(format!("{PROJECT}hours = 0.0\n"));
        assert_eq!(message, "cannot read project \"a\": `hours` is 0; write a number above 0 and at most 24");
        assert!(fail(format!("{PROJECT}hours = nan\n")).contains("`hours` is NaN"));
        assert!(fail(format!("general = '256'\n{PROJECT}hours = 1\n")).contains("the unit is missing"));
        assert!(fail(format!("{PROJECT}hours = 1\nrat = 2\n")).contains("rat"));
        assert!(fail("[[project]]\n".to_owned()).contains("missing field"));
        assert!(fail(format!("{PROJECT}hours = 1\n").repeat(MAX_PROJECTS + 1)).contains("1001 projects"));
    }
}
