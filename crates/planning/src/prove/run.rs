//! Run of a proof: all stages in order, and the reading back of what was sent.

use super::drive::{Driven, Job, drive};
use super::pattern::Pattern;
use super::read_back::read_back;
use super::report::{Proof, ProvedRing};
use super::ring::{Subject, device, machine};
use super::stages::{Stage, is_read_back_now, stages};
use super::tally::Sent;
use super::verdict::{Measured, StageResult, judge};
use holdfast_base::ByteSize;
use holdfast_base::failure::Result;
use holdfast_client::session::{self, ring_failure};
use holdfast_client::{Notices, random};
use holdfast_format::Superblock;
use std::fs;
use std::path::Path;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

/// Proof to be run.
#[derive(Clone, Copy)]
pub struct ProofRun<'a> {
    /// Path of the ring.
    pub path: &'a Path,
    /// Time that all stages take.
    pub lasts: Duration,
    /// Record with realtime priority.
    pub realtime: bool,
    /// The ring, and what it has promised.
    pub subject: &'a Subject,
    /// The superblock of the empty ring.
    pub superblock: &'a Superblock,
    /// Set when somebody wants the proof to end.
    pub stop: &'a AtomicBool,
    /// Receiver of notices.
    pub notices: &'a Notices,
}

/// Progress of a proof.
#[derive(Clone, Copy, Debug)]
pub enum Progress {
    /// A stage is under way.
    Stage {
        /// Name of the stage.
        name: &'static str,
        /// Time that all stages have taken so far.
        done: Duration,
        /// Time that all stages take.
        total: Duration,
    },
    /// What was sent is read back; the part that is done.
    ReadBack(f64),
}

/// Drives an empty ring through all stages, until `stop` is set. The ring holds data of the proof afterwards.
pub fn prove(run: &ProofRun<'_>, progress: &mut dyn FnMut(Progress)) -> Result<Proof> {
    let ProofRun { path, lasts, realtime, subject, superblock, stop, notices } = *run;
    let seed = u64::from_le_bytes(random::bytes()?);
    let slot = ByteSize(superblock.geometry.slot_bytes);
    let promised = subject.promised.as_ref().map(|(promised, _)| promised);
    let job = Job {
        ring: path,
        pattern: Pattern::new(seed),
        element: subject.element,
        rate: subject.rate,
        promised,
        slot,
        realtime,
        stop,
        notices,
    };
    let began = session::now();
    let all = stages(lasts, subject.rate, promised);
    let mut account = Account::default();
    for (number, stage) in all.iter().enumerate() {
        let before: Duration = all[..number].iter().map(|stage| stage.lasts).sum();
        let driven = drive(&job, stage, account.next, &mut |took| {
            let done = before + took.min(stage.lasts);
            progress(Progress::Stage { name: stage.kind.name(), done, total: lasts });
        })?;
        account.add(driven);
        account.look_back(&job, &all[number + 1..], progress)?;
    }
    let (format, version, holdfast) = Proof::head();
    let judged = judge(&account.measured, subject.rate, promised);
    let sum = |of: fn(&StageResult) -> u64| account.measured.stages.iter().map(of).sum();
    Ok(Proof {
        format,
        version,
        holdfast,
        verdict: judged.verdict,
        reasons: judged.reasons,
        notes: judged.notes,
        began,
        ended: began,
        ring: ProvedRing {
            path: fs::canonicalize(path).unwrap_or_else(|_| path.to_owned()).display().to_string(),
            name: superblock.name.clone(),
            lane_bytes: superblock.geometry.lane_bytes,
            slot_bytes: slot.0,
            slots: superblock.geometry.slots,
        },
        device: device(path),
        machine: machine(realtime),
        terms: subject.promised.as_ref().map(|(_, terms)| terms.clone()),
        seed,
        element_bytes: subject.element,
        rate_bytes_per_second: subject.rate.0,
        sent_elements: sum(|stage| stage.sent_elements),
        sent_bytes: sum(|stage| stage.sent_bytes),
        lost_elements: sum(|stage| stage.lost_elements),
        gaps: sum(|stage| stage.gaps),
        measured: account.measured,
    })
}

/// What has come of it so far.
#[derive(Default)]
struct Account {
    measured: Measured,
    /// The element that comes next.
    next: u64,
    /// The first that was not read back.
    from: u64,
    held: Vec<(u64, u64)>,
}

impl Account {
    fn add(&mut self, driven: Driven) {
        self.next = driven.next;
        self.held.extend(driven.held);
        self.measured.wrong += driven.wrong;
        self.measured.faults.extend(driven.faults);
        self.measured.stages.push(driven.result);
    }

    /// Reads back what was not, if what comes would overwrite it or nothing comes.
    fn look_back(
        &mut self,
        job: &Job<'_>,
        coming: &[Stage],
        progress: &mut dyn FnMut(Progress),
    ) -> Result<()> {
        if !coming.is_empty() {
            let status = session::open(job.ring)?.status().map_err(|error| ring_failure(&error))?;
            if !is_read_back_now(status.ring.slots.free.into(), job.slot, coming) {
                return Ok(());
            }
        }
        let sent = Sent { pattern: job.pattern, element: job.element, from: self.from, to: self.next };
        let tally = read_back(job.ring, sent, &self.held, job.stop, &mut |part| {
            progress(Progress::ReadBack(part));
        })?;
        let back = &mut self.measured.read_back;
        back.elements += tally.elements;
        back.bytes += tally.bytes;
        back.lost_elements += tally.lost;
        back.gaps += tally.gaps;
        back.expired_elements +=
            (sent.to - sent.from).saturating_sub(tally.elements + tally.lost + tally.wrong);
        self.measured.wrong += tally.wrong;
        self.measured.faults.extend(tally.faults);
        self.from = self.next;
        Ok(())
    }
}
