//! `holdfast ship plan`: limits of the production rate, from a rate that is given or was measured.

use super::state;
use crate::out::Out;
use holdfast_base::clean;
use holdfast_base::failure::{Failure, Result};
use holdfast_client::json::{PlannedArchive, PlannedProject, PlannedSchedule};
use holdfast_ship::planning::{
    BitRate, ByteSize, CatchUp, Hours, Outcome, ProjectLimit, ProjectVerdict, Schedule, Verdict,
    general_limit, maximum_limit, outage_catch_up, outage_space, simulate,
};
use std::path::Path;

/// Days of measurements that the rate is averaged over.
const DAYS: u16 = 14;

/// Question of a plan.
pub(super) struct Question<'a> {
    pub(super) rate: Option<BitRate>,
    pub(super) state: Option<&'a Path>,
    pub(super) general: Option<BitRate>,
    pub(super) hours: f64,
    pub(super) outage: f64,
    pub(super) disk: Option<ByteSize>,
    pub(super) schedule: Option<&'a Path>,
}

pub(super) fn plan(question: &Question<'_>, out: &mut Out) -> Result<()> {
    let archive = rate(question)?;
    let general = general_limit(archive, question.general).map_err(Failure::usage)?;
    let time = Hours::new(question.hours);
    let maximum = maximum_limit(archive, general, time).map_err(Failure::usage)?;
    let outage = Hours::new(question.outage);
    let space = outage_space(general, outage);
    let caught_up = outage_catch_up(archive, general, outage);
    let schedule = question.schedule.map(|file| schedule(file, question)).transpose()?;
    let outcome =
        schedule.map(|schedule| simulate(&schedule, archive).map_err(Failure::usage)).transpose()?;
    let after = |caught_up: CatchUp| match caught_up {
        CatchUp::After(hours) => Some(hours.get()),
        CatchUp::Never => None,
    };
    if out.is_json() {
        out.object(&PlannedArchive {
            rate_bits: archive.bits(),
            general_bits: general.bits(),
            hours: time.get(),
            maximum_bits: maximum.bits(),
            outage_hours: outage.get(),
            outage_bytes: space.0,
            catch_up_hours: after(caught_up),
            schedule: outcome.as_ref().map(spelled),
        })?;
    } else {
        out.line(format_args!("archive rate    {archive}"))?;
        out.line(format_args!("general limit   {general}"))?;
        out.line(format_args!("maximum limit   {maximum} for {time}"))?;
        out.line(format_args!(
            "outage          {space} of disk for {outage}, then caught up in {caught_up}"
        ))?;
        if let Some(disk) = question.disk
            && disk < space
        {
            out.line(format_args!("disk            {disk} is less than that"))?;
        }
        if let Some(outcome) = &outcome {
            show(outcome, out)?;
        }
    }
    match outcome.map(|outcome| outcome.verdict) {
        None | Some(Verdict::Archivable) => Ok(()),
        Some(Verdict::Late) => Err(Failure::failed("the schedule cannot be archived within a day")
            .advice("lower the rates above their maximum limit, or move projects apart")),
        Some(Verdict::DiskFull) => {
            Err(Failure::failed("the schedule fills the disk before the archive catches up")
                .advice("lower the rates, or give the instrument a larger disk"))
        }
    }
}

fn rate(question: &Question<'_>) -> Result<BitRate> {
    if let Some(rate) = question.rate {
        return Ok(rate);
    }
    let state = question.state.ok_or_else(|| Failure::usage("no rate is known").advice("give --rate"))?;
    let measured = state::history(state, DAYS)?.archive_rate();
    let measured = measured.ok_or_else(|| {
        Failure::nothing(format_args!("the shipper has sent nothing in the last {DAYS} days"))
            .advice("give --rate")
    })?;
    Ok(measured.rate)
}

fn schedule(file: &Path, question: &Question<'_>) -> Result<Schedule> {
    let text = std::fs::read_to_string(file);
    let text = text.map_err(|error| Failure::io("cannot read the schedule", file, &error))?;
    let mut schedule = Schedule::from_toml(&text).map_err(|error| Failure::usage(error).at_path(file))?;
    schedule.general = question.general.or(schedule.general);
    schedule.disk = question.disk.or(schedule.disk);
    Ok(schedule)
}

fn verdict(verdict: Verdict) -> &'static str {
    match verdict {
        Verdict::Archivable => "archivable",
        Verdict::Late => "late",
        Verdict::DiskFull => "disk full",
    }
}

fn limit(limit: ProjectLimit) -> &'static str {
    match limit {
        ProjectLimit::WithinGeneral => "within the general limit",
        ProjectLimit::WithinMaximum => "within its maximum limit",
        ProjectLimit::AboveMaximum => "above its maximum limit",
    }
}

fn spelled(outcome: &Outcome) -> PlannedSchedule<'_> {
    let project = |project: &ProjectVerdict| PlannedProject {
        name: project.name.clone(),
        rate_bits: project.rate.bits(),
        maximum_bits: project.maximum.bits(),
        limit: limit(project.limit),
    };
    PlannedSchedule {
        verdict: verdict(outcome.verdict),
        peak_bytes: outcome.peak.backlog.0,
        peak_hours: outcome.peak.at.get(),
        full_hours: outcome.full_at.map(Hours::get),
        caught_up_hours: outcome.caught_up_at.get(),
        longest_backlog_hours: outcome.longest_backlog.get(),
        projects: outcome.projects.iter().map(project).collect(),
    }
}

fn show(outcome: &Outcome, out: &mut Out) -> Result<()> {
    out.line(format_args!("schedule        {}", verdict(outcome.verdict)))?;
    let peak = &outcome.peak;
    out.line(format_args!("backlog         at most {} at {}", peak.backlog, peak.at.as_moment()))?;
    if let Some(full) = outcome.full_at {
        out.line(format_args!("disk full       at {}", full.as_moment()))?;
    }
    out.line(format_args!("caught up       at {}", outcome.caught_up_at.as_moment()))?;
    for project in &outcome.projects {
        let (name, judged) = (clean(&project.name), limit(project.limit));
        out.line(format_args!("project         {name}: {}, {judged} of {}", project.rate, project.maximum))?;
    }
    Ok(())
}
