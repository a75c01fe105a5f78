//! A profile from beginning to end: the order of the measurements, their shares of the time, and their
//! combined results.

use super::fit;
use super::plan::{Places, zones};
use super::probe::{Direction, LARGE, PAIR, Probe};
use super::survey::{Sampled, SeekTimes, Survey};
use super::{Identity, Profile, ProfileBuffers, ProfileError, ReadError, Reposition};
use crate::Disk;
use holdfast_base::{ByteSize, Clock, Rate, Timestamp};
use std::ops::Range;
use std::time::Duration;

/// Samples of each way from place to place, in a measurement that lasts minutes.
const SAMPLES: usize = 48;

/// What is to be measured, and how.
#[derive(Clone, Debug)]
pub struct Subject {
    /// Which device.
    pub device: Identity,
    /// How long the drive tries before it gives a read up.
    pub read_error: ReadError,
    /// Whether it has a volatile write cache that is on.
    pub write_cache: Option<bool>,
    /// Whether it can be told that places are free.
    pub discard: bool,
    /// What may be written: nothing else is.
    pub writable: Vec<Range<u64>>,
    /// Where slots are, or would be: writing has to be measured towards both ends of that.
    pub slots: Range<u64>,
    /// Stretches that it is divided into, at first.
    pub zones: u16,
    /// How long it may take, preconditioning left aside.
    pub lasts: Duration,
    /// Whether all that may be written is to be written once before.
    pub precondition: bool,
    /// Whether every place is known to have been written at some time.
    pub preconditioned: bool,
    /// Elements a second that the packer manages on this machine, of 20 bytes.
    pub packer_elements: u64,
    /// Cells of attributes a second that it manages; 0: that was not measured.
    pub packer_cells: u64,
    /// Bytes a second that it manages with elements of 1 MiB.
    pub packer_bytes: Rate,
    /// What is to be said of it in any case.
    pub remarks: Vec<String>,
}

/// A drive with a head that stands still for a larger share of the time, in millionths, rewrites what it was not asked to.
const SHINGLED: u32 = 50_000;

/// How far a measurement is.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ProfileProgress {
    /// What is done now.
    pub what: &'static str,
    /// How much of all is done, from 0 to 1.
    pub part: f64,
    /// How long it will take yet.
    pub left: Duration,
}

/// Shares of the time; what is left is for watching.
mod share {
    pub(super) const ROUGH: f64 = 0.01;
    pub(super) const WRITE: f64 = 0.25;
    pub(super) const READ: f64 = 0.18;
    pub(super) const WAYS: f64 = 0.10;
    pub(super) const BLOCKS: f64 = 0.06;
    pub(super) const DEPTHS: f64 = 0.06;
    pub(super) const PARALLEL: f64 = 0.03;
    pub(super) const BESIDE: f64 = 0.03;
    /// At least, however long the others took.
    pub(super) const WATCH: f64 = 0.10;
}

/// Measures a device. Nothing is written but what `subject` allows; what was there is lost.
pub fn profile(
    disk: &mut dyn Disk,
    clock: &dyn Clock,
    buffers: ProfileBuffers,
    subject: &Subject,
    told: &mut dyn FnMut(ProfileProgress),
) -> Result<Profile, ProfileError> {
    let at = clock.wall();
    let probe = Probe::new(disk, clock, buffers);
    let mut survey = Survey::new(probe, &subject.writable);
    let mut parts = divided(&survey, subject)?;
    if subject.precondition {
        write_all(&mut survey, subject.lasts, told)?;
    }
    let (start, lasts) = (survey.probe.now(), subject.lasts);
    let of = |share: f64| lasts.mul_f64(share);
    let mut tell = |what, now: Timestamp| {
        let gone = now.since(start);
        let part = (gone.as_secs_f64() / lasts.as_secs_f64().max(1e-9)).min(1.0);
        told(ProfileProgress { what, part, left: lasts.saturating_sub(gone) });
    };
    tell("writing, zone by zone", start);
    let rough = survey.rough(of(share::ROUGH))?;
    survey.zones(Direction::Write, &mut parts, rough, of(share::WRITE), &mut |now| {
        tell("writing, zone by zone", now);
    })?;
    survey.zones(Direction::Read, &mut parts, rough, of(share::READ), &mut |now| {
        tell("reading, zone by zone", now);
    })?;
    tell("going from place to place", survey.probe.now());
    let count = (SAMPLES as f64 * lasts.as_secs_f64() / 60.0).clamp(8.0, SAMPLES as f64) as usize;
    let ways = survey.ways(count, of(share::WAYS))?;
    tell("sizes and numbers of requests", survey.probe.now());
    let alone = parts.iter().find_map(|part| part.write.first().copied()).unwrap_or(rough);
    let (by_block, commit) = survey.blocks(alone, of(share::BLOCKS))?;
    let by_depth = survey.depths(of(share::DEPTHS))?;
    let head = Survey::has_head(subject.device.rotational, &ways);
    let parallel = if head { 1 } else { survey.parallel(of(share::PARALLEL))? };
    let beside = survey.beside(parallel, of(share::BESIDE))?;
    let until = (start + lasts).max(survey.probe.now() + of(share::WATCH));
    survey.watch(&mut parts, until, &mut |now| tell("watching for stalls", now))?;
    let front = Some(fill(&mut parts)).filter(|front| *front > subject.slots.start);
    let zones: Vec<_> = parts.into_iter().flat_map(Sampled::split).map(|part| part.zone()).collect();
    let stalls = fit::stalls(&mut survey.stalls, survey.watched);
    let shingled = head && stalls.rho > SHINGLED;
    Ok(Profile {
        device: subject.device.clone(),
        at,
        zones,
        reposition: reposition(&ways),
        commit,
        read_error: subject.read_error,
        stalls,
        by_block,
        by_depth,
        parallel,
        write_beside_reads: beside,
        write_cache: subject.write_cache,
        discard: subject.discard,
        preconditioned: subject.precondition || subject.preconditioned,
        packer_elements: subject.packer_elements,
        packer_cells: subject.packer_cells,
        packer_bytes: subject.packer_bytes,
        remarks: remarks(subject, &survey, front, shingled),
    })
}

fn reposition(ways: &SeekTimes) -> Reposition {
    let SeekTimes { near, mean, worst, turnaround } = *ways;
    Reposition { near, mean, worst: worst.max(mean), turnaround }
}

/// The zones, once it is clear that they can be measured: what lies between two zones is told by them, and what lies in
/// front of the first by that and by reading, but not what lies beyond, where there are slots.
fn divided(survey: &Survey<'_>, subject: &Subject) -> Result<Vec<Sampled>, ProfileError> {
    let disk = survey.probe.name();
    if survey.bytes < 1 << 20 {
        return Err(ProfileError::Small { disk });
    }
    let zones = zones(survey.bytes, subject.zones);
    let slots = Places::new(std::slice::from_ref(&subject.slots), survey.bytes);
    let used = zones.iter().filter(|zone| slots.within(zone).enough());
    let has_room: Vec<bool> = used.map(|zone| survey.writable.within(zone).enough()).collect();
    if has_room.last() != Some(&true) {
        let known = has_room.iter().filter(|room| **room).count();
        return Err(ProfileError::Places { disk, zones: known, all: has_room.len() });
    }
    Ok(zones.into_iter().map(Sampled::new).collect())
}

/// Everything that may be written, once.
fn write_all(
    survey: &mut Survey<'_>,
    after: Duration,
    told: &mut dyn FnMut(ProfileProgress),
) -> Result<(), ProfileError> {
    let (all, start) = (survey.writable.bytes(), survey.probe.now());
    let lot = 64 * LARGE as u64;
    let mut at = 0;
    while at < all {
        let pieces = survey.writable.pieces(at, lot, LARGE);
        survey.probe.row(Direction::Write, &pieces, PAIR, None)?;
        at += lot;
        let (done, took) = (at.min(all), survey.probe.now().since(start));
        let whole = took.mul_f64(all as f64 / done as f64);
        told(ProfileProgress {
            what: "writing everything once",
            part: done as f64 / all as f64,
            left: whole.saturating_sub(took) + after,
        });
    }
    Ok(())
}

/// A zone in which nothing may be written is taken to be as slow as the slower of its next neighbours; in front of the
/// first that was written, to be slower than that by as much as it reads more slowly. Drives that turn are faster in front.
/// Where that first one begins.
fn fill(parts: &mut [Sampled]) -> u64 {
    let worst = |rates: &[Rate]| rates.iter().copied().min();
    let known: Vec<Option<Rate>> = parts.iter().map(|part| worst(&part.write)).collect();
    let first = known.iter().position(Option::is_some).unwrap_or(0);
    let read = parts.get(first).and_then(|part| worst(&part.read)).unwrap_or_default();
    for part in &mut parts[..first] {
        let share = worst(&part.read).map_or(1.0, |here| (here.0 as f64 / (read.0 as f64).max(1.0)).min(1.0));
        part.write.extend(known[first].map(|rate| Rate((rate.0 as f64 * share) as u64)));
    }
    for (at, part) in parts.iter_mut().enumerate() {
        if at > first && known[at].is_none() {
            let before = known[..at].iter().rev().flatten().next();
            let after = known[at..].iter().flatten().next();
            part.write = before.into_iter().chain(after).copied().min().into_iter().collect();
        }
    }
    parts.get(first).map_or(0, |part| part.zone.start)
}

/// What a person should know besides, and no field says.
fn remarks(subject: &Subject, survey: &Survey<'_>, front: Option<u64>, shingled: bool) -> Vec<String> {
    let (watched, unread) = (survey.watched, survey.probe.unread);
    let mut remarks = subject.remarks.clone();
    if shingled {
        remarks.push(
            "it stood still for much of the time, as drives with overlapping tracks (shingled, SMR) do: do not rely on \
             anything in this profile"
                .to_owned(),
        );
    }
    if let Some(front) = front {
        remarks.push(format!(
            "writing could not be measured in the first {}: in front of what was free it is taken to be no faster than \
             there, and slower by as much as reading is",
            ByteSize(front)
        ));
    }
    if let Some(piece) = survey.hurried {
        remarks.push(format!(
            "there was time to write {} at once only, which takes longer than slots do: it may be faster than this says; \
             measure for longer, or fewer stretches",
            ByteSize(piece as u64)
        ));
    }
    if subject.lasts < Duration::from_mins(5) {
        remarks.push(format!(
            "watched for {watched:.0?} only: stalls that come less often are not in this profile"
        ));
    }
    if unread > 0 {
        remarks.push(format!("{unread} reads failed: the device has bad places"));
    }
    remarks
}
