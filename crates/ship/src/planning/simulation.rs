//! Simulation of a schedule: the backlog as an exact piecewise linear function of time.
//!
//! The first day starts at 00:00 without backlog. Production runs at the sum of the active projects, or at
//! the general rate when no project is active, and stays general after the last project. The backlog
//! changes at production minus archive rate and never falls below zero. Nothing is stepped: the function
//! is computed from knee to knee.

use super::duration::Hours;
use super::error::PlanningError;
use super::limits::{general_limit, maximum_limit};
use super::schedule::Schedule;
use super::units::{BitRate, ByteSize};

/// One second, in hours: a backlog that exceeds 24 h by less does so through rounding.
const ROUNDING: f64 = 1.0 / 3600.0;

/// Corner of the backlog function.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Knee {
    /// Time since 00:00 of the first day.
    pub at: Hours,
    /// Backlog at that time.
    pub backlog: ByteSize,
}

/// Judgement of a whole schedule.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verdict {
    /// The backlog fits the disk and never lasts longer than 24 h.
    Archivable,
    /// The backlog fits the disk, but lasts longer than 24 h.
    Late,
    /// The backlog fills the disk, so data is lost or the instrument stops.
    DiskFull,
}

/// Judgement of one project against the limits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ProjectLimit {
    /// The rate keeps to the general limit.
    WithinGeneral,
    /// The rate exceeds the general limit and keeps to the maximum limit.
    WithinMaximum,
    /// The rate exceeds the maximum limit.
    AboveMaximum,
}

/// Result of one project.
#[derive(Debug, Clone, PartialEq)]
pub struct ProjectVerdict {
    /// Name of the project.
    pub name: String,
    /// Production rate of the project.
    pub rate: BitRate,
    /// Maximum limit for the observing time of the project, as if no other project exceeded the general limit.
    pub maximum: BitRate,
    /// Judgement of the rate.
    pub limit: ProjectLimit,
}

/// Result of a simulation.
#[derive(Debug, Clone, PartialEq)]
pub struct Outcome {
    /// Judgement of the whole schedule.
    pub verdict: Verdict,
    /// General rate of the simulation.
    pub general: BitRate,
    /// Greatest backlog and its first time.
    pub peak: Knee,
    /// First time at which the backlog fills the disk.
    pub full_at: Option<Hours>,
    /// Time from which the backlog stays empty.
    pub caught_up_at: Hours,
    /// Longest time during which a backlog exists without interruption.
    pub longest_backlog: Hours,
    /// Judgement of each project, in the order of the schedule.
    pub projects: Vec<ProjectVerdict>,
    /// Backlog as corners of straight lines, in order of time; data beyond the disk is counted too.
    pub knees: Vec<Knee>,
}

/// Simulates `schedule` at archive rate `archive`; the general rate must be below the archive rate.
pub fn simulate(schedule: &Schedule, archive: BitRate) -> Result<Outcome, PlanningError> {
    let general = general_limit(archive, schedule.general)?;
    let projects = schedule.projects.iter().map(|project| {
        let maximum = maximum_limit(archive, general, project.time())?;
        let limit = if project.rate <= general {
            ProjectLimit::WithinGeneral
        } else if project.rate <= maximum {
            ProjectLimit::WithinMaximum
        } else {
            ProjectLimit::AboveMaximum
        };
        Ok(ProjectVerdict { name: project.name.clone(), rate: project.rate, maximum, limit })
    });
    let projects = projects.collect::<Result<Vec<_>, PlanningError>>()?;
    let trace = Trace::new(schedule, general, archive);

    let first = Knee { at: Hours::default(), backlog: ByteSize(0) };
    let peak = trace.knees.iter().fold(first, |peak, &(at, bytes)| {
        let knee = Knee { at: Hours::new(at), backlog: ByteSize::from_bytes(bytes) };
        if knee.backlog > peak.backlog { knee } else { peak }
    });
    let full_at = schedule.disk.and_then(|disk| trace.first_above(disk.0 as f64));
    let (caught_up_at, longest_backlog) = trace.backlog_times();
    let verdict = if full_at.is_some() {
        Verdict::DiskFull
    } else if longest_backlog.get() > Hours::DAY.get() + ROUNDING {
        Verdict::Late
    } else {
        Verdict::Archivable
    };
    let knees = trace
        .knees
        .iter()
        .map(|&(at, bytes)| Knee { at: Hours::new(at), backlog: ByteSize::from_bytes(bytes) });
    let knees = knees.collect();
    Ok(Outcome { verdict, general, peak, full_at, caught_up_at, longest_backlog, projects, knees })
}

/// Corners (hours, bytes) of the backlog function.
struct Trace {
    knees: Vec<(f64, f64)>,
}

impl Trace {
    fn new(schedule: &Schedule, general: BitRate, archive: BitRate) -> Self {
        let spans: Vec<_> = schedule.projects.iter().map(|project| (project.span(), project.rate)).collect();
        let mut times: Vec<f64> = spans.iter().flat_map(|((start, end), _)| [*start, *end]).collect();
        times.extend([0.0, 24.0]);
        times.sort_by(f64::total_cmp);
        times.dedup();
        let mut trace = Self { knees: vec![(0.0, 0.0)] };
        for pair in times.windows(2) {
            let active = spans.iter().filter(|((start, end), _)| *start <= pair[0] && pair[0] < *end);
            let rate = active.map(|(_, rate)| rate.bytes_per_hour()).reduce(|sum, rate| sum + rate);
            let rate = rate.unwrap_or(general.bytes_per_hour());
            trace.advance(pair[1] - pair[0], rate - archive.bytes_per_hour());
        }
        trace.drain(f64::INFINITY, general.bytes_per_hour() - archive.bytes_per_hour());
        trace
    }

    /// Extends the function by `hours` at `slope` bytes per hour; remains below half a byte are rounding.
    fn advance(&mut self, hours: f64, slope: f64) {
        let (at, bytes) = self.last();
        let next = bytes + slope * hours;
        if next >= 0.5 {
            self.knees.push((at + hours, next));
        } else {
            self.drain(hours, slope);
            self.knees.push((at + hours, 0.0));
        }
    }

    /// Extends the function at the negative `slope` until the backlog is empty, at most by `hours`.
    fn drain(&mut self, hours: f64, slope: f64) {
        let (at, bytes) = self.last();
        if bytes > 0.0 {
            self.knees.push((at + hours.min(-bytes / slope), 0.0));
        }
    }

    fn last(&self) -> (f64, f64) {
        self.knees.last().copied().unwrap_or_default()
    }

    /// First time at which the backlog exceeds `limit` bytes, by more than rounding.
    fn first_above(&self, limit: f64) -> Option<Hours> {
        self.knees.windows(2).find(|pair| pair[1].1 >= limit + 0.5).map(|pair| {
            let [(start, before), (end, after)] = [pair[0], pair[1]];
            Hours::new(start + (end - start) * (limit - before).max(0.0) / (after - before))
        })
    }

    /// End of the last backlog and length of the longest.
    fn backlog_times(&self) -> (Hours, Hours) {
        let (mut begin, mut end, mut longest) = (0.0, 0.0, 0.0f64);
        for pair in self.knees.windows(2) {
            if pair[0].1 <= 0.0 {
                begin = pair[0].0;
            }
            if pair[0].1 > 0.0 || pair[1].1 > 0.0 {
                end = pair[1].0;
                longest = longest.max(end - begin);
            }
        }
        (Hours::new(end), Hours::new(longest))
    }
}

#[cfg(test)]
mod tests;
